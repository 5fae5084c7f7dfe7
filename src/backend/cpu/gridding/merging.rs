//! The sums of one spreading, which threads complete in any order and add in a fixed one.
//!
//! The sums of a tile's parts are added in pairs: first those of neighbouring parts, then those of neighbouring pairs,
//! and so on. The thread that completes the first sum of a pair leaves it here and continues with the next part in
//! a free buffer; the thread that completes the second adds them. In the same way, a tile's total is left here until
//! all neighbours that precede it are on the grid. So no thread waits for a slower one, unless all buffers are in use,
//! and the order of every sum depends only on the tiles and their parts.
//!
//! Few tiles are nearly all neighbours of one another, so that one thread at a time would add a tile to the grid.
//! Then all totals are left here, and afterwards the threads share the grid's rows: each adds the totals of all tiles
//! to its rows, in the order of the tiles.

use super::schedule::{Schedule, TilePart};
use crate::base::error::{try_reserve, Result};
use crate::base::memory::Aligned;
use num_complex::Complex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard};

/// The cells of a tile's buffer, for each array of a call.
pub type TileBuffer<T> = Aligned<Complex<T>>;

/// Sums that the threads of one spreading leave for each other, and the buffers for them.
pub struct MergeProgress<T> {
    /// For each tile, the number of neighbours that must still be added before it, and 1 until its total is complete.
    remaining: Vec<AtomicU32>,
    /// Whether a task panicked, so that some sums will never be complete.
    failed: AtomicBool,
    sums: Mutex<LeftSums<T>>,
    /// Notified when a buffer is free.
    freed: Condvar,
}

/// Sums and free buffers. The lists have capacity for all buffers of a spreading.
struct LeftSums<T> {
    left: Vec<(SumKey, TileBuffer<T>)>,
    /// Tiles whose totals are left and may be added to the grid.
    ready: Vec<usize>,
    free: Vec<TileBuffer<T>>,
    /// Number of threads that wait for a buffer. Without one, nothing is notified, since that calls the system.
    waiting: u32,
}

/// The reason why a sum is left.
#[derive(Clone, Copy, PartialEq)]
enum SumKey {
    /// The other sum of this pair is not complete.
    Pair(usize),
    /// Neighbours that precede this tile are not on the grid, or threads will share the grid's rows.
    Tile(usize),
}

impl<T> MergeProgress<T> {
    /// Creates the lists for a spreading to `tiles` tiles by at most `threads` threads, with these additional buffers.
    ///
    /// Their number must be at least [`PartOrder::most_left_sums`]. Otherwise all threads could wait for a buffer, with
    /// all parts complete that were begun.
    ///
    /// [`PartOrder::most_left_sums`]: super::schedule::PartOrder::most_left_sums
    pub fn new(tiles: usize, threads: usize, spare: impl ExactSizeIterator<Item = TileBuffer<T>>) -> Result<Self> {
        let what = "the order of tiles";
        let mut remaining = try_reserve(tiles, what)?;
        remaining.resize_with(tiles, AtomicU32::default);
        let buffers = threads + spare.len();
        let mut free = try_reserve(buffers, what)?;
        free.extend(spare);
        let sums = LeftSums { left: try_reserve(buffers, what)?, ready: try_reserve(buffers, what)?, free, waiting: 0 };
        Ok(MergeProgress { remaining, failed: AtomicBool::new(false), sums: Mutex::new(sums), freed: Condvar::new() })
    }

    /// Estimates the bytes of the lists without the buffers.
    pub fn bytes(tiles: usize, buffers: usize) -> usize {
        let buffer = size_of::<(SumKey, TileBuffer<T>)>() + size_of::<usize>() + size_of::<TileBuffer<T>>();
        tiles.saturating_mul(size_of::<AtomicU32>()).saturating_add(buffers.saturating_mul(buffer))
    }

    /// Prepares for a spreading.
    pub fn reset(&mut self, schedule: &Schedule) {
        for (remaining, tile) in self.remaining.iter_mut().zip(&schedule.tiles) {
            *remaining.get_mut() = tile.predecessors + 1;
        }
        *self.failed.get_mut() = false;
        let sums = self.sums.get_mut().unwrap_or_else(|e| e.into_inner());
        // Sums are still here if a task panicked.
        sums.free.extend(sums.left.drain(..).map(|(_, buffer)| buffer));
        sums.ready.clear();
        sums.waiting = 0;
    }

