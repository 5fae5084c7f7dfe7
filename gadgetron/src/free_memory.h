// The memory that this process can still use. Linux grants more memory than there is, and kills the process without a
// message when it uses that memory. So the gadgets compare the memory of an image with this number before they start.
#pragma once

#include <cstdint>
#include <string>

namespace recon_gadgets {

struct FreeMemory {
    std::uint64_t bytes = 0;
    std::string limit;  // what limits it: "the 6144 MiB of control group /scanner (memory.max)"
};

// The smallest of the machine's available memory and of the free memory in the control groups of this process,
// versions 1 and 2. Tests set `root`, a folder with their own /proc and /sys.
FreeMemory free_memory(const std::string &root = "");

// "1234 MiB", rounded up.
std::string mebibytes(std::uint64_t bytes);

}  // namespace recon_gadgets
