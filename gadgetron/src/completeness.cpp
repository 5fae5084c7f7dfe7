#include "completeness.h"

#include <algorithm>
#include <set>

namespace recon_gadgets {

namespace {

// The steps that occur along an axis.
struct Axis {
    std::set<std::size_t> used;
    std::size_t size, acceleration;

    // Whether steps are at equal distances.
    bool regular() const {
        const std::size_t all = gap();
        for (auto step = used.begin(), next = step; ++next != used.end(); step = next) {
            if (*next - *step != all) {
                return false;
            }
        }
        return true;
    }

    // Whether steps reach from the first announced to the last, but for what is left out in between.
    bool whole() const {
        const std::size_t most = std::max(gap(), acceleration);
        return *used.begin() < most && size - 1 - *used.rbegin() < most;
    }

    std::size_t gap() const {
        std::size_t most = 1;
        for (auto step = used.begin(), next = step; ++next != used.end(); step = next) {
            most = std::max(most, *next - *step);
        }
        return most;
    }
};

std::string range(const Announced &announced, int axis) {
    return "kspace_encoding_step_" + std::to_string(axis + 1) + " from " + std::to_string(announced.first[axis]) +
           " to " + std::to_string(announced.last[axis]);
}

}  // namespace

std::optional<Notice> missing_shots(const Announced &announced, const std::vector<Step> &steps, std::size_t count) {
    const std::size_t all = announced.known ? announced.shots() : 0;
    if (steps.empty() || count >= all) {
        return {};
    }
    const std::set<Step> distinct(steps.begin(), steps.end());
    std::array<Axis, 2> axes;
    for (int a = 0; a < 2; ++a) {
        axes[a].size = announced.last[a] - announced.first[a] + 1;
        axes[a].acceleration = announced.acceleration[a];
        for (const Step &step : distinct) {
            // Counters that count on beyond the limits say nothing of them.
            axes[a].used.insert(std::min(step[a], axes[a].size - 1));
        }
    }
    const bool whole = axes[0].whole() && axes[1].whole();
    const bool regular = axes[0].regular() && axes[1].regular() && distinct.size() == count &&
                         count == axes[0].used.size() * axes[1].used.size();
    if (whole && (regular || count * announced.acceleration[0] * announced.acceleration[1] >= all)) {
        return {};
    }
    std::string text = std::to_string(count) + " of " + std::to_string(all) + " shots: encodingLimits say " +
                       range(announced, 0) + (axes[1].size > 1 ? ", " + range(announced, 1) : "") + ", and " +
                       std::to_string(all - count) + " of these are empty. ";
    if (distinct.size() == 1) {
        text += "All acquisitions may have the same counters, as BucketToBufferGadget keeps one shot of each: check "
                "kspace_encode_step_1, or leave that gadget out, and shots are taken as they come";
    } else if (!whole) {
        text += "The measurement was cut short, or the limits are too wide: step 1 goes from " +
                std::to_string(announced.first[0] + *axes[0].used.begin()) + " to " +
                std::to_string(announced.first[0] + *axes[0].used.rbegin());
        if (axes[1].size > 1) {
            text += ", step 2 from " + std::to_string(announced.first[1] + *axes[1].used.begin()) + " to " +
                    std::to_string(announced.first[1] + *axes[1].used.rbegin());
        }
    } else {
        text += "They were lost, or some have the counters of others, of which BucketToBufferGadget keeps one: check "
                "kspace_encode_step_1; where a scan leaves them out by design, say so in parallelImaging";
    }
    return Notice{Cause::MissingShots, text + ". The image is made of the shots there are"};
}

std::optional<Notice> fewer_shots(std::size_t count, std::size_t &most) {
    if (count >= most) {
        most = count;
        return {};
    }
    return Notice{Cause::MissingShots, std::to_string(count) + " shots, where an image before had " +
                                           std::to_string(most) +
                                           ", and the XML header has no encodingLimits that say how many there are: "
                                           "was the measurement cut short? The image is made of the shots there are"};
}

std::optional<Notice> beyond_numbers(std::size_t number) {
    if (number <= 65535) {
        return {};
    }
    return Notice{Cause::ImageNumbers, "it is image " + std::to_string(number) +
                                           " of its encoding on this connection, and image_index has 16 bits: it begins "
                                           "again at 0. Tell images apart by the attribute GADGETRON_ImageNumber, which "
                                           "goes on, or measure in several parts"};
}

std::vector<std::string> Notices::summary() const {
    std::vector<std::string> lines;
    for (const auto &[cause, count] : count_) {
        const char *what = "";
        switch (cause) {
            case Cause::MissingShots: what = "with shots missing"; break;
            case Cause::EmptyImages: what = "in buffers with images without a shot"; break;
            case Cause::ZeroShots: what = "with shots that are zero"; break;
            case Cause::Extent: what = "with a trajectory that reaches too little of k-space"; break;
            case Cause::Tolerance: what = "that miss the tolerance"; break;
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

std::optional<Notice> Gathering::add(const Announced &announced, std::size_t repetition,
                                     const std::vector<Step> &steps) {
    std::optional<Notice> before;
    if (repetition != repetition_) {
        before = end();
        steps_.clear();
    }
    repetition_ = repetition;
    announced_ = announced;
    // More than all need not be remembered.
    if (!announced.known || steps_.size() < announced.shots()) {
        steps_.insert(steps_.end(), steps.begin(), steps.end());
    }
    return before;
}

std::optional<Notice> Gathering::end() const {
    return missing_shots(announced_, steps_, steps_.size());
}

}  // namespace recon_gadgets
