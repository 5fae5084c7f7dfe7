// Coil sensitivity maps and virtual coils, estimated once per slice.
#include "engine.h"

#include "library.h"

#include <algorithm>

namespace recon_gadgets {

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
    auto &stored = maps_[task.samples.slice_key()];
    const bool expired = settings_.maps_every > 0 && stored.images >= settings_.maps_every;
    if (stored.id != 0 && !expired && stored.coils == task.samples.coils() && stored.dims == task.grid.dims) {
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
    // The plan has no off-resonance: a calibration scan has different times, and the estimate of memory assumes none.
    const Plan plan =
        make_plan(samples.geometry(), weight_source(samples, true, false), coil_map_tolerance(), true);
    CoilMaps maps;
    maps.coils = samples.coils();
    maps.dims = grid.dims;
    maps.images = 1;
    maps.maps.resize(grid.voxels() * samples.coils());
    check(recon_coil_maps(plan.get(), samples.kspace(), settings_.calibration, maps.maps.data()));
    add_warnings_of_call();
    maps.id = ++maps_made_;
    return maps;
}

const Engine::CoilMatrix &Engine::compression(const Samples &samples) {
    auto &stored = compressions_[samples.slice_key()];
    if (stored.coils == samples.coils()) {
        return stored;
    }
    const CompressionTarget target = settings_.compress;
    CoilMatrix matrix;
    matrix.coils = samples.coils();
    matrix.entries.resize(std::max(target.coils, samples.coils()) * samples.coils());
    const recon_status status =
        recon_compression(RECON_F32, samples.kspace(), samples.count(), samples.coils(), 1, target.coils, target.energy,
                          matrix.entries.data(), &matrix.virtual_coils, nullptr);
    if (status != RECON_OK) {
        throw Error(std::string("property compress: ") + recon_last_error_message());
    }
    matrix.entries.resize(matrix.virtual_coils * samples.coils());
    add_warnings_of_call("property compress: ");
    stored = std::move(matrix);
    return stored;
}

Samples Engine::compressed(const Samples &samples, const CoilMatrix &matrix) const {
    std::vector<Complex> kspace(samples.count() * matrix.virtual_coils);
    check(recon_virtual_coils(matrix.entries.data(), matrix.virtual_coils, matrix.coils, RECON_F32, samples.kspace(),
                              samples.count(), 1, kspace.data()));
    return samples.with_coils(std::move(kspace), std::size_t(matrix.virtual_coils));
}

}  // namespace recon_gadgets
