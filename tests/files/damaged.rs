//! Damaged copies of small files, read in this process: no panic, no wait, and no allocation that is much larger than
//! the file.
//!
//! RECON_TEST_DAMAGED is the number of copies of each file. data/ has files of h5py (HDF5's library), written by
//! tests/files/write_data.py: superblocks of all versions, with and without checksums, chunks and filters.

use recon_files::ismrmrd::{read_dataset, read_images, GROUP};
use std::alloc::{GlobalAlloc, Layout, System};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Number of copies of each file if RECON_TEST_DAMAGED is not set.
const COPIES: usize = 500;
/// Largest allocation that a file of a few kilobytes may cause, in bytes: a cache, or a chunk at the highest ratio of
/// compression.
const LARGEST_ALLOCATION: usize = 64 << 20;
/// Longest time for one copy.
const LONGEST: Duration = Duration::from_secs(5);

/// The system's allocator, which remembers the largest request.
struct Watched;

static LARGEST: AtomicUsize = AtomicUsize::new(0);

// SAFETY: all requests are passed to the system's allocator.
unsafe impl GlobalAlloc for Watched {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LARGEST.fetch_max(layout.size(), Relaxed);
        // SAFETY: the caller's promises are those of this function.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, address: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(address, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Watched = Watched;

/// Random numbers (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % n
    }
}

/// Changes some bytes, or cuts the file.
fn damage(bytes: &mut Vec<u8>, random: &mut Random) {
    if random.below(8) == 0 {
        bytes.truncate(random.below(bytes.len()));
        return;
    }
    for _ in 0..1 + random.below(4) {
        let at = random.below(bytes.len());
        match random.below(4) {
            0 => bytes[at] = random.below(256) as u8,
            1 => bytes[at] ^= 1 << random.below(8),
            2 => bytes[at] = [0, 0xff, 0x7f, 0x80][random.below(4)],
            // A number of 8 bytes: an address or a size.
            _ => {
                let value = [u64::MAX, 1 << 40, 0, random.below(20_000) as u64][random.below(4)].to_le_bytes();
                let end = (at + 8).min(bytes.len());
                bytes[at..end].copy_from_slice(&value[..end - at]);
            }
        }
    }
}

/// Files to damage: those of data/, and those of this package's writers.
fn files(dir: &Path) -> Vec<PathBuf> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/files/data");
    let entries = std::fs::read_dir(&data).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = entries.filter(|path| path.extension().is_some_and(|e| e == "h5")).collect();
    files.sort();
    assert!(files.len() >= 6, "{files:?}");
    let mut own = dir.to_owned();
    own.push("own.h5");
    let scan = read_dataset(&data.join("scan_plain.h5"), GROUP, Default::default()).unwrap();
    recon::atomic_file::write_atomically(|out| {
        recon_files::write_dataset(out, &own, &scan, recon_files::TrajectoryStorage::Stored)
    })
    .unwrap();
    files.push(own);
    files
}

#[test]
fn damaged_copies_are_errors() {
    let copies = std::env::var("RECON_TEST_DAMAGED").map_or(COPIES, |n| n.parse().expect("a number"));
    let since_1970 = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let seed = std::env::var("RECON_TEST_SEED").map_or(since_1970.as_nanos() as u64 | 1, |n| n.parse().unwrap());
    println!("seed {seed}");
    let mut random = Random(seed);
    let dir = std::env::temp_dir().join(format!("recon-damaged-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let bad = dir.join("bad.h5");
    for file in files(&dir) {
        let good = std::fs::read(&file).unwrap();
        let (mut errors, mut longest) = (0, Duration::ZERO);
        LARGEST.store(0, Relaxed);
        for number in 0..copies {
            let mut bytes = good.clone();
            damage(&mut bytes, &mut random);
            std::fs::write(&bad, &bytes).unwrap();
            let start = Instant::now();
            let read = std::panic::catch_unwind(|| {
                let results = [read_dataset(&bad, GROUP, Default::default()).err(), read_images(&bad, None).err()];
                results.into_iter().flatten().map(|e| e.to_string()).collect::<Vec<_>>()
            });
            let time = start.elapsed();
            let what = format!("{} copy {number}, seed {seed}", file.display());
            let keep = || std::fs::copy(&bad, std::env::temp_dir().join("recon-damaged.h5")).unwrap();
            let Ok(messages) = read else {
                keep();
                panic!("{what}: a panic; the copy is recon-damaged.h5 in the folder of temporary files");
            };
            for message in &messages {
                assert!(message.contains("bad.h5: ") && !message.contains('\n'), "{what}: {message}");
            }
            if time > LONGEST || LARGEST.load(Relaxed) > LARGEST_ALLOCATION {
                keep();
                panic!("{what}: {time:?} and an allocation of {} bytes: {messages:?}", LARGEST.load(Relaxed));
            }
            errors += usize::from(messages.len() == 2);
            longest = longest.max(time);
        }
        let (name, largest) = (file.file_name().unwrap().display(), LARGEST.load(Relaxed));
        println!("{name}: {errors} of {copies} copies are errors; at most {longest:?} and {largest} bytes at once");
        assert!(copies < 100 || errors > copies / 20, "{name}: only {errors} of {copies} copies are errors");
    }
    std::fs::remove_dir_all(dir).unwrap();
}
