// The samples of an image: gathered from shots, joined for a sliding window, with virtual coils, or rescaled.
#include "conversion.h"

#include "text.h"

#include <algorithm>
#include <cmath>

namespace recon_gadgets {

namespace {

// Returns the end of a shot in the list of samples.
std::size_t shot_end(const Samples &samples, std::size_t shot) {
    return shot + 1 < samples.starts.size() ? samples.starts[shot + 1] : samples.count;
}

// Returns the number of trajectory components in the file, or throws an Error if images cannot be made with it.
std::size_t trajectory_components(const Shot &shot, const Spaces &spaces) {
    const std::size_t stored = shot.trajectory != nullptr ? shot.header->trajectory_dimensions : 0;
    if (stored == 0) {
        throw Error("the acquisitions have no trajectory (trajectory_dimensions is 0): store it in the file, or put a "
                    "gadget that computes it before this one");
    }
    const unsigned ndim = dimensions(spaces);
    if (stored < 2 || stored > ndim + 1) {
        const std::string n = std::to_string(ndim);
        throw Error("a trajectory of " + std::to_string(stored) + " components for a " + n + "D image: " + n +
                    " are expected, or " + std::to_string(ndim + 1) +
                    " with density weights; the encoded matrix has " + std::to_string(spaces.encoded_matrix[2]) +
                    " voxels along z");
    }
    return stored;
}

// Throws an Error if a shot has a different number of coils or components than the first shot.
void check_shot(const Shot &shot, std::size_t coils, std::size_t components) {
    const auto &h = *shot.header;
    if (h.active_channels != coils) {
        throw Error("a shot has " + std::to_string(h.active_channels) + " coils, but the first shot has " +
                    std::to_string(coils) + ": all shots of an image must have the same coils");
    }
    if ((shot.trajectory != nullptr ? h.trajectory_dimensions : 0) != components) {
        throw Error("a shot has " + std::to_string(h.trajectory_dimensions) +
                    " trajectory components, but the first shot has " + std::to_string(components) +
                    ": all shots of an image must have the same number");
    }
}

// Copies the data of all shots, [samples, coils].
std::vector<Complex> copy_kspace(const std::vector<const Shot *> &shots, std::size_t samples, std::size_t coils) {
    std::vector<Complex> kspace;
    kspace.reserve(samples * coils);
    for (std::size_t coil = 0; coil < coils; ++coil) {
        for (const Shot *shot : shots) {
            const Complex *from = shot->data + coil * shot->coil_stride;
            kspace.insert(kspace.end(), from, from + shot->samples);
        }
    }
    return kspace;
}

// Copies the trajectory of all shots. `stack`: adds kz from kspace_encode_step_2. `density`: adds the separate weights.
std::vector<float> copy_trajectory(const std::vector<const Shot *> &shots, std::size_t components, bool stack,
                                   bool density, const Spaces &spaces) {
    std::vector<float> trajectory;
    const double centre = double(spaces.step2_centre), planes = double(spaces.encoded_matrix[2]);
    for (const Shot *shot : shots) {
        const float kz = float((double(shot->header->idx.kspace_encode_step_2) - centre) / planes);
        for (std::size_t i = 0; i < shot->samples; ++i) {
            const float *k = shot->trajectory + i * components;
            trajectory.insert(trajectory.end(), k, k + components);
            if (stack) {
                trajectory.push_back(kz);
            }
            if (density) {
                trajectory.push_back(shot->density[i]);
            }
        }
    }
    return trajectory;
}

// Returns whether the last component of the trajectory is the density weight: any of its values is not zero.
bool has_weights(const Samples &samples) {
    if (samples.components > samples.ndim + 1) {
        throw Error("density weights are stored twice, in a separate array and as the last component of the "
                    "trajectory: remove one of them");
    }
    if (samples.components == samples.ndim) {
        return false;
    }
    for (std::size_t m = 0; m < samples.count; ++m) {
        // NaN counts as a weight, and is an error later.
        if (samples.trajectory[m * samples.components + samples.ndim] != 0) {
            return true;
        }
    }
    if (samples.ndim == 3) {
        throw Error("all density weights are zero: set the last component of the trajectory, or remove it");
    }
    return false;
}

}  // namespace

std::string Samples::describe_sample(std::size_t sample) const {
    const auto next = std::upper_bound(starts.begin(), starts.end(), sample);
    const std::size_t shot = next - starts.begin() - 1;
    return "sample " + std::to_string(sample - starts[shot]) + " of shot " + std::to_string(shot);
}

Samples gather(const std::vector<Shot> &all, const Spaces &spaces) {
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
    Samples out;
    out.coils = front.header->active_channels;
    out.shots = shots.size();
    out.first = *front.header;
    out.last = *shots.back()->header;
    out.ndim = dimensions(spaces);
    if (out.coils == 0) {
        throw Error("the acquisitions have no coils: set active_channels");
    }
    const std::size_t stored = trajectory_components(front, spaces);
    const bool stack = out.ndim == 3 && stored == 2, density = front.density != nullptr;
    bool contiguous = !stack && !density;
    for (const Shot *shot : shots) {
        check_shot(*shot, out.coils, stored);
        contiguous = contiguous && shot->coil_stride == front.samples * shots.size() &&
                     shot->samples == front.samples && shot->data == front.data + out.count &&
                     shot->trajectory == front.trajectory + out.count * stored;
        out.starts.push_back(out.count);
        out.times.push_back({shot->header->discard_pre, shot->header->sample_time_us});
        out.count += shot->samples;
    }
    out.trajectory = front.trajectory;
    out.kspace = front.data;
    if (!contiguous) {
        out.own_kspace_ = copy_kspace(shots, out.count, out.coils);
        out.kspace = out.own_kspace_.data();
        out.own_trajectory_ = copy_trajectory(shots, stored, stack, density, spaces);
        out.trajectory = out.own_trajectory_.data();
    }
    out.components = stored + (stack ? 1 : 0) + (density ? 1 : 0);
    out.weighted = has_weights(out);
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

Samples Samples::with_coils(std::vector<Complex> coil_data, std::size_t coil_count) const {
    Samples out;
    out.ndim = ndim;
    out.weighted = weighted;
    out.components = components;
    out.count = count;
    out.coils = coil_count;
    out.shots = shots;
    out.trajectory = trajectory;
    out.first = first;
    out.last = last;
    out.starts = starts;
    out.times = times;
    out.own_kspace_ = std::move(coil_data);
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
    std::vector<std::size_t> remaining;  // indices of samples within [-0.5, 0.5)
    for (std::size_t shot = 0; shot < starts.size(); ++shot) {
        const std::size_t to = shot_end(*this, shot), old_size = remaining.size();
        for (std::size_t m = starts[shot]; m < to; ++m) {
            bool inside = true;
            for (unsigned axis = 0; axis < ndim; ++axis) {
                const double k = scaled_value(m, axis);
                // Coordinates with factor 1 stay: 0.5 counts as the edge, and NaN is an error of the plan.
                inside = inside && (factors[axis] == 1 || (k >= -0.5 && k < 0.5));
            }
            if (inside) {
                if (remaining.size() == old_size) {
                    out.starts.push_back(old_size);
                    out.times.push_back({times[shot].skipped + (m - starts[shot]), times[shot].sample_us});
                }
                remaining.push_back(m);
            }
        }
    }
    if (remaining.empty()) {
        throw Error("the calibration data have no samples within the scan's k-space: correct the encodings of the XML "
                    "header, or set property coil_maps to none");
    }
    out.count = remaining.size();
    out.shots = out.starts.size();
    out.own_trajectory_.reserve(remaining.size() * components);
    out.own_kspace_.reserve(remaining.size() * coils);
    for (const std::size_t m : remaining) {
        for (unsigned c = 0; c < components; ++c) {
            out.own_trajectory_.push_back(c < ndim ? float(scaled_value(m, c)) : trajectory[m * components + c]);
        }
    }
    for (std::size_t coil = 0; coil < coils; ++coil) {
        for (const std::size_t m : remaining) {
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
        const std::size_t to = shot_end(samples, shot);
        const ShotTimes &shot_times = samples.times[shot];
        const double dwell = dwell_us > 0 ? dwell_us : double(shot_times.sample_us);
        if (!(dwell > 0 && std::isfinite(dwell))) {
            throw Error("sample_time_us is " + number_text(dwell) + " in shot " + std::to_string(shot) +
                        ", but maps of off-resonance and decay require the time between samples: set property dwell, "
                        "or sample_time_us in the headers of the acquisitions");
        }
        for (std::size_t i = 0; i < to - from; ++i) {
            times.push_back(float(1e-3 * start_ms + 1e-6 * dwell * double(shot_times.skipped + i)));
        }
    }
    return times;
}

std::size_t zero_shots(const Samples &samples) {
    std::size_t found = 0;
    for (std::size_t shot = 0; shot < samples.starts.size(); ++shot) {
        const std::size_t from = samples.starts[shot];
        const std::size_t to = shot_end(samples, shot);
        bool zero = true;
        for (std::size_t coil = 0; coil < samples.coils && zero; ++coil) {
            const Complex *data = samples.kspace + coil * samples.count;
            zero = std::all_of(data + from, data + to, [](const Complex &z) { return z == Complex(); });
        }
        found += zero ? 1 : 0;
    }
    return found;
}

}  // namespace recon_gadgets
