// Plans: their options and weights, and the cache of plans by trajectory.
#include "engine.h"

#include "library.h"

#include <algorithm>

namespace recon_gadgets {

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

void Engine::add_plan_warnings(const recon_plan *plan, bool for_maps) {
    std::uint32_t kind = RECON_WARNING_NONE;
    const char *text = nullptr;
    for (std::uint64_t i = 0; check(recon_plan_warning(plan, i, &kind, &text)), text != nullptr; ++i) {
        // Calibration data may cover only a small part of k-space.
        if (!for_maps || kind != RECON_WARNING_EXTENT) {
            add_warning(text);
        }
    }
}

Engine::WeightSource Engine::weight_source(const Samples &samples, bool use_weights, bool required) const {
    const bool pipe_menon = settings_.density == Density::PipeMenon || settings_.density == Density::Auto;
    if (!use_weights) {
        return WeightSource::None;
    }
    if (settings_.density == Density::Auto && samples.is_weighted()) {
        return WeightSource::Trajectory;
    }
    return pipe_menon && !required ? WeightSource::None : WeightSource::Computed;
}

Engine::WeightSource Engine::weight_source(const Samples &samples) const {
    const bool cg = settings_.method == Method::Cg;
    return weight_source(samples, settings_.method == Method::Grid || (cg && settings_.weighted), cg);
}

void Engine::compute_weights(recon_plan *plan, std::size_t samples) const {
    std::vector<float> weights(samples);
    const auto method = settings_.density == Density::Jackson ? RECON_DENSITY_JACKSON
                        : settings_.density == Density::Ramp  ? RECON_DENSITY_RAMP
                                                              : RECON_DENSITY_PIPE_MENON;
    check(recon_density(plan, method, 0, 0, weights.data()));
    check(recon_plan_set_weights(plan, weights.data(), weights.size()));
}

Engine::Plan Engine::make_plan(recon_geometry geometry, WeightSource weights, double tolerance, bool for_maps) {
    if (weights != WeightSource::Trajectory) {
        geometry.weights = nullptr;
    }
    const auto plan_options = options(tolerance);
    recon_plan *made = nullptr;
    check(recon_plan_create(&geometry, &plan_options, &made));
    Plan plan(made);
    ++plans_made_;
    add_plan_warnings(made, for_maps);
    if (weights == WeightSource::Computed) {
        compute_weights(made, geometry.samples);
    }
    return plan;
}

Engine::CachedPlan Engine::new_plan(const ImageTask &task) {
    const Samples &samples = task.samples;
    auto scan = samples.geometry();
    scan.coil_maps = task.maps == nullptr ? nullptr : task.maps->maps.data();
    task.field.add_to(scan);
    CachedPlan cached;
    cached.plan = make_plan(scan, weight_source(samples), settings_.tolerance);
    cached.coils = samples.coils();
    cached.weighted = samples.is_weighted();
    cached.maps = task.map_id();
    cached.dims = task.grid.dims;
    return cached;
}

void Engine::update_plan(CachedPlan &cached, const ImageTask &task) {
    const WeightSource weights = weight_source(task.samples);
    auto scan = task.samples.geometry();
    if (weights != WeightSource::Trajectory) {
        scan.weights = nullptr;
    }
    task.field.add_to(scan);
    recon_plan *plan = cached.plan.get();
    if (weights == WeightSource::Computed) {
        // A plan with weights does not accept a trajectory without weights, so the old weights are removed first.
        check(recon_plan_set_weights(plan, nullptr, 0));
    }
    check(recon_plan_set_trajectory(plan, &scan));
    ++plans_updated_;
    add_plan_warnings(plan, false);
    if (weights == WeightSource::Computed) {
        compute_weights(plan, scan.samples);
    }
}

void Engine::evict_plans() {
    std::uint64_t total = 0;
    const std::uint64_t max_bytes = std::uint64_t(settings_.memory) << 20;
    std::size_t count = 0;
    for (auto plan = plans_.begin(); plan != plans_.end();) {
        total += plan->bytes;
        ++count;
        // The first plan was just made or used, and stays.
        const bool evict = count > 1 && (count > std::max<std::size_t>(settings_.plans, 1) ||
                                         (max_bytes > 0 && total > max_bytes));
        plan = evict ? plans_.erase(plan) : std::next(plan);
    }
}

bool Engine::is_compatible(const CachedPlan &plan, const ImageTask &task) const {
    // Maps of off-resonance and decay can be replaced, but not added to or removed from a plan.
    const auto [field, decay] = task.field.ids();
    if ((plan.voxel_maps.first != 0) != (field != 0) || (plan.voxel_maps.second != 0) != (decay != 0)) {
        return false;
    }
    const Samples &samples = task.samples;
    return plan.coils == samples.coils() && plan.weighted == samples.is_weighted() && plan.maps == task.map_id() &&
           plan.dims == task.grid.dims;
}

bool Engine::matches(const CachedPlan &plan, const ImageTask &task) const {
    // The contents are compared, since any frame may have a different trajectory.
    return plan.voxel_maps == task.field.ids() && plan.times == task.field.times && is_compatible(plan, task) &&
           task.samples.has_trajectory(plan.trajectory);
}

bool Engine::seen_recently(const ImageTask &task) {
    // Two trajectories with the same hash cost only one more plan.
    const auto [field, decay] = task.field.ids();
    const std::size_t hash =
        task.samples.trajectory_hash() + task.map_id() + 1000003 * field + 1000000007 * decay;
    const auto found = std::find(trajectories_.begin(), trajectories_.end(), hash);
    const bool seen = found != trajectories_.end();
    if (seen) {
        trajectories_.erase(found);
    }
    trajectories_.push_back(hash);
    if (trajectories_.size() > std::max<std::size_t>(settings_.plans, 1)) {
        trajectories_.pop_front();
    }
    return seen;
}

std::list<Engine::CachedPlan>::iterator Engine::find_free_plan(const ImageTask &task) {
    return std::find_if(plans_.begin(), plans_.end(),
                        [&](const CachedPlan &plan) { return !plan.recurs && is_compatible(plan, task); });
}

Engine::CachedPlan &Engine::find_or_make_plan(const ImageTask &task) {
    const auto equal =
        std::find_if(plans_.begin(), plans_.end(), [&](const CachedPlan &plan) { return matches(plan, task); });
    const bool recurs = seen_recently(task);
    if (equal != plans_.end()) {
        equal->recurs = true;
        plans_.splice(plans_.begin(), plans_, equal);
        return plans_.front();
    }
    // A recurring trajectory gets its own plan.
    auto plan = recurs ? plans_.end() : find_free_plan(task);
    if (plan == plans_.end()) {
        plan = plans_.insert(plans_.begin(), new_plan(task));
    } else {
        try {
            plan->trajectory.clear();
            update_plan(*plan, task);
        } catch (...) {
            // The plan may already have lost its weights.
            plans_.erase(plan);
            throw;
        }
        plans_.splice(plans_.begin(), plans_, plan);
    }
    plan->recurs = recurs;
    plan->voxel_maps = task.field.ids();
    plan->times = task.field.times;
    plan->trajectory = task.samples.trajectory();
    plan->bytes = plan_bytes(plan->plan.get());
    evict_plans();
    return plans_.front();
}

}  // namespace recon_gadgets
