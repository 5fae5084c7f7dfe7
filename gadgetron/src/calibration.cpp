#include "calibration.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

namespace recon_gadgets {

namespace {

const char *const REMEDY =
    "set property coil_maps to none, or measure the calibration data with the scan's coils, slice and orientation";

using Direction = std::array<float, 3>;

// Copies a direction of a header. Headers are packed, so that their float arrays may be unaligned.
Direction direction(const void *from) {
    Direction v;
    std::memcpy(v.data(), from, sizeof v);
    return v;
}

double distance(const Direction &a, const Direction &b) {
    return std::sqrt(std::pow(double(a[0]) - b[0], 2) + std::pow(double(a[1]) - b[1], 2) +
                     std::pow(double(a[2]) - b[2], 2));
}

// Throws an Error if position or orientation differ: the coil maps would be shifted or rotated.
void check_position(const ISMRMRD::AcquisitionHeader &a, const ISMRMRD::AcquisitionHeader &b, double voxel) {
    const double shift = distance(direction(a.position), direction(b.position)) +
                         distance(direction(a.patient_table_position), direction(b.patient_table_position));
    if (shift > std::max(0.5, voxel)) {
        char number[32];
        std::snprintf(number, sizeof number, "%.1f", shift);
        throw Error(std::string("the calibration data were acquired ") + number + " mm away from the scan: " + REMEDY);
    }
    const auto differ = [](const Direction &one, const Direction &other) {
        return one != Direction{} && other != Direction{} && distance(one, other) > 0.02;
    };
    for (const auto &[name, one, other] :
         {std::tuple("readout", direction(a.read_dir), direction(b.read_dir)),
          std::tuple("phase", direction(a.phase_dir), direction(b.phase_dir))}) {
        if (differ(one, other)) {
            throw Error(std::string("the calibration data have a different ") + name + " direction: " + REMEDY);
        }
    }
}

}  // namespace

void CalibrationData::add(const Samples &samples, const Spaces &spaces) {
    const auto &own = samples.first;
    const auto same = std::find_if(all_.begin(), all_.end(), [&](const Entry &entry) {
        const auto &h = entry.samples.first;
        return h.encoding_space_ref == own.encoding_space_ref && h.idx.slice == own.idx.slice &&
               h.idx.contrast == own.idx.contrast && h.idx.phase == own.idx.phase && h.idx.set == own.idx.set;
    });
    // join copies the samples, because the buffer or bucket is freed.
    if (same != all_.end()) {
        same->samples = join({&samples});
        same->spaces = spaces;
    } else {
        all_.push_back({join({&samples}), spaces});
    }
}

std::optional<Samples> CalibrationData::for_scan(const Samples &scan, const Spaces &spaces) const {
    const auto &own = scan.first;
    const Entry *found = nullptr;
    std::array<bool, 4> best{};
    for (const Entry &entry : all_) {
        const auto &h = entry.samples.first;
        const std::array<bool, 4> shared{h.encoding_space_ref == own.encoding_space_ref,
                                         h.idx.contrast == own.idx.contrast, h.idx.set == own.idx.set,
                                         h.idx.phase == own.idx.phase};
        if (h.idx.slice == own.idx.slice && (found == nullptr || best < shared)) {
            found = &entry;
            best = shared;
        }
    }
    if (found == nullptr) {
        return {};
    }
    const Samples &calibration = found->samples;
    if (calibration.ndim != scan.ndim) {
        throw Error("the calibration data are " + std::to_string(calibration.ndim) + "D and the scan is " +
                    std::to_string(scan.ndim) + "D: " + REMEDY);
    }
    if (calibration.coils != scan.coils) {
        throw Error("the calibration data have " + std::to_string(calibration.coils) + " coils and the scan has " +
                    std::to_string(scan.coils) + ": " + REMEDY);
    }
    std::array<double, 3> factors{1, 1, 1};
    double largest = 0;
    for (unsigned axis = 0; axis < scan.ndim; ++axis) {
        const double scan_voxel = spaces.encoded_fov[axis] / double(spaces.encoded_matrix[axis]);
        const double voxel = found->spaces.encoded_fov[axis] / double(found->spaces.encoded_matrix[axis]);
        largest = std::max(largest, scan_voxel);
        // Exactly 1 for equal spaces.
        const bool same = found->spaces.encoded_matrix[axis] == spaces.encoded_matrix[axis] &&
                          found->spaces.encoded_fov[axis] == spaces.encoded_fov[axis];
        factors[axis] = same ? 1 : scan_voxel / voxel;
    }
    check_position(calibration.first, own, largest);
    return calibration.scaled(factors);
}

}  // namespace recon_gadgets
