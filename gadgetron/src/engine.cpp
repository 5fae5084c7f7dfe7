#include "engine.h"

#include "room.h"

#ifdef __GLIBC__
#include <malloc.h>
#endif

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <new>

namespace recon_gadgets {

namespace {

// Errors of the library say cause, value and remedy.
void check(recon_status status) {
    if (status != RECON_OK) {
        const char *message = recon_last_error_message();
        throw Error(*message != '\0' ? message : recon_status_string(status));
    }
}

template <class S>
S initialised(recon_status (*init)(S *, std::uint32_t)) {
    S s;
    check(init(&s, sizeof s));
    return s;
}

// Collects "plan 1.2 ms, ...".
class Watch {
public:
    explicit Watch(std::string &text) : text_(text) {}

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

}  // namespace

Place place(const ISMRMRD::AcquisitionHeader &h) {
    return Place(std::size_t(h.encoding_space_ref), unsigned(h.idx.slice), unsigned(h.idx.contrast),
                 unsigned(h.idx.phase), unsigned(h.idx.set));
}

Engine::Engine(Settings settings) : settings_(std::move(settings)) {}

Grid Engine::layout(const Spaces &spaces, unsigned ndim) const {
    return grid(spaces, ndim);
}

std::size_t Engine::channels(std::size_t coils) const {
    return settings_.output == Output::Coils ? coils : 1;
}

Samples Engine::slide(Samples samples) {
    if (settings_.window <= 1) {
        return samples;
    }
    auto &window = windows_[place(samples.first)];
    const auto unlike = [&](const Samples &old) {
        return old.components != samples.components || old.coils != samples.coils;
    };
    if (!window.empty() && unlike(window.back())) {
        window.clear();
    }
    // The buffer goes, so that its samples are copied.
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

void Engine::take_back(const Samples &samples) {
    const auto window = windows_.find(place(samples.first));
    if (window != windows_.end() && !window->second.empty()) {
        window->second.pop_back();
    }
}

recon_options Engine::options(double tolerance) const {
    auto options = initialised(recon_options_init);
    options.tolerance = tolerance;
    options.threads = settings_.threads;
    options.device = settings_.device.kind;
    options.device_count = std::uint32_t(settings_.device.indices.size());
    options.device_indices = settings_.device.indices.empty() ? nullptr : settings_.device.indices.data();
    return options;
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

void Engine::note(Cause cause, std::string text) {
    // Plans for weights and maps warn of the same.
    const auto same = [&](const Notice &notice) { return notice.cause == cause; };
    if (std::none_of(notices_.begin(), notices_.end(), same)) {
        notices_.push_back({cause, std::move(text)});
    }
}

Engine::Plan Engine::make(const Samples &samples, const recon_geometry &geometry, double tolerance) {
    const auto asked = options(tolerance);
    recon_plan *made = nullptr;
    const recon_status status = recon_plan_create(&geometry, &asked, &made);
    // The library counts samples, an acquisition is found by its shot.
    if (status == RECON_NOT_FINITE) {
        throw Error(farthest(samples) + ": it must be a number");
    }
    if (status == RECON_COORDINATE_OUT_OF_RANGE) {
        throw Error(farthest(samples) + ", outside [-0.5, 0.5] cycles per voxel of encodedSpace: divide coordinates in "
                                        "cycles per field of view by the matrix, radians by 2 pi");
    }
    check(status);
    Plan plan(made);
    ++plans_made_;
    std::uint32_t kind = RECON_WARNING_NONE;
    const char *text = nullptr;
    for (std::uint64_t i = 0; check(recon_plan_warning(made, i, &kind, &text)), text != nullptr; ++i) {
        note(kind == RECON_WARNING_EXTENT      ? Cause::Extent
             : kind == RECON_WARNING_TOLERANCE ? Cause::Tolerance
                                               : Cause::Plan,
             text);
    }
    return plan;
}

Engine::Plan Engine::weighted_plan(const Samples &samples, Coordinates &k, const Grid &grid, bool use_weights,
                                   bool explicitly, const CoilMaps *maps, double tolerance) {
    auto g = geometry(k, grid, samples.coils);
    const bool given = settings_.density == Density::Auto && !k.weights.empty();
    const bool pipe_menon = settings_.density == Density::PipeMenon || settings_.density == Density::Auto;
    if (!use_weights) {
        k.weights.clear();
    } else if (!given && pipe_menon && !explicitly) {
        k.weights.clear();
    } else if (!given) {
        // One coil does for the density.
        const Plan plain = make(samples, geometry(k, grid, 1), tolerance);
        k.weights.resize(k.count);
        const auto method = settings_.density == Density::Jackson ? RECON_DENSITY_JACKSON
                            : settings_.density == Density::Ramp  ? RECON_DENSITY_RAMP
                                                                  : RECON_DENSITY_PIPE_MENON;
        check(recon_density(plain.get(), method, 0, 0, k.weights.data()));
    }
    g.weights = k.weights.empty() ? nullptr : k.weights.data();
    g.coil_maps = maps == nullptr ? nullptr : maps->maps.data();
    return make(samples, g, tolerance);
}

void Engine::make_room() {
    std::uint64_t held = 0;
    const std::uint64_t most = std::uint64_t(settings_.memory) << 20;
    std::size_t count = 0;
    for (auto plan = plans_.begin(); plan != plans_.end();) {
        held += plan->bytes;
        ++count;
        // The one just made stays, whatever it takes.
        const bool drop = count > 1 && (count > std::max<std::size_t>(settings_.plans, 1) || (most > 0 && held > most));
        plan = drop ? plans_.erase(plan) : std::next(plan);
    }
}

bool Engine::is_kept(const Kept &plan, const Samples &samples, const Grid &grid, std::size_t maps) const {
    const std::size_t numbers = samples.count * samples.components;
    return plan.coils == samples.coils && plan.components == samples.components && plan.weighted == samples.weighted &&
           plan.maps == maps && plan.dims == grid.dims && plan.trajectory.size() == numbers &&
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
    switch (const recon_status status = recon_plan_memory(&geometry, &asked, &memory)) {
        case RECON_OK:
            return {};
        case RECON_TOLERANCE_OUT_OF_RANGE:
            return std::pair("tolerance", recon_last_error_message());
        case RECON_INVALID_ARGUMENT:
            return std::pair("threads", recon_last_error_message());
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

std::uint64_t Engine::needed(const Samples &samples, const Coordinates &k, const Spaces &spaces,
                             const Samples *reference) const {
    const Grid grid = layout(spaces, samples.ndim);
    const std::uint64_t coils = samples.coils, z = sizeof(Complex);
    const std::uint64_t voxels = grid.voxels(), pixels = grid.image_voxels();
    // Only whether weights and maps are there counts, not what they are.
    const float there = 1;
    const auto told = [&](const recon_geometry &of, double tolerance) {
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
        g.weights = weights ? &there : nullptr;
        g.coil_maps = maps ? &there : nullptr;
        return told(g, tolerance);
    };
    const bool maps = uses_maps(coils), cg = settings_.method == Method::Cg;
    const bool given = settings_.density == Density::Auto && samples.weighted;
    const bool computed = settings_.density == Density::Jackson || settings_.density == Density::Ramp;
    const bool weighting = settings_.method == Method::Grid || (cg && settings_.weighted);
    const bool weights = weighting && (given || computed || cg);
    // What goes into a plan, by axes, and what is kept of it.
    const std::uint64_t apart = samples.count * (grid.ndim + 1) * sizeof(float);
    const std::uint64_t kept = samples.count * samples.components * sizeof(float);

    std::uint64_t most = 0, maps_bytes = 0;
    const auto stage = [&](std::uint64_t bytes) { most = std::max(most, bytes); };
    const auto explicit_weights = [&](std::uint64_t before) {
        const auto plain = memory(1, false, false, k, settings_.tolerance);
        const bool jackson = settings_.density == Density::Jackson;
        stage(before + apart + (jackson ? plain.host_density_jackson : plain.host_density));
    };
    if (maps) {
        maps_bytes = voxels * coils * z;
        const Coordinates own = reference != nullptr ? coordinates(*reference) : Coordinates();
        const auto plan = memory(coils, given || computed, false, reference != nullptr ? own : k,
                                 std::max(settings_.tolerance, 1e-4));
        stage(maps_bytes + apart + plan.host_coil_maps);
        if (computed) {
            explicit_weights(0);
        }
    }
    if (weighting && !given && (computed || cg)) {
        explicit_weights(maps_bytes);
    }
    const auto plan = memory(coils, weights, maps, k, settings_.tolerance);
    const std::uint64_t count = maps ? 1 : coils;
    const bool combine = count > 1 && settings_.output != Output::Coils;
    const bool resize = grid.dims != grid.image || spaces.encoded_fov != spaces.recon_fov;
    const std::uint64_t own_images = combine || resize ? voxels * count * z : 0;
    const std::uint64_t held = maps_bytes + kept;
    stage(held + apart + plan.host_plan);
    stage(held + own_images + (cg                                 ? plan.host_cg
                               : settings_.method == Method::Grid ? plan.host_grid
                                                                  : plan.host_transform));
    // One after the other, beside what both have: the size wanted, in double precision an image at a time and apart
    // until all is well; then one image of all coils.
    const std::uint64_t larger = std::max(voxels, pixels);
    const std::uint64_t done = held + own_images + plan.host_plan + (cg ? plan.host_q : 0) +
                               (resize && combine ? pixels * count * z : 0);
    stage(done + (resize ? pixels * count * z + 5 * larger * z : 0));
    const bool adaptive = settings_.combine == Combine::Adaptive ||
                          (settings_.combine == Combine::Auto && settings_.output == Output::Complex);
    std::uint64_t combined = combine ? pixels * z : 0;
    if (combine && adaptive) {
        auto images = geometry(k, grid, count);
        std::copy(grid.image.begin(), grid.image.end(), images.dims);
        combined += told(images, settings_.tolerance).host_combine;
    }
    stage(done + combined);
    return most;
}

std::uint64_t Engine::check_memory(const Samples &samples, const Spaces &spaces, const Samples *reference,
                          std::uint64_t pending) {
    const Coordinates k = coordinates(samples);
    const std::uint64_t bytes = needed(samples, k, spaces, reference) + pending;
    Room left = room();
    while (bytes > left.bytes && !plans_.empty()) {
        plans_.pop_back();
#ifdef __GLIBC__
        // What is freed may stay with the process otherwise.
        malloc_trim(0);
#endif
        left = room();
    }
    if (bytes > left.bytes) {
        throw Error("the image needs " + mebibytes(bytes) + " for its plan, coil maps and outputs, and of " + left.limit +
                    " " + mebibytes(left.bytes) +
                    " are left: raise the limit, let fewer connections run at once, or reconstruct smaller images or "
                    "fewer coils");
    }
    return bytes;
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

Engine::Kept &Engine::kept_plan(const Samples &samples, const Grid &grid, const CoilMaps *maps) {
    const std::size_t numbers = samples.count * samples.components, id = maps == nullptr ? 0 : maps->id;
    for (auto plan = plans_.begin(); plan != plans_.end(); ++plan) {
        // Content decides, not an index: two frames may have any trajectories.
        if (is_kept(*plan, samples, grid, id)) {
            plans_.splice(plans_.begin(), plans_, plan);
            return plans_.front();
        }
    }
    Kept made;
    auto k = coordinates(samples);
    const bool use_weights = settings_.method == Method::Grid || (settings_.method == Method::Cg && settings_.weighted);
    made.plan =
        weighted_plan(samples, k, grid, use_weights, settings_.method == Method::Cg, maps, settings_.tolerance);
    made.trajectory.assign(samples.trajectory, samples.trajectory + numbers);
    made.components = samples.components;
    made.coils = samples.coils;
    made.weighted = samples.weighted;
    made.maps = id;
    made.dims = grid.dims;
    made.bytes = bytes(made.plan.get());
    plans_.push_front(std::move(made));
    make_room();
    return plans_.front();
}

const Engine::CoilMaps &Engine::coil_maps(const Samples &samples, const Grid &grid, std::size_t coils,
                                          const Place &where) {
    if (samples.coils != coils) {
        throw Error("the reference has " + std::to_string(samples.coils) + " coils, the data have " +
                    std::to_string(coils) + ": both need the same");
    }
    auto &kept = maps_[where];
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
    auto k = coordinates(samples);
    const Plan plan = weighted_plan(samples, k, grid, true, false, nullptr, std::max(settings_.tolerance, 1e-4));
    made.maps.resize(grid.voxels() * coils);
    const recon_status status =
        recon_coil_maps(plan.get(), samples.kspace, settings_.calibration, made.maps.data());
    if (status == RECON_NOT_FINITE) {
        not_finite(samples);
    }
    check(status);
    ++maps_made_;
    kept = std::move(made);
    // Plans with the old maps serve no more.
    plans_.remove_if([&](const Kept &plan) { return before != 0 && plan.maps == before; });
    return kept;
}

Done Engine::reconstruct(const Samples &samples, const Spaces &spaces, const Samples *reference, Complex *image,
                         std::uint64_t pending) {
    Done done;
    Watch watch(done.timing);
    const Grid grid = layout(spaces, samples.ndim);
    const std::size_t coils = samples.coils;
    notices_.clear();
    if (const std::size_t zero = zero_shots(samples)) {
        note(Cause::ZeroShots, std::to_string(zero) + " of " + std::to_string(samples.shots) +
                                   " shots are zero in every sample and coil, as no receiver's noise is, and count as "
                                   "measured: leave out of the file what was not");
    }

    // What is kept takes no more than it did.
    const auto known = maps_.find(place(samples.first));
    const std::size_t id = uses_maps(coils) && known != maps_.end() ? known->second.id : 0;
    const auto same = [&](const Kept &plan) { return is_kept(plan, samples, grid, id); };
    if (std::none_of(plans_.begin(), plans_.end(), same)) {
        done.memory = check_memory(samples, spaces, settings_.maps == Maps::Reference ? reference : nullptr, pending);
    }

    const CoilMaps *maps = nullptr;
    if (uses_maps(coils)) {
        if (settings_.maps == Maps::Reference && reference == nullptr) {
            throw Error(
                "property coil_maps is reference, but the data have none: set it to data, or flag calibration "
                "acquisitions in the file");
        }
        maps = &coil_maps(settings_.maps == Maps::Reference ? *reference : samples, grid, coils, place(samples.first));
        watch.stage("coil maps");
    }
    Kept &kept = kept_plan(samples, grid, maps);
    const Complex *kspace = samples.kspace;
    watch.stage("plan");

    // Straight into place, where nothing is left to be done to it.
    const std::size_t count = maps != nullptr ? 1 : coils;
    const bool combine = count > 1 && settings_.output != Output::Coils;
    const bool resize = grid.dims != grid.image || spaces.encoded_fov != spaces.recon_fov;
    Complex *into = image;
    if (combine || resize) {
        coil_images_.resize(grid.voxels() * count);
        into = coil_images_.data();
    }
    const auto check_data = [&](recon_status status) {
        if (status == RECON_NOT_FINITE) {
            not_finite(samples);
        }
        check(status);
    };
    switch (settings_.method) {
        case Method::Grid:
            check_data(recon_grid(kept.plan.get(), kspace, into));
            break;
        case Method::Fhd:
            check_data(recon_fhd(kept.plan.get(), kspace, into));
            break;
        case Method::Cg: {
            auto options = initialised(recon_cg_options_init);
            options.iterations = settings_.iterations;
            options.tolerance = settings_.residual;
            options.lambda = settings_.prior == Prior::None ? 0 : settings_.lambda;
            options.prior = settings_.prior == Prior::Differences ? RECON_PRIOR_DIFFERENCES : RECON_PRIOR_IDENTITY;
            auto report = initialised(recon_cg_report_init);
            check_data(recon_cg(kept.plan.get(), kspace, into, &options, &report));
            done.iterations = report.iterations;
            done.residual = report.residual;
            kept.bytes = bytes(kept.plan.get());  // with Q
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
    done.notices = std::move(notices_);
    return done;
}

}  // namespace recon_gadgets
