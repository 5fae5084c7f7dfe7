// Frames of a buffer without acquisitions.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace recon_gadgets {

// The frames [N, S, LOC] of a buffer that have shots.
struct FrameOccupancy {
    std::size_t n = 1, s = 1, loc = 1;
    std::vector<char> has_shots;  // [N, S, LOC]
    std::size_t slices = 0;       // number of slices in encodingLimits; 0 if unknown
};

// Returns a warning if some frames have no shot, but others have. The text distinguishes a contradiction in the
// properties of BucketToBufferGadget from a measurement that was cut short.
std::optional<std::string> empty_frames(const FrameOccupancy &frames);

}  // namespace recon_gadgets
