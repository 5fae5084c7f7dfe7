// What the limits of control groups leave, read off folders as Linux writes them.
#include "room.h"
#include "check.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <map>

using namespace recon_gadgets;

namespace {

// A machine of 16 GiB, 8 of which are available, and these files besides.
struct Machine {
    std::string root = "room-XXXXXX";

    explicit Machine(const std::map<std::string, std::string> &files) {
        CHECK(mkdtemp(&root[0]) != nullptr);
        write("/proc/meminfo", "MemTotal:       16777216 kB\nMemFree:         1048576 kB\nMemAvailable:    8388608 kB\n"
                               "SwapTotal:             0 kB\nSwapFree:              0 kB\n");
        for (const auto &file : files) {
            write(file.first, file.second);
        }
    }
    ~Machine() { CHECK(std::system(("rm -r " + root).c_str()) == 0); }

    void write(const std::string &path, const std::string &text) {
        for (std::size_t at = path.find('/', 1); at != std::string::npos; at = path.find('/', at + 1)) {
            mkdir((root + path.substr(0, at)).c_str(), 0700);
        }
        std::ofstream(root + path) << text;
    }

    // MiB, and of what.
    std::string room() const {
        const Room found = recon_gadgets::room(root);
        return mebibytes(found.bytes) + " of " + found.limit;
    }
};

const std::string NONE = "8192 MiB of the 16384 MiB of this machine";

void machine() {
    CHECK(Machine({}).room() == NONE);
    // Any machine has some.
    CHECK(room().bytes > 0 && !room().limit.empty());
    CHECK(mebibytes(0) == "0 MiB" && mebibytes(1) == "1 MiB" && mebibytes(1 << 20) == "1 MiB");
}

void version_2() {
    const std::map<std::string, std::string> files{
        {"/proc/self/cgroup", "0::/scanner/recon\n"},
        {"/sys/fs/cgroup/scanner/recon/memory.max", "max\n"},
        {"/sys/fs/cgroup/scanner/recon/memory.current", "1073741824\n"},
        {"/sys/fs/cgroup/scanner/memory.max", "6442450944\n"},
        {"/sys/fs/cgroup/scanner/memory.current", "2147483648\n"},
        {"/sys/fs/cgroup/scanner/memory.stat", "anon 1\nfile 2\ninactive_file 1073741824\n"},
    };
    // The limit of a group that its own is in, and what was read from files counts as free.
    CHECK(Machine(files).room() == "5120 MiB of the 6144 MiB of control group /scanner (memory.max)");
    auto own = files;
    own["/sys/fs/cgroup/scanner/recon/memory.max"] = "1610612736\n";
    CHECK(Machine(own).room() == "512 MiB of the 1536 MiB of control group /scanner/recon (memory.max)");
    // More is used than allowed.
    own["/sys/fs/cgroup/scanner/recon/memory.max"] = "1048576\n";
    CHECK(Machine(own).room() == "0 MiB of the 1 MiB of control group /scanner/recon (memory.max)");
    // More than the machine has is no limit.
    own["/sys/fs/cgroup/scanner/recon/memory.max"] = "1099511627776\n";
    own["/sys/fs/cgroup/scanner/memory.max"] = "max\n";
    CHECK(Machine(own).room() == NONE);
    // In a container that sees the host's path, and its own group where the mount begins.
    CHECK(Machine({{"/proc/self/cgroup", "0::/docker/0123\n"},
                   {"/sys/fs/cgroup/memory.max", "1073741824\n"},
                   {"/sys/fs/cgroup/memory.current", "0\n"}})
              .room() == "1024 MiB of the 1024 MiB of control group / (memory.max)");
}

void version_1() {
    const std::map<std::string, std::string> files{
        {"/proc/self/cgroup", "5:cpu,cpuacct:/\n4:memory:/slurm/job_7\n0::/\n"},
        {"/sys/fs/cgroup/memory/slurm/job_7/memory.limit_in_bytes", "6442450944\n"},
        {"/sys/fs/cgroup/memory/slurm/job_7/memory.usage_in_bytes", "4294967296\n"},
        {"/sys/fs/cgroup/memory/slurm/job_7/memory.stat", "inactive_file 1\ntotal_inactive_file 1073741824\n"},
        {"/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"},
        {"/sys/fs/cgroup/memory/memory.usage_in_bytes", "4294967296\n"},
    };
    CHECK(Machine(files).room() == "3072 MiB of the 6144 MiB of control group /slurm/job_7 (memory.limit_in_bytes)");
    auto none = files;
    none["/sys/fs/cgroup/memory/slurm/job_7/memory.limit_in_bytes"] = "9223372036854771712\n";
    CHECK(Machine(none).room() == NONE);
}

}  // namespace

int main() {
    machine();
    version_2();
    version_1();
    return result("room");
}
