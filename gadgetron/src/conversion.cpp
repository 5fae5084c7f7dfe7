#include "conversion.h"

#include "library.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>

namespace recon_gadgets {

namespace {

const char *const AXES = "xyz";

// Samples of an acquisition that are not discarded.
std::size_t kept_samples(const ISMRMRD::AcquisitionHeader &h) {
    const std::size_t dropped = std::size_t(h.discard_pre) + h.discard_post;
    return h.number_of_samples > dropped ? h.number_of_samples - dropped : 0;
}

std::string size_text(const std::array<std::size_t, 3> &n) {
    return std::to_string(n[0]) + " x " + std::to_string(n[1]) + " x " + std::to_string(n[2]);
}

std::string number_text(double x) {
    char buffer[32];
    std::snprintf(buffer, sizeof buffer, "%g", x);
    return buffer;
}

bool positive(double x) {
    return x > 0 && std::isfinite(x);
}

}  // namespace

std::uint32_t acquisition_use(const ISMRMRD::AcquisitionHeader &h) {
    std::uint32_t use = 0;
    check(recon_acquisition_use(h.flags, &use));
    return use;
}

namespace {

// The place in a row of the first sample that is not discarded.
std::size_t first_in_row(const BufferView &b, const ISMRMRD::AcquisitionHeader &h, std::size_t samples) {
    if (!b.cartesian_centre) {
        return 0;
    }
    const bool centred = h.center_sample == h.number_of_samples / 2 || h.center_sample >= h.number_of_samples;
    const long start = h.number_of_samples == b.e0 && centred ? long(h.discard_pre)
                                                              : *b.cartesian_centre - long(h.center_sample);
    if (start < 0 || std::size_t(start) + samples > b.e0) {
        throw Error("a readout of " + std::to_string(samples) + " samples whose centre is sample " +
                    std::to_string(h.center_sample) + " does not fit the rows of the buffer, " +
                    std::to_string(b.e0) + " samples long: correct center_sample, or leave BucketToBufferGadget out");
    }
    return std::size_t(start);
}

}  // namespace

std::vector<Shot> shots(const BufferView &b, std::size_t n, std::size_t s, std::size_t loc,
                        recon_acquisition_purpose purpose) {
    std::vector<Shot> found;
    const std::size_t rows = b.e1 * b.e2, frame = n + b.n * (s + b.s * loc);
    found.reserve(rows);
    for (std::size_t row = 0; row < rows; ++row) {
        const auto &header = b.headers[row + rows * frame];
        // A row without an acquisition has a header without samples.
        const std::size_t samples = std::min(kept_samples(header), b.e0);
        if (samples == 0 || (acquisition_use(header) & purpose) == 0) {
            continue;
        }
        Shot shot;
        shot.header = &header;
        shot.step = {row % b.e1, row / b.e1};
        shot.samples = samples;
        const std::size_t start = first_in_row(b, header, samples);
        shot.data = b.data + start + b.e0 * (row + rows * b.coils * frame);
        shot.coil_stride = b.e0 * rows;
        if (b.trajectory != nullptr) {
            // With another number of components, rows of the buffer overlap.
            if (header.trajectory_dimensions != b.trajectory_size) {
                throw Error("shot " + std::to_string(row) + " has " + std::to_string(header.trajectory_dimensions) +
                            " trajectory components, where the first of the buffer has " +
                            std::to_string(b.trajectory_size) +
                            ": all acquisitions of an encoding need the same number");
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

Shot shot(const ISMRMRD::AcquisitionHeader &h, const Complex *data, std::size_t data_elements, const float *trajectory,
          std::size_t trajectory_elements) {
    const std::size_t all = h.number_of_samples;
    if (data_elements != all * h.active_channels) {
        throw Error("an acquisition has " + std::to_string(data_elements) +
                    " samples of data, where its header announces " + std::to_string(all) + " of " +
                    std::to_string(h.active_channels) + " coils: the file is damaged");
    }
    if (trajectory != nullptr && trajectory_elements != all * h.trajectory_dimensions) {
        throw Error("an acquisition has a trajectory of " + std::to_string(trajectory_elements) +
                    " numbers, where its header announces " + std::to_string(h.trajectory_dimensions) +
                    " for each of " + std::to_string(all) + " samples: the file is damaged");
    }
    Shot shot;
    shot.header = &h;
    shot.step = {h.idx.kspace_encode_step_1, h.idx.kspace_encode_step_2};
    shot.samples = kept_samples(h);
    if (shot.samples > 0) {
        shot.data = data + h.discard_pre;
        shot.coil_stride = all;
        if (trajectory != nullptr && h.trajectory_dimensions > 0) {
            shot.trajectory = trajectory + std::size_t(h.discard_pre) * h.trajectory_dimensions;
        }
    }
    return shot;
}

std::string Samples::where(std::size_t sample) const {
    const auto next = std::upper_bound(starts.begin(), starts.end(), sample);
    const std::size_t shot = next - starts.begin() - 1;
    return "sample " + std::to_string(sample - starts[shot]) + " of shot " + std::to_string(shot);
}

unsigned dimensions(const Spaces &spaces) {
    return spaces.encoded_matrix[2] > 1 ? 3 : 2;
}

Samples gather(const std::vector<Shot> &all, const Spaces &spaces) {
    Samples out;
    std::vector<const Shot *> shots;
    shots.reserve(all.size());
    for (const auto &shot : all) {
        if (shot.samples > 0) {
            shots.push_back(&shot);
        }
    }
    if (shots.empty()) {
        throw Error("no shot was acquired: there is nothing to reconstruct");
    }
    const Shot &front = *shots.front();
    const std::size_t given = front.trajectory != nullptr ? front.header->trajectory_dimensions : 0;
    out.coils = front.header->active_channels;
    out.shots = shots.size();
    out.first = *front.header;
    out.last = *shots.back()->header;
    if (out.coils == 0) {
        throw Error("the acquisitions have no coils: set active_channels");
    }
    if (given == 0) {
        throw Error(
            "the acquisitions have no trajectory (trajectory_dimensions is 0): store it in the file, or put a gadget "
            "that computes it before this one");
    }
    out.ndim = dimensions(spaces);
    if (given < 2 || given > out.ndim + 1) {
        const std::string n = std::to_string(out.ndim);
        throw Error("a trajectory of " + std::to_string(given) + " components for a " + n + "D image: " + n +
                    " are expected, or " + std::to_string(out.ndim + 1) +
                    " with density weights; the encoded matrix has " + std::to_string(spaces.encoded_matrix[2]) +
                    " voxels along z");
    }
    const bool stack = out.ndim == 3 && given == 2, density = front.density != nullptr;
    bool contiguous = !stack && !density;
    for (const Shot *shot : shots) {
        const auto &h = *shot->header;
        if (h.active_channels != out.coils) {
            throw Error("a shot has " + std::to_string(h.active_channels) + " coils, where the first has " +
                        std::to_string(out.coils) + ": all shots of an image need the same coils");
        }
        if ((shot->trajectory != nullptr ? h.trajectory_dimensions : 0) != given) {
            throw Error("a shot has " + std::to_string(h.trajectory_dimensions) +
                        " trajectory components, where the first has " + std::to_string(given) +
                        ": all shots of an image need the same number");
        }
        contiguous = contiguous && shot->coil_stride == front.samples * shots.size() &&
                     shot->samples == front.samples && shot->data == front.data + out.count &&
                     shot->trajectory == front.trajectory + out.count * given;
        out.starts.push_back(out.count);
        out.times.push_back({h.discard_pre, h.sample_time_us});
        out.count += shot->samples;
    }

    if (contiguous) {
        out.trajectory = front.trajectory;
        out.kspace = front.data;
    } else {
        out.own_kspace_.reserve(out.count * out.coils);
        for (std::size_t coil = 0; coil < out.coils; ++coil) {
            for (const Shot *shot : shots) {
                const Complex *from = shot->data + coil * shot->coil_stride;
                out.own_kspace_.insert(out.own_kspace_.end(), from, from + shot->samples);
            }
        }
        out.kspace = out.own_kspace_.data();
        const std::size_t width = given + (stack ? 1 : 0) + (density ? 1 : 0);
        out.own_trajectory_.reserve(out.count * width);
        const double centre = double(spaces.step2_centre), planes = double(spaces.encoded_matrix[2]);
        for (const Shot *shot : shots) {
            if (width == given) {
                out.own_trajectory_.insert(out.own_trajectory_.end(), shot->trajectory,
                                           shot->trajectory + shot->samples * given);
                continue;
            }
            const float kz = float((double(shot->header->idx.kspace_encode_step_2) - centre) / planes);
            for (std::size_t i = 0; i < shot->samples; ++i) {
                const float *k = shot->trajectory + i * given;
                out.own_trajectory_.insert(out.own_trajectory_.end(), k, k + given);
                if (stack) {
                    out.own_trajectory_.push_back(kz);
                }
                if (density) {
                    out.own_trajectory_.push_back(shot->density[i]);
                }
            }
        }
        out.trajectory = out.own_trajectory_.data();
    }
    out.components = given + (stack ? 1 : 0) + (density ? 1 : 0);
    if (out.components > out.ndim + 1) {
        throw Error(
            "density weights come twice, in an array of their own and as the last component of the trajectory: leave "
            "one out");
    }
    if (out.components > out.ndim) {
        for (std::size_t m = 0; m < out.count && !out.weighted; ++m) {
            out.weighted = out.trajectory[m * out.components + out.ndim] != 0;  // also NaN, an error later
        }
        if (!out.weighted && out.ndim == 3) {
            throw Error("all density weights are zero: set the last component of the trajectory, or leave it out");
        }
    }
    return out;
}

Samples join(const std::vector<const Samples *> &parts) {
    Samples out;
    const Samples &newest = *parts.back();
    out.ndim = newest.ndim;
    out.components = newest.components;
    out.coils = newest.coils;
    out.first = newest.first;
    out.last = newest.last;
    for (const Samples *part : parts) {
        for (const std::size_t start : part->starts) {
            out.starts.push_back(out.count + start);
        }
        out.times.insert(out.times.end(), part->times.begin(), part->times.end());
        out.weighted = out.weighted || part->weighted;
        out.count += part->count;
        out.shots += part->shots;
        const std::size_t numbers = part->count * part->components;
        out.own_trajectory_.insert(out.own_trajectory_.end(), part->trajectory, part->trajectory + numbers);
    }
    out.own_kspace_.reserve(out.count * out.coils);
    for (std::size_t coil = 0; coil < out.coils; ++coil) {
        for (const Samples *part : parts) {
            const Complex *from = part->kspace + coil * part->count;
            out.own_kspace_.insert(out.own_kspace_.end(), from, from + part->count);
        }
    }
    out.trajectory = out.own_trajectory_.data();
    out.kspace = out.own_kspace_.data();
    return out;
}

Samples Samples::with_coils(std::vector<Complex> other, std::size_t count_of_coils) const {
    Samples out;
    out.ndim = ndim;
    out.weighted = weighted;
    out.components = components;
    out.count = count;
    out.coils = count_of_coils;
    out.shots = shots;
    out.trajectory = trajectory;
    out.first = first;
    out.last = last;
    out.starts = starts;
    out.times = times;
    out.own_kspace_ = std::move(other);
    out.kspace = out.own_kspace_.data();
    return out;
}

Samples Samples::scaled(const std::array<double, 3> &factors) const {
    Samples out;
    out.ndim = ndim;
    out.weighted = weighted;
    out.components = components;
    out.coils = coils;
    out.first = first;
    out.last = last;
    const auto scaled_value = [&](std::size_t m, unsigned axis) {
        const float k = trajectory[m * components + axis];
        return factors[axis] == 1 ? double(k) : double(k) * factors[axis];
    };
    std::vector<std::size_t> kept;
    for (std::size_t shot = 0; shot < starts.size(); ++shot) {
        const std::size_t to = shot + 1 < starts.size() ? starts[shot + 1] : count;
        const std::size_t before = kept.size();
        for (std::size_t m = starts[shot]; m < to; ++m) {
            bool inside = true;
            for (unsigned axis = 0; axis < ndim; ++axis) {
                const double k = scaled_value(m, axis);
                // Without a factor, a coordinate of 0.5 counts as the edge, and NaN is an error of the plan.
                inside = inside && (factors[axis] == 1 || (k >= -0.5 && k < 0.5));
            }
            if (inside) {
                if (kept.size() == before) {
                    out.starts.push_back(before);
                    out.times.push_back({times[shot].skipped + (m - starts[shot]), times[shot].sample_us});
                }
                kept.push_back(m);
            }
        }
    }
    if (kept.empty()) {
        throw Error("the calibration data have no samples within the scan's k-space: correct the encodings of the XML "
                    "header, or set property coil_maps to none");
    }
    out.count = kept.size();
    out.shots = out.starts.size();
    out.own_trajectory_.reserve(kept.size() * components);
    out.own_kspace_.reserve(kept.size() * coils);
    for (const std::size_t m : kept) {
        for (unsigned c = 0; c < components; ++c) {
            out.own_trajectory_.push_back(c < ndim ? float(scaled_value(m, c)) : trajectory[m * components + c]);
        }
    }
    for (std::size_t coil = 0; coil < coils; ++coil) {
        for (const std::size_t m : kept) {
            out.own_kspace_.push_back(kspace[coil * count + m]);
        }
    }
    out.trajectory = out.own_trajectory_.data();
    out.kspace = out.own_kspace_.data();
    return out;
}

std::vector<float> sample_times(const Samples &samples, double dwell_us, double start_ms) {
    std::vector<float> times;
    times.reserve(samples.count);
    for (std::size_t shot = 0; shot < samples.starts.size(); ++shot) {
        const std::size_t from = samples.starts[shot];
        const std::size_t to = shot + 1 < samples.starts.size() ? samples.starts[shot + 1] : samples.count;
        const ShotTimes &of = samples.times[shot];
        const double dwell = dwell_us > 0 ? dwell_us : double(of.sample_us);
        if (!positive(dwell)) {
            throw Error("sample_time_us is " + number_text(dwell) + " in shot " + std::to_string(shot) +
                        ": maps of off-resonance and decay need the time from sample to sample: set property dwell, or "
                        "sample_time_us in the acquisitions' headers");
        }
        for (std::size_t i = 0; i < to - from; ++i) {
            times.push_back(float(1e-3 * start_ms + 1e-6 * dwell * double(of.skipped + i)));
        }
    }
    return times;
}

std::size_t zero_shots(const Samples &samples) {
    std::size_t found = 0;
    for (std::size_t shot = 0; shot < samples.starts.size(); ++shot) {
        const std::size_t from = samples.starts[shot];
        const std::size_t to = shot + 1 < samples.starts.size() ? samples.starts[shot + 1] : samples.count;
        bool zero = true;
        for (std::size_t coil = 0; coil < samples.coils && zero; ++coil) {
            const Complex *data = samples.kspace + coil * samples.count;
            zero = std::all_of(data + from, data + to, [](const Complex &z) { return z == Complex(); });
        }
        found += zero ? 1 : 0;
    }
    return found;
}

namespace {

// Ends with an error if a space of the XML header has an impossible matrix or field of view.
void check_space(const char *name, const std::array<std::size_t, 3> &matrix, const std::array<double, 3> &fov,
                 unsigned ndim) {
    // The ISMRMRD library reads -96 as 65440.
    const std::size_t most = 32767;
    for (unsigned axis = 0; axis < 3; ++axis) {
        const bool used = axis < ndim;
        if (used && (matrix[axis] == 0 || matrix[axis] > most)) {
            const std::string negative =
                matrix[axis] > most ? " (or " + std::to_string(long(matrix[axis]) - 65536) + ")" : "";
            throw Error(std::string("matrixSize.") + AXES[axis] + " of " + name + " is " +
                        std::to_string(matrix[axis]) + negative + " in the XML header, of the matrix " +
                        size_text(matrix) + ": it must be a number from 1 to " + std::to_string(most) +
                        "; correct the matrices in the XML header");
        }
        // The thickness of a slice may be unknown.
        if (!positive(fov[axis]) && (used || fov[axis] != 0)) {
            throw Error(std::string("fieldOfView_mm.") + AXES[axis] + " of " + name + " is " + number_text(fov[axis]) +
                        " in the XML header: it must be a number above 0, in mm");
        }
    }
}

}  // namespace

Grid grid(const Spaces &spaces, unsigned ndim) {
    check_space("encodedSpace", spaces.encoded_matrix, spaces.encoded_fov, ndim);
    check_space("reconSpace", spaces.recon_matrix, spaces.recon_fov, ndim);
    Grid grid;
    grid.ndim = ndim;
    for (unsigned axis = 0; axis < 3; ++axis) {
        grid.fov[axis] = positive(spaces.recon_fov[axis]) ? spaces.recon_fov[axis] : spaces.encoded_fov[axis];
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
                    " mm high, and the motion of blades is found in square voxels: correct matrixSize and "
                    "fieldOfView_mm in the XML header, or reconstruct without the correction by ReconGridGadget");
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
                throw Error("the density weight is " + number_text(k[ndim]) + " in " + samples.where(m) +
                            ": weights, the last component of the trajectory, cannot be negative");
            }
            out.weights[m] = k[ndim];
        }
    }
    return out;
}

std::string farthest_coordinate(const Samples &samples) {
    std::size_t worst = 0;
    unsigned along = 0;
    float most = -1;
    for (std::size_t m = 0; m < samples.count; ++m) {
        for (unsigned axis = 0; axis < samples.ndim; ++axis) {
            const float k = samples.trajectory[m * samples.components + axis];
            // NaN counts as the largest.
            if (!(std::fabs(k) <= most)) {
                worst = m, along = axis, most = std::fabs(k);
            }
            if (std::isnan(most)) {
                return std::string("k") + AXES[along] + " is nan in " + samples.where(worst);
            }
        }
    }
    const float k = samples.trajectory[worst * samples.components + along];
    return std::string("k") + AXES[along] + " is " + number_text(k) + " in " + samples.where(worst);
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
    // Two samples within half a sampling distance count as one point. This is the square of that distance.
    const double least = 0.25;
    const Point first = at(0);
    Point line{};
    for (std::size_t m = 1; m < samples.count; ++m) {
        const Point p = minus(at(m), first);
        line = dot(p, p) > dot(line, line) ? p : line;
    }
    if (axes > 0 && dot(line, line) < least) {
        throw Error("all " + std::to_string(samples.count) + " samples lie at one point of k-space, kx = " +
                    number_text(samples.trajectory[0]) + ", ky = " + number_text(samples.trajectory[1]) +
                    ": no image can be made of them; was the trajectory never filled in?");
    }
    bool off = axes < 2;
    for (std::size_t m = 1; m < samples.count && !off; ++m) {
        const Point p = minus(at(m), first);
        const double along = dot(p, line);
        off = dot(p, p) - along * along / dot(line, line) >= least;
    }
    if (!off) {
        throw Error("all " + std::to_string(samples.count) + " samples lie on one line of k-space: no image can be " +
                    "made of " + (samples.shots == 1
                                      ? "one shot; if there were more, check kspace_encode_step_1: "
                                        "BucketToBufferGadget keeps one shot of each"
                                      : "these " + std::to_string(samples.shots) + " shots; correct the trajectory"));
    }
}

ISMRMRD::ImageHeader image_header(const ISMRMRD::AcquisitionHeader &a, const ImageInfo &info) {
    ISMRMRD::ImageHeader h;
    h.version = a.version;
    h.data_type = ISMRMRD::ISMRMRD_CXFLOAT;
    // Only the user flags have the same meaning for acquisitions and images. They are bits 57 to 64, counted from 1.
    h.flags = a.flags & (std::uint64_t(0xff) << 56);
    h.measurement_uid = a.measurement_uid;
    for (int axis = 0; axis < 3; ++axis) {
        h.matrix_size[axis] = std::uint16_t(info.grid.image[axis]);
        h.field_of_view[axis] = float(info.grid.fov[axis]);
        h.physiology_time_stamp[axis] = a.physiology_time_stamp[axis];
    }
    h.channels = std::uint16_t(info.channels);
    // Headers are packed, so that their float arrays may be unaligned.
    std::memcpy(h.position, a.position, sizeof h.position);
    std::memcpy(h.read_dir, a.read_dir, sizeof h.read_dir);
    std::memcpy(h.phase_dir, a.phase_dir, sizeof h.phase_dir);
    std::memcpy(h.slice_dir, a.slice_dir, sizeof h.slice_dir);
    std::memcpy(h.patient_table_position, a.patient_table_position, sizeof h.patient_table_position);
    h.average = a.idx.average;
    h.slice = a.idx.slice;
    h.contrast = a.idx.contrast;
    h.phase = a.idx.phase;
    h.repetition = a.idx.repetition;
    h.set = a.idx.set;
    h.acquisition_time_stamp = a.acquisition_time_stamp;
    h.image_type = info.magnitude ? ISMRMRD::ISMRMRD_IMTYPE_MAGNITUDE : ISMRMRD::ISMRMRD_IMTYPE_COMPLEX;
    h.image_index = std::uint16_t(info.number);
    h.image_series_index = info.series;
    std::memcpy(h.user_int, a.user_int, sizeof h.user_int);
    std::memcpy(h.user_float, a.user_float, sizeof h.user_float);
    h.attribute_string_len = 0;
    return h;
}

ISMRMRD::MetaContainer image_meta(const ISMRMRD::ImageHeader &h, const ImageInfo &info) {
    ISMRMRD::MetaContainer meta;
    const auto put = [&](const char *name, const auto &numbers) {
        for (int axis = 0; axis < 3; ++axis) {
            meta.append(name, numbers[axis]);
        }
    };
    const auto whole = [](const std::array<std::size_t, 3> &n) {
        return std::array<long, 3>{long(n[0]), long(n[1]), long(n[2])};
    };
    const auto real = [](const void *x) {
        std::array<float, 3> v;
        std::memcpy(v.data(), x, sizeof v);
        return std::array<double, 3>{v[0], v[1], v[2]};
    };
    meta.set("encoding", long(info.encoding));
    put("encoding_FOV", info.spaces.encoded_fov);
    put("recon_FOV", info.spaces.recon_fov);
    put("encoded_matrix", whole(info.spaces.encoded_matrix));
    put("recon_matrix", whole(info.spaces.recon_matrix));
    put("PatientPosition", real(h.position));
    put("read_dir", real(h.read_dir));
    put("phase_dir", real(h.phase_dir));
    put("slice_dir", real(h.slice_dir));
    put("patient_table_position", real(h.patient_table_position));
    meta.set("acquisition_time_stamp", long(h.acquisition_time_stamp));
    put("physiology_time_stamp", std::array<long, 3>{long(h.physiology_time_stamp[0]), long(h.physiology_time_stamp[1]),
                                                     long(h.physiology_time_stamp[2])});
    // Gadgetron's gadgets and the vendors' converters read these names.
    meta.set("GADGETRON_ImageNumber", long(info.number));
    meta.set("GADGETRON_ImageProcessingHistory", "recon");
    meta.set("GADGETRON_ImageComment", "recon");
    meta.set("GADGETRON_SeqDescription", "_recon");
    meta.set("GADGETRON_DataRole", "Image");
    meta.set("recon_method", info.method.c_str());
    meta.set("recon_samples", long(info.samples));
    meta.set("recon_shots", long(info.shots));
    if (info.iterations > 0) {
        meta.set("recon_iterations", long(info.iterations));
        meta.set("recon_residual", info.residual);
    }
    for (const auto &blade : info.blades.motion) {
        meta.append("recon_blade_rotation", blade.rotation);
        meta.append("recon_blade_translation_x", blade.translation[0]);
        meta.append("recon_blade_translation_y", blade.translation[1]);
        meta.append("recon_blade_phase", blade.phase);
        meta.append("recon_blade_correlation", blade.correlation);
        meta.append("recon_blade_weight", blade.weight);
    }
    return meta;
}

}  // namespace recon_gadgets
