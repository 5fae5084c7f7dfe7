// One image of a gadget: its spaces in the XML header, its samples, its header and attributes.
#include "free_memory.h"
#include "gadget_base.h"
#include "image_batch.h"

#include <log.h>

#include <algorithm>
#include <chrono>

namespace recon_gadgets {

namespace {

using Clock = std::chrono::steady_clock;

// Sets the matrices and fields of view of a buffer, which an earlier gadget may have changed.
void apply_sampling(const Gadgetron::SamplingDescription &sampling, const ISMRMRD::Encoding &encoding, Spaces &s) {
    std::copy(sampling.encoded_matrix_.begin(), sampling.encoded_matrix_.end(), s.encoded_matrix.begin());
    std::copy(sampling.recon_matrix_.begin(), sampling.recon_matrix_.end(), s.recon_matrix.begin());
    std::copy(sampling.encoded_FOV_.begin(), sampling.encoded_FOV_.end(), s.encoded_fov.begin());
    std::copy(sampling.recon_FOV_.begin(), sampling.recon_FOV_.end(), s.recon_fov.begin());
    if (encoding.trajectory == ISMRMRD::TrajectoryType::CARTESIAN) {
        // BucketToBufferGadget writes reconSpace here along x, but trajectories are made for encodedSpace.
        s.encoded_matrix[0] = encoding.encodedSpace.matrixSize.x;
        s.encoded_fov[0] = encoding.encodedSpace.fieldOfView_mm.x;
    }
}

ExpectedShots expected_shots(const ISMRMRD::Encoding &encoding) {
    ExpectedShots expected;
    const auto set_limits = [&](std::size_t axis, const ISMRMRD::Limit &limit) {
        expected.first[axis] = limit.minimum;
        expected.last[axis] = std::max(limit.minimum, limit.maximum);
    };
    const auto &step1 = encoding.encodingLimits.kspace_encoding_step_1;
    const auto &step2 = encoding.encodingLimits.kspace_encoding_step_2;
    expected.known = step1.is_present();
    if (expected.known) {
        set_limits(0, *step1);
        set_limits(1, step2.is_present() ? *step2 : ISMRMRD::Limit());
    }
    if (encoding.parallelImaging.is_present()) {
        const auto &factor = encoding.parallelImaging->accelerationFactor;
        expected.acceleration = {std::max<std::size_t>(1, factor.kspace_encoding_step_1),
                                 std::max<std::size_t>(1, factor.kspace_encoding_step_2)};
    }
    return expected;
}

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

Spaces ReconGadgetBase::spaces_of(std::size_t encoding, const Gadgetron::SamplingDescription *sampling) const {
    if (encoding >= header.encoding.size()) {
        throw Error("acquisitions refer to encoding " + std::to_string(encoding) + ", but the XML header has " +
                    std::to_string(header.encoding.size()) + ": correct encoding_space_ref");
    }
    const auto &e = header.encoding[encoding];
    const auto size = [](const ISMRMRD::MatrixSize &m) { return std::array<std::size_t, 3>{m.x, m.y, m.z}; };
    const auto fov = [](const ISMRMRD::FieldOfView_mm &f) { return std::array<double, 3>{f.x, f.y, f.z}; };
    Spaces s;
    s.echo_planar = e.trajectory == ISMRMRD::TrajectoryType::EPI;
    if (const auto &slices = e.encodingLimits.slice; slices.is_present()) {
        s.slices = std::size_t(std::max(slices->maximum, slices->minimum) - slices->minimum) + 1;
    }
    s.encoded_matrix = size(e.encodedSpace.matrixSize);
    s.recon_matrix = size(e.reconSpace.matrixSize);
    s.encoded_fov = fov(e.encodedSpace.fieldOfView_mm);
    s.recon_fov = fov(e.reconSpace.fieldOfView_mm);
    if (sampling != nullptr) {
        apply_sampling(*sampling, e, s);
    }
    const auto &step2 = e.encodingLimits.kspace_encoding_step_2;
    s.step2_centre = step2.is_present() ? step2.get().center : s.encoded_matrix[2] / 2;
    s.expected = expected_shots(e);
    return s;
}

void ReconGadgetBase::store_calibration(const std::vector<Shot> &shots) {
    const Spaces spaces = spaces_of(shots.front().header->encoding_space_ref, nullptr);
    calibration_data_.add(gather(shots, spaces), spaces);
}

Samples ReconGadgetBase::gather_samples(Engine &engine, const std::vector<Shot> &shots, const Spaces &spaces) {
    Samples samples = gather(shots, spaces);
    const std::string location = describe(samples.last);
    if (!spaces.expected.known) {
        warn_once(describe(samples.first), fewer_shots(samples.shots, max_shots_[samples.first.encoding_space_ref]));
    }
    if (engine.settings().window <= 1) {
        check_spread(samples, make_grid(spaces, samples.ndim));
    }
    std::optional<Warning> warning;
    Samples window = engine.add_to_window(std::move(samples), &warning);
    warn_once(location, warning);
    return window;
}

std::optional<Samples> ReconGadgetBase::find_reference(const Engine &engine, const Samples &samples,
                                                       const Spaces &spaces) {
    if (engine.settings().maps == CoilMapSource::None || calibration_data_.empty()) {
        return {};
    }
    auto reference = calibration_data_.for_scan(samples, spaces);
    if (!reference) {
        warn_once(describe(samples.last),
                  Warning{WarningCause::OtherCalibration,
                          "the calibration acquisitions are of different slices: the coil maps of this slice are "
                          "estimated from its own data"});
    }
    return reference;
}

ImageInfo ReconGadgetBase::image_info(const Engine &engine, const Samples &samples, const Spaces &spaces,
                                      const ReconstructionResult &result) {
    ImageInfo info;
    info.encoding = samples.first.encoding_space_ref;
    info.channels = engine.channel_count(samples.coils);
    info.magnitude = engine.settings().output == ImageOutput::Magnitude;
    info.number = ++image_counts_[info.encoding];
    warn_once(describe(samples.last), image_number_overflow(info.number));
    info.series = std::uint16_t(engine.settings().series + info.encoding);
    info.spaces = spaces;
    info.grid = make_grid(spaces, samples.ndim);
    info.method = method_text(method_);
    info.samples = samples.count;
    info.shots = samples.shots;
    info.iterations = result.iterations;
    info.residual = result.residual;
    info.blades = result.blades;
    return info;
}

void ReconGadgetBase::log_blades(const std::string &location, const BladeReport &blades) const {
    GINFO("%s: %s: %s\n", name_.c_str(), location.c_str(), blade_summary(blades).c_str());
    for (std::size_t blade = 0; blade < blades.motion.size(); ++blade) {
        GDEBUG("%s: %s: %s\n", name_.c_str(), location.c_str(), blade_text(blades, blade).c_str());
    }
}

void ReconGadgetBase::make_image(Engine &engine, const std::vector<Shot> &shots, const Spaces &spaces,
                                 ImageBatch &batch, std::size_t frame) {
    const auto start = Clock::now();
    const Samples samples = gather_samples(engine, shots, spaces);
    const std::string location = describe(samples.last);
    const std::optional<Samples> reference = find_reference(engine, samples, spaces);
    const auto gathered = Clock::now();
    ReconstructionResult result;
    try {
        result = engine.reconstruct(samples, spaces, reference ? &*reference : nullptr, batch.values(frame),
                                    batch.pending_bytes());
    } catch (...) {
        engine.remove_from_window(samples);
        throw;
    }
    for (const auto &warning : result.warnings) {
        warn_once(location, warning);
    }
    if (method_ == Method::Propeller) {
        log_blades(location, result.blades);
    }
    const ImageInfo info = image_info(engine, samples, spaces, result);
    batch.set_image(frame, make_image_header(*shots.front().header, info), info);
    if (engine.settings().timing) {
        const auto end = Clock::now();
        const std::string memory = result.memory > 0 ? ", counted " + mebibytes(result.memory) : "";
        GINFO("%s: timing: %s: %zu samples of %zu coils, %zu shots: samples %.1f ms, %s; total %.1f ms%s\n",
              name_.c_str(), location.c_str(), samples.count, samples.coils, samples.shots,
              milliseconds(start, gathered), result.timing.c_str(), milliseconds(start, end), memory.c_str());
    }
}

}  // namespace recon_gadgets
