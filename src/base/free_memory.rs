//! The memory that this process can still use.
//!
//! Linux grants more memory than is free, and ends a process without a message when it uses that memory. Hosts
//! therefore compare the memory of an image with this number in advance. Windows grants no more than its memory and
//! page file have, or the process's job object allows.

use super::error::{bail, Result};
use super::memory::release_host_memory;
use std::fs;

/// Free memory, and the limit that it is left from.
#[derive(Debug, Clone, PartialEq, Eq)]
struct FreeMemory {
    bytes: u64,
    /// For messages: "the 6144 MiB of control group /scanner (memory.max)".
    limit: String,
}

/// Checks that the machine and all control groups of this process have `bytes` free bytes. If they do not, the library
/// first releases its cached host memory. On systems other than Linux and Windows, every number of bytes is accepted.
///
/// # Errors
/// `OutOfHostMemory`, with the limit and the free bytes.
pub fn check_free_memory(bytes: u64) -> Result<()> {
    check(bytes, "")
}

/// Checks as [`check_free_memory`] does, with /proc and /sys in the folder `root`.
fn check(bytes: u64, root: &str) -> Result<()> {
    let mut free = free_memory(root);
    if bytes > free.bytes {
        release_host_memory();
        free = free_memory(root);
    }
    if bytes > free.bytes {
        bail!(
            OutOfHostMemory,
            "{} are needed, and of {} {} are left: raise the limit, let fewer processes run at once, or reconstruct \
             smaller images or fewer coils",
            mebibytes(bytes),
            free.limit,
            mebibytes(free.bytes)
        );
    }
    Ok(())
}

/// Formats bytes, rounded up: "1234 MiB".
fn mebibytes(bytes: u64) -> String {
    format!("{} MiB", bytes.div_ceil(1 << 20))
}

/// Returns the number at the beginning of a file; `None` for a word such as "max".
fn first_number(path: &str) -> Option<u64> {
    fs::read_to_string(path).ok()?.split_whitespace().next()?.parse().ok()
}

/// Returns the number after a name in a file with a name and a number in each line; 0 if the name is missing.
fn value_of(path: &str, name: &str) -> u64 {
    let text = fs::read_to_string(path).unwrap_or_default();
    let value = |line: &str| {
        let mut words = line.split_whitespace();
        (words.next() == Some(name)).then(|| words.next()?.parse().ok())?
    };
    text.lines().find_map(value).unwrap_or(0)
}

/// File names in a version of control groups.
struct CgroupVersion {
    mount: &'static str,
    limit: &'static str,
    used: &'static str,
    /// The name in memory.stat of the file cache that the kernel frees first.
    reclaimed: &'static str,
}

const V2: CgroupVersion =
    CgroupVersion { mount: "/sys/fs/cgroup", limit: "memory.max", used: "memory.current", reclaimed: "inactive_file" };
const V2_BESIDE_V1: CgroupVersion = CgroupVersion { mount: "/sys/fs/cgroup/unified", ..V2 };
const V1: CgroupVersion = CgroupVersion {
    mount: "/sys/fs/cgroup/memory",
    limit: "memory.limit_in_bytes",
    used: "memory.usage_in_bytes",
    reclaimed: "total_inactive_file",
};

/// Checks a control group and all its parents. In a container the path may be that of the host, while the mount point
/// is the group of the container. Therefore missing groups are skipped, and the mount point is always checked.
fn check_group(root: &str, version: &CgroupVersion, path: &str, least: &mut FreeMemory) {
    let mut path = path.trim_end_matches('/');
    loop {
        let folder = format!("{root}{}{path}", version.mount);
        // Version 1 without a limit contains a number near the maximum.
        let limit = first_number(&format!("{folder}/{}", version.limit)).filter(|&limit| limit < 1 << 60);
        if let (Some(limit), Some(used)) = (limit, first_number(&format!("{folder}/{}", version.used))) {
            // The kernel frees the file cache when a process needs memory.
            let used = used.saturating_sub(value_of(&format!("{folder}/memory.stat"), version.reclaimed));
            let bytes = limit.saturating_sub(used);
            if bytes < least.bytes {
                let group = if path.is_empty() { "/" } else { path };
                let limit = format!("the {} of control group {group} ({})", mebibytes(limit), version.limit);
                *least = FreeMemory { bytes, limit };
            }
        }
        let Some(end) = path.rfind('/') else { return };
        path = &path[..end];
    }
}

