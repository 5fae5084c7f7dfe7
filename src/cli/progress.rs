//! Progress bars, shown on a terminal if work takes longer than a second, and the log, which is printed above them.

use crate::remaining_time::RemainingTime;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use std::collections::BTreeSet;
use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

static QUIET: AtomicBool = AtomicBool::new(false);

fn bars() -> &'static MultiProgress {
    static BARS: OnceLock<MultiProgress> = OnceLock::new();
    BARS.get_or_init(MultiProgress::new)
}

/// Turns bars off.
pub fn quiet() {
    QUIET.store(true, Ordering::Relaxed);
}

/// A progress bar; for a single step a spinner with the elapsed time.
pub struct ProgressIndicator {
    bar: ProgressBar,
    ended: Arc<AtomicBool>,
    started: Instant,
    remaining: Arc<Mutex<RemainingTime>>,
}

impl ProgressIndicator {
    /// Creates an indicator of `total` steps with the text `what`. It is not drawn in the first second.
    pub fn new(total: usize, what: &str) -> ProgressIndicator {
        let bar = ProgressBar::with_draw_target(Some(total as u64), ProgressDrawTarget::hidden());
        let (started, remaining) = (Instant::now(), Arc::new(Mutex::new(RemainingTime::default())));
        let template = match total {
            0 | 1 => "{spinner} {msg}, {time}",
            _ => "{msg} [{bar:16}] {percent} %, {time}",
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            let times = remaining.clone();
            let time = move |_: &ProgressState, out: &mut dyn std::fmt::Write| {
                let times = times.lock().unwrap_or_else(PoisonError::into_inner);
                // Text of a bar cannot fail to be written: it goes to memory.
                let _ = out.write_str(&times.text(total, started.elapsed()));
            };
            bar.set_style(style.progress_chars("=> ").with_key("time", time));
        }
        bar.set_message(what.to_owned());
        let ended = Arc::new(AtomicBool::new(false));
        if !QUIET.load(Ordering::Relaxed) && std::io::stderr().is_terminal() {
            let (bar, ended) = (bar.clone(), ended.clone());
            // The error is ignored: without the thread, the program runs without a progress bar.
            let _ = std::thread::Builder::new().name("progress".into()).spawn(move || {
                std::thread::sleep(Duration::from_secs(1));
                if !ended.load(Ordering::Relaxed) {
                    bars().add(bar.clone());
                    bar.enable_steady_tick(Duration::from_millis(250));
                }
            });
        }
        ProgressIndicator { bar, ended, started, remaining }
    }

    /// Sets the number of steps done.
    pub fn set(&self, done: usize) {
        self.remaining.lock().unwrap_or_else(PoisonError::into_inner).record(done, self.started.elapsed());
        self.bar.set_position(done as u64);
    }

    /// Sets the text.
    pub fn set_text(&self, what: String) {
        self.bar.set_message(what);
    }
}

impl Drop for ProgressIndicator {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        self.bar.finish_and_clear();
    }
}

/// The standard error stream, which hides the bars while it is written.
struct SuspendingStderr;

impl Write for SuspendingStderr {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        bars().suspend(|| std::io::stderr().write(bytes))
    }
    fn flush(&mut self) -> std::io::Result<()> {
        std::io::stderr().flush()
    }
}

/// Target of the log for comparisons.
pub const COMPARISON: &str = "recon::comparison";

/// Returns whether a warning is printed for the first time. Warnings of several plans or images that differ only in
/// numbers count as one warning, except in comparisons, where each warning is about a different image.
fn is_new(record: &log::Record) -> bool {
    static PRINTED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let mut text = record.args().to_string();
    if record.target() != COMPARISON {
        text.retain(|c| !c.is_ascii_digit());
    }
    PRINTED.lock().unwrap_or_else(PoisonError::into_inner).insert(text)
}

/// Starts the log. The level is that of `verbose`, or of the environment variable RUST_LOG; each warning is printed
/// once. If `is_quiet`, the log stays off.
pub fn start_log(verbose: u8, is_quiet: bool) {
    if is_quiet {
        quiet();
        return;
    }
    let level = match verbose {
        0 => "warn",
        1 => "info",
        2 => "debug",
        _ => "trace",
    };
    env_logger::Builder::from_env(env_logger::Env::default().default_filter_or(level))
        .format(|out, record| {
            let level = record.level().as_str().to_ascii_lowercase();
            match record.level() {
                log::Level::Warn if !is_new(record) => Ok(()),
                log::Level::Info => writeln!(out, "recon: {}", record.args()),
                _ => writeln!(out, "recon: {level}: {}", record.args()),
            }
        })
        .target(env_logger::Target::Pipe(Box::new(SuspendingStderr)))
        .init();
}
