// What the gadgets share: properties, the way from a buffer or bucket to images, errors in one line of the log.
#pragma once

#include "engine.h"

#include <Node.h>
#include <mri_core_acquisition_bucket.h>
#include <mri_core_data.h>

#include <optional>

namespace recon_gadgets {

// Types of properties, beside text and bool, so that each is checked when it is read.
struct Fraction {  // from 0 to 1
    double value;
};
struct Amount {  // 0 or more
    double value;
};
struct Count {
    std::size_t value;
};

// A buffer (IsmrmrdReconData), or a bucket of acquisitions (AcquisitionBucket) that was not buffered: then shots are
// taken as they come, whatever kspace_encode_step_1 says, and may differ in length.
using Input = Gadgetron::Core::variant<Gadgetron::IsmrmrdReconData, Gadgetron::AcquisitionBucket>;

struct Images;

class ReconGadgetBase : public Gadgetron::Core::ChannelGadget<Input> {
public:
    void process(Gadgetron::Core::InputChannel<Input> &in, Gadgetron::Core::OutputChannel &out) final;

protected:
    ReconGadgetBase(const char *name, Method method, const Gadgetron::Core::Context &context,
                    const Gadgetron::Core::GadgetProperties &properties);

    // Called by NODE_PROPERTY in place of Gadgetron's own, which takes "12abc" for 12 and does not name the property.
    template <class T, class Default>
    T get_property(const std::string &name, Default fallback, const std::string &) {
        if constexpr (std::is_same_v<T, Fraction>) {
            return Fraction{properties_.number(name, fallback, 0, 1)};
        } else if constexpr (std::is_same_v<T, Amount>) {
            return Amount{properties_.number(name, fallback, 0, 1e30)};
        } else if constexpr (std::is_same_v<T, Count>) {
            return Count{properties_.count(name, fallback, 1000000000)};
        } else if constexpr (std::is_same_v<T, bool>) {
            return properties_.flag(name, fallback);
        } else {
            return properties_.text(name, fallback);
        }
    }

    // The properties of one gadget alone.
    virtual void complete(Settings &) const {}

private:
    const std::string name_;
    const Method method_;
    Properties properties_;

public:
    NODE_PROPERTY(tolerance, Fraction, "Relative error of the transforms against the exact sums; 0: the library's default, 1e-5",
                  0);
    NODE_PROPERTY(
        density, std::string,
        "Density weights: auto (the last component of the trajectory, else pipe-menon), pipe-menon, jackson or ramp",
        "auto");
    NODE_PROPERTY(
        coil_maps, std::string,
        "Sensitivities that combine the coils: none, data (from the first data of a slice), or reference (from its "
        "calibration acquisitions)",
        method_ == Method::Cg ? "data" : "none");
    NODE_PROPERTY(calibration, Count,
                  "Width of the centre of k-space that maps are made from, in Cartesian samples; 0: 24", 0);
    NODE_PROPERTY(coil_maps_every, Count, "Make maps anew after so many images of a slice; 0: never", 0);
    NODE_PROPERTY(
        combine, std::string,
        "How coils become one image where there are no maps: rss, adaptive, or auto (adaptive where output is complex)",
        "auto");
    NODE_PROPERTY(output, std::string, "Images: magnitude, complex, or coils (complex, one channel a coil)",
                  "magnitude");
    NODE_PROPERTY(window, Count, "Buffers that an image is made of, the newest and those before it: a sliding window",
                  1);
    NODE_PROPERTY(device, std::string, "Where to compute: auto, cpu, cuda, or GPUs such as cuda:0,1", "auto");
    NODE_PROPERTY(threads, Count, "CPU threads; 0: as many as the machine runs at once", 0);
    NODE_PROPERTY(plans, Count, "Plans that are kept for trajectories that come again", 16);
    NODE_PROPERTY(memory, Count, "Mebibytes that kept plans may hold; 0: no limit", 0);
    NODE_PROPERTY(image_series, Count, "image_series_index of the first encoding's images; the others' follow", 1);
    NODE_PROPERTY(timing, bool, "Log the milliseconds of each stage", false);

private:
    Settings settings() const;
    void announce() const;
    void report(const std::string &where, const std::vector<std::string> &problems, std::size_t images) const;
    // A warning, if nothing was said of its cause on this connection.
    void tell(const std::string &where, const std::optional<Notice> &notice);
    Spaces spaces(std::size_t encoding, const Gadgetron::SamplingDescription *sampling) const;

    std::vector<Gadgetron::IsmrmrdImageArray> images(Engine &engine, const Gadgetron::IsmrmrdReconData &data);
    std::vector<Gadgetron::IsmrmrdImageArray> images(Engine &engine, const Gadgetron::AcquisitionBucket &bucket);
    // Makes the image of a frame.
    void image(Engine &engine, const std::vector<Shot> &shots, const std::vector<Shot> &reference, const Spaces &spaces,
               Images &images, std::size_t frame);

    std::map<std::size_t, std::size_t> counts_;   // images of each encoding so far
    std::map<Place, Gathering> gatherings_;        // of shots in buckets
    std::map<std::size_t, std::size_t> most_;      // shots that an image of each encoding had
    Notices notices_;
};

}  // namespace recon_gadgets
