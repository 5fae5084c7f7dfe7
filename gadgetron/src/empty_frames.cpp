#include "empty_frames.h"

#include <algorithm>

namespace recon_gadgets {

std::optional<std::string> empty_frames(const FrameOccupancy &frames) {
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
        return text + "check whether the measurement was cut short";
    }
    const std::size_t count = property[0] == 'N' ? frames.n : frames.s;
    text += std::string("only the first of ") + std::to_string(count) + " frames along " + property[0] +
            " has shots. Is property " + property +
            " of BucketToBufferGadget slice? It contradicts split_slices and the slices of a buffer, which already "
            "separate slices: set " + property +
            " to none, contrast or set. If it is not slice, the measurement was cut short";
    return text;
}

}  // namespace recon_gadgets
