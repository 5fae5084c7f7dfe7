#include "free_memory.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <sstream>

namespace recon_gadgets {

namespace {

// Reads the number at the beginning of a file. Returns false if the file begins with a word such as "max".
bool first_number(const std::string &path, std::uint64_t &value) {
    std::ifstream file(path);
    return bool(file >> value);
}

// Returns the number after a name in a file with a name and a number in each line; 0 if the name is missing.
std::uint64_t value_of(const std::string &path, const std::string &name) {
    std::ifstream file(path);
    std::string line;
    while (std::getline(file, line)) {
        std::istringstream words(line);
        std::string first;
        std::uint64_t value = 0;
        if (words >> first >> value && first == name) {
            return value;
        }
    }
    return 0;
}

// File names in a version of control groups.
struct CgroupVersion {
    const char *mount, *limit, *used, *reclaimed;
};
const CgroupVersion V2{"/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"};
const CgroupVersion V2_BESIDE_V1{"/sys/fs/cgroup/unified", "memory.max", "memory.current", "inactive_file"};
const CgroupVersion V1{"/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
                       "total_inactive_file"};

// Checks a control group and all its parents. In a container the path may be that of the host, while the mount point
// is the group of the container. Therefore missing groups are skipped, and the mount point is always checked.
void check_group(const std::string &root, const CgroupVersion &version, std::string path, FreeMemory &least) {
    while (true) {
        path = path == "/" ? "" : path;
        const std::string folder = root + version.mount + path + "/";
        std::uint64_t limit = 0, used = 0;
        // Version 1 without a limit contains a number near the maximum.
        if (first_number(folder + version.limit, limit) && limit < (std::uint64_t(1) << 60) &&
            first_number(folder + version.used, used)) {
            // The kernel frees the file cache when a process needs memory.
            used -= std::min(used, value_of(folder + "memory.stat", version.reclaimed));
            const std::uint64_t left = limit - std::min(limit, used);
            if (left < least.bytes) {
                least = {left, "the " + mebibytes(limit) + " of control group " + (path.empty() ? "/" : path) + " (" +
                                   version.limit + ")"};
            }
        }
        if (path.empty()) {
            return;
        }
        path.erase(path.rfind('/'));
    }
}

}  // namespace

std::string mebibytes(std::uint64_t bytes) {
    return std::to_string((bytes >> 20) + ((bytes & 0xfffff) != 0 ? 1 : 0)) + " MiB";
}

FreeMemory free_memory(const std::string &root) {
    const std::string meminfo = root + "/proc/meminfo";
    FreeMemory least{std::numeric_limits<std::uint64_t>::max(), ""};
    if (const std::uint64_t total = value_of(meminfo, "MemTotal:")) {
        const std::uint64_t available = value_of(meminfo, "MemAvailable:"), swap = value_of(meminfo, "SwapFree:");
        least = {(available + swap) << 10, "the " + mebibytes(total << 10) + " of this machine"};
    }
    std::ifstream groups(root + "/proc/self/cgroup");
    std::string line;
    while (std::getline(groups, line)) {
        // "0::/path" is version 2, "4:memory:/path" version 1.
        const std::size_t first = line.find(':'), second = line.find(':', first + 1);
        if (first == std::string::npos || second == std::string::npos || line[second + 1] != '/') {
            continue;
        }
        const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",",
                          path = line.substr(second + 1);
        if (controllers == ",,") {
            check_group(root, V2, path, least);
            check_group(root, V2_BESIDE_V1, path, least);
        } else if (controllers.find(",memory,") != std::string::npos) {
            check_group(root, V1, path, least);
        }
    }
    return least;
}

}  // namespace recon_gadgets
