// The base class of the gadgets: properties, images from a buffer or bucket, and errors as lines of the log.
#pragma once

#include "calibration.h"
#include "engine.h"

#include <Node.h>
#include <mri_core_acquisition_bucket.h>
#include <mri_core_data.h>

#include <optional>

namespace recon_gadgets {

// Types of properties, besides text and bool. A property is checked by its type when it is read.
struct Fraction {  // from 0 to 1
    double value;
};
struct NonNegative {
    double value;
};
struct Milliseconds {  // of any sign
    double value;
};
struct Count {
    std::size_t value;
};

// A buffer (IsmrmrdReconData), or a bucket of acquisitions without a buffer (AcquisitionBucket). All shots of a bucket
// are used, with any kspace_encode_step_1. They may differ in length. Images may be maps of off-resonance or decay; all
// of them go on to the next gadget. Images of other numbers than float are read so that a map of them is an error.
using Input = Gadgetron::Core::variant<
    Gadgetron::IsmrmrdReconData, Gadgetron::AcquisitionBucket, Gadgetron::IsmrmrdImageArray,
    Gadgetron::Core::Image<float>, Gadgetron::Core::Image<double>, Gadgetron::Core::Image<std::complex<float>>,
    Gadgetron::Core::Image<std::complex<double>>, Gadgetron::Core::Image<std::int16_t>,
    Gadgetron::Core::Image<std::uint16_t>, Gadgetron::Core::Image<std::int32_t>,
    Gadgetron::Core::Image<std::uint32_t>>;

struct Images;

class ReconGadgetBase : public Gadgetron::Core::ChannelGadget<Input> {
public:
    void process(Gadgetron::Core::InputChannel<Input> &in, Gadgetron::Core::OutputChannel &out) final;

protected:
    ReconGadgetBase(const char *name, Method method, const Gadgetron::Core::Context &context,
                    const Gadgetron::Core::GadgetProperties &properties);

    // NODE_PROPERTY calls this instead of Gadgetron's function, which reads "12abc" as 12 and does not name the
    // property.
    template <class T, class Default>
    T get_property(const std::string &name, Default fallback, const std::string &) {
        if constexpr (std::is_same_v<T, Fraction>) {
            return Fraction{properties_.number(name, fallback, 0, 1)};
        } else if constexpr (std::is_same_v<T, NonNegative>) {
            return NonNegative{properties_.number(name, fallback, 0, 1e30)};
        } else if constexpr (std::is_same_v<T, Milliseconds>) {
            return Milliseconds{properties_.number(name, fallback, -1e6, 1e6)};
        } else if constexpr (std::is_same_v<T, Count>) {
            return Count{properties_.count(name, fallback, 1000000000)};
        } else if constexpr (std::is_same_v<T, bool>) {
            return properties_.flag(name, fallback);
        } else {
            return properties_.text(name, fallback);
        }
    }

