// The estimate of the memory that an image needs, and its comparison with the free memory.
#include "engine.h"

#include "text.h"

#include <algorithm>

namespace recon_gadgets {

// Adds up the host bytes of each stage of an image. The library returns the bytes of its own functions; the arrays of
// the gadget are added here.
class Engine::MemoryEstimator {
public:
    MemoryEstimator(const Engine &engine, const ImageTask &task)
        : engine_(engine),
          task_(task),
          settings_(engine.settings_),
          coils_(task.samples.coils()),
          uses_maps_(engine.uses_maps(coils_)),
          weights_(engine.weight_source(task.samples)) {
        const Samples &samples = task.samples;
        const bool has_times = !task.field.times.empty();
        // The library reads the values of coil maps only if off-resonance is set. They are not known yet: all voxels
        // count as seen.
        unit_maps_.resize(uses_maps_ && has_times ? task.grid.voxels() * coils_ : 1, Complex(1));
        const std::size_t images = uses_maps_ ? 1 : coils_;
        image_bytes_ = task.grid.voxels() * images * sizeof(Complex);
        output_bytes_ = task.grid.image_voxels() * images * sizeof(Complex);
        combines_ = engine.combines_coils(images);
        map_bytes_ = uses_maps_ ? task.grid.voxels() * coils_ * sizeof(Complex) : 0;
        input_bytes_ = has_times ? samples.count() * sizeof(float) : 0;
        const bool warm_start = settings_.method == Method::Cg && settings_.warm_start;
        held_bytes_ = map_bytes_ + (warm_start ? image_bytes_ : 0);
        if (settings_.method != Method::Propeller) {
            plan_ = plan_memory(image_geometry(weights_ != WeightSource::None), settings_.tolerance);
            held_bytes_ += samples.trajectory().size() * sizeof(float);  // the trajectory of the cached plan
        }
    }

    // Returns the bytes at the peak.
    std::uint64_t peak() const {
        return std::max({coil_map_peak(), density_peak(), reconstruction_peak(), output_peak()});
    }

private:
    recon_memory plan_memory(const recon_geometry &geometry, double tolerance) const {
        const auto options = engine_.options(tolerance);
        auto memory = initialised(recon_memory_init);
        if (engine_.uses_maps(geometry.coils)) {
            memory.calibration = std::uint32_t(std::min<std::size_t>(settings_.calibration, UINT32_MAX));
        }
        check(recon_plan_memory(&geometry, &options, &memory));
        return memory;
    }

    // Returns the geometry of the plan for images.
    recon_geometry image_geometry(bool weights) const {
        auto geometry = task_.samples.geometry();
        geometry.weights = weights ? &any_weight_ : nullptr;
        task_.field.add_to(geometry);
        geometry.coil_maps = uses_maps_ ? unit_maps_.data() : nullptr;
        return geometry;
    }

    // Returns the bytes of weights that the gadget computes with a plan that has no weights.
    std::uint64_t density_bytes(const recon_memory &plan) const {
        return settings_.density == Density::Jackson ? plan.host_density_jackson : plan.host_density;
    }

    std::uint64_t coil_map_peak() const {
        if (!uses_maps_) {
            return 0;
        }
        const Samples &samples = task_.reference == nullptr ? task_.samples : *task_.reference;
        const WeightSource weights = engine_.weight_source(samples, true, false);
        auto geometry = samples.geometry();
        geometry.weights = nullptr;
        std::uint64_t computed_weights = 0;
        if (weights == WeightSource::Computed) {
            computed_weights = density_bytes(plan_memory(geometry, engine_.coil_map_tolerance()));
        }
        geometry.weights = weights != WeightSource::None ? &any_weight_ : nullptr;
        const auto plan = plan_memory(geometry, engine_.coil_map_tolerance());
        return input_bytes_ + std::max(map_bytes_ + plan.host_coil_maps, computed_weights);
    }

    std::uint64_t density_peak() const {
        if (weights_ != WeightSource::Computed) {
            return 0;
        }
        return map_bytes_ + input_bytes_ + density_bytes(plan_memory(image_geometry(false), settings_.tolerance));
    }

    // Returns the bytes of images that are computed before the output.
    std::uint64_t computed_bytes() const { return combines_ || task_.grid.needs_resize() ? image_bytes_ : 0; }

