// The memory that this process can still use. Linux grants more memory than available, and kills a process without a
// message when it uses that memory. Therefore the gadgets compare the memory of an image with this number in advance.
#pragma once

#include <cstdint>
#include <string>

namespace recon_gadgets {

// Free memory, and the limit that it is left from.
struct FreeMemory {
    std::uint64_t bytes = 0;
    std::string limit;  // "the 6144 MiB of control group /scanner (memory.max)"
};

// Returns the minimum of the machine's available memory and of the free memory in the control groups of this process,
// versions 1 and 2. `root`: a folder with /proc and /sys, set by tests.
FreeMemory free_memory(const std::string &root = "");

// Formats bytes, rounded up: "1234 MiB".
std::string mebibytes(std::uint64_t bytes);

}  // namespace recon_gadgets
