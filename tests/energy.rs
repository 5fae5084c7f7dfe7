//! Energy that the examples print: counters of processors in a folder like Linux', and the report without counters.

#[path = "../examples/common/energy.rs"]
mod energy;

use energy::Meter;
use std::path::{Path, PathBuf};

/// Creates a folder like /sys/class/powercap: two packages, one with its cores and memory, and one of a different kind.
fn counters(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("powercap-{name}-{}", std::process::id()));
    let zones = [
        ("intel-rapl:0", "package-0"),
        ("intel-rapl:0:0", "core"),
        ("intel-rapl:0:1", "dram"),
        ("intel-rapl:1", "package-1"),
        ("intel-rapl:2", "psys"),
    ];
    for (zone, name) in zones {
        std::fs::create_dir_all(folder.join(zone)).unwrap();
        std::fs::write(folder.join(zone).join("name"), format!("{name}\n")).unwrap();
        std::fs::write(folder.join(zone).join("max_energy_range_uj"), "262143328850\n").unwrap();
        set(&folder, zone, 262_143_000_000);
    }
    folder
}

fn set(folder: &Path, zone: &str, microjoules: u64) {
    std::fs::write(folder.join(zone).join("energy_uj"), format!("{microjoules}\n")).unwrap();
}

#[test]
fn joules_are_those_of_packages_and_memory() {
    let folder = counters("counts");
    let meter = Meter::with_counters_in(&folder, None);
    let measured = meter.measure(0.0, || -> Result<(), ()> {
        set(&folder, "intel-rapl:0", 262_143_250_000);
        // The counter wrapped.
        set(&folder, "intel-rapl:1", 671_150);
        set(&folder, "intel-rapl:2", 1);
        Ok(())
    });
    let measured = measured.unwrap();
    assert!(measured.times == 1 && measured.seconds >= 0.0);
    let told: Vec<(&str, f64)> = measured.joules.iter().map(|(n, j)| (&n[..], *j.as_ref().unwrap())).collect();
    assert_eq!(told.iter().map(|t| t.0).collect::<Vec<_>>(), ["package-0 (RAPL)", "dram (RAPL)", "package-1 (RAPL)"]);
    for ((name, joules), expected) in told.into_iter().zip([0.25, 0.0, 1.0]) {
        assert!((joules - expected).abs() < 1e-6, "{name}: {joules} J, not {expected}");
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn what_is_not_told_says_why() {
    let why = |meter: &Meter| {
        let measured = meter.measure(0.0, || Ok::<(), ()>(())).unwrap();
        let all: Vec<_> = measured.joules.into_iter().map(|(name, joules)| (name, joules.unwrap_err())).collect();
        assert_eq!(all.len(), 1, "{all:?}");
        all[0].clone()
    };
    let none = Path::new("no-such-folder");
    let (name, text) = why(&Meter::with_counters_in(none, None));
    assert!(name.contains("processors") && text.contains("no-such-folder"), "{name}: {text}");
    let empty = Path::new(env!("CARGO_TARGET_TMPDIR"));
    assert!(why(&Meter::with_counters_in(empty, None)).1.contains("no counters of packages"));
    let folder = counters("unread");
    std::fs::write(folder.join("intel-rapl:0/energy_uj"), "many\n").unwrap();
    assert!(why(&Meter::with_counters_in(&folder, None)).1.contains("'many' is no number"));
    std::fs::remove_dir_all(&folder).unwrap();
}

/// Checks a GPU index that does not exist. Without a driver, that is the cause.
#[test]
fn a_gpu_that_is_not_there_says_why() {
    let meter = Meter::with_counters_in(Path::new("no-such-folder"), Some(1000));
    let measured = meter.measure(0.0, || Ok::<(), ()>(())).unwrap();
    let (name, joules) = &measured.joules[0];
    let text = joules.as_ref().unwrap_err();
    assert!(name.contains("NVML") && (text.contains("NVML") || text.contains("1000")), "{name}: {text}");
    meter.print("nothing", || Ok::<(), ()>(())).unwrap();
    assert!(Meter::new(None).measure(0.0, || Err::<(), _>("work fails")).is_err_and(|e| e == "work fails"));
}