    // Reads the properties that only one gadget has.
    virtual void add_settings(Settings &) const {}

private:
    const std::string name_;
    const Method method_;
    Properties properties_;

public:
    NODE_PROPERTY(tolerance, Fraction,
                  "Relative error of the transforms against the exact sums; 0: the library's default, 1e-5", 0);
    NODE_PROPERTY(width, Count, "Width of the gridding window in cells, 2 to 16; 0: one that keeps the tolerance", 0);
    NODE_PROPERTY(oversampling, NonNegative,
                  "Size of the grid over that of the image, 1.25 to 2.5; 0: one between 1.25 and 2 that keeps the "
                  "tolerance",
                  0);
    NODE_PROPERTY(
        density, std::string,
        "Density weights: auto (the last component of the trajectory, else pipe-menon), pipe-menon, jackson or ramp",
        "auto");
    NODE_PROPERTY(
        coil_maps, std::string,
        "Coil sensitivity maps that combine the coils: none, data (from the calibration acquisitions of a slice, or "
        "from its first data if there are none), or reference (from its calibration acquisitions, which must be there)",
        method_ == Method::Cg ? "data" : "none");
    NODE_PROPERTY(calibration, Count,
                  "Width of the centre of k-space that coil maps are estimated from, in Cartesian samples; 0: 24", 0);
    NODE_PROPERTY(coil_maps_every, Count,
                  "Number of images of a slice after which its coil maps are estimated again; 0: never", 0);
    NODE_PROPERTY(field_map, std::string,
                  "Off-resonance in Hz: none, images (those of the chain with the attribute recon_map = field_map that "
                  "come before the data), or an ISMRMRD file with one image, or one for each slice",
                  "none");
    NODE_PROPERTY(decay_map, std::string,
                  "Decay rates R2* in 1/s: none, images (with recon_map = decay_map), or an ISMRMRD file", "none");
    NODE_PROPERTY(map_series, Count, "Which series of these files: the images of dataset/image_N", 0);
    NODE_PROPERTY(dwell, NonNegative,
                  "With a map: microseconds from one sample of a shot to the next; 0: sample_time_us of the headers",
                  0);
    NODE_PROPERTY(readout_start, Milliseconds,
                  "With a map: milliseconds from the moment whose image is wanted (the excitation, or the echo) to the "
                  "first sample of each shot; negative where that moment comes later",
                  0);
    NODE_PROPERTY(compress, std::string,
                  "Virtual coils that are made of the coils: none, a number, or a percentage of the energy such as 99%",
                  "none");
    NODE_PROPERTY(
        combine, std::string,
        "Combination of the coils without coil maps: rss, adaptive, or auto (adaptive where output is complex)",
        "auto");
    NODE_PROPERTY(output, std::string, "Images: magnitude, complex, or coils (complex, one channel for each coil)",
                  "magnitude");
    NODE_PROPERTY(send, std::string,
                  "Messages to the next gadget: images (each image by itself, as soon as it is made), or arrays (all "
                  "images of a buffer in one IsmrmrdImageArray, for gadgets that require it)",
                  "images");
    NODE_PROPERTY(window, Count, "Length of the sliding window: number of newest buffers that an image is made of", 1);
    NODE_PROPERTY(device, std::string, "Where to compute: auto, cpu, cuda, or a list of GPUs, for example cuda:0,1",
                  "auto");
    NODE_PROPERTY(threads, Count, "CPU threads; 0: all that the machine has", 0);
    NODE_PROPERTY(plans, Count, "Number of plans that are kept, for trajectories that occur again", 16);
    NODE_PROPERTY(memory, Count, "Memory limit of the kept plans in mebibytes; 0: no limit", 0);
    NODE_PROPERTY(image_series, Count,
                  "image_series_index of the first encoding's images; the next encodings have the next numbers", 1);
    NODE_PROPERTY(timing, bool, "Log the milliseconds of each stage", false);

private:
    Settings settings() const;
    void log_properties() const;
    void log_errors(const std::string &where, const std::vector<std::string> &problems, std::size_t images) const;
    // Logs the first warning of each cause on a connection.
    void warn_once(const std::string &where, const std::optional<Warning> &warning);
    Spaces spaces(std::size_t encoding, const Gadgetron::SamplingDescription *sampling) const;

    // Images of the chain that may be maps.
    void take_maps(Engine &engine, const Gadgetron::IsmrmrdImageArray &images) const;
    template <class T>
    void take_maps(Engine &engine, const Gadgetron::Core::Image<T> &image) const;
    // Reconstruct the images of a buffer or bucket, and send them to the next gadget.
    void send_images(Engine &engine, const Gadgetron::IsmrmrdReconData &data, Gadgetron::Core::OutputChannel &out);
    void send_images(Engine &engine, const Gadgetron::AcquisitionBucket &bucket, Gadgetron::Core::OutputChannel &out);
    // Keeps a copy of calibration data, for the coil maps of its slice.
    void keep_reference(const std::vector<Shot> &shots);
    // Reconstructs frame `frame` of `images`.
    void image(Engine &engine, const std::vector<Shot> &shots, const Spaces &spaces, Images &images, std::size_t frame);

    std::map<std::size_t, std::size_t> counts_;      // images of each encoding so far
    std::map<SliceKey, ShotCollector> collectors_;   // shots of images that come in several buckets
    CalibrationData calibration_data_;
    std::map<std::size_t, std::size_t> most_shots_;  // largest number of shots of an image, for each encoding
    WarningCounter warnings_;
};

}  // namespace recon_gadgets
