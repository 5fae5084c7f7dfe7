// The base class of the gadgets: properties, images from a buffer or bucket, and errors as lines of the log.
#pragma once

#include "empty_frames.h"
#include "engine.h"
#include "image_batch.h"
#include "scan_feed.h"

#include <Node.h>
#include <mri_core_acquisition_bucket.h>
#include <mri_core_data.h>

#include <new>

namespace recon_gadgets {

// Types of properties, in addition to text and bool. Each type has its own check of the text.
struct Fraction {  // from 0 to 1
    double value;
};
struct NonNegative {
    double value;
};
struct Milliseconds {  // positive or negative
    double value;
};
struct Count {
    std::size_t value;
};

// Acquisitions as the scanner sends them, a bucket of acquisitions, or a buffer (IsmrmrdReconData). Images may be maps of
// off-resonance or decay; all of them are sent to the next gadget. Images of other types than float are accepted so that
// the error of a map with such a type can name it.
using InputMessage = Gadgetron::Core::variant<
    Gadgetron::Core::Acquisition, Gadgetron::IsmrmrdReconData, Gadgetron::AcquisitionBucket, Gadgetron::IsmrmrdImageArray,
    Gadgetron::Core::Image<float>, Gadgetron::Core::Image<double>, Gadgetron::Core::Image<std::complex<float>>,
    Gadgetron::Core::Image<std::complex<double>>, Gadgetron::Core::Image<std::int16_t>,
    Gadgetron::Core::Image<std::uint16_t>, Gadgetron::Core::Image<std::int32_t>,
    Gadgetron::Core::Image<std::uint32_t>>;

// Calls f, and adds its error to the problems, so that the next image is still made.
template <class F>
void attempt(std::vector<std::string> &problems, F f) {
    try {
        f();
    } catch (const std::bad_alloc &) {
        problems.push_back(
            "the host is out of memory: reconstruct fewer images at once, or lower property plans or memory");
    } catch (const std::exception &e) {
        problems.push_back(e.what());
    }
}

// A gadget that makes images. Derived classes set the method and add its properties.
class ReconGadgetBase : public Gadgetron::Core::ChannelGadget<InputMessage> {
public:
    void process(Gadgetron::Core::InputChannel<InputMessage> &in, Gadgetron::Core::OutputChannel &out) final;

protected:
    ReconGadgetBase(const char *name, Method method, const Gadgetron::Core::Context &context,
                    const Gadgetron::Core::GadgetProperties &properties);

    // Returns the checked value of a property. NODE_PROPERTY calls this instead of Gadgetron's function, which reads
    // "12abc" as 12 and does not name the property.
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
    NODE_PROPERTY(width, Count, "Width of the gridding window in cells, 2 to 16; 0: chosen to meet the tolerance", 0);
    NODE_PROPERTY(oversampling, NonNegative,
                  "Ratio of the grid size to the image size, 1.25 to 2.5; 0: chosen between 1.25 and 2 to meet the "
                  "tolerance",
                  0);
    NODE_PROPERTY(
        density, std::string,
        "Density weights: auto (the last component of the trajectory, else pipe-menon), pipe-menon, jackson or ramp",
        "auto");
    NODE_PROPERTY(
        coil_maps, std::string,
        "Coil sensitivity maps that combine the coils: none, data (from the calibration acquisitions of a slice, or "
        "from its first data if there are none), or reference (from its calibration acquisitions, which are required)",
        method_ == Method::Cg ? "data" : "none");
    NODE_PROPERTY(calibration, Count,
                  "Width of the centre of k-space for the estimate of coil maps, in Cartesian samples; 0: 24", 0);
    NODE_PROPERTY(coil_maps_every, Count,
                  "Number of images of a slice after which its coil maps are estimated again; 0: never", 0);
    NODE_PROPERTY(field_map, std::string,
                  "Off-resonance in Hz: none, images (images of the chain before the data, with the attribute "
                  "recon_map = field_map), or an ISMRMRD file with one image, or one for each slice",
                  "none");
    NODE_PROPERTY(decay_map, std::string,
                  "Decay rates R2* in 1/s: none, images (with recon_map = decay_map), or an ISMRMRD file", "none");
    NODE_PROPERTY(map_series, Count, "Series of these files: N of dataset/image_N", 0);
    NODE_PROPERTY(dwell, NonNegative,
                  "With a map: microseconds from one sample of a shot to the next; 0: sample_time_us of the headers",
                  0);
    NODE_PROPERTY(readout_start, Milliseconds,
                  "With a map: milliseconds from the excitation, or the echo, to the first sample of each shot; "
                  "negative if the echo is later. The image shows the object at the excitation or echo",
                  0);
    NODE_PROPERTY(compress, std::string,
                  "Virtual coils that replace the coils: none, a number, or a percentage of the energy such as 99%",
                  "none");
    NODE_PROPERTY(
        combine, std::string,
        "Combination of the coils without coil maps: rss, adaptive, or auto (adaptive if output is complex)",
        "auto");
    NODE_PROPERTY(output, std::string, "Images: magnitude, complex, or coils (complex, one channel for each coil)",
                  "magnitude");
    NODE_PROPERTY(integers, bool,
                  "Send magnitudes as 16-bit unsigned integers; attribute recon_scale has their factor", false);
    NODE_PROPERTY(scale, NonNegative,
                  "With integers: the factor; 0: the largest value of the first image of each encoding becomes 4095", 0);
    NODE_PROPERTY(send, std::string,
                  "Messages to the next gadget: images (each image separately, as soon as it is made), or arrays (all "
                  "images of a buffer in one IsmrmrdImageArray, for gadgets that require it)",
                  "images");
    NODE_PROPERTY(device, std::string, "Device: auto, cpu, cuda, or a list of GPUs, for example cuda:0,1",
                  "auto");
    NODE_PROPERTY(threads, Count, "Number of CPU threads; 0: all of the machine", 0);
    NODE_PROPERTY(plans, Count, "Maximum number of cached plans, for trajectories that recur", 16);
    NODE_PROPERTY(memory, Count, "Memory limit of the cached plans in mebibytes; 0: no limit", 0);
    NODE_PROPERTY(image_series, Count,
                  "image_series_index of the first encoding's images; the next encodings have the next numbers", 1);
    NODE_PROPERTY(timing, bool, "Log the milliseconds of each stage", false);

private:
    // gadget_base.cpp:

