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

// Acquisitions as the scanner sends them, a bucket of acquisitions, or a buffer (IsmrmrdReconData). Images may be maps
// of off-resonance or decay; all of them are sent to the next gadget. Images of other types than float are accepted so
// that the error of a map with such a type can name it.
using InputMessage = Gadgetron::Core::variant<
    Gadgetron::Core::Acquisition, Gadgetron::IsmrmrdReconData, Gadgetron::AcquisitionBucket,
    Gadgetron::IsmrmrdImageArray, Gadgetron::Core::Image<float>, Gadgetron::Core::Image<double>,
    Gadgetron::Core::Image<std::complex<float>>, Gadgetron::Core::Image<std::complex<double>>,
    Gadgetron::Core::Image<std::int16_t>, Gadgetron::Core::Image<std::uint16_t>, Gadgetron::Core::Image<std::int32_t>,
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

// A gadget that makes images. Derived classes set the method.
class ReconGadgetBase : public Gadgetron::Core::ChannelGadget<InputMessage> {
public:
    void process(Gadgetron::Core::InputChannel<InputMessage> &in, Gadgetron::Core::OutputChannel &out) final;

protected:
    ReconGadgetBase(const char *name, Method method, const Gadgetron::Core::Context &context,
                    const Gadgetron::Core::GadgetProperties &properties);

private:
    const std::string name_;
    const Method method_;
    Properties properties_;

    // gadget_base.cpp:

    // Begins the scan. `is_first_gadget`: the gadget receives all acquisitions of the measurement.
    void begin_scan(bool is_first_gadget);
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
