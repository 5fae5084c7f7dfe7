// Numbers and sizes in messages.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>

namespace recon_gadgets {

// Formats a number with up to six digits: "0.5", "1e-05", "nan".
inline std::string number_text(double x) {
    char buffer[32];
    std::snprintf(buffer, sizeof buffer, "%g", x);
    return buffer;
}

// Formats a matrix: "64 x 64 x 1".
inline std::string size_text(const std::array<std::size_t, 3> &n) {
    return std::to_string(n[0]) + " x " + std::to_string(n[1]) + " x " + std::to_string(n[2]);
}

// Describes an image by its slice, and its other counters that are not 0: "slice 1, repetition 2".
template <class Counters>
std::string image_text(std::size_t encoding, const Counters &c) {
    std::string text = encoding > 0 ? "encoding " + std::to_string(encoding) + ", " : "";
    text += "slice " + std::to_string(c.slice);
    const auto add = [&](const char *name, std::size_t number) {
        text += number > 0 ? std::string(", ") + name + " " + std::to_string(number) : "";
    };
    add("repetition", c.repetition);
    add("contrast", c.contrast);
    add("phase", c.phase);
    add("set", c.set);
    return text;
}

// Formats a count with its noun: "1 channel", "2 channels".
inline std::string count_text(std::size_t count, const std::string &noun) {
    return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

// Formats a number of bytes, rounded up: "3 MiB".
inline std::string mebibytes(std::uint64_t bytes) {
    return std::to_string((bytes >> 20) + ((bytes & 0xfffff) != 0 ? 1 : 0)) + " MiB";
}

}  // namespace recon_gadgets