    fn lock(&self) -> MutexGuard<'_, LeftSums<T>> {
        self.sums.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Returns the guard of a task.
    pub fn begin(&self) -> TaskGuard<'_, T> {
        TaskGuard { progress: self, has_ended: false }
    }

    /// Adds the sum of a part to those of its siblings, with `add(left, right)`, which adds to the left. Returns
    /// whether `sum` is now the tile's total. Otherwise the sum has been left, and `sum` is empty.
    pub fn add_siblings(
        &self,
        schedule: &Schedule,
        part: &TilePart,
        sum: &mut TileBuffer<T>,
        add: impl Fn(&mut TileBuffer<T>, &TileBuffer<T>),
    ) -> bool {
        let tile = &schedule.tiles[part.tile];
        let (mut first_pair, mut index, mut count) = (tile.first_pair as usize, part.index, tile.parts as usize);
        // At every level, sums 2 i and 2 i + 1 are a pair. A last sum without a sibling is a sum of the next level.
        while count > 1 {
            if index ^ 1 < count {
                let Some(mut sibling) = self.exchange(SumKey::Pair(first_pair + index / 2), sum) else { return false };
                if index % 2 == 1 {
                    std::mem::swap(sum, &mut sibling);
                }
                add(sum, &sibling);
                self.free(sibling);
            }
            first_pair += count / 2;
            (index, count) = (index / 2, count.div_ceil(2));
        }
        true
    }

    /// Returns the other sum of a pair if it has been left; otherwise leaves this one.
    fn exchange(&self, pair: SumKey, sum: &mut TileBuffer<T>) -> Option<TileBuffer<T>> {
        let mut sums = self.lock();
        let sibling = sums.take(pair);
        if sibling.is_none() {
            sums.leave(pair, sum);
        }
        sibling
    }

    /// Adds the total of a tile, and all totals that may be added after it, with `merge(tile, total)`. If it must not
    /// be added yet, leaves it, and `total` is then empty.
    pub fn add_tile(
        &self,
        schedule: &Schedule,
        tile: usize,
        total: &mut TileBuffer<T>,
        merge: impl Fn(usize, &TileBuffer<T>),
    ) {
        let add = |tile: usize, total: &TileBuffer<T>| {
            merge(tile, total);
            schedule.successors(tile).for_each(|successor| self.complete(successor));
        };
        // If no predecessor remains, then no other thread knows of this tile.
        if self.remaining[tile].load(Ordering::Acquire) > 1 {
            self.lock().leave(SumKey::Tile(tile), total);
            self.complete(tile);
        } else {
            add(tile, total);
        }
        while let Some((tile, total)) = self.take_ready() {
            add(tile, &total);
            self.free(total);
        }
    }

    /// Leaves the total of a tile for [`MergeProgress::totals`].
    pub fn leave_total(&self, tile: usize, total: &mut TileBuffer<T>) {
        self.lock().leave(SumKey::Tile(tile), total);
    }

    /// Returns the totals of `tiles` tiles, which are all the sums that have been left. Their buffers are free when the
    /// result is dropped.
    pub fn totals(&self, tiles: usize) -> TileTotals<'_, T> {
        let mut sums = self.lock();
        assert_eq!(sums.left.len(), tiles);
        sums.left.sort_unstable_by_key(|(key, _)| match key {
            SumKey::Tile(tile) => *tile,
            SumKey::Pair(_) => unreachable!("both sums of a pair were completed"),
        });
        TileTotals { sums }
    }

    /// Records that one of the conditions of a tile is met: a predecessor has been added, or the total has been left.
    fn complete(&self, tile: usize) {
        if self.remaining[tile].fetch_sub(1, Ordering::AcqRel) == 1 {
            self.lock().ready.push(tile);
        }
    }

    /// Returns a total that may be added to the grid.
    fn take_ready(&self) -> Option<(usize, TileBuffer<T>)> {
        let mut sums = self.lock();
        let tile = sums.ready.pop()?;
        let total = sums.take(SumKey::Tile(tile));
        // After a failure, `replace` may have taken it.
        assert!(total.is_some() || self.failed.load(Ordering::Relaxed), "a total is left before its tile is ready");
        Some((tile, total?))
    }

    /// Makes a buffer available.
    fn free(&self, buffer: TileBuffer<T>) {
        let mut sums = self.lock();
        sums.free.push(buffer);
        let is_awaited = sums.waiting > 0;
        drop(sums);
        if is_awaited {
            self.freed.notify_one();
        }
    }

    /// Replaces an empty buffer, and waits for one if necessary.
    pub fn replace(&self, buffer: &mut TileBuffer<T>) {
        if !buffer.is_empty() {
            return;
        }
        let mut sums = self.lock();
        loop {
            // After a failure, no sum is needed any more.
            let failed = self.failed.load(Ordering::Relaxed);
            let unneeded = if failed { sums.left.pop().map(|(_, sum)| sum) } else { None };
            if let Some(free) = unneeded.or_else(|| sums.free.pop()) {
                *buffer = free;
                return;
            }
            sums.waiting += 1;
            sums = self.freed.wait(sums).unwrap_or_else(|e| e.into_inner());
            sums.waiting -= 1;
        }
    }
}

