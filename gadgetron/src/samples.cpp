#include "samples.h"

#include "text.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string_view>

namespace recon_gadgets {

Samples::Samples(recon_scan_image *image) : image_(image, recon_scan_image_destroy) {
    properties_ = initialised(recon_scan_properties_init);
    check(recon_scan_image_properties(image, &properties_));
}

SliceKey Samples::slice_key() const {
    const auto &p = properties_;
    return {p.encoding, p.slice, p.contrast, p.phase, p.set};
}

ISMRMRD::AcquisitionHeader Samples::first() const {
    ISMRMRD::AcquisitionHeader header;
    // The library's bytes may be unaligned.
    std::memcpy(static_cast<void *>(&header), properties_.first_acquisition, sizeof header);
    return header;
}

std::string Samples::describe() const {
    return image_text(properties_.encoding, properties_);
}

recon_geometry Samples::geometry() const {
    auto geometry = initialised(recon_geometry_init);
    check(recon_scan_image_geometry(image_.get(), &geometry));
    geometry.coils = properties_.coils;
    return geometry;
}

template <class F>
void Samples::for_each_array(F f) const {
    for (const float *k : properties_.coordinates) {
        if (k != nullptr) {
            f(k, count());
        }
    }
    if (is_weighted()) {
        f(properties_.weights, count());
    }
}

std::vector<float> Samples::trajectory() const {
    std::vector<float> numbers;
    numbers.reserve((properties_.ndim + (is_weighted() ? 1 : 0)) * count());
    for_each_array([&](const float *values, std::size_t n) { numbers.insert(numbers.end(), values, values + n); });
    return numbers;
}

bool Samples::has_trajectory(const std::vector<float> &numbers) const {
    bool equal = numbers.size() == (properties_.ndim + (is_weighted() ? 1 : 0)) * count();
    const float *other = numbers.data();
    for_each_array([&](const float *values, std::size_t n) {
        equal = equal && std::memcmp(values, other, n * sizeof(float)) == 0;
        other += n;
    });
    return equal;
}

std::size_t Samples::trajectory_hash() const {
    std::size_t hash = 0;
    for_each_array([&](const float *values, std::size_t n) {
        const std::string_view bytes(reinterpret_cast<const char *>(values), n * sizeof(float));
        hash = 31 * hash + std::hash<std::string_view>()(bytes);
    });
    return hash;
}

std::vector<float> Samples::times(double dwell_us, double start_ms) const {
    const auto &p = properties_;
    const double dwell = dwell_us > 0 ? 1e-6 * dwell_us : 0;
    // The times of the headers are 0 without a sample time.
    if (dwell == 0 && count() > 1 && std::all_of(p.times, p.times + count(), [](float t) { return t == 0; })) {
        throw Error("sample_time_us is 0, but maps of off-resonance and decay require the time between samples: set "
                    "property dwell, or sample_time_us in the headers of the acquisitions");
    }
    std::vector<float> times(p.times, p.times + count());
    std::size_t m = 0;
    for (std::size_t shot = 0; dwell > 0 && shot < p.shots; ++shot) {
        for (std::size_t i = 0; i < p.samples_per_shot[shot]; ++i, ++m) {
            times[m] = float(dwell * double(p.skipped_per_shot[shot] + i));
        }
    }
    std::for_each(times.begin(), times.end(), [&](float &t) { t = float(double(t) + 1e-3 * start_ms); });
    return times;
}

Samples Samples::with_coils(std::vector<Complex> kspace, std::size_t coils) const {
    Samples out = *this;
    out.virtual_kspace_ = std::make_shared<const std::vector<Complex>>(std::move(kspace));
    out.properties_.kspace = out.virtual_kspace_->data();
    out.properties_.coils = coils;
    return out;
}

std::optional<Samples> Samples::calibration(std::vector<std::string> &warnings) const {
    recon_scan_image *calibration = nullptr;
    check(recon_scan_image_calibration(image_.get(), &calibration));
    for (auto &text : warnings_of_call()) {
        warnings.push_back(std::move(text));
    }
    return calibration == nullptr ? std::nullopt : std::optional<Samples>(Samples(calibration));
}

Grid::Grid(const recon_scan_properties &p) : ndim(p.ndim) {
    for (unsigned axis = 0; axis < 3; ++axis) {
        encoded_fov[axis] = p.encoded_fov_mm[axis];
        recon_fov[axis] = p.recon_fov_mm[axis] > 0 ? p.recon_fov_mm[axis] : p.encoded_fov_mm[axis];
        // A 2D image has one voxel along z. Some headers have a different number there.
        if (axis < ndim) {
            dims[axis] = p.encoded_matrix[axis];
            image[axis] = p.recon_matrix[axis];
        }
    }
}

void check_square(const Grid &grid) {
    const double x = grid.encoded_fov[0] / double(grid.dims[0]), y = grid.encoded_fov[1] / double(grid.dims[1]);
    if (!(x > 0 && y > 0 && std::fabs(x - y) <= 0.01 * std::max(x, y))) {
        throw Error("a voxel of encodedSpace is " + number_text(x) + " mm wide and " + number_text(y) +
                    " mm high, but the motion of blades can only be estimated with square voxels: correct matrixSize "
                    "and fieldOfView_mm in the XML header, or use ReconGridGadget, which does not correct motion");
    }
}

}  // namespace recon_gadgets