    // Returns the bytes of the library at the peak of the reconstruction.
    std::uint64_t operation_bytes() const {
        switch (settings_.method) {
            case Method::Grid:
                // recon_partial_fourier has four arrays of the size of the image, and one of the size of the data.
                return settings_.partial_fourier ? 4 * image_bytes_ + data_bytes() : plan_.host_grid;
            case Method::Fbp: return plan_.host_fbp;
            case Method::Propeller: return input_bytes_ + propeller_bytes();
            case Method::Fhd: return plan_.host_transform;
            case Method::Cg: return plan_.host_cg + lambda_search_bytes();
        }
        return 0;
    }

    std::uint64_t reconstruction_peak() const {
        return held_bytes_ + std::max(computed_bytes() + operation_bytes(), input_bytes_ + plan_.host_plan);
    }

    // Returns the bytes of the library after the reconstruction: those of the plan, and unused memory that it keeps.
    std::uint64_t bytes_after_operation() const {
        const std::uint64_t plan = plan_.host_plan + (settings_.method == Method::Cg ? plan_.host_q : 0);
        const std::uint64_t operation = operation_bytes();
        const std::uint64_t unused = operation > plan ? operation - plan : 0;
        return plan + std::min(unused, recon_unused_memory_limit(plan));
    }

    std::uint64_t propeller_bytes() const {
        const auto geometry = image_geometry(false);
        const auto options = engine_.options(settings_.tolerance);
        const auto propeller = engine_.propeller_options();
        std::uint64_t bytes = 0;
        check(recon_propeller_memory(&geometry, &options, &propeller, &bytes));
        return bytes + motion_capacity(task_.samples) * sizeof(double);
    }

    std::uint64_t data_bytes() const { return task_.samples.count() * coils_ * sizeof(Complex); }

    // Returns the bytes of the search for lambda: an image, and twice the data.
    std::uint64_t lambda_search_bytes() const {
        return settings_.noise_level > 0 ? image_bytes_ + 2 * data_bytes() : 0;
    }

    // First the images are resized, one at a time in double precision, into a copy that is complete before it is
    // written. Then the coils are combined.
    std::uint64_t output_peak() const {
        const bool resizes = task_.grid.needs_resize();
        const Grid &grid = task_.grid;
        std::uint64_t resizing = 0, combination = 0;
        if (resizes) {
            resizing = output_bytes_ + 5 * std::max(grid.voxels(), grid.image_voxels()) * sizeof(Complex);
        }
        if (combines_) {
            combination = grid.image_voxels() * sizeof(Complex);
            if (engine_.combines_adaptively()) {
                auto images = image_geometry(false);
                images.coil_maps = nullptr;
                std::copy(grid.image.begin(), grid.image.end(), images.dims);
                combination += plan_memory(images, settings_.tolerance).host_combine;
            }
        }
        return held_bytes_ + computed_bytes() + bytes_after_operation() +
               (resizes && combines_ ? output_bytes_ : 0) + std::max(resizing, combination);
    }

    const Engine &engine_;
    const ImageTask &task_;
    const Settings &settings_;
    const std::uint64_t coils_;
    const bool uses_maps_;
    const WeightSource weights_;
    // The library's estimate depends on the presence of weights, not on their values.
    const float any_weight_ = 1;
    std::vector<Complex> unit_maps_;
    recon_memory plan_{};  // of the plan for images; all 0 for PROPELLER
    bool combines_ = false;
    // Bytes of coil maps, of sample times, of computed and of resized images, and of what the gadget holds while it
    // reconstructs.
    std::uint64_t map_bytes_ = 0, input_bytes_ = 0, image_bytes_ = 0, output_bytes_ = 0, held_bytes_ = 0;
};

std::uint64_t Engine::estimate_memory(const Samples &samples, const Samples *reference) const {
    const ImageTask task{samples, reference, Grid(samples.properties()), off_resonance(samples)};
    return MemoryEstimator(*this, task).peak();
}

std::uint64_t Engine::check_memory(const ImageTask &task, std::uint64_t pending) {
    const std::uint64_t bytes = MemoryEstimator(*this, task).peak() + pending;
    while (recon_check_free_memory(bytes) != RECON_OK) {
        if (plans_.empty()) {
            throw Error("the image needs " + mebibytes(bytes) + " for its plan, coil maps and outputs: " +
                        recon_last_error_message() + ". Let fewer connections run at once, or reconstruct smaller "
                        "images or fewer coils");
        }
        plans_.pop_back();
    }
    return bytes;
}

}  // namespace recon_gadgets