impl<T> LeftSums<T> {
    fn leave(&mut self, key: SumKey, sum: &mut TileBuffer<T>) {
        self.left.push((key, std::mem::replace(sum, Aligned::empty())));
    }

    fn take(&mut self, key: SumKey) -> Option<TileBuffer<T>> {
        let at = self.left.iter().position(|(other, _)| *other == key)?;
        Some(self.left.swap_remove(at).1)
    }
}

/// The totals of all tiles.
pub struct TileTotals<'a, T> {
    sums: MutexGuard<'a, LeftSums<T>>,
}

impl<T> TileTotals<'_, T> {
    /// Returns the total of a tile.
    pub fn of(&self, tile: usize) -> &TileBuffer<T> {
        &self.sums.left[tile].1
    }
}

impl<T> Drop for TileTotals<'_, T> {
    fn drop(&mut self) {
        let LeftSums { left, free, .. } = &mut *self.sums;
        free.extend(left.drain(..).map(|(_, total)| total));
    }
}

/// A task of a spreading. If it is dropped before the task has ended, no thread waits for its sums any more.
pub struct TaskGuard<'a, T> {
    progress: &'a MergeProgress<T>,
    has_ended: bool,
}

impl<T> TaskGuard<'_, T> {
    /// Records that the task has ended.
    pub fn end(mut self) {
        self.has_ended = true;
    }
}