/// Returns the minimum of the machine's available memory and of the free memory in the control groups of this process,
/// versions 1 and 2. `root`: a folder with /proc and /sys, set by tests.
fn free_memory(root: &str) -> FreeMemory {
    #[cfg(windows)]
    if root.is_empty() {
        return free_memory_of_windows();
    }
    let meminfo = format!("{root}/proc/meminfo");
    let mut least = FreeMemory { bytes: u64::MAX, limit: String::new() };
    let total = value_of(&meminfo, "MemTotal:");
    if total > 0 {
        let free = value_of(&meminfo, "MemAvailable:").saturating_add(value_of(&meminfo, "SwapFree:"));
        least = FreeMemory {
            bytes: free.saturating_mul(1024),
            limit: format!("the {} of this machine", mebibytes(total.saturating_mul(1024))),
        };
    }
    for line in fs::read_to_string(format!("{root}/proc/self/cgroup")).unwrap_or_default().lines() {
        // "0::/path" is version 2, "4:memory:/path" version 1.
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
        if !path.starts_with('/') {
            continue;
        }
        if controllers.is_empty() {
            check_group(root, &V2, path, &mut least);
            check_group(root, &V2_BESIDE_V1, path, &mut least);
        } else if controllers.split(',').any(|name| name == "memory") {
            check_group(root, &V1, path, &mut least);
        }
    }
    least
}

