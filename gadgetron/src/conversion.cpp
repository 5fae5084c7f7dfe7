#include "conversion.h"

#include "library.h"
#include "text.h"

#include <algorithm>
#include <cmath>

namespace recon_gadgets {

namespace {

const char *const AXES = "xyz";

// Returns the number of samples that are not discarded.
std::size_t used_samples(const ISMRMRD::AcquisitionHeader &h) {
    const std::size_t discarded = std::size_t(h.discard_pre) + h.discard_post;
    return h.number_of_samples > discarded ? h.number_of_samples - discarded : 0;
}

bool is_positive(double x) {
    return x > 0 && std::isfinite(x);
}

// Returns the index in a row of the first sample that is not discarded.
std::size_t first_sample_in_row(const BufferView &b, const ISMRMRD::AcquisitionHeader &h, std::size_t samples) {
    if (!b.cartesian_centre) {
        return 0;
    }
    const bool centred = h.center_sample == h.number_of_samples / 2 || h.center_sample >= h.number_of_samples;
    const long start = h.number_of_samples == b.e0 && centred ? long(h.discard_pre)
                                                              : *b.cartesian_centre - long(h.center_sample);
    if (start < 0 || std::size_t(start) + samples > b.e0) {
        throw Error("a readout of " + std::to_string(samples) + " samples whose centre is sample " +
                    std::to_string(h.center_sample) + " does not fit the rows of the buffer, which have " +
                    std::to_string(b.e0) + " samples: correct center_sample, or remove BucketToBufferGadget");
    }
    return std::size_t(start);
}

}  // namespace

std::uint32_t purposes_of(const ISMRMRD::AcquisitionHeader &h) {
    std::uint32_t purposes = 0;
    check(recon_acquisition_use(h.flags, &purposes));
    return purposes;
}

bool is_only_in_reference(const ISMRMRD::AcquisitionHeader &h) {
    return h.flags & (std::uint64_t(1) << (ISMRMRD::ISMRMRD_ACQ_IS_PARALLEL_CALIBRATION - 1));
}

std::string describe(const ISMRMRD::AcquisitionHeader &h) {
    return "encoding " + std::to_string(h.encoding_space_ref) + ", slice " + std::to_string(h.idx.slice) +
           ", repetition " + std::to_string(h.idx.repetition);
}

void check_data_size(const ISMRMRD::AcquisitionHeader &h, std::size_t elements) {
    if (elements != std::size_t(h.number_of_samples) * h.active_channels) {
        throw Error("an acquisition has " + std::to_string(elements) + " samples of data, but its header announces " +
                    std::to_string(h.number_of_samples) + " of " + std::to_string(h.active_channels) +
                    " coils: the file is damaged");
    }
}

std::vector<Shot> shots_of_frame(const BufferView &b, std::size_t n, std::size_t s, std::size_t loc,
                                 recon_acquisition_purpose purpose) {
    std::vector<Shot> found;
    const std::size_t rows = b.e1 * b.e2, frame = n + b.n * (s + b.s * loc);
    found.reserve(rows);
    for (std::size_t row = 0; row < rows; ++row) {
        const auto &header = b.headers[row + rows * frame];
        // A row without an acquisition has a header without samples.
        const std::size_t samples = std::min(used_samples(header), b.e0);
        if (samples == 0 || (purposes_of(header) & purpose) == 0) {
            continue;
        }
        Shot shot;
        shot.header = &header;
        shot.step = {row % b.e1, row / b.e1};
        shot.samples = samples;
        const std::size_t start = first_sample_in_row(b, header, samples);
        shot.data = b.data + start + b.e0 * (row + rows * b.coils * frame);
        shot.coil_stride = b.e0 * rows;
        if (b.trajectory != nullptr) {
            // With a different number of components, rows of the buffer overlap.
            if (header.trajectory_dimensions != b.trajectory_size) {
                throw Error("shot " + std::to_string(row) + " has " + std::to_string(header.trajectory_dimensions) +
                            " trajectory components, but the first shot of the buffer has " +
                            std::to_string(b.trajectory_size) +
                            ": all acquisitions of an encoding must have the same number");
            }
            shot.trajectory = b.trajectory + b.trajectory_size * (start + b.e0 * (row + rows * frame));
        }
        if (b.density != nullptr) {
            shot.density = b.density + start + b.e0 * (row + rows * frame);
        }
        found.push_back(shot);
    }
    return found;
}

Shot shot_of_acquisition(const ISMRMRD::AcquisitionHeader &h, const Complex *data, std::size_t data_elements,
                         const float *trajectory, std::size_t trajectory_elements) {
    check_data_size(h, data_elements);
    const std::size_t all = h.number_of_samples;
    if (trajectory != nullptr && trajectory_elements != all * h.trajectory_dimensions) {
        throw Error("an acquisition has a trajectory of " + std::to_string(trajectory_elements) +
                    " numbers, but its header announces " + std::to_string(h.trajectory_dimensions) +
                    " for each of " + std::to_string(all) + " samples: the file is damaged");
    }
    Shot shot;
    shot.header = &h;
    shot.step = {h.idx.kspace_encode_step_1, h.idx.kspace_encode_step_2};
    shot.samples = used_samples(h);
    if (shot.samples > 0) {
        shot.data = data + h.discard_pre;
        shot.coil_stride = all;
        if (trajectory != nullptr && h.trajectory_dimensions > 0) {
            shot.trajectory = trajectory + std::size_t(h.discard_pre) * h.trajectory_dimensions;
        }
    }
    return shot;
}

unsigned dimensions(const Spaces &spaces) {
    return spaces.encoded_matrix[2] > 1 ? 3 : 2;
}

namespace {

// Throws an Error if a space of the XML header has an impossible matrix or field of view.
void check_space(const char *name, const std::array<std::size_t, 3> &matrix, const std::array<double, 3> &fov,
                 unsigned ndim) {
    // The ISMRMRD library reads -96 as 65440.
    const std::size_t max_size = 32767;
    for (unsigned axis = 0; axis < 3; ++axis) {
        const bool used = axis < ndim;
        if (used && (matrix[axis] == 0 || matrix[axis] > max_size)) {
            const std::string negative =
                matrix[axis] > max_size ? " (or " + std::to_string(long(matrix[axis]) - 65536) + ")" : "";
            throw Error(std::string("matrixSize.") + AXES[axis] + " of " + name + " is " +
                        std::to_string(matrix[axis]) + negative + " in the XML header, of the matrix " +
                        size_text(matrix) + ": it must be a number from 1 to " + std::to_string(max_size) +
                        "; correct the matrices in the XML header");
        }
        // The thickness of a slice may be unknown.
        if (!is_positive(fov[axis]) && (used || fov[axis] != 0)) {
            throw Error(std::string("fieldOfView_mm.") + AXES[axis] + " of " + name + " is " + number_text(fov[axis]) +
                        " in the XML header: it must be a number above 0, in mm");
        }
    }
}

}  // namespace

Grid make_grid(const Spaces &spaces, unsigned ndim) {
    check_space("encodedSpace", spaces.encoded_matrix, spaces.encoded_fov, ndim);
    check_space("reconSpace", spaces.recon_matrix, spaces.recon_fov, ndim);
    Grid grid;
    grid.ndim = ndim;
    for (unsigned axis = 0; axis < 3; ++axis) {
        grid.fov[axis] = is_positive(spaces.recon_fov[axis]) ? spaces.recon_fov[axis] : spaces.encoded_fov[axis];
        // A 2D image has one voxel along z. Some headers have a different number there.
        if (axis < ndim) {
            grid.dims[axis] = spaces.encoded_matrix[axis];
            grid.image[axis] = spaces.recon_matrix[axis];
        }
    }
    return grid;
}

void check_square(const Spaces &spaces) {
    const double x = spaces.encoded_fov[0] / double(spaces.encoded_matrix[0]);
    const double y = spaces.encoded_fov[1] / double(spaces.encoded_matrix[1]);
    if (!(x > 0 && y > 0 && std::fabs(x - y) <= 0.01 * std::max(x, y))) {
        throw Error("a voxel of encodedSpace is " + number_text(x) + " mm wide and " + number_text(y) +
                    " mm high, but the motion of blades can only be estimated with square voxels: correct matrixSize "
                    "and fieldOfView_mm in the XML header, or use ReconGridGadget, which does not correct motion");
    }
}

Coordinates coordinates(const Samples &samples) {
    Coordinates out;
    const unsigned ndim = samples.ndim;
    const float *k = samples.trajectory;
    out.count = samples.count;
    for (unsigned axis = 0; axis < ndim; ++axis) {
        out.k[axis].resize(out.count);
    }
    if (samples.weighted) {
        out.weights.resize(out.count);
    }
    for (std::size_t m = 0; m < samples.count; ++m, k += samples.components) {
        for (unsigned axis = 0; axis < ndim; ++axis) {
            out.k[axis][m] = k[axis];
        }
        if (samples.weighted) {
            if (!(k[ndim] >= 0 && std::isfinite(k[ndim]))) {
                throw Error("the density weight is " + number_text(k[ndim]) + " in " + samples.describe_sample(m) +
                            ": weights, the last component of the trajectory, must not be negative");
            }
            out.weights[m] = k[ndim];
        }
    }
    return out;
}

std::string farthest_coordinate(const Samples &samples) {
    std::size_t sample = 0;
    unsigned coordinate = 0;
    float magnitude = -1;
    for (std::size_t m = 0; m < samples.count; ++m) {
        for (unsigned axis = 0; axis < samples.ndim; ++axis) {
            const float k = samples.trajectory[m * samples.components + axis];
            // NaN counts as the largest.
            if (!(std::fabs(k) <= magnitude)) {
                sample = m, coordinate = axis, magnitude = std::fabs(k);
            }
            if (std::isnan(magnitude)) {
                return std::string("k") + AXES[coordinate] + " is nan in " + samples.describe_sample(sample);
            }
        }
    }
    const float k = samples.trajectory[sample * samples.components + coordinate];
    return std::string("k") + AXES[coordinate] + " is " + number_text(k) + " in " + samples.describe_sample(sample);
}

void check_spread(const Samples &samples, const Grid &grid) {
    using Point = std::array<double, 3>;
    // Coordinates in units of a Cartesian sampling distance, 0 along an axis of one voxel.
    const auto at = [&](std::size_t m) {
        Point p{};
        for (unsigned axis = 0; axis < samples.ndim; ++axis) {
            const float k = samples.trajectory[m * samples.components + axis];
            p[axis] = grid.dims[axis] > 1 ? k * double(grid.dims[axis]) : 0;
        }
        return p;
    };
    const auto minus = [](const Point &a, const Point &b) { return Point{a[0] - b[0], a[1] - b[1], a[2] - b[2]}; };
    const auto dot = [](const Point &a, const Point &b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; };
    const auto axes = std::count_if(grid.dims.begin(), grid.dims.end(), [](std::size_t n) { return n > 1; });
    // Square of the distance below which two samples count as one point: half a sampling distance.
    const double min_distance = 0.25;
    const Point first = at(0);
    Point line{};
    for (std::size_t m = 1; m < samples.count; ++m) {
        const Point p = minus(at(m), first);
        line = dot(p, p) > dot(line, line) ? p : line;
    }
    if (axes > 0 && dot(line, line) < min_distance) {
        throw Error("all " + std::to_string(samples.count) + " samples lie at one point of k-space, kx = " +
                    number_text(samples.trajectory[0]) + ", ky = " + number_text(samples.trajectory[1]) +
                    ": they do not give an image; check whether the trajectory was never filled in");
    }
    bool is_spread = axes < 2;
    for (std::size_t m = 1; m < samples.count && !is_spread; ++m) {
        const Point p = minus(at(m), first);
        const double along = dot(p, line);
        is_spread = dot(p, p) - along * along / dot(line, line) >= min_distance;
    }
    if (!is_spread) {
        const std::string shots = count_text(samples.shots, "shot");
        throw Error("all " + std::to_string(samples.count) + " samples lie on one line of k-space: " + shots +
                    (samples.shots == 1 ? " does not give an image. If more were acquired, check kspace_encode_step_1: "
                                          "BucketToBufferGadget keeps one shot per value"
                                        : " on one line do not give an image: correct the trajectory"));
    }
}

}  // namespace recon_gadgets
