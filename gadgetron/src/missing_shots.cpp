#include "missing_shots.h"

#include <algorithm>
#include <set>

namespace recon_gadgets {

namespace {

// The steps along one axis: those of the shots, and the number of expected ones.
struct Axis {
    std::set<std::size_t> used;
    std::size_t size, acceleration;

    // Whether the steps have equal distances.
    bool is_regular() const {
        const std::size_t all = largest_gap();
        for (auto step = used.begin(), next = step; ++next != used.end(); step = next) {
            if (*next - *step != all) {
                return false;
            }
        }
        return true;
    }

    // Whether the steps reach from the first expected step to the last, up to the largest gap between two steps.
    bool reaches_limits() const {
        const std::size_t most = std::max(largest_gap(), acceleration);
        return *used.begin() < most && size - 1 - *used.rbegin() < most;
    }

    std::size_t largest_gap() const {
        std::size_t most = 1;
        for (auto step = used.begin(), next = step; ++next != used.end(); step = next) {
            most = std::max(most, *next - *step);
        }
        return most;
    }
};

std::string range(const ExpectedShots &expected, int axis) {
    return "kspace_encoding_step_" + std::to_string(axis + 1) + " from " + std::to_string(expected.first[axis]) +
           " to " + std::to_string(expected.last[axis]);
}

}  // namespace

std::optional<Warning> missing_shots(const ExpectedShots &expected, const std::vector<Step> &steps, std::size_t count) {
    const std::size_t all = expected.known ? expected.shots() : 0;
    if (steps.empty() || count >= all) {
        return {};
    }
    const std::set<Step> distinct(steps.begin(), steps.end());
    std::array<Axis, 2> axes;
    for (int a = 0; a < 2; ++a) {
        axes[a].size = expected.last[a] - expected.first[a] + 1;
        axes[a].acceleration = expected.acceleration[a];
        for (const Step &step : distinct) {
            // Some sequences count beyond the limits.
            axes[a].used.insert(std::min(step[a], axes[a].size - 1));
        }
    }
    const bool whole_range = axes[0].reaches_limits() && axes[1].reaches_limits();
    const bool regular = axes[0].is_regular() && axes[1].is_regular() && distinct.size() == count &&
                         count == axes[0].used.size() * axes[1].used.size();
    if (whole_range && (regular || count * expected.acceleration[0] * expected.acceleration[1] >= all)) {
        return {};
    }
    std::string text = std::to_string(count) + " of " + std::to_string(all) + " shots: encodingLimits say " +
                       range(expected, 0) + (axes[1].size > 1 ? ", " + range(expected, 1) : "") + ", and " +
                       std::to_string(all - count) + " of these are empty. ";
    if (distinct.size() == 1) {
        text += "All acquisitions may have the same counters, as BucketToBufferGadget keeps one shot of each: check "
                "kspace_encode_step_1, or leave that gadget out, and shots are taken as they come";
    } else if (!whole_range) {
        text += "The measurement was cut short, or the limits are too wide: step 1 goes from " +
                std::to_string(expected.first[0] + *axes[0].used.begin()) + " to " +
                std::to_string(expected.first[0] + *axes[0].used.rbegin());
        if (axes[1].size > 1) {
            text += ", step 2 from " + std::to_string(expected.first[1] + *axes[1].used.begin()) + " to " +
                    std::to_string(expected.first[1] + *axes[1].used.rbegin());
        }
    } else {
        text += "They were lost, or some have the counters of others, of which BucketToBufferGadget keeps one: check "
                "kspace_encode_step_1; where a scan leaves them out by design, say so in parallelImaging";
    }
    return Warning{Cause::MissingShots, text + ". The image is made of the shots there are"};
}

std::optional<Warning> empty_frames(const FilledFrames &frames) {
    const auto filled = std::size_t(std::count(frames.has_shots.begin(), frames.has_shots.end(), char(1)));
    const std::size_t all = frames.has_shots.size();
    if (filled == 0 || filled == all) {
        return {};
    }
    bool only_first_n = frames.n > 1, only_first_s = frames.s > 1;
    for (std::size_t frame = 0; frame < all; ++frame) {
        only_first_n = only_first_n && (!frames.has_shots[frame] || frame % frames.n == 0);
        only_first_s = only_first_s && (!frames.has_shots[frame] || frame / frames.n % frames.s == 0);
    }
    std::string text = "no shot was acquired for " + std::to_string(all - filled) + " of " + std::to_string(all) +
                       " images, which are left out: ";
    // BucketToBufferGadget makes as many frames as there are slices, and puts all shots into the first.
    const auto of_slices = [&](std::size_t count) { return frames.slices == 0 || count <= frames.slices; };
    const char *property = only_first_n && of_slices(frames.n)   ? "N_dimension"
                           : only_first_s && of_slices(frames.s) ? "S_dimension"
                                                                 : nullptr;
    if (property == nullptr) {
        return Warning{Cause::EmptyImages, text + "was the measurement cut short?"};
    }
    const std::size_t count = property[0] == 'N' ? frames.n : frames.s;
    text += std::string("only the first of ") + std::to_string(count) + " frames along " + property[0] +
            " has shots. Is property " + property +
            " of BucketToBufferGadget slice? It contradicts split_slices and the slices of a buffer, which already "
            "separate slices: set " + property +
            " to none, contrast or set. If it is not slice, the measurement was cut short";
    return Warning{Cause::EmptyImages, text};
}

std::optional<Warning> fewer_shots(std::size_t count, std::size_t &most) {
    if (count >= most) {
        most = count;
        return {};
    }
    return Warning{Cause::MissingShots, std::to_string(count) + " shots, where an image before had " +
                                            std::to_string(most) +
                                            ", and the XML header has no encodingLimits that say how many there are: "
                                            "was the measurement cut short? The image is made of the shots there are"};
}

std::optional<Warning> image_number_overflow(std::size_t number) {
    if (number <= 65535) {
        return {};
    }
    return Warning{Cause::ImageNumbers, "it is image " + std::to_string(number) +
                                            " of its encoding on this connection, and image_index has 16 bits: it "
                                            "begins again at 0. Tell images apart by the attribute "
                                            "GADGETRON_ImageNumber, which goes on, or measure in several parts"};
}

std::vector<std::string> WarningCounter::summary() const {
    std::vector<std::string> lines;
    for (const auto &[cause, count] : count_) {
        const char *what = "";
        switch (cause) {
            case Cause::MissingShots: what = "with shots missing"; break;
            case Cause::EmptyImages: what = "in buffers with images without a shot"; break;
            case Cause::ZeroShots: what = "with shots that are zero"; break;
            case Cause::Extent: what = "with a trajectory that reaches too little of k-space"; break;
            case Cause::Tolerance: what = "that miss the tolerance"; break;
            case Cause::Times: what = "with times that are no readout's"; break;
            case Cause::Blades: what = "whose blades do not agree"; break;
            case Cause::NoiseTimes: what = "without sample times of noise or data"; break;
            case Cause::Calibration: what = "with coil maps from a narrower centre of k-space"; break;
            case Cause::Threads: what = "computed by fewer threads than asked for"; break;
            case Cause::OtherCalibration: what = "of slices without calibration acquisitions"; break;
            case Cause::UnusedNoise: what = "with noise that is not used"; break;
            case Cause::Noise: what = "whose noise is another than was said"; break;
            case Cause::Compression: what = "whose virtual coils lose signal"; break;
            case Cause::ColdStart: what = "of another shape than the last one"; break;
            case Cause::WindowRestart: what = "whose sliding window was restarted"; break;
            case Cause::ImageNumbers: what = "beyond what image_index can number"; break;
            case Cause::Plan: what = "with a warning of the library's"; break;
        }
        if (count > 1) {
            lines.push_back(std::to_string(count) + " times in all on this connection, images " + what +
                            ": the first was told of above");
        }
    }
    return lines;
}

std::optional<Warning> ShotCollector::add(const ExpectedShots &expected, std::size_t repetition,
                                          const std::vector<Step> &steps) {
    std::optional<Warning> before;
    if (repetition != repetition_) {
        before = end();
        steps_.clear();
    }
    repetition_ = repetition;
    expected_ = expected;
    // All expected shots are enough: this limits the memory.
    if (!expected.known || steps_.size() < expected.shots()) {
        steps_.insert(steps_.end(), steps.begin(), steps.end());
    }
    return before;
}

std::optional<Warning> ShotCollector::end() const {
    return missing_shots(expected_, steps_, steps_.size());
}

}  // namespace recon_gadgets
