//! The estimate of the remaining time beside a progress bar.

use std::time::Duration;

/// Shortest measured time on which an estimate is based.
const SHORTEST: Duration = Duration::from_secs(1);
/// Smallest number of measured steps on which an estimate is based.
const FEWEST_STEPS: usize = 2;

/// The times of completed steps, since the start of the work.
///
/// The time until the first completed step is not used: it contains the preparation.
#[derive(Debug, Clone, Copy, Default)]
pub struct RemainingTime {
    /// The number of completed steps, and the time, when the first step was complete.
    first: Option<(usize, Duration)>,
    /// The same for the last completed step.
    last: Option<(usize, Duration)>,
}

impl RemainingTime {
    /// Records that `done` steps are complete `now`.
    pub fn record(&mut self, done: usize, now: Duration) {
        if done == 0 || self.last.is_some_and(|(steps, _)| steps == done) {
            return;
        }
        self.first.get_or_insert((done, now));
        self.last = Some((done, now));
    }

    /// Estimates the remaining time of `total` steps. `None` if too few steps were measured, or if the estimate has
    /// run out.
    pub fn estimate(&self, total: usize, now: Duration) -> Option<Duration> {
        let ((first, start), (last, end)) = (self.first?, self.last?);
        let (steps, time) = (last.checked_sub(first)?, end.saturating_sub(start));
        if steps < FEWEST_STEPS || time < SHORTEST {
            return None;
        }
        let step = time.as_secs_f64() / steps as f64;
        // A step that takes longer than the mean counts as complete.
        let running = now.saturating_sub(end).as_secs_f64().min(step);
        let seconds = step * total.saturating_sub(last) as f64 - running;
        Duration::try_from_secs_f64(seconds).ok().filter(|left| !left.is_zero())
    }

    /// Returns the text beside the bar: the estimate, or the time since the start if there is no estimate.
    pub fn text(&self, total: usize, now: Duration) -> String {
        match self.estimate(total, now) {
            Some(left) => format!("about {} left", rounded(left)),
            None => format!("{} so far", rounded(now)),
        }
    }
}

/// Returns a duration in s, min or h, rounded up: never 0.
fn rounded(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    let [s, min, h] = [1.0, 60.0, 3600.0].map(|unit| (seconds / unit).ceil().max(1.0));
    match seconds {
        ..=120.0 => format!("{s} s"),
        ..=7200.0 => format!("{min} min"),
        _ => format!("{h} h"),
    }
}