impl<T> Drop for TaskGuard<'_, T> {
    fn drop(&mut self) {
        if !self.has_ended {
            // The lock is held so that no thread begins to wait in between.
            let _sums = self.progress.lock();
            self.progress.failed.store(true, Ordering::Relaxed);
            self.progress.freed.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::cpu::gridding::schedule::PartOrder;
    use crate::backend::cpu::gridding::tiling::Tiling;
    use crate::backend::cpu::simd::Level;
    use std::sync::atomic::AtomicUsize;

    /// A number whose sum depends on the order of additions.
    fn value(tile: usize, part: usize) -> f32 {
        ((tile * 31 + part * 17) % 97) as f32 * 1.1f32.powi(part as i32 % 40) + 0.1
    }

    /// Returns the sum of the parts `first..last` of a tile, in pairs of sums of powers of two.
    fn total(tile: usize, first: usize, last: usize) -> f32 {
        let half = (last - first).next_power_of_two() / 2;
        match last - first {
            1 => value(tile, first),
            _ => total(tile, first, first + half) + total(tile, first + half, last),
        }
    }

    fn buffers(count: usize) -> Vec<TileBuffer<f32>> {
        (0..count).map(|_| Aligned::zeros(1, "a test").unwrap()).collect()
    }

    fn progress(schedule: &Schedule, threads: usize, spare: usize) -> MergeProgress<f32> {
        let mut progress = MergeProgress::new(schedule.tiles.len(), threads, buffers(spare).into_iter()).unwrap();
        progress.reset(schedule);
        progress
    }

    /// Runs the parts of a schedule as a spreading does. `before(part)` is called before the sum of a part is complete.
    /// Returns the tiles in the order of merging, with their totals.
    fn run(
        schedule: &Schedule,
        progress: &MergeProgress<f32>,
        threads: usize,
        before: impl Fn(&TilePart) + Sync,
    ) -> Vec<(usize, f32)> {
        let (next, merged) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
        let work = || {
            let mut sum = buffers(1).pop().unwrap();
            while let Some(part) = schedule.parts.get(next.fetch_add(1, Ordering::Relaxed)) {
                let task = progress.begin();
                before(part);
                sum[0] = Complex::new(value(part.tile, part.index), 0.0);
                if progress.add_siblings(schedule, part, &mut sum, |left, right| left[0] += right[0]) {
                    let merge = |tile, total: &TileBuffer<f32>| merged.lock().unwrap().push((tile, total[0].re));
                    progress.add_tile(schedule, part.tile, &mut sum, merge);
                }
                progress.replace(&mut sum);
                task.end();
            }
        };
        std::thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
        merged.into_inner().unwrap()
    }

    /// A schedule, and the smallest number of additional buffers with which threads never wait for ever.
    struct TestSchedule {
        tiling: Tiling,
        schedule: Schedule,
        least_spare: usize,
    }

    /// Schedules of one, few and many tiles, with dense and empty ones, in both orders. The samples of all tiles
    /// alternate, or those of a tile follow one another.
    fn schedules() -> Vec<TestSchedule> {
        let mut schedules = Vec::new();
        let mut add = |grid: &[usize], points: &dyn Fn(usize) -> usize| {
            let tiling = Tiling::new::<f32>(Level::all()[0], grid, 4);
            let tiles = tiling.counts().iter().product();
            let mut starts = vec![0];
            (0..tiles).for_each(|tile| starts.push(starts[tile] + points(tile)));
            let samples = starts[tiles];
            let mut alternating: Vec<u32> = (0..samples as u32).collect();
            starts.windows(2).for_each(|ends| {
                let points = &mut alternating[ends[0]..ends[1]];
                let len = points.len();
                points.iter_mut().enumerate().for_each(|(i, m)| *m = (i * samples / len) as u32);
            });
            let consecutive: Vec<u32> = (0..samples as u32).collect();
            for (order, sorted) in [
                (PartOrder::ByTile, &alternating),
                (PartOrder::BySample, &alternating),
                (PartOrder::BySample, &consecutive),
            ] {
                let schedule = Schedule::new(&tiling, &starts, sorted, order).unwrap();
                schedules.push(TestSchedule { tiling, schedule, least_spare: order.most_left_sums(&tiling, samples) });
            }
        };
        add(&[40, 40], &|_| 100);
        add(&[40, 40], &|_| 3 << 20);
        add(&[40, 40], &|_| 77_777);
        add(&[150, 100], &|tile| if tile == 3 { 0 } else { 77_777 });
        add(&[150, 100], &|tile| if tile == 2 { 3 << 20 } else { 10 });
        add(&[400, 300], &|tile| 100 * (tile % 3));
        add(&[400, 300], &|tile| if tile % 7 == 3 { 100_000 } else { 1000 * (tile % 2) });
        add(&[128, 64, 64], &|tile| if tile == 5 { 1 << 20 } else { 5000 });
        schedules
    }

    /// Neighbours know each other, and tiles come in the order of their colours.
    #[test]
    fn neighbours_are_predecessors_or_successors() {
        for TestSchedule { tiling, schedule, .. } in schedules() {
            let tiles = schedule.tiles.len();
            assert_eq!(tiles, tiling.counts().iter().product::<usize>());
            let mut predecessors = vec![0; tiles];
            for tile in 0..tiles {
                for successor in schedule.successors(tile) {
                    assert!(successor > tile);
                    predecessors[successor] += 1;
                }
            }
            assert!(schedule.tiles.iter().map(|tile| tile.predecessors).eq(predecessors));
            let parts = schedule.tiles.iter().map(|tile| tile.parts as usize);
            assert_eq!(schedule.parts.len(), parts.sum::<usize>());
        }
    }

    /// Totals have the same bits for any number of threads and any speed of them, with the smallest number of buffers
    /// that cannot block and with more; no tile is merged before its predecessors.
    #[test]
    fn sums_are_in_the_fixed_order() {
        for (i, TestSchedule { schedule, least_spare, .. }) in schedules().iter().enumerate() {
            let least = *least_spare;
            for (threads, spare) in [(1, least), (2, least), (7, least), (3, least + 3), (8, least + 20)] {
                let mut progress = progress(schedule, threads, spare);
                for run_index in 0..3 {
                    // Some parts take much longer than others.
                    let slow = |part: &TilePart| {
                        if (part.tile * 13 + part.index * 7 + run_index) % 11 == 0 {
                            std::thread::sleep(std::time::Duration::from_micros(300));
                        }
                    };
                    let merged = run(schedule, &progress, threads, slow);
                    let mut order = vec![usize::MAX; schedule.tiles.len()];
                    merged.iter().enumerate().for_each(|(place, &(tile, _))| order[tile] = place);
                    for &(tile, sum) in &merged {
                        let expected = total(tile, 0, schedule.tiles[tile].parts as usize);
                        assert_eq!(sum.to_bits(), expected.to_bits(), "schedule {i}, {threads} threads, tile {tile}");
                        assert!(schedule.successors(tile).all(|successor| order[successor] > order[tile]));
                    }
                    assert_eq!(merged.len(), schedule.tiles.len(), "schedule {i}, {threads} threads");
                    assert_eq!(progress.lock().free.len(), spare);
                    progress.reset(schedule);
                }
            }
        }
    }

    /// If a task panics, threads that wait for buffers go on, and the next spreading has all buffers but those lost.
    #[test]
    fn a_panic_blocks_no_thread() {
        let TestSchedule { schedule, least_spare: least, .. } = &schedules()[3];
        let least = *least;
        assert_eq!(schedule.tiles.len(), 1);
        let mut progress = progress(schedule, 4, least);
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            run(schedule, &progress, 4, |part| {
                // The others leave their sums and wait for buffers.
                if part.index == 0 {
                    std::thread::sleep(std::time::Duration::from_millis(100));
                    panic!("a test");
                }
            })
        }));
        assert!(result.is_err());
        progress.reset(schedule);
        assert_eq!(progress.lock().free.len(), least);
        let merged = run(schedule, &progress, 4, |_| ());
        assert_eq!(merged.len(), 1);
        assert_eq!(merged[0].1.to_bits(), total(0, 0, schedule.parts.len()).to_bits());
    }
}
