// Coil sensitivity maps and virtual coils, estimated once per slice.
#include "engine.h"

#include "library.h"

#include <algorithm>

namespace recon_gadgets {

namespace {

void check_coil_count(const Samples &reference, std::size_t coils) {
    if (reference.coils != coils) {
        throw Error("the calibration data have " + std::to_string(reference.coils) + " coils, but the data have " +
                    std::to_string(coils) + ": measure both with the same coils");
    }
}

}  // namespace

bool Engine::uses_maps(std::size_t coils) const {
    return coils > 1 && settings_.output != ImageOutput::Coils && settings_.maps != CoilMapSource::None;
}

double Engine::coil_map_tolerance() const {
    // A window that the user sets may not reach 1e-4, a tolerance that the user did not request.
    const bool user_window = settings_.width != 0 || settings_.oversampling != 0;
    return user_window ? settings_.tolerance : std::max(settings_.tolerance, 1e-4);
}

const Engine::CoilMaps &Engine::coil_maps(const ImageTask &task) {
    if (settings_.maps == CoilMapSource::Reference && task.reference == nullptr) {
        throw Error("property coil_maps is reference, but the data have no calibration acquisitions: set it to data, "
                    "or flag calibration acquisitions in the file");
    }
    const Samples &calibration = task.reference != nullptr ? *task.reference : task.samples;
    check_coil_count(calibration, task.samples.coils);
    auto &stored = maps_[slice_key(task.samples.first)];
    const bool expired = settings_.maps_every > 0 && stored.images >= settings_.maps_every;
    if (stored.id != 0 && !expired && stored.coils == task.samples.coils && stored.dims == task.grid.dims) {
        ++stored.images;
        return stored;
    }
    const std::size_t old_id = stored.id;
    stored = estimate_coil_maps(calibration, task.grid);
    // Plans with the old maps are not used again.
    plans_.remove_if([&](const CachedPlan &plan) { return old_id != 0 && plan.maps == old_id; });
    return stored;
}

Engine::CoilMaps Engine::estimate_coil_maps(const Samples &samples, const Grid &grid) {
    const Coordinates k = coordinates(samples);
    // The plan has no off-resonance: a calibration scan has different times, and the estimate of memory assumes none.
    const Plan plan = make_plan(samples, geometry(k, grid, samples.coils), k, weight_source(samples, true, false),
                                coil_map_tolerance(), true);
    CoilMaps maps;
    maps.coils = samples.coils;
    maps.dims = grid.dims;
    maps.images = 1;
    maps.maps.resize(grid.voxels() * samples.coils);
    check_data(samples, recon_coil_maps(plan.get(), samples.kspace, settings_.calibration, maps.maps.data()));
    add_warnings_of_call();
    maps.id = ++maps_made_;
    return maps;
}

const Engine::CoilMatrix &Engine::compression(const Samples &samples) {
    auto &stored = compressions_[slice_key(samples.first)];
    if (stored.coils == samples.coils) {
        return stored;
    }
    const CompressionTarget target = settings_.compress;
    CoilMatrix matrix;
    matrix.coils = samples.coils;
    matrix.entries.resize(std::max(target.coils, samples.coils) * samples.coils);
    const recon_status status =
        recon_compression(RECON_F32, samples.kspace, samples.count, samples.coils, 1, target.coils, target.energy,
                          matrix.entries.data(), &matrix.virtual_coils, nullptr);
    if (status != RECON_OK && status != RECON_NOT_FINITE) {
        throw Error(std::string("property compress: ") + recon_last_error_message());
    }
    check_data(samples, status);
    matrix.entries.resize(matrix.virtual_coils * samples.coils);
    add_warnings_of_call("property compress: ");
    stored = std::move(matrix);
    return stored;
}

Samples Engine::compressed(const Samples &samples, const CoilMatrix &matrix) const {
    check_coil_count(samples, matrix.coils);
    std::vector<Complex> kspace(samples.count * matrix.virtual_coils);
    check_data(samples, recon_virtual_coils(matrix.entries.data(), matrix.virtual_coils, matrix.coils, RECON_F32,
                                            samples.kspace, samples.count, 1, kspace.data()));
    return samples.with_coils(std::move(kspace), std::size_t(matrix.virtual_coils));
}

}  // namespace recon_gadgets
