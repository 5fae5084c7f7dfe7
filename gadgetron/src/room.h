// The memory that this process can still take. Linux promises memory that is not there, and ends the process when it is
// used, without a line: so what an image needs is compared with this beforehand.
#pragma once

#include <cstdint>
#include <string>

namespace recon_gadgets {

struct Room {
    std::uint64_t bytes = 0;  // that can be taken
    std::string limit;        // of what: "the 6144 MiB of control group /scanner (memory.max)"
};

// The least of what the machine has available and what the limits of this process's control groups, versions 1 and 2,
// leave. `root` is put before the paths of /proc and /sys, for tests.
Room room(const std::string &root = "");

// "1234 MiB", rounded up.
std::string mebibytes(std::uint64_t bytes);

}  // namespace recon_gadgets