/// Returns the memory that Windows still grants to this process.
#[cfg(windows)]
fn free_memory_of_windows() -> FreeMemory {
    use windows_sys::Win32::System::SystemInformation::{GlobalMemoryStatusEx, MEMORYSTATUSEX};
    let mut status = MEMORYSTATUSEX { dwLength: size_of::<MEMORYSTATUSEX>() as u32, ..Default::default() };
    // SAFETY: the structure has the length that its first field states.
    if unsafe { GlobalMemoryStatusEx(&mut status) } == 0 {
        return FreeMemory { bytes: u64::MAX, limit: String::new() };
    }
    let limit = format!("the {} of memory and page file of this machine", mebibytes(status.ullTotalPageFile));
    FreeMemory { bytes: status.ullAvailPageFile, limit }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::error::ErrorKind;
    use std::path::PathBuf;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// A folder with the files of a machine with 16 GiB of memory, of which 8 GiB are available.
    struct Machine(PathBuf);

    impl Machine {
        /// Adds files to those of the machine. A later file replaces an earlier one.
        fn new(files: &[(&str, &str)]) -> Machine {
            static NUMBER: AtomicUsize = AtomicUsize::new(0);
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let machine =
                Machine(std::env::temp_dir().join(format!("recon-free-memory-{}-{number}", std::process::id())));
            let meminfo = "MemTotal:       16777216 kB\nMemFree:         1048576 kB\nMemAvailable:    8388608 kB\n\
                           SwapTotal:             0 kB\nSwapFree:              0 kB\n";
            for (path, text) in [("/proc/meminfo", meminfo)].iter().chain(files) {
                let path = machine.0.join(&path[1..]);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
            machine
        }

        fn root(&self) -> &str {
            self.0.to_str().unwrap()
        }

        /// Returns the free memory as text: "5120 MiB of the 6144 MiB of ...".
        fn free_memory(&self) -> String {
            let found = free_memory(self.root());
            format!("{} of {}", mebibytes(found.bytes), found.limit)
        }
    }

    impl Drop for Machine {
        fn drop(&mut self) {
            fs::remove_dir_all(&self.0).unwrap();
        }
    }

    const UNLIMITED: &str = "8192 MiB of the 16384 MiB of this machine";

    #[test]
    fn available_memory_and_swap_of_the_machine_are_free() {
        assert_eq!(Machine::new(&[]).free_memory(), UNLIMITED);
        let swap = "MemTotal: 1048576 kB\nMemAvailable: 1024 kB\nSwapFree: 2048 kB\n";
        assert_eq!(Machine::new(&[("/proc/meminfo", swap)]).free_memory(), "3 MiB of the 1024 MiB of this machine");
        assert_eq!([0, 1, 1 << 20, (1 << 20) + 1].map(mebibytes), ["0 MiB", "1 MiB", "1 MiB", "2 MiB"]);
        // Without /proc.
        assert_eq!(free_memory("/nonexistent").bytes, u64::MAX);
        check(u64::MAX, "/nonexistent").unwrap();
        // The machine on which the test runs.
        if cfg!(any(target_os = "linux", windows)) {
            let found = free_memory("");
            assert!(found.bytes > 0 && found.bytes < 1 << 60 && !found.limit.is_empty(), "{found:?}");
        }
    }

    #[test]
    fn limits_of_control_groups_of_version_2_are_met() {
        let files = [
            ("/proc/self/cgroup", "0::/scanner/recon\n"),
            ("/sys/fs/cgroup/scanner/recon/memory.max", "max\n"),
            ("/sys/fs/cgroup/scanner/recon/memory.current", "1073741824\n"),
            ("/sys/fs/cgroup/scanner/memory.max", "6442450944\n"),
            ("/sys/fs/cgroup/scanner/memory.current", "2147483648\n"),
            ("/sys/fs/cgroup/scanner/memory.stat", "anon 1\nfile 2\ninactive_file 1073741824\n"),
        ];
        let with = |more: &[(&'static str, &'static str)]| Machine::new(&[&files[..], more].concat()).free_memory();
        // The limit is that of the parent group. The file cache counts as free.
        assert_eq!(with(&[]), "5120 MiB of the 6144 MiB of control group /scanner (memory.max)");
        let recon = "/sys/fs/cgroup/scanner/recon/memory.max";
        assert_eq!(
            with(&[(recon, "1610612736\n")]),
            "512 MiB of the 1536 MiB of control group /scanner/recon (memory.max)"
        );
        // The group uses more than its limit.
        assert_eq!(with(&[(recon, "1048576\n")]), "0 MiB of the 1 MiB of control group /scanner/recon (memory.max)");
        // A limit above the machine's memory has no effect.
        assert_eq!(with(&[(recon, "1099511627776\n"), ("/sys/fs/cgroup/scanner/memory.max", "max\n")]), UNLIMITED);
        // Version 2 is mounted beside version 1.
        let beside = Machine::new(&[
            ("/proc/self/cgroup", "0::/scanner\n"),
            ("/sys/fs/cgroup/unified/scanner/memory.max", "1073741824\n"),
            ("/sys/fs/cgroup/unified/scanner/memory.current", "1048576\n"),
        ]);
        assert_eq!(beside.free_memory(), "1023 MiB of the 1024 MiB of control group /scanner (memory.max)");
        // A container with the path of the host, and its own group at the mount point.
        let container = Machine::new(&[
            ("/proc/self/cgroup", "0::/docker/0123\n"),
            ("/sys/fs/cgroup/memory.max", "1073741824\n"),
            ("/sys/fs/cgroup/memory.current", "0\n"),
        ]);
        assert_eq!(container.free_memory(), "1024 MiB of the 1024 MiB of control group / (memory.max)");
    }

    #[test]
    fn limits_of_control_groups_of_version_1_are_met() {
        let limit = "/sys/fs/cgroup/memory/slurm/job_7/memory.limit_in_bytes";
        let files = [
            ("/proc/self/cgroup", "5:cpu,cpuacct:/\n4:memory:/slurm/job_7\n0::/\n"),
            (limit, "6442450944\n"),
            ("/sys/fs/cgroup/memory/slurm/job_7/memory.usage_in_bytes", "4294967296\n"),
            ("/sys/fs/cgroup/memory/slurm/job_7/memory.stat", "inactive_file 1\ntotal_inactive_file 1073741824\n"),
            ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
            ("/sys/fs/cgroup/memory/memory.usage_in_bytes", "4294967296\n"),
        ];
        assert_eq!(
            Machine::new(&files).free_memory(),
            "3072 MiB of the 6144 MiB of control group /slurm/job_7 (memory.limit_in_bytes)"
        );
        let unlimited = Machine::new(&[&files[..], &[(limit, "9223372036854771712\n")]].concat());
        assert_eq!(unlimited.free_memory(), UNLIMITED);
    }

    #[test]
    fn more_bytes_than_free_are_an_error() {
        let machine = Machine::new(&[
            ("/proc/self/cgroup", "0::/scanner\n"),
            ("/sys/fs/cgroup/scanner/memory.max", "1048576\n"),
            ("/sys/fs/cgroup/scanner/memory.current", "0\n"),
        ]);
        check(1 << 20, machine.root()).unwrap();
        let error = check((1 << 20) + 1, machine.root()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OutOfHostMemory);
        let expected =
            "2 MiB are needed, and of the 1 MiB of control group /scanner (memory.max) 1 MiB are left: raise";
        assert!(error.message().starts_with(expected), "{error}");
    }
}
