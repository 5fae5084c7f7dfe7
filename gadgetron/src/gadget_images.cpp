// One image of a gadget: its calibration data, its header and attributes, and its messages in the log.
#include "gadget_base.h"

#include "text.h"

#include <log.h>

#include <chrono>
#include <limits>

namespace recon_gadgets {

namespace {

using Clock = std::chrono::steady_clock;

const char *method_text(Method method) {
    switch (method) {
        case Method::Grid: return "gridding";
        case Method::Fbp: return "filtered backprojection";
        case Method::Propeller: return "gridding of corrected blades";
        case Method::Fhd: return "adjoint";
        case Method::Cg: return "conjugate gradients";
    }
    return "";
}

double milliseconds(Clock::time_point from, Clock::time_point to) {
    return std::chrono::duration<double, std::milli>(to - from).count();
}

}  // namespace

void ReconGadgetBase::send_complete_images(Gadgetron::Core::OutputChannel &out) {
    for (bool complete = false; !complete;) {
        std::vector<std::string> problems;
        std::string location;  // the errors of `next` contain it
        attempt(problems, [&] {
            const auto samples = scan_->next();
            complete = !samples;
            if (samples) {
                location = samples->describe();
                send_image(*samples, out);
            }
        });
        log_errors(location, problems, 0);
        log_warnings(location.empty() ? "an image" : location);
    }
}

void ReconGadgetBase::send_image(const Samples &samples, Gadgetron::Core::OutputChannel &out) {
    const Settings &settings = engine_->settings();
    // The next gadget owns the memory of an image before the next one is made.
    ImageBatch one(Grid(samples.properties()), engine_->channel_count(samples.coils()), 1, 1, 1);
    make_image(samples, one, 0);
    if (settings.send == MessageForm::ImageArrays) {
        one.send_arrays(out);
    } else if (settings.integers.enabled) {
        std::vector<std::string> warnings;
        one.send_integers(*integers_, warnings, out);
        for (const auto &warning : warnings) {
            warn_once(samples.describe(), warning);
        }
    } else {
        one.send_image(out);
    }
}

std::optional<Samples> ReconGadgetBase::find_reference(const Samples &samples) {
    if (engine_->settings().maps == CoilMapSource::None) {
        return {};
    }
    std::vector<std::string> warnings;
    auto reference = samples.calibration(warnings);
    for (const auto &warning : warnings) {
        warn_once(samples.describe(), warning);
    }
    return reference;
}

ImageInfo ReconGadgetBase::image_info(const Samples &samples, const ReconstructionResult &result) {
    const std::uint32_t encoding = samples.properties().encoding;
    ImageInfo info;
    info.channels = engine_->channel_count(samples.coils());
    info.magnitude = engine_->settings().output == ImageOutput::Magnitude;
    info.number = ++image_counts_[encoding];
    if (info.number == std::size_t(std::numeric_limits<std::uint16_t>::max()) + 1) {
        warn_once(samples.describe(), "it is image " + std::to_string(info.number) +
                                          " of its encoding on this connection, but image_index has 16 bits and begins "
                                          "again at 0: distinguish images by the attribute GADGETRON_ImageNumber, or "
                                          "measure in several parts");
    }
    info.series = std::uint16_t(engine_->settings().series + encoding);
    info.method = method_text(method_);
    info.iterations = result.iterations;
    info.residual = result.residual;
    info.blades = result.blades;
    return info;
}

void ReconGadgetBase::log_warnings(const std::string &location) {
    for (const auto &warning : scan_->take_warnings()) {
        warn_once(location, warning);
    }
}

void ReconGadgetBase::log_blades(const std::string &location, const BladeReport &blades) const {
    GINFO("%s: %s: %s\n", name_.c_str(), location.c_str(), blade_summary(blades).c_str());
    for (std::size_t blade = 0; blade < blades.motion.size(); ++blade) {
        GDEBUG("%s: %s: %s\n", name_.c_str(), location.c_str(), blade_text(blades, blade).c_str());
    }
}

void ReconGadgetBase::make_image(const Samples &samples, ImageBatch &batch, std::size_t frame) {
    const auto start = Clock::now();
    const std::string location = samples.describe();
    const std::optional<Samples> reference = find_reference(samples);
    const ReconstructionResult result = engine_->reconstruct(samples, reference ? &*reference : nullptr,
                                                             batch.values(frame), batch.pending_bytes());
    for (const auto &warning : result.warnings) {
        warn_once(location, warning);
    }
    if (method_ == Method::Propeller) {
        log_blades(location, result.blades);
    }
    batch.set_image(frame, samples, image_info(samples, result));
    if (engine_->settings().timing) {
        const double sorting = scan_->take_milliseconds(), total = sorting + milliseconds(start, Clock::now());
        const std::string memory = result.memory > 0 ? ", counted " + mebibytes(result.memory) : "";
        GINFO("%s: timing: %s: %zu samples of %zu coils, %zu shots: samples %.1f ms, %s; total %.1f ms%s\n",
              name_.c_str(), location.c_str(), samples.count(), samples.coils(),
              std::size_t(samples.properties().shots), sorting, result.timing.c_str(), total, memory.c_str());
    }
}

}  // namespace recon_gadgets
