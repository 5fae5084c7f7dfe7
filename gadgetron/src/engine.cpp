#include "engine.h"

#include "library.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>

namespace recon_gadgets {

namespace {

// Appends the time of each stage to a text: "plan 1.2 ms, ...".
class Stopwatch {
public:
    explicit Stopwatch(std::string &text) : text_(text) {}

    void stage(const char *name) {
        const auto now = std::chrono::steady_clock::now();
        char buffer[64];
        std::snprintf(buffer, sizeof buffer, "%s%s %.1f ms", text_.empty() ? "" : ", ", name,
                      std::chrono::duration<double, std::milli>(now - last_).count());
        text_ += buffer;
        last_ = now;
    }

private:
    std::string &text_;
    std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

// Throws an Error with the shot, sample and coil of the first value that is not finite, else with the library's
// message.
[[noreturn]] void throw_not_finite(const Samples &samples) {
    const std::string message = recon_last_error_message();
    for (std::size_t coil = 0; coil < samples.coils; ++coil) {
        for (std::size_t m = 0; m < samples.count; ++m) {
            const Complex value = samples.kspace[coil * samples.count + m];
            if (!std::isfinite(value.real()) || !std::isfinite(value.imag())) {
                char number[64];
                std::snprintf(number, sizeof number, "%g%+gi", double(value.real()), double(value.imag()));
                throw Error("the data are " + std::string(number) + " in " + samples.describe_sample(m) + ", coil " +
                            std::to_string(coil) + ": all values must be finite numbers");
            }
        }
    }
    throw Error(message);
}

// Describes the numbers of coils and trajectory components.
std::string shape_text(const Samples &samples) {
    return std::to_string(samples.coils) + " coils and " + std::to_string(samples.components) +
           " trajectory components";
}

}  // namespace

SliceKey slice_key(const ISMRMRD::AcquisitionHeader &h) {
    return SliceKey(std::size_t(h.encoding_space_ref), unsigned(h.idx.slice), unsigned(h.idx.contrast),
                    unsigned(h.idx.phase), unsigned(h.idx.set));
}

Engine::Engine(Settings settings) : settings_(std::move(settings)) {}

std::optional<std::pair<std::string, std::string>> Engine::find_invalid_property() const {
    auto geometry = initialised(recon_geometry_init);
    geometry.dims[0] = geometry.dims[1] = 64;
    geometry.samples = 1;
    const auto requested = options(settings_.tolerance);
    auto memory = initialised(recon_memory_init);
    const auto is_valid = [&](std::uint32_t width, double oversampling) {
        auto changed = requested;
        changed.width = width;
        changed.oversampling = oversampling;
        return recon_plan_memory(&geometry, &changed, &memory) != RECON_INVALID_ARGUMENT;
    };
    const recon_status status = recon_plan_memory(&geometry, &requested, &memory);
    const std::string message = recon_last_error_message();
    switch (status) {
        case RECON_TOLERANCE_OUT_OF_RANGE:
            return std::pair("tolerance", message);
        case RECON_INVALID_ARGUMENT:
            return std::pair(!is_valid(0, 0)                 ? "threads"
                             : !is_valid(requested.width, 0) ? "width"
                                                             : "oversampling",
                             message);
        case RECON_NO_DEVICE:
        case RECON_DRIVER_INCOMPLETE:
        case RECON_OUT_OF_DEVICE_MEMORY:
        case RECON_DEVICE_FAILED:
            return std::pair("device", message);
        default:
            check(status);
            return {};
    }
}

void Engine::read_voxel_maps() {
    for (const MapKind kind : {MapKind::Field, MapKind::Decay}) {
        if (!source(kind).file.empty()) {
            voxel_maps_.read(kind, source(kind).file, settings_.map_series);
        }
    }
}

void Engine::add_voxel_map(MapKind kind, unsigned slice, const std::array<std::size_t, 3> &dims,
                           std::vector<float> values) {
    voxel_maps_.add(kind, slice, dims, std::move(values));
}

void Engine::check_voxel_map(MapKind kind, const Samples &samples, const Spaces &spaces) {
    if (!source(kind)) {
        return;
    }
    const std::string property = property_of(kind);
    if (spaces.echo_planar) {
        throw Error("property " + property +
                    " is set, but the trajectory is echo-planar: the file does not contain the times at which the "
                    "lines of an echo train begin; set the property to none");
    }
    const unsigned slice = samples.first.idx.slice;
    const std::string number = std::to_string(slice);
    // An older map of the slice is not used in place of the refused one.
    if (const std::string *reason = voxel_maps_.refusal(kind, slice)) {
        throw Error("property " + property + " is images, but the map for slice " + number +
                    " was refused: " + *reason);
    }
    if (voxel_maps_.fit(kind, slice, make_grid(spaces, samples.ndim), spaces) != nullptr) {
        return;
    }
    if (source(kind).images) {
        throw Error("property " + property + " is images, but no image with the attribute " + MAP_ATTRIBUTE + " = " +
                    property + " came for slice " + number +
                    " before its data: send the map first, or set the property to none");
    }
    throw Error("the file of property " + property + " has maps of " + std::to_string(voxel_maps_.count(kind)) +
                " slices, but no map of slice " + number +
                ": store one map for all slices, or one map per slice with the slice number in its header");
}

Engine::OffResonanceMaps Engine::off_resonance(const Samples &samples) const {
    const auto map = [&](MapKind kind) {
        return source(kind) ? voxel_maps_.find(kind, samples.first.idx.slice) : nullptr;
    };
    OffResonanceMaps maps;
    maps.field = map(MapKind::Field);
    maps.decay = map(MapKind::Decay);
    if (maps.field != nullptr || maps.decay != nullptr) {
        maps.times = sample_times(samples, settings_.dwell, settings_.readout_start);
    }
    return maps;
}

std::size_t Engine::channel_count(std::size_t coils) const {
    return settings_.output == ImageOutput::Coils ? coils : 1;
}

Samples Engine::add_to_window(Samples samples, std::optional<Warning> *warning) {
    if (settings_.window <= 1) {
        return samples;
    }
    auto &window = windows_[slice_key(samples.first)];
    if (!window.empty() &&
        (window.back().components != samples.components || window.back().coils != samples.coils)) {
        if (warning != nullptr) {
            *warning = Warning{WarningCause::WindowRestart,
                               "the sliding window starts again: this frame has " + shape_text(samples) +
                                   ", the previous frame of the slice " + shape_text(window.back()) +
                                   ". Until the window (property window = " + std::to_string(settings_.window) +
                                   ") is full again, images are made from fewer frames: check whether a coil is "
                                   "missing"};
        }
        window.clear();
    }
    // join copies the samples: the buffer is freed before the next image.
    window.push_back(join({&samples}));
    if (window.size() > settings_.window) {
        window.pop_front();
    }
    std::vector<const Samples *> parts;
    for (const auto &part : window) {
        parts.push_back(&part);
    }
    return join(parts);
}

void Engine::remove_from_window(const Samples &samples) {
    const auto window = windows_.find(slice_key(samples.first));
    if (window != windows_.end() && !window->second.empty()) {
        window->second.pop_back();
    }
}

void Engine::add_warning(WarningCause cause, std::string text) {
    // The plans for weights and for coil maps give the same warnings.
    const auto same = [&](const Warning &warning) { return warning.cause == cause; };
    if (std::none_of(warnings_.begin(), warnings_.end(), same)) {
        warnings_.push_back({cause, std::move(text)});
    }
}

void Engine::add_warnings_of_call(const std::string &prefix) {
    for (auto &[cause, text] : warnings_of_call(prefix)) {
        add_warning(cause, std::move(text));
    }
}

void Engine::check_data(const Samples &samples, recon_status status) const {
    if (status == RECON_NOT_FINITE) {
        throw_not_finite(samples);
    }
    check(status);
}

ReconstructionResult Engine::reconstruct(const Samples &samples, const Spaces &spaces, const Samples *reference,
                                         Complex *image, std::uint64_t pending) {
    warnings_.clear();
    const auto task = [&](const Samples &data, const Samples *calibration) {
        return ImageTask{data, spaces, calibration, make_grid(spaces, data.ndim), {}};
    };
    if (!settings_.compress) {
        return reconstruct_coils(task(samples, reference), image, pending);
    }
    const CoilMatrix &matrix = compression(samples);
    const Samples virtual_samples = compressed(samples, matrix);
    std::optional<Samples> virtual_reference;
    if (reference != nullptr) {
        virtual_reference = compressed(*reference, matrix);
    }
    return reconstruct_coils(task(virtual_samples, virtual_reference ? &*virtual_reference : nullptr), image, pending);
}

ReconstructionResult Engine::reconstruct_coils(ImageTask task, Complex *image, std::uint64_t pending) {
    const Samples &samples = task.samples;
    ReconstructionResult result;
    Stopwatch watch(result.timing);
    if (const std::size_t zero = zero_shots(samples)) {
        add_warning(WarningCause::ZeroShots,
                    std::to_string(zero) + " of " + std::to_string(samples.shots) +
                        " shots are zero in every sample and coil, and count as measured, although every receiver "
                        "has noise: do not store shots that were not acquired");
    }
    for (const MapKind kind : {MapKind::Field, MapKind::Decay}) {
        check_voxel_map(kind, samples, task.spaces);
    }
    task.field = off_resonance(samples);

    const bool use_maps = uses_maps(samples.coils);
    const auto known_maps = maps_.find(slice_key(samples.first));
    if (use_maps && known_maps != maps_.end()) {
        task.maps = &known_maps->second;
    }
    // A cached plan needs no more memory than the previous image.
    if (std::none_of(plans_.begin(), plans_.end(), [&](const auto &plan) { return matches(plan, task); })) {
        result.memory = check_memory(task, pending);
    }
    if (use_maps) {
        task.maps = &coil_maps(task);
        watch.stage("coil maps");
    }
    CachedPlan *plan = nullptr;
    // Corrected blades have a different trajectory in each image, for which recon_propeller makes its own plan.
    if (settings_.method != Method::Propeller) {
        plan = &find_or_make_plan(task);
        watch.stage("plan");
    }

    Complex *computed = image;
    if (combines_coils(task.image_count()) || task.needs_resize()) {
        computed_images_.resize(task.grid.voxels() * task.image_count());
        computed = computed_images_.data();
    }
    compute_images(task, plan, computed, result);
    watch.stage("reconstruction");
    if (finish_image(task, computed, image)) {
        watch.stage("image");
    }
    result.warnings = std::move(warnings_);
    return result;
}

void Engine::compute_images(const ImageTask &task, CachedPlan *plan, Complex *computed, ReconstructionResult &result) {
    const Samples &samples = task.samples;
    switch (settings_.method) {
        case Method::Grid:
            check_data(samples, recon_grid(plan->plan.get(), samples.kspace, computed));
            break;
        case Method::Fbp:
            check_data(samples, recon_fbp(plan->plan.get(), settings_.filter, samples.kspace, computed));
            break;
        case Method::Propeller:
            result.blades = correct_blades(task, computed);
            break;
        case Method::Fhd:
            check_data(samples, recon_fhd(plan->plan.get(), samples.kspace, computed));
            break;
        case Method::Cg:
            solve(task, *plan, computed, result);
            break;
    }
}

void Engine::solve(const ImageTask &task, CachedPlan &plan, Complex *computed, ReconstructionResult &result) {
    auto options = initialised(recon_cg_options_init);
    options.iterations = settings_.iterations;
    options.tolerance = settings_.residual;
    options.lambda = settings_.prior == Prior::None ? 0 : settings_.lambda;
    options.noise_level = settings_.noise_level;
    options.initial = initial_image(task);
    options.prior = settings_.prior == Prior::Differences ? RECON_PRIOR_DIFFERENCES : RECON_PRIOR_IDENTITY;
    auto report = initialised(recon_cg_report_init);
    check_data(task.samples, recon_cg(plan.plan.get(), task.samples.kspace, computed, &options, &report));
    add_warnings_of_call();
    result.iterations = report.iterations;
    result.residual = report.residual;
    plan.bytes = plan_bytes(plan.plan.get());  // now with Q
    if (settings_.warm_start) {
        store_last_image(task, computed);
    }
}

recon_propeller_options Engine::propeller_options() const {
    auto options = initialised(recon_propeller_options_init);
    options.lines = settings_.blades.lines;
    options.phase = settings_.blades.phase;
    options.rotation = settings_.blades.rotation;
    options.translation = settings_.blades.translation;
    options.weighting = settings_.blades.weighting;
    return options;
}

BladeReport Engine::correct_blades(const ImageTask &task, Complex *computed) {
    check_square(task.spaces);
    const Samples &samples = task.samples;
    const auto k = coordinates(samples);
    auto scan = geometry(k, task.grid, samples.coils);
    scan.coil_maps = task.maps == nullptr ? nullptr : task.maps->maps.data();
    const auto plan_options = options(settings_.tolerance);
    const auto blade_options = propeller_options();
    auto report = initialised(recon_propeller_report_init);
    std::vector<double> motion(motion_capacity(samples));
    report.motion = motion.data();
    report.motion_capacity = motion.size();
    const recon_status status =
        recon_propeller(&scan, &plan_options, &blade_options, samples.kspace, computed, &report);
    check_coordinates(samples, status);
    check_data(samples, status);
    add_warnings_of_call();
    BladeReport blades;
    blades.lines = std::size_t(report.lines);
    for (std::size_t b = 0; b < report.blades; ++b) {
        const double *m = &motion[6 * b];
        blades.motion.push_back({m[0], {m[1], m[2]}, m[3], m[4], m[5]});
    }
    return blades;
}

}  // namespace recon_gadgets
