// Missing shots, and warnings. The shots of an image are compared with encodingLimits of the XML header. Warnings are
// about images that are made, but may be wrong.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace recon_gadgets {

// kspace_encode_step_1 and kspace_encode_step_2 of a shot, or its row in a buffer.
using Step = std::array<std::size_t, 2>;

// The shots that should come: the first and last kspace_encode_step_1 and _2 in encodingLimits.
struct ExpectedShots {
    std::array<std::size_t, 2> first{0, 0}, last{0, 0};
    std::array<std::size_t, 2> acceleration{1, 1};  // parallelImaging
    bool known = false;

    std::size_t shots() const { return (last[0] - first[0] + 1) * (last[1] - first[1] + 1); }
};

// The cause of a warning.
enum class Cause {
    MissingShots,
    EmptyImages,
    ZeroShots,
    Extent,
    Tolerance,
    Times,
    Plan,
    Blades,
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
struct Warning {
    Cause cause;
    std::string text;
};

// Warns of missing shots: a measurement was cut short, shots were lost, or several shots have the same row. `steps`
// has the counters of each shot, which are 0 at the first expected shot. `count` is the number of shots; several may
// have the same step. There is no warning where shots are missing by design, if the last shots came: shots at equal
// distances, or as many as parallelImaging says.
std::optional<Warning> missing_shots(const ExpectedShots &expected, const std::vector<Step> &steps, std::size_t count);

// The frames [N, S, LOC] of a buffer that have shots.
struct FilledFrames {
    std::size_t n = 1, s = 1, loc = 1;
    std::vector<char> has_shots;  // [N, S, LOC]
    std::size_t slices = 0;       // the number of slices in encodingLimits; 0 if unknown
};

// Warns of frames without a shot beside others with shots. The text distinguishes a contradiction in
// BucketToBufferGadget's properties from a measurement that was cut short.
std::optional<Warning> empty_frames(const FilledFrames &frames);

// Used without encodingLimits: warns where an image has fewer shots than one before. `most` keeps the largest number.
std::optional<Warning> fewer_shots(std::size_t count, std::size_t &most);

// Warns of an image whose number, counted from 1, does not fit in the 16 bits of image_index.
std::optional<Warning> image_number_overflow(std::size_t number);

// The number of warnings of each cause on a connection.
class WarningCounter {
public:
    // Counts a warning. Returns whether it is the first of its cause.
    bool first(Cause cause) { return ++count_[cause] == 1; }
    // A line for each cause with more than one warning.
    std::vector<std::string> summary() const;

private:
    std::map<Cause, std::size_t> count_;
};

// Collects the shots of one image from several buckets. The image is complete when the next image with the same slice
// key begins, or at the end.
class ShotCollector {
public:
    // Adds shots of a repetition. Where it is a new one, it returns the warning about the repetition before.
    std::optional<Warning> add(const ExpectedShots &expected, std::size_t repetition, const std::vector<Step> &steps);
    std::optional<Warning> end() const;

private:
    ExpectedShots expected_;
    std::size_t repetition_ = 0;
    std::vector<Step> steps_;
};

}  // namespace recon_gadgets