    Settings settings();
    // Throws an Error if the last encoding's image_series_index would exceed 16 bits.
    void check_image_series(std::size_t series) const;
    void log_errors(const std::string &location, const std::vector<std::string> &problems, std::size_t images) const;
    // Logs the first warning of each cause on a connection.
    void warn_once(const std::string &location, const std::string &warning);
    // Logs what is known only when the connection ends: the numbers of messages.
    void log_end(bool had_data);
    // Stores images of the chain that are maps in the engine.
    void store_maps(const Gadgetron::IsmrmrdImageArray &images);
    template <class T>
    void store_maps(const Gadgetron::Core::Image<T> &image);

    // gadget_inputs.cpp:

    // Adds the acquisitions of a message to the scan, and sends the images that are complete to the next gadget.
    void send_images(const Gadgetron::Core::Acquisition &acquisition, Gadgetron::Core::OutputChannel &out);
    void send_images(const Gadgetron::AcquisitionBucket &bucket, Gadgetron::Core::OutputChannel &out);
    void send_images(const Gadgetron::IsmrmrdReconData &data, Gadgetron::Core::OutputChannel &out);
    void add(const Gadgetron::Core::Acquisition &acquisition);
    // Adds a frame of a buffer, and reconstructs its image. Returns whether it has one.
    bool send_frame(const BufferView &view, const std::optional<BufferView> &reference, std::size_t frame,
                    std::optional<ImageBatch> &batch, Gadgetron::Core::OutputChannel &out);
    void send_encoding(const Gadgetron::IsmrmrdReconBit &bit, std::size_t encoding,
                       Gadgetron::Core::OutputChannel &out);
    // Begins a new scan if an earlier gadget changed the spaces of an encoding.
    void apply_sampling(const Gadgetron::SamplingDescription &sampling, std::size_t encoding);
    // Returns whether BucketToBufferGadget shifts the rows of an encoding.
    bool has_shifted_rows(std::size_t encoding) const;

    // gadget_images.cpp:

    // Sends all complete images to the next gadget.
    void send_complete_images(Gadgetron::Core::OutputChannel &out);
    void send_image(const Samples &samples, Gadgetron::Core::OutputChannel &out);
    // Reconstructs frame `frame` of a batch.
    void make_image(const Samples &samples, ImageBatch &batch, std::size_t frame);
    // Returns the calibration data of an image, or nothing without coil maps or calibration data.
    std::optional<Samples> find_reference(const Samples &samples);
    ImageInfo image_info(const Samples &samples, const ReconstructionResult &result);
    void log_warnings(const std::string &location);
    void log_blades(const std::string &location, const BladeReport &blades) const;

    // While messages are processed:
    ISMRMRD::IsmrmrdHeader scan_header_;
    std::optional<Engine> engine_;
    std::optional<ScanFeed> scan_;
    std::optional<IntegerConverter> integers_;
    std::map<std::size_t, std::size_t> image_counts_;  // images of each encoding so far
    MessageCounter warnings_, refusals_;  // refusals: errors of single acquisitions
    std::vector<std::string> logged_refusals_;
};

}  // namespace recon_gadgets
