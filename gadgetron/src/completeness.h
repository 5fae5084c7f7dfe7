// Whether all came that was announced: which shots an image has, against those that the XML header says there are; and
// what may be wrong with an image that is made all the same, told once a connection.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace recon_gadgets {

// kspace_encode_step_1 and _2 of a shot, or its row in a buffer.
using Step = std::array<std::size_t, 2>;

// The shots that the XML header says there are: along step 1 and step 2, from encodingLimits.
struct Announced {
    std::array<std::size_t, 2> first{0, 0}, last{0, 0};
    std::array<std::size_t, 2> acceleration{1, 1};  // parallelImaging
    bool known = false;

    std::size_t shots() const { return (last[0] - first[0] + 1) * (last[1] - first[1] + 1); }
};

// What may be wrong with an image.
enum class Cause { MissingShots, EmptyImages, ZeroShots, Extent, Tolerance, Plan, ImageNumbers };
struct Notice {
    Cause cause;
    std::string text;
};

// Tells of shots that are missing, and not by design: a measurement that was cut short, shots that were lost, several
// in one row. `steps`: of each shot, from 0 at the first that was announced; `count`: shots in all, where several have the
// same step. By design are shots missing at equal distances, and as many as parallelImaging says, if the last ones came.
std::optional<Notice> missing_shots(const Announced &announced, const std::vector<Step> &steps, std::size_t count);

// Where no limits are announced: tells of fewer shots than the most that an image had before, which is kept in `most`.
std::optional<Notice> fewer_shots(std::size_t count, std::size_t &most);

// Tells of an image, counted from 1, whose number the 16 bits of image_index do not hold.
std::optional<Notice> beyond_numbers(std::size_t number);

// Which causes came on a connection, and how often.
class Notices {
public:
    // Whether this is the first of its cause.
    bool first(Cause cause) { return ++count_[cause] == 1; }
    // A line for each cause that came more than once.
    std::vector<std::string> summary() const;

private:
    std::map<Cause, std::size_t> count_;
};

// Shots of one image that come in several buckets: whether they are all there is known with the next image of the same
// place, or at the end.
class Gathering {
public:
    // Adds shots of repetition `repetition`; what was missing of the repetition before, if that is complete with this.
    std::optional<Notice> add(const Announced &announced, std::size_t repetition, const std::vector<Step> &steps);
    std::optional<Notice> end() const;

private:
    Announced announced_;
    std::size_t repetition_ = 0;
    std::vector<Step> steps_;
};

}  // namespace recon_gadgets
