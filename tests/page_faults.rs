//! The next plan reuses the memory of a deleted plan, so the system need not provide fresh pages each time. Alone in
//! its process, because any array of some MiB that a different test frees would change the memory that the allocator
//! keeps.

mod common;

use common::{say, slices, Random};
use recon::{Device, Geometry, Options, Plan};

/// Returns the page faults of this thread so far, for the C library whose allocator the library configures.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn faults() -> Option<i64> {
    // SAFETY: zeros are a valid rusage.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: getrusage writes the given structure.
    assert_eq!(unsafe { libc::getrusage(libc::RUSAGE_THREAD, &mut usage) }, 0);
    Some(usage.ru_minflt)
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn faults() -> Option<i64> {
    None
}

#[test]
fn plans_that_follow_one_another_take_no_fresh_pages() {
    const PLANS: i64 = 20;
    // 16 coils: samples and grids are some MiB each, so a plan has more than twice its largest array.
    let k = Random::fresh().trajectory::<f32>(2, 250_000);
    let k = slices(&k);
    let options = Options { device: Device::Cpu, threads: 1, ..Options::default() };
    let make = || drop(Plan::new(&Geometry::new(&[256, 256], &k).coils(16), &options).unwrap());
    make();
    make();
    let Some(before) = faults() else { return say("skipped: page faults of plans (not glibc)") };
    (0..PLANS).for_each(|_| make());
    let found = (faults().unwrap() - before) / PLANS;
    // 0 here; 2,286 if the allocator returns all memory each time.
    assert!(found < 200, "{found} page faults a plan");
}
