// Free memory within the limits of control groups, from folders with files in the format of Linux.
#include "free_memory.h"
#include "check.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <map>

using namespace recon_gadgets;

namespace {

// The files of a machine with 16 GiB of memory, of which 8 GiB are available, and additional files.
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

    // Returns the free memory as text: "5120 MiB of the 6144 MiB of ...".
    std::string free_memory() const {
        const FreeMemory found = recon_gadgets::free_memory(root);
        return mebibytes(found.bytes) + " of " + found.limit;
    }
};

const std::string UNLIMITED = "8192 MiB of the 16384 MiB of this machine";

void machine() {
    CHECK(Machine({}).free_memory() == UNLIMITED);
    // The machine on which the test runs.
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
    // The limit is that of the parent group. The file cache counts as free.
    CHECK(Machine(files).free_memory() == "5120 MiB of the 6144 MiB of control group /scanner (memory.max)");
    auto limited = files;
    limited["/sys/fs/cgroup/scanner/recon/memory.max"] = "1610612736\n";
    CHECK(Machine(limited).free_memory() == "512 MiB of the 1536 MiB of control group /scanner/recon (memory.max)");
    // The group uses more than its limit.
    limited["/sys/fs/cgroup/scanner/recon/memory.max"] = "1048576\n";
    CHECK(Machine(limited).free_memory() == "0 MiB of the 1 MiB of control group /scanner/recon (memory.max)");
    // A limit above the machine's memory has no effect.
    limited["/sys/fs/cgroup/scanner/recon/memory.max"] = "1099511627776\n";
    limited["/sys/fs/cgroup/scanner/memory.max"] = "max\n";
    CHECK(Machine(limited).free_memory() == UNLIMITED);
    // A container with the path of the host, and its own group at the mount point.
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
    auto unlimited = files;
    unlimited["/sys/fs/cgroup/memory/slurm/job_7/memory.limit_in_bytes"] = "9223372036854771712\n";
    CHECK(Machine(unlimited).free_memory() == UNLIMITED);
}

}  // namespace

int main() {
    machine();
    version_2();
    version_1();
    return result("free_memory");
}
