#include "engine.h"

#include "calibration.h"
#include "free_memory.h"
#include "library.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <new>
#include <string_view>

namespace recon_gadgets {

namespace {

template <class S>
S initialised(recon_status (*init)(S *, std::uint32_t)) {
    S s;
    check(init(&s, sizeof s));
    return s;
}

// Writes the time of each stage to a text: "plan 1.2 ms, ...".
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

std::uint64_t bytes(const recon_plan *plan) {
    auto properties = initialised(recon_plan_properties_init);
    check(recon_plan_info(plan, &properties));
    return properties.host_bytes + properties.device_bytes;
}

void need_coils(const Samples &reference, std::size_t coils) {
    if (reference.coils != coils) {
        throw Error("the reference has " + std::to_string(reference.coils) + " coils, the data have " +
                    std::to_string(coils) + ": both need the same");
    }
}

}  // namespace

SliceKey slice_key(const ISMRMRD::AcquisitionHeader &h) {
    return SliceKey(std::size_t(h.encoding_space_ref), unsigned(h.idx.slice), unsigned(h.idx.contrast),
                    unsigned(h.idx.phase), unsigned(h.idx.set));
}

Engine::Engine(Settings settings) : settings_(std::move(settings)) {}

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
                    " is set, and the trajectory is echo-planar: the lines of an echo train begin at different times "
                    "after the excitation, which the file does not say; set it to none");
    }
    const unsigned slice = samples.first.idx.slice;
    const std::string number = std::to_string(slice);
    // An older map of the slice is not used in place of the refused one.
    if (const std::string *reason = voxel_maps_.refusal(kind, slice)) {
        throw Error("property " + property + " is images, and the map that came for slice " + number +
                    " was refused: " + *reason);
    }
    if (voxel_maps_.fit(kind, slice, layout(spaces, samples.ndim), spaces) != nullptr) {
        return;
    }
    if (source(kind).images) {
        throw Error("property " + property + " is images, and none with the attribute " + MAP_ATTRIBUTE + " = " +
                    property + " came for slice " + number +
                    " before its data: send it first, or set the property to none");
    }
    throw Error("property " + property + " names a file with maps of " + std::to_string(voxel_maps_.count(kind)) +
                " slices, and none of slice " + number +
                ": give one map for all slices, or one for each with its number in the header");
}

Engine::OffResonance Engine::off_resonance(const Samples &samples) const {
    const auto map = [&](MapKind kind) {
        return source(kind) ? voxel_maps_.find(kind, samples.first.idx.slice) : nullptr;
    };
    OffResonance found;
    found.field = map(MapKind::Field);
    found.decay = map(MapKind::Decay);
    if (found.field != nullptr || found.decay != nullptr) {
        found.times = sample_times(samples, settings_.dwell, settings_.readout_start);
    }
    return found;
}

Grid Engine::layout(const Spaces &spaces, unsigned ndim) const {
    return grid(spaces, ndim);
}

std::size_t Engine::channels(std::size_t coils) const {
    return settings_.output == Output::Coils ? coils : 1;
}

