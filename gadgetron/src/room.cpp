#include "room.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <sstream>

namespace recon_gadgets {

namespace {

// A number at the beginning of a file; false where there is none, "max" among them.
bool number(const std::string &path, std::uint64_t &value) {
    std::ifstream file(path);
    return bool(file >> value);
}

// The number behind a name in a file of names and numbers, 0 where it is not there.
std::uint64_t entry(const std::string &path, const std::string &name) {
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

// The names of files of a version.
struct Version {
    const char *mount, *limit, *used, *reclaimed;
};
const Version V2{"/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"};
const Version V2_BESIDE_V1{"/sys/fs/cgroup/unified", "memory.max", "memory.current", "inactive_file"};
const Version V1{"/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"};

// Looks at a control group and those that it is in. In a container the path may be that of the host, while the mount begins
// with the container's own group: groups that are not there are passed by, and the mount itself is always looked at.
void look(const std::string &root, const Version &version, std::string path, Room &least) {
    while (true) {
        path = path == "/" ? "" : path;
        const std::string folder = root + version.mount + path + "/";
        std::uint64_t limit = 0, used = 0;
        // Version 1 writes a number near the largest where there is no limit.
        if (number(folder + version.limit, limit) && limit < (std::uint64_t(1) << 60) &&
            number(folder + version.used, used)) {
            // Files that were read lie in memory until it is wanted.
            used -= std::min(used, entry(folder + "memory.stat", version.reclaimed));
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

Room room(const std::string &root) {
    const std::string meminfo = root + "/proc/meminfo";
    Room least{std::numeric_limits<std::uint64_t>::max(), ""};
    if (const std::uint64_t total = entry(meminfo, "MemTotal:")) {
        const std::uint64_t available = entry(meminfo, "MemAvailable:"), swap = entry(meminfo, "SwapFree:");
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
            look(root, V2, path, least);
            look(root, V2_BESIDE_V1, path, least);
        } else if (controllers.find(",memory,") != std::string::npos) {
            look(root, V1, path, least);
        }
    }
    return least;
}

}  // namespace recon_gadgets
