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

}  // namespace

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

void Engine::check_voxel_map(MapKind kind, const Samples &samples, const Grid &grid) {
    if (!source(kind)) {
        return;
    }
    const std::string property = property_of(kind);
    if (samples.properties().trajectory == RECON_TRAJECTORY_EPI) {
        throw Error("property " + property +
                    " is set, but the trajectory is echo-planar: the file does not contain the times at which the "
                    "lines of an echo train begin; set the property to none");
    }
    const unsigned slice = samples.properties().slice;
    const std::string number = std::to_string(slice);
    // An older map of the slice is not used in place of the refused one.
    if (const std::string *reason = voxel_maps_.refusal(kind, slice)) {
        throw Error("property " + property + " is images, but the map for slice " + number +
                    " was refused: " + *reason);
    }
    if (voxel_maps_.fit(kind, slice, grid) != nullptr) {
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
        return source(kind) ? voxel_maps_.find(kind, samples.properties().slice) : nullptr;
    };
    OffResonanceMaps maps;
    maps.field = map(MapKind::Field);
    maps.decay = map(MapKind::Decay);
    if (maps.field != nullptr || maps.decay != nullptr) {
        maps.times = samples.times(settings_.dwell, settings_.readout_start);
    }
    return maps;
}

std::size_t Engine::channel_count(std::size_t coils) const {
    return settings_.output == ImageOutput::Coils ? coils : 1;
}

void Engine::add_warning(std::string text) {
    const auto same = [&](const std::string &other) { return has_same_cause(text, other); };
    if (std::none_of(warnings_.begin(), warnings_.end(), same)) {
        warnings_.push_back(std::move(text));
    }
}

void Engine::add_warnings_of_call(const std::string &prefix) {
    for (auto &text : warnings_of_call(prefix)) {
        add_warning(std::move(text));
    }
}

ReconstructionResult Engine::reconstruct(const Samples &samples, const Samples *reference, Complex *image,
                                         std::uint64_t pending) {
    warnings_.clear();
    const auto task = [](const Samples &data, const Samples *calibration) {
        return ImageTask{data, calibration, Grid(data.properties()), {}};
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
    for (const MapKind kind : {MapKind::Field, MapKind::Decay}) {
        check_voxel_map(kind, samples, task.grid);
    }
    task.field = off_resonance(samples);

    const bool use_maps = uses_maps(samples.coils());
    const auto known_maps = maps_.find(samples.slice_key());
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
    if (uses_plan()) {
        plan = &find_or_make_plan(task);
        watch.stage("plan");
    }

    Complex *computed = image;
    if (combines_coils(task.image_count()) || task.grid.needs_resize()) {
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
            if (settings_.partial_fourier) {
                fill_missing_side(task, computed);
            } else {
                check(recon_grid(plan->plan.get(), samples.kspace(), computed));
            }
            break;
        case Method::Fbp:
            check(recon_fbp(plan->plan.get(), settings_.filter, samples.kspace(), computed));
            break;
        case Method::Propeller:
            result.blades = correct_blades(task, computed);
            break;
        case Method::Fhd:
            check(recon_fhd(plan->plan.get(), samples.kspace(), computed));
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
    check(recon_cg(plan.plan.get(), task.samples.kspace(), computed, &options, &report));
    add_warnings_of_call();
    result.iterations = report.iterations;
    result.residual = report.residual;
    plan.bytes = plan_bytes(plan.plan.get());  // now with Q
    if (settings_.warm_start) {
        store_last_image(task, computed);
    }
}

void Engine::fill_missing_side(const ImageTask &task, Complex *computed) {
    auto scan = task.samples.geometry();
    if (weight_source(task.samples) != WeightSource::Trajectory) {
        scan.weights = nullptr;
    }
    scan.coil_maps = task.maps == nullptr ? nullptr : task.maps->maps.data();
    const auto plan_options = options(settings_.tolerance);
    auto method = initialised(recon_partial_fourier_options_init);
    method.method = *settings_.partial_fourier;
    check(recon_partial_fourier(&scan, &plan_options, &method, task.samples.kspace(), computed, nullptr));
    add_warnings_of_call();
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
    check_square(task.grid);
    const Samples &samples = task.samples;
    auto scan = samples.geometry();
    scan.weights = nullptr;
    scan.coil_maps = task.maps == nullptr ? nullptr : task.maps->maps.data();
    const auto plan_options = options(settings_.tolerance);
    const auto blade_options = propeller_options();
    auto report = initialised(recon_propeller_report_init);
    std::vector<double> motion(motion_capacity(samples));
    report.motion = motion.data();
    report.motion_capacity = motion.size();
    check(recon_propeller(&scan, &plan_options, &blade_options, samples.kspace(), computed, &report));
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
