// Missing shots, and warnings. The shots of an image are compared with encodingLimits of the XML header. A warning is
// about an image that is made, but may be wrong.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace recon_gadgets {

// kspace_encode_step_1 and kspace_encode_step_2 of a shot, or its row indices in a buffer.
using EncodingStep = std::array<std::size_t, 2>;

// The expected shots: the first and last kspace_encode_step_1 and _2 in encodingLimits.
struct ExpectedShots {
    std::array<std::size_t, 2> first{0, 0}, last{0, 0};
    std::array<std::size_t, 2> acceleration{1, 1};  // factors in parallelImaging
    bool known = false;                             // whether the header has encodingLimits

    std::size_t shots() const { return (last[0] - first[0] + 1) * (last[1] - first[1] + 1); }
};

// The cause of a warning.
enum class WarningCause {
    MissingShots,
    EmptyImages,
    ZeroShots,
    Extent,
    Tolerance,
    Times,
    Plan,
    BladeMotion,
    Noise,
    NoiseTimes,
    UnusedNoise,
    OtherCalibration,
    Calibration,
    Threads,
    Compression,
    ColdStart,
    WindowRestart,
    ImageNumbers
};

// A warning about an image.
struct Warning {
    WarningCause cause;
    std::string text;
};

// Returns a warning if shots are missing: a measurement was cut short, shots were lost, or several shots have the same
// row. `steps`: the counters of each shot, which are 0 at the first expected shot. `count`: the number of shots, of
// which several may have the same step. Shots may be missing by design if the last shots were acquired, and the shots
// have equal distances or the number that parallelImaging announces.
std::optional<Warning> missing_shots(const ExpectedShots &expected, const std::vector<EncodingStep> &steps,
                                     std::size_t count);

// The frames [N, S, LOC] of a buffer that have shots.
struct FrameOccupancy {
    std::size_t n = 1, s = 1, loc = 1;
    std::vector<char> has_shots;  // [N, S, LOC]
    std::size_t slices = 0;       // number of slices in encodingLimits; 0 if unknown
};

// Returns a warning if some frames have no shot, but others have. The text distinguishes a contradiction in the
// properties of BucketToBufferGadget from a measurement that was cut short.
std::optional<Warning> empty_frames(const FrameOccupancy &frames);

// Returns a warning if an image has fewer shots than a previous one, for files without encodingLimits. Updates
// `max_count`, the largest number of shots.
std::optional<Warning> fewer_shots(std::size_t count, std::size_t &max_count);

// Returns a warning if the number of an image, counted from 1, does not fit in the 16 bits of image_index.
std::optional<Warning> image_number_overflow(std::size_t number);

// The numbers of warnings by cause on a connection.
class WarningCounter {
public:
    // Counts a warning. Returns whether it is the first of its cause.
    bool first(WarningCause cause) { return ++count_[cause] == 1; }
    // Returns a line for each cause with more than one warning.
    std::vector<std::string> summary() const;

private:
    std::map<WarningCause, std::size_t> count_;
};

// The shots of one image that arrives in several buckets. The image is complete when the next image with the same
// slice key begins, or at the end of the connection.
class ShotCollector {
public:
    // Adds shots of a repetition. If it is a new repetition, returns the warning about the previous one.
    std::optional<Warning> add(const ExpectedShots &expected, std::size_t repetition,
                               const std::vector<EncodingStep> &steps);
    // Returns the warning about the last repetition.
    std::optional<Warning> end() const;

private:
    ExpectedShots expected_;
    std::size_t repetition_ = 0;
    std::vector<EncodingStep> steps_;
};

}  // namespace recon_gadgets
