#include "missing_shots.h"

#include <algorithm>
#include <set>

namespace recon_gadgets {

namespace {

// The steps of the shots along one axis, and the number of expected steps.
struct StepRange {
    std::set<std::size_t> used;
    std::size_t size, acceleration;

    // Returns whether the steps have equal distances.
    bool is_regular() const {
        const std::size_t gap = largest_gap();
        for (auto step = used.begin(), next = step; ++next != used.end(); step = next) {
            if (*next - *step != gap) {
                return false;
            }
        }
        return true;
    }

    // Returns whether the steps reach the first and the last expected step, except for the largest gap between steps.
    bool reaches_limits() const {
        const std::size_t gap = std::max(largest_gap(), acceleration);
        return *used.begin() < gap && size - 1 - *used.rbegin() < gap;
    }

    std::size_t largest_gap() const {
        std::size_t gap = 1;
        for (auto step = used.begin(), next = step; ++next != used.end(); step = next) {
            gap = std::max(gap, *next - *step);
        }
        return gap;
    }
};

std::string range(const ExpectedShots &expected, int axis) {
    return "kspace_encoding_step_" + std::to_string(axis + 1) + " from " + std::to_string(expected.first[axis]) +
           " to " + std::to_string(expected.last[axis]);
}

}  // namespace

std::optional<Warning> missing_shots(const ExpectedShots &expected, const std::vector<EncodingStep> &steps,
                                     std::size_t count) {
    const std::size_t all = expected.known ? expected.shots() : 0;
    if (steps.empty() || count >= all) {
        return {};
    }
    const std::set<EncodingStep> distinct(steps.begin(), steps.end());
    std::array<StepRange, 2> axes;
    for (int a = 0; a < 2; ++a) {
        axes[a].size = expected.last[a] - expected.first[a] + 1;
        axes[a].acceleration = expected.acceleration[a];
        for (const EncodingStep &step : distinct) {
            // The counters of some sequences exceed the limits.
            axes[a].used.insert(std::min(step[a], axes[a].size - 1));
        }
    }
    const bool whole_range = axes[0].reaches_limits() && axes[1].reaches_limits();
    const bool regular = axes[0].is_regular() && axes[1].is_regular() && distinct.size() == count &&
                         count == axes[0].used.size() * axes[1].used.size();
    if (whole_range && (regular || count * expected.acceleration[0] * expected.acceleration[1] >= all)) {
        return {};
    }
    std::string text = std::to_string(count) + " of " + std::to_string(all) + " shots: encodingLimits announce " +
                       range(expected, 0) + (axes[1].size > 1 ? ", " + range(expected, 1) : "") + ", and " +
                       std::to_string(all - count) + " of these are empty. ";
    if (distinct.size() == 1) {
        text += "All acquisitions may have the same counters, of which BucketToBufferGadget keeps one shot: check "
                "kspace_encode_step_1, or remove that gadget to use all shots in the order of acquisition";
    } else if (!whole_range) {
        text += "The measurement was cut short, or the limits are too wide: step 1 goes from " +
                std::to_string(expected.first[0] + *axes[0].used.begin()) + " to " +
                std::to_string(expected.first[0] + *axes[0].used.rbegin());
        if (axes[1].size > 1) {
            text += ", step 2 from " + std::to_string(expected.first[1] + *axes[1].used.begin()) + " to " +
                    std::to_string(expected.first[1] + *axes[1].used.rbegin());
        }
    } else {
        text += "They were lost, or several shots have the same counters, of which BucketToBufferGadget keeps one: "
                "check kspace_encode_step_1. If the scan omits them by design, set parallelImaging";
    }
    return Warning{WarningCause::MissingShots, text + ". The image is made from the acquired shots"};
}

std::optional<Warning> empty_frames(const FrameOccupancy &frames) {
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
                       " images, which are not made: ";
    // BucketToBufferGadget makes one frame per slice, and puts all shots into the first one.
    const auto may_be_slices = [&](std::size_t count) { return frames.slices == 0 || count <= frames.slices; };
    const char *property = only_first_n && may_be_slices(frames.n)   ? "N_dimension"
                           : only_first_s && may_be_slices(frames.s) ? "S_dimension"
                                                                 : nullptr;
    if (property == nullptr) {
        return Warning{WarningCause::EmptyImages, text + "check whether the measurement was cut short"};
    }
    const std::size_t count = property[0] == 'N' ? frames.n : frames.s;
    text += std::string("only the first of ") + std::to_string(count) + " frames along " + property[0] +
            " has shots. Is property " + property +
            " of BucketToBufferGadget slice? It contradicts split_slices and the slices of a buffer, which already "
            "separate slices: set " + property +
            " to none, contrast or set. If it is not slice, the measurement was cut short";
    return Warning{WarningCause::EmptyImages, text};
}

std::optional<Warning> fewer_shots(std::size_t count, std::size_t &max_count) {
    if (count >= max_count) {
        max_count = count;
        return {};
    }
    return Warning{WarningCause::MissingShots,
                   std::to_string(count) + " shots, but a previous image had " + std::to_string(max_count) +
                       ", and the XML header has no encodingLimits with the expected number: check whether the "
                       "measurement was cut short. The image is made from the acquired shots"};
}

std::optional<Warning> image_number_overflow(std::size_t number) {
    if (number <= 65535) {
        return {};
    }
    return Warning{WarningCause::ImageNumbers,
                   "it is image " + std::to_string(number) +
                       " of its encoding on this connection, but image_index has 16 bits and begins again at 0: "
                       "distinguish images by the attribute GADGETRON_ImageNumber, or measure in several parts"};
}

std::vector<std::string> WarningCounter::summary() const {
    std::vector<std::string> lines;
    for (const auto &[cause, count] : count_) {
        const char *images = "";
        switch (cause) {
            case WarningCause::MissingShots: images = "with shots missing"; break;
            case WarningCause::EmptyImages: images = "of buffers in which some images have no shot"; break;
            case WarningCause::ZeroShots: images = "with shots that are zero"; break;
            case WarningCause::Extent: images = "with a trajectory that covers only a small part of k-space"; break;
            case WarningCause::Tolerance: images = "that miss the tolerance"; break;
            case WarningCause::Times: images = "with sample times that are implausible for a readout"; break;
            case WarningCause::BladeMotion: images = "whose blades do not agree"; break;
            case WarningCause::NoiseTimes: images = "without sample times of noise or data"; break;
            case WarningCause::Calibration: images = "with coil maps from a narrower centre of k-space"; break;
            case WarningCause::Threads: images = "computed by fewer threads than requested"; break;
            case WarningCause::OtherCalibration: images = "of slices without calibration acquisitions"; break;
            case WarningCause::UnusedNoise: images = "with unused noise acquisitions"; break;
            case WarningCause::Noise: images = "whose noise differs from the given level"; break;
            case WarningCause::Compression: images = "whose virtual coils lose signal"; break;
            case WarningCause::ColdStart: images = "with a different shape than the last image"; break;
            case WarningCause::WindowRestart: images = "whose sliding window was restarted"; break;
            case WarningCause::ImageNumbers: images = "with a number that exceeds image_index"; break;
            case WarningCause::Plan: images = "with a warning of the library"; break;
        }
        if (count > 1) {
            lines.push_back(std::to_string(count) + " times in all on this connection, images " + images +
                            ": only the first warning was logged");
        }
    }
    return lines;
}

std::optional<Warning> ShotCollector::add(const ExpectedShots &expected, std::size_t repetition,
                                          const std::vector<EncodingStep> &steps) {
    std::optional<Warning> previous;
    if (repetition != repetition_) {
        previous = end();
        steps_.clear();
    }
    repetition_ = repetition;
    expected_ = expected;
    // At most the expected number of shots is stored, to limit the memory.
    if (!expected.known || steps_.size() < expected.shots()) {
        steps_.insert(steps_.end(), steps.begin(), steps.end());
    }
    return previous;
}

std::optional<Warning> ShotCollector::end() const {
    return missing_shots(expected_, steps_, steps_.size());
}

}  // namespace recon_gadgets