Samples Engine::add_to_window(Samples samples, std::optional<Warning> *warning) {
    if (settings_.window <= 1) {
        return samples;
    }
    auto &window = windows_[slice_key(samples.first)];
    const auto unlike = [&](const Samples &old) {
        return old.components != samples.components || old.coils != samples.coils;
    };
    if (!window.empty() && unlike(window.back())) {
        const auto shape = [](const Samples &of) {
            return std::to_string(of.coils) + " coils and " + std::to_string(of.components) + " trajectory components";
        };
        if (warning != nullptr) {
            *warning = Warning{Cause::WindowRestart,
                               "the sliding window starts again: this frame has " + shape(samples) +
                                   ", the previous frame of the slice " + shape(window.back()) +
                                   ". The image is made of this frame alone, and the next ones of few frames: is a "
                                   "coil missing? Property window is " + std::to_string(settings_.window)};
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

recon_options Engine::options(double tolerance) const {
    auto options = initialised(recon_options_init);
    options.tolerance = tolerance;
    options.width = settings_.width;
    options.oversampling = settings_.oversampling;
    options.threads = settings_.threads;
    options.device = settings_.device.kind;
    options.device_count = std::uint32_t(settings_.device.indices.size());
    options.device_indices = settings_.device.indices.empty() ? nullptr : settings_.device.indices.data();
    return options;
}

double Engine::tolerance_of_maps() const {
    // A named window may not reach 1e-4, which nobody asked for.
    const bool named = settings_.width != 0 || settings_.oversampling != 0;
    return named ? settings_.tolerance : std::max(settings_.tolerance, 1e-4);
}

recon_geometry Engine::geometry(const Coordinates &k, const Grid &grid, std::size_t coils) const {
    auto geometry = initialised(recon_geometry_init);
    geometry.ndim = grid.ndim;
    for (unsigned axis = 0; axis < grid.ndim; ++axis) {
        geometry.dims[axis] = grid.dims[axis];
        geometry.coordinates[axis] = k.k[axis].data();
    }
    geometry.samples = k.count;
    geometry.coils = coils;
    return geometry;
}

void Engine::add_warning(Cause cause, std::string text) {
    // The plans for weights and for coil maps give the same warnings.
    const auto same = [&](const Warning &warning) { return warning.cause == cause; };
    if (std::none_of(warnings_.begin(), warnings_.end(), same)) {
        warnings_.push_back({cause, std::move(text)});
    }
}

void Engine::add_warnings(const recon_plan *plan, bool for_maps) {
    std::uint32_t kind = RECON_WARNING_NONE;
    const char *text = nullptr;
    for (std::uint64_t i = 0; check(recon_plan_warning(plan, i, &kind, &text)), text != nullptr; ++i) {
        if (for_maps && kind == RECON_WARNING_EXTENT) {
            continue;
        }
        add_warning(cause_of(kind), text);
    }
}

void Engine::add_warnings_of_call(const std::string &of) {
    for (auto &[cause, all] : warnings_of_call(of)) {
        add_warning(cause, std::move(all));
    }
}

// The library's messages have the index of a sample, the user needs its shot.
void Engine::check_coordinates(const Samples &samples, recon_status status) const {
    if (status == RECON_NOT_FINITE) {
        const float *end = samples.trajectory + samples.count * samples.components;
        if (!std::all_of(samples.trajectory, end, [](float k) { return std::isfinite(k); })) {
            throw Error(farthest_coordinate(samples) + ": it must be a number");
        }
    }
    if (status == RECON_COORDINATE_OUT_OF_RANGE) {
        throw Error(farthest_coordinate(samples) +
                    ", outside [-0.5, 0.5] cycles per voxel of encodedSpace: divide coordinates in cycles per field of "
                    "view by the matrix, radians by 2 pi");
    }
}

Engine::Plan Engine::make_plan(const Samples &samples, const recon_geometry &geometry, double tolerance,
                               bool for_maps) {
    const auto asked = options(tolerance);
    recon_plan *made = nullptr;
    const recon_status status = recon_plan_create(&geometry, &asked, &made);
    check_coordinates(samples, status);
    check(status);
    Plan plan(made);
    ++plans_made_;
    add_warnings(made, for_maps);
    return plan;
}

Engine::Weights Engine::weights(const Samples &samples, bool use_weights, bool explicitly) const {
    const bool pipe_menon = settings_.density == Density::PipeMenon || settings_.density == Density::Auto;
    if (!use_weights) {
        return Weights::None;
    }
    if (settings_.density == Density::Auto && samples.weighted) {
        return Weights::Given;
    }
    return pipe_menon && !explicitly ? Weights::None : Weights::Computed;
}

Engine::Weights Engine::weights(const Samples &samples) const {
    const bool cg = settings_.method == Method::Cg;
    return weights(samples, settings_.method == Method::Grid || (cg && settings_.weighted), cg);
}

void Engine::compute_weights(recon_plan *plan, std::size_t samples) const {
    std::vector<float> weights(samples);
    const auto method = settings_.density == Density::Jackson ? RECON_DENSITY_JACKSON
                        : settings_.density == Density::Ramp  ? RECON_DENSITY_RAMP
                                                              : RECON_DENSITY_PIPE_MENON;
    check(recon_density(plan, method, 0, 0, weights.data()));
    check(recon_plan_set_weights(plan, weights.data(), weights.size()));
}

Engine::Plan Engine::weighted_plan(const Samples &samples, const Grid &grid, Weights weights, const CoilMaps *maps,
                                   const OffResonance &field, double tolerance) {
    const Coordinates k = coordinates(samples);
    auto g = geometry(k, grid, samples.coils);
    g.weights = weights == Weights::Given ? k.weights.data() : nullptr;
    g.coil_maps = maps == nullptr ? nullptr : maps->maps.data();
    field.add_to(g);
    Plan plan = make_plan(samples, g, tolerance);
    if (weights == Weights::Computed) {
        compute_weights(plan.get(), samples.count);
    }
    return plan;
}

void Engine::update_plan(KeptPlan &kept, const Samples &samples, const Grid &grid, const OffResonance &field) {
    const Coordinates k = coordinates(samples);
    const Weights wanted = weights(samples);
    auto g = geometry(k, grid, samples.coils);
    g.weights = wanted == Weights::Given ? k.weights.data() : nullptr;
    field.add_to(g);
    if (wanted == Weights::Computed) {
        // Those of the old trajectory: a plan with weights takes no trajectory without.
        check(recon_plan_set_weights(kept.plan.get(), nullptr, 0));
    }
    const recon_status status = recon_plan_set_trajectory(kept.plan.get(), &g);
    check_coordinates(samples, status);
    check(status);
    ++plans_updated_;
    add_warnings(kept.plan.get());
    if (wanted == Weights::Computed) {
        compute_weights(kept.plan.get(), samples.count);
    }
}

void Engine::drop_plans() {
    std::uint64_t held = 0;
    const std::uint64_t most = std::uint64_t(settings_.memory) << 20;
    std::size_t count = 0;
    for (auto plan = plans_.begin(); plan != plans_.end();) {
        held += plan->bytes;
        ++count;
        // The first plan was just made, and is not dropped.
        const bool drop = count > 1 && (count > std::max<std::size_t>(settings_.plans, 1) || (most > 0 && held > most));
        plan = drop ? plans_.erase(plan) : std::next(plan);
    }
}

bool Engine::is_alike(const KeptPlan &plan, const Samples &samples, const Grid &grid, std::size_t maps,
                      const OffResonance &field) const {
    // A plan may be given other maps, but none where it has none.
    const auto [frequencies, rates] = field.ids();
    if ((plan.voxel_maps.first != 0) != (frequencies != 0) || (plan.voxel_maps.second != 0) != (rates != 0)) {
        return false;
    }
    return plan.coils == samples.coils && plan.components == samples.components && plan.weighted == samples.weighted &&
           plan.maps == maps && plan.dims == grid.dims;
}

bool Engine::is_kept(const KeptPlan &plan, const Samples &samples, const Grid &grid, std::size_t maps,
                     const OffResonance &field) const {
    const std::size_t numbers = samples.count * samples.components;
    const bool same_maps = plan.voxel_maps == field.ids() && (field.times.empty() || plan.times == samples.times);
    return same_maps && is_alike(plan, samples, grid, maps, field) && plan.trajectory.size() == numbers &&
           std::memcmp(plan.trajectory.data(), samples.trajectory, numbers * sizeof(float)) == 0;
}

bool Engine::uses_maps(std::size_t coils) const {
    return coils > 1 && settings_.output != Output::Coils && settings_.maps != Maps::None;
}

std::optional<std::pair<std::string, std::string>> Engine::bad_property() const {
    auto geometry = initialised(recon_geometry_init);
    geometry.dims[0] = geometry.dims[1] = 64;
    geometry.samples = 1;
    const auto asked = options(settings_.tolerance);
    auto memory = initialised(recon_memory_init);
    const auto valid = [&](std::uint32_t width, double oversampling) {
        auto other = asked;
        other.width = width;
        other.oversampling = oversampling;
        return recon_plan_memory(&geometry, &other, &memory) != RECON_INVALID_ARGUMENT;
    };
    switch (const recon_status status = recon_plan_memory(&geometry, &asked, &memory)) {
        case RECON_OK:
            return {};
        case RECON_TOLERANCE_OUT_OF_RANGE:
            return std::pair("tolerance", recon_last_error_message());
        case RECON_INVALID_ARGUMENT: {
            std::string text = recon_last_error_message();
            const char *property = !valid(0, 0) ? "threads" : !valid(asked.width, 0) ? "width" : "oversampling";
            return std::pair(property, std::move(text));
        }
        case RECON_NO_DEVICE:
        case RECON_DRIVER_INCOMPLETE:
        case RECON_OUT_OF_DEVICE_MEMORY:
        case RECON_DEVICE_FAILED:
            return std::pair("device", recon_last_error_message());
        default:
            check(status);
            return {};
    }
}

std::uint64_t Engine::memory_needed(const Samples &samples, const Coordinates &k, const Spaces &spaces,
                                    const Samples *reference) const {
    const Grid grid = layout(spaces, samples.ndim);
    const std::uint64_t coils = samples.coils, z = sizeof(Complex);
    const std::uint64_t voxels = grid.voxels(), pixels = grid.image_voxels();
    // The estimate depends on whether there are weights and maps, not on their values.
    const float any = 1;
    const auto estimate = [&](const recon_geometry &of, double tolerance) {
        const auto asked = options(tolerance);
        auto found = initialised(recon_memory_init);
        if (uses_maps(of.coils)) {
            found.calibration = static_cast<std::uint32_t>(std::min<std::size_t>(settings_.calibration, UINT32_MAX));
        }
        check(recon_plan_memory(&of, &asked, &found));
        return found;
    };
    const auto memory = [&](std::uint64_t coils, bool weights, bool maps, const Coordinates &of, double tolerance) {
        auto g = geometry(of, grid, coils);
        g.weights = weights ? &any : nullptr;
        g.coil_maps = maps ? &any : nullptr;
        return estimate(g, tolerance);
    };
    const bool maps = uses_maps(coils), cg = settings_.method == Method::Cg;
    const OffResonance field = off_resonance(samples);
    // The plan that images are made with. Which voxels the coils see is not known before their maps are made: all.
    const auto memory_of_images = [&](bool weights) {
        auto g = geometry(k, grid, coils);
        g.weights = weights ? &any : nullptr;
        field.add_to(g);
        const std::vector<Complex> ones(maps && !field.times.empty() ? voxels * coils : 1, Complex(1));
        g.coil_maps = maps ? ones.data() : nullptr;
        return estimate(g, settings_.tolerance);
    };
    const bool given = settings_.density == Density::Auto && samples.weighted;
    const bool computed = settings_.density == Density::Jackson || settings_.density == Density::Ramp;
    const bool weighting = settings_.method == Method::Grid || (cg && settings_.weighted);
    const bool blades = settings_.method == Method::Propeller;
    // recon_propeller takes 100 bytes for a sample of each coil whose motion is sought, besides the gridding. Coils
    // without their smooth phases are added to one, and then only their corrected data are kept.
    const std::uint64_t sought = settings_.blades.phase == RECON_BLADE_PHASE_SMOOTH ? 1 : coils;
    const std::uint64_t blade_bytes = samples.count * (100 * sought + 2 * z * coils);
    const bool weights = (weighting && (given || computed || cg)) || blades;
    // Coordinates axis by axis and weights, which a plan is made from; and the trajectory, which is kept with the plan.
    const std::uint64_t coordinate_bytes =
        samples.count * (grid.ndim + 1 + (field.times.empty() ? 0 : 1)) * sizeof(float);
    const std::uint64_t kept = samples.count * samples.components * sizeof(float);

    std::uint64_t most = 0, maps_bytes = 0;
    const auto stage = [&](std::uint64_t bytes) { most = std::max(most, bytes); };
    // The weights that the gadget computes are those of the plan's own trajectory, which has none before.
    const auto density = [&](const recon_memory &plan) {
        return settings_.density == Density::Jackson ? plan.host_density_jackson : plan.host_density;
    };
    if (maps) {
        maps_bytes = voxels * coils * z;
        const Coordinates own = reference != nullptr ? coordinates(*reference) : Coordinates();
        const Coordinates &of = reference != nullptr ? own : k;
        const double tolerance = tolerance_of_maps();
        const auto plan = memory(coils, given || computed, false, of, tolerance);
        stage(maps_bytes + coordinate_bytes + plan.host_coil_maps);
        if (computed) {
            stage(coordinate_bytes + density(memory(coils, false, false, of, tolerance)));
        }
    }
    if (weighting && !given && (computed || cg)) {
        stage(maps_bytes + coordinate_bytes + density(memory_of_images(false)));
    }
    if (blades) {
        stage(maps_bytes + coordinate_bytes + blade_bytes +
              memory(1, false, false, k, settings_.tolerance).host_density);
    }
    const auto plan = memory_of_images(weights);
    const std::uint64_t count = maps ? 1 : coils;
    const bool combine = count > 1 && settings_.output != Output::Coils;
    const bool resize = grid.dims != grid.image || spaces.encoded_fov != spaces.recon_fov;
    const std::uint64_t own_images = combine || resize ? voxels * count * z : 0;
    const std::uint64_t last_image = cg && settings_.warm_start ? voxels * count * z : 0;
    const std::uint64_t held = maps_bytes + kept + last_image;
    stage(held + coordinate_bytes + plan.host_plan);
    // What the search for lambda holds: an image, and twice the data.
    const std::uint64_t search = settings_.noise_level > 0 ? (voxels * count + 2 * samples.count * coils) * z : 0;
    std::uint64_t reconstruction = 0;
    switch (settings_.method) {
        case Method::Grid: reconstruction = plan.host_grid; break;
        case Method::Fbp: reconstruction = plan.host_fbp; break;
        case Method::Propeller: reconstruction = blade_bytes + plan.host_grid; break;
        case Method::Fhd: reconstruction = plan.host_transform; break;
        case Method::Cg: reconstruction = plan.host_cg + search; break;
    }
    stage(held + own_images + reconstruction);
    // First the images are resized, one at a time in double precision, and written to a copy until all are done. Then
    // the coils are combined.
    const std::uint64_t larger = std::max(voxels, pixels);
    const std::uint64_t with_images =
        held + own_images + plan.host_plan + (cg ? plan.host_q : 0) + (resize && combine ? pixels * count * z : 0);
    stage(with_images + (resize ? pixels * count * z + 5 * larger * z : 0));
    const bool adaptive = settings_.combine == Combine::Adaptive ||
                          (settings_.combine == Combine::Auto && settings_.output == Output::Complex);
    std::uint64_t combined = combine ? pixels * z : 0;
    if (combine && adaptive) {
        auto images = geometry(k, grid, count);
        std::copy(grid.image.begin(), grid.image.end(), images.dims);
        combined += estimate(images, settings_.tolerance).host_combine;
    }
    stage(with_images + combined);
    return most;
}

std::uint64_t Engine::check_memory(const Samples &samples, const Spaces &spaces, const Samples *reference,
                          std::uint64_t pending) {
    const Coordinates k = coordinates(samples);
    const std::uint64_t bytes = memory_needed(samples, k, spaces, reference) + pending;
    FreeMemory left = free_memory();
    while (bytes > left.bytes && !plans_.empty()) {
        plans_.pop_back();
        // Gives freed memory back to the system.
        recon_release_memory();
        left = free_memory();
    }
    if (bytes > left.bytes) {
        throw Error("the image needs " + mebibytes(bytes) + " for its plan, coil maps and outputs, and of " +
                    left.limit + " " + mebibytes(left.bytes) +
                    " are left: raise the limit, let fewer connections run at once, or reconstruct smaller images or "
                    "fewer coils");
    }
    return bytes;
}

void Engine::check_data(const Samples &samples, recon_status status) const {
    if (status == RECON_NOT_FINITE) {
        not_finite(samples);
    }
    check(status);
}

void Engine::not_finite(const Samples &samples) const {
    const std::string message = recon_last_error_message();
    for (std::size_t coil = 0; coil < samples.coils; ++coil) {
        for (std::size_t m = 0; m < samples.count; ++m) {
            const Complex value = samples.kspace[coil * samples.count + m];
            if (!std::isfinite(value.real()) || !std::isfinite(value.imag())) {
                char number[64];
                std::snprintf(number, sizeof number, "%g%+gi", double(value.real()), double(value.imag()));
                throw Error("the data are " + std::string(number) + " in " + samples.where(m) + ", coil " +
                            std::to_string(coil) + ": they must be numbers");
            }
        }
    }
    throw Error(message);
}

bool Engine::came_before(const Samples &samples, std::size_t maps, const OffResonance &field) {
    const auto *bytes = reinterpret_cast<const char *>(samples.trajectory);
    const std::string_view numbers(bytes, samples.count * samples.components * sizeof(float));
    // Two trajectories of one hash cost a plan, no more.
    const auto [frequencies, rates] = field.ids();
    const std::size_t hash = std::hash<std::string_view>()(numbers) + maps + 1000003 * frequencies + 1000000007 * rates;
    const auto found = std::find(trajectories_.begin(), trajectories_.end(), hash);
    const bool before = found != trajectories_.end();
    if (before) {
        trajectories_.erase(found);
    }
    trajectories_.push_back(hash);
    if (trajectories_.size() > std::max<std::size_t>(settings_.plans, 1)) {
        trajectories_.pop_front();
    }
    return before;
}

std::list<Engine::KeptPlan>::iterator Engine::find_free_plan(const Samples &samples, const Grid &grid,
                                                             std::size_t maps, const OffResonance &field) {
    return std::find_if(plans_.begin(), plans_.end(), [&](const KeptPlan &plan) {
        return !plan.recurs && is_alike(plan, samples, grid, maps, field);
    });
}

Engine::KeptPlan &Engine::find_or_make_plan(const Samples &samples, const Grid &grid, const CoilMaps *maps,
                                            const OffResonance &field) {
    const std::size_t numbers = samples.count * samples.components, id = maps == nullptr ? 0 : maps->id;
    // The content is compared, since any frame may have another trajectory.
    const auto same = [&](const KeptPlan &plan) { return is_kept(plan, samples, grid, id, field); };
    const auto kept = std::find_if(plans_.begin(), plans_.end(), same);
    const bool recurs = came_before(samples, id, field);
    if (kept != plans_.end()) {
        kept->recurs = true;
        plans_.splice(plans_.begin(), plans_, kept);
        return plans_.front();
    }
    // A trajectory that comes again gets a plan of its own.
    auto plan = recurs ? plans_.end() : find_free_plan(samples, grid, id, field);
    if (plan == plans_.end()) {
        KeptPlan made;
        made.plan = weighted_plan(samples, grid, weights(samples), maps, field, settings_.tolerance);
        made.components = samples.components;
        made.coils = samples.coils;
        made.weighted = samples.weighted;
        made.maps = id;
        made.dims = grid.dims;
        plan = plans_.insert(plans_.begin(), std::move(made));
    } else {
        try {
            plan->trajectory.clear();
            update_plan(*plan, samples, grid, field);
        } catch (...) {
            // It may be without its weights by now.
            plans_.erase(plan);
            throw;
        }
        plans_.splice(plans_.begin(), plans_, plan);
    }
    plan->recurs = recurs;
    plan->voxel_maps = field.ids();
    plan->times = field.times.empty() ? std::vector<ShotTimes>() : samples.times;
    plan->trajectory.assign(samples.trajectory, samples.trajectory + numbers);
    plan->bytes = bytes(plan->plan.get());
    drop_plans();
    return plans_.front();
}

Engine::Plan Engine::plan_of_maps(const Samples &samples, const Grid &grid) {
    const Coordinates k = coordinates(samples);
    const Weights wanted = weights(samples, true, false);
    // Without off-resonance: a calibration scan has other times, and the memory for it is counted so.
    auto g = geometry(k, grid, samples.coils);
    g.weights = wanted == Weights::Given ? k.weights.data() : nullptr;
    Plan plan = make_plan(samples, g, tolerance_of_maps(), true);
    if (wanted == Weights::Computed) {
        compute_weights(plan.get(), samples.count);
    }
    return plan;
}

const Engine::CoilMaps &Engine::coil_maps(const Samples &samples, const Grid &grid, std::size_t coils,
                                          const SliceKey &key) {
    need_coils(samples, coils);
    auto &kept = maps_[key];
    const bool old = settings_.maps_every > 0 && kept.images >= settings_.maps_every;
    if (kept.id != 0 && !old && kept.coils == coils && kept.dims == grid.dims) {
        ++kept.images;
        return kept;
    }
    const std::size_t before = kept.id;
    CoilMaps made;
    made.id = maps_made_ + 1;
    made.coils = coils;
    made.dims = grid.dims;
    made.images = 1;
    const Plan plan = plan_of_maps(samples, grid);
    made.maps.resize(grid.voxels() * coils);
    check_data(samples, recon_coil_maps(plan.get(), samples.kspace, settings_.calibration, made.maps.data()));
    add_warnings_of_call();
    ++maps_made_;
    kept = std::move(made);
    // Plans with the old maps are not used any more.
    plans_.remove_if([&](const KeptPlan &plan) { return before != 0 && plan.maps == before; });
    return kept;
}

const Complex *Engine::initial_image(const SliceKey &key, const Grid &grid, std::size_t images) {
    const auto last = last_images_.find(key);
    if (!settings_.warm_start || last == last_images_.end()) {
        return nullptr;
    }
    if (last->second.images == images && last->second.dims == grid.dims) {
        return last->second.values.data();
    }
    const auto shape = [](const std::array<std::size_t, 3> &n, std::size_t images) {
        return std::to_string(n[0]) + " x " + std::to_string(n[1]) + " x " + std::to_string(n[2]) + " voxels in " +
               std::to_string(images) + (images == 1 ? " channel" : " channels");
    };
    add_warning(Cause::ColdStart, "property warm_start: the last image of this slice has " +
                                      shape(last->second.dims, last->second.images) + ", this one " +
                                      shape(grid.dims, images) +
                                      ": its iterations start from zeros, and with few of them it is less sharp");
    return nullptr;
}

const Engine::CoilMatrix &Engine::compression(const Samples &samples) {
    auto &kept = compressions_[slice_key(samples.first)];
    if (kept.coils == samples.coils) {
        return kept;
    }
    const Compress wanted = settings_.compress;
    CoilMatrix made;
    made.coils = samples.coils;
    made.entries.resize(std::max(wanted.coils, samples.coils) * samples.coils);
    const recon_status status =
        recon_compression(RECON_F32, samples.kspace, samples.count, samples.coils, 1, wanted.coils, wanted.energy,
                          made.entries.data(), &made.virtual_coils, nullptr);
    if (status == RECON_NOT_FINITE) {
        not_finite(samples);
    }
    if (status != RECON_OK) {
        throw Error(std::string("property compress: ") + recon_last_error_message());
    }
    made.entries.resize(made.virtual_coils * samples.coils);
    add_warnings_of_call("property compress: ");
    kept = std::move(made);
    return kept;
}

Samples Engine::compressed(const Samples &samples, const CoilMatrix &matrix) const {
    need_coils(samples, matrix.coils);
    std::vector<Complex> kspace(samples.count * matrix.virtual_coils);
    check_data(samples, recon_virtual_coils(matrix.entries.data(), matrix.virtual_coils, matrix.coils, RECON_F32,
                                            samples.kspace, samples.count, 1, kspace.data()));
    return samples.with_coils(std::move(kspace), std::size_t(matrix.virtual_coils));
}

BladesFound Engine::correct_blades(const Samples &samples, const Spaces &spaces, const Grid &grid, const CoilMaps *maps,
                                   Complex *image) {
    check_square(spaces);
    const auto k = coordinates(samples);
    auto g = geometry(k, grid, samples.coils);
    g.coil_maps = maps == nullptr ? nullptr : maps->maps.data();
    const auto asked = options(settings_.tolerance);
    auto how = initialised(recon_propeller_options_init);
    how.lines = settings_.blades.lines;
    how.phase = settings_.blades.phase;
    how.rotation = settings_.blades.rotation;
    how.translation = settings_.blades.translation;
    how.weighting = settings_.blades.weighting;
    auto report = initialised(recon_propeller_report_init);
    // Six numbers of a blade, which has at least two lines of two samples.
    std::vector<double> numbers(6 * (samples.count / 4));
    report.motion = numbers.data();
    report.motion_capacity = numbers.size();
    const recon_status status = recon_propeller(&g, &asked, &how, samples.kspace, image, &report);
    check_coordinates(samples, status);
    check_data(samples, status);
    add_warnings_of_call();
    BladesFound found;
    found.lines = std::size_t(report.lines);
    for (std::size_t b = 0; b < report.blades; ++b) {
        const double *of = &numbers[6 * b];
        found.motion.push_back({of[0], {of[1], of[2]}, of[3], of[4], of[5]});
    }
    return found;
}

Result Engine::reconstruct(const Samples &samples, const Spaces &spaces, const Samples *reference, Complex *image,
                           std::uint64_t pending) {
    warnings_.clear();
    if (!settings_.compress) {
        return reconstruct_coils(samples, spaces, reference, image, pending);
    }
    const CoilMatrix &matrix = compression(samples);
    const Samples fewer = compressed(samples, matrix);
    std::optional<Samples> fewer_of_reference;
    if (reference != nullptr) {
        fewer_of_reference = compressed(*reference, matrix);
    }
    return reconstruct_coils(fewer, spaces, fewer_of_reference ? &*fewer_of_reference : nullptr, image, pending);
}

Result Engine::reconstruct_coils(const Samples &samples, const Spaces &spaces, const Samples *reference, Complex *image,
                                 std::uint64_t pending) {
    Result result;
    Stopwatch watch(result.timing);
    const Grid grid = layout(spaces, samples.ndim);
    const std::size_t coils = samples.coils;
    if (const std::size_t zero = zero_shots(samples)) {
        add_warning(Cause::ZeroShots,
                    std::to_string(zero) + " of " + std::to_string(samples.shots) +
                        " shots are zero in every sample and coil, as no receiver's noise is, and count as "
                        "measured: leave out of the file what was not");
    }

    // A kept plan needs no more memory than for the image before.
    const auto known = maps_.find(slice_key(samples.first));
    const std::size_t id = uses_maps(coils) && known != maps_.end() ? known->second.id : 0;
    for (const MapKind kind : {MapKind::Field, MapKind::Decay}) {
        check_voxel_map(kind, samples, spaces);
    }
    const OffResonance field = off_resonance(samples);
    const auto same = [&](const KeptPlan &plan) { return is_kept(plan, samples, grid, id, field); };
    if (std::none_of(plans_.begin(), plans_.end(), same)) {
        result.memory = check_memory(samples, spaces, reference, pending);
    }

    const CoilMaps *maps = nullptr;
    if (uses_maps(coils)) {
        if (settings_.maps == Maps::Reference && reference == nullptr) {
            throw Error(
                "property coil_maps is reference, but the data have none: set it to data, or flag calibration "
                "acquisitions in the file");
        }
        const Samples &calibration = reference != nullptr ? *reference : samples;
        maps = &coil_maps(calibration, grid, coils, slice_key(samples.first));
        watch.stage("coil maps");
    }
    // Corrected blades have another trajectory in each image.
    KeptPlan *const kept =
        settings_.method == Method::Propeller ? nullptr : &find_or_make_plan(samples, grid, maps, field);
    const Complex *kspace = samples.kspace;
    if (kept != nullptr) {
        watch.stage("plan");
    }

    // The result is written to `image` directly, unless the coils are combined or the image is resized.
    const std::size_t count = maps != nullptr ? 1 : coils;
    const bool combine = count > 1 && settings_.output != Output::Coils;
    const bool resize = grid.dims != grid.image || spaces.encoded_fov != spaces.recon_fov;
    Complex *into = image;
    if (combine || resize) {
        coil_images_.resize(grid.voxels() * count);
        into = coil_images_.data();
    }
    switch (settings_.method) {
        case Method::Grid:
            check_data(samples, recon_grid(kept->plan.get(), kspace, into));
            break;
        case Method::Fbp:
            check_data(samples, recon_fbp(kept->plan.get(), settings_.filter, kspace, into));
            break;
        case Method::Propeller:
            result.blades = correct_blades(samples, spaces, grid, maps, into);
            break;
        case Method::Fhd:
            check_data(samples, recon_fhd(kept->plan.get(), kspace, into));
            break;
        case Method::Cg: {
            auto options = initialised(recon_cg_options_init);
            options.iterations = settings_.iterations;
            options.tolerance = settings_.residual;
            options.lambda = settings_.prior == Prior::None ? 0 : settings_.lambda;
            options.noise_level = settings_.noise_level;
            options.initial = initial_image(slice_key(samples.first), grid, count);
            switch (settings_.prior) {
            case Prior::None:
            case Prior::Identity: options.prior = RECON_PRIOR_IDENTITY; break;
            case Prior::Differences: options.prior = RECON_PRIOR_DIFFERENCES; break;
            }
            auto report = initialised(recon_cg_report_init);
            check_data(samples, recon_cg(kept->plan.get(), kspace, into, &options, &report));
            add_warnings_of_call();
            result.iterations = report.iterations;
            result.residual = report.residual;
            kept->bytes = bytes(kept->plan.get());  // with Q
            if (settings_.warm_start) {
                auto &last = last_images_[slice_key(samples.first)];
                last.values.assign(into, into + grid.voxels() * count);
                last.images = count;
                last.dims = grid.dims;
            }
            break;
        }
    }
    watch.stage("reconstruction");

    auto geometry = initialised(recon_geometry_init);
    geometry.ndim = grid.ndim;
    geometry.coils = count;
    if (resize) {
        std::copy(grid.dims.begin(), grid.dims.end(), geometry.dims);
        const std::array<std::uint64_t, 3> wanted{grid.image[0], grid.image[1], grid.image[2]};
        Complex *out = image;
        if (combine) {
            resized_.resize(grid.image_voxels() * count);
            out = resized_.data();
        }
        const recon_status status = recon_resize(&geometry, spaces.encoded_fov.data(), wanted.data(),
                                                 spaces.recon_fov.data(), into, out);
        if (status == RECON_SIZE_OVERFLOW) {
            throw Error(std::string("fieldOfView_mm of encodedSpace and reconSpace in the XML header: ") +
                        recon_last_error_message());
        }
        check(status);
        into = out;
    }
    if (combine) {
        std::copy(grid.image.begin(), grid.image.end(), geometry.dims);
        const bool adaptive = settings_.combine == Combine::Adaptive ||
                              (settings_.combine == Combine::Auto && settings_.output == Output::Complex);
        check(recon_combine(&geometry, adaptive ? RECON_COMBINE_ADAPTIVE : RECON_COMBINE_ROOT_SUM_OF_SQUARES, into,
                            image));
    }
    if (settings_.output == Output::Magnitude) {
        std::for_each(image, image + grid.image_voxels(), [](Complex &z) { z = std::abs(z); });
    }
    if (combine || resize || settings_.output == Output::Magnitude) {
        watch.stage("image");
    }
    result.warnings = std::move(warnings_);
    return result;
}

}  // namespace recon_gadgets
