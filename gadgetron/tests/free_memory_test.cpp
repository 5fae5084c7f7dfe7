// Free memory within the limits of control groups, from folders with files as Linux writes them.
#include "free_memory.h"
#include "check.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <map>

using namespace recon_gadgets;

namespace {

// The files of a machine with 16 GiB of memory, 8 of them available, and further files.
struct Machine {
    std::string root = "free-memory-XXXXXX";

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

    // "5120 MiB of the 6144 MiB of ...".
    std::string free_memory() const {
        const FreeMemory found = recon_gadgets::free_memory(root);
        return mebibytes(found.bytes) + " of " + found.limit;
    }
};

const std::string NONE = "8192 MiB of the 16384 MiB of this machine";

void machine() {
    CHECK(Machine({}).free_memory() == NONE);
    // The machine of this test.
    CHECK(free_memory().bytes > 0 && !free_memory().limit.empty());
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
    // The limit is that of the group above. The cache of files counts as free.
    CHECK(Machine(files).free_memory() == "5120 MiB of the 6144 MiB of control group /scanner (memory.max)");
    auto own = files;
    own["/sys/fs/cgroup/scanner/recon/memory.max"] = "1610612736\n";
    CHECK(Machine(own).free_memory() == "512 MiB of the 1536 MiB of control group /scanner/recon (memory.max)");
    // The group uses more than its limit.
    own["/sys/fs/cgroup/scanner/recon/memory.max"] = "1048576\n";
    CHECK(Machine(own).free_memory() == "0 MiB of the 1 MiB of control group /scanner/recon (memory.max)");
    // A limit above the machine's memory has no effect.
    own["/sys/fs/cgroup/scanner/recon/memory.max"] = "1099511627776\n";
    own["/sys/fs/cgroup/scanner/memory.max"] = "max\n";
    CHECK(Machine(own).free_memory() == NONE);
    // In a container that sees the path of the host, with its own group at the mount point.
    CHECK(Machine({{"/proc/self/cgroup", "0::/docker/0123\n"},
                   {"/sys/fs/cgroup/memory.max", "1073741824\n"},
                   {"/sys/fs/cgroup/memory.current", "0\n"}})
              .free_memory() == "1024 MiB of the 1024 MiB of control group / (memory.max)");
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
    CHECK(Machine(files).free_memory() ==
          "3072 MiB of the 6144 MiB of control group /slurm/job_7 (memory.limit_in_bytes)");
    auto none = files;
    none["/sys/fs/cgroup/memory/slurm/job_7/memory.limit_in_bytes"] = "9223372036854771712\n";
    CHECK(Machine(none).free_memory() == NONE);
}

}  // namespace

int main() {
    machine();
    version_2();
    version_1();
    return result("free_memory");
}
