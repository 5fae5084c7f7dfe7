//! The progress bar: its estimate of the remaining time, and its text on a terminal.

use crate::{with_lock, TempDir};
use std::process::{Command, Stdio};
use std::time::Duration;

#[path = "../../src/cli/remaining_time.rs"]
mod remaining_time;

use remaining_time::RemainingTime;

fn seconds(x: f64) -> Duration {
    Duration::from_secs_f64(x)
}

/// Steps of 2 s after a preparation of 100 s.
#[test]
fn estimates_follow_the_steps() {
    let mut times = RemainingTime::default();
    assert_eq!(times.text(12, seconds(0.1)), "1 s so far");
    times.record(0, seconds(50.0));
    for done in 1..=2 {
        times.record(done, seconds(98.0 + 2.0 * done as f64));
        assert_eq!(times.estimate(12, seconds(110.0)), None);
    }
    times.record(3, seconds(104.0));
    assert_eq!(times.text(12, seconds(104.0)), "about 18 s left");
    assert_eq!(times.text(12, seconds(105.0)), "about 17 s left");
    // A step that takes long does not use up the time of the next steps.
    assert_eq!(times.text(12, seconds(150.0)), "about 16 s left");
    assert_eq!(times.text(1000, seconds(104.0)), "about 34 min left");
    assert_eq!(times.text(10_000, seconds(104.0)), "about 6 h left");
    // The last step takes longer than expected, or the work after it.
    times.record(11, seconds(120.0));
    assert_eq!(times.text(12, seconds(120.0)), "about 2 s left");
    assert_eq!(times.text(12, seconds(121.9)), "about 1 s left");
    assert_eq!(times.text(12, seconds(123.0)), "3 min so far");
    times.record(12, seconds(124.0));
    assert_eq!(times.estimate(12, seconds(124.0)), None);
    // Fast steps: too little time was measured.
    let mut times = RemainingTime::default();
    (1..=50).for_each(|done| times.record(done, seconds(0.01 * done as f64)));
    assert_eq!(times.estimate(1000, seconds(0.5)), None);
}

/// Reads the standard error of a command from a terminal for some seconds, interrupts the command, and prints what the
/// terminal received.
const TERMINAL: &str = r#"
import os, pty, select, signal, subprocess, sys, time
seconds, command = float(sys.argv[1]), sys.argv[2:]
ours, theirs = pty.openpty()
import fcntl, struct, termios
fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
# Shells start programs in the background with Ctrl-C ignored, and the program leaves it so.
signal.signal(signal.SIGINT, signal.default_int_handler)
child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=theirs)
os.close(theirs)
end, text = time.time() + seconds, b""
def read(wait):
    global text
    # Asked first: a program that ends meanwhile has written its last words, which the next call reads.
    has_ended = child.poll() is not None
    if not select.select([ours], [], [], wait)[0]:
        return not has_ended
    try:
        text += os.read(ours, 65536)
        return True
    except OSError:
        return False
while time.time() < end and read(0.1):
    pass
child.send_signal(signal.SIGINT)
while read(0.1):
    pass
child.wait()
sys.stdout.write(text.decode())
"#;

/// Returns what a terminal receives from the program in `seconds`; `None` if there is no Python.
fn on_terminal(dir: &TempDir, seconds: f64, line: &str) -> Option<String> {
    let mut python = Command::new("python3");
    python.args(["-c", TERMINAL, &seconds.to_string(), env!("CARGO_BIN_EXE_recon")]);
    python.args(line.split_whitespace()).current_dir(&dir.0).env_remove("RUST_LOG").env("TERM", "xterm");
    let child = with_lock(|| python.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn());
    let Ok(child) = child else {
        crate::common::say("skipped: the progress bar on a terminal, because there is no python3 here");
        return None;
    };
    let out = child.wait_with_output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    Some(String::from_utf8(out.stdout).unwrap())
}

/// Work that would take minutes: one image of many iterations, and many images.
#[test]
fn bar_on_a_terminal() {
    let dir = TempDir::new();
    dir.ok("simulate --matrix 128,128 --trajectory golden-angle --shots 400 --samples 256 --coils 4 -o scan.h5");
    let one = "cg scan.h5 --iterations 1000000 --threads 1 -o one.h5";
    let many = "cg scan.h5 --iterations 1000 --frame-shots 34 --frame-step 1 --threads 1 -o many.h5";
    for (line, title) in [(one, "conjugate gradients ["), (many, "conjugate gradients: image 1 of 367 [")] {
        let Some(text) = on_terminal(&dir, 6.0, line) else { return };
        assert!(text.contains(title) && text.contains(" %, "), "{text:?}");
        assert!(text.contains(" s so far") && text.contains("about "), "{text:?}");
        assert!(!text.contains(" 0 s") && !text.contains(" 0s"), "{text:?}");
        // The bar is on one line.
        let bar = text.split("\r\nrecon: error: interrupted").next().unwrap();
        assert!(bar.len() < text.len() && !bar.contains('\n'), "{text:?}");
        let quiet = on_terminal(&dir, 2.5, &format!("{line} --quiet")).unwrap();
        assert_eq!(quiet.trim(), "recon: error: interrupted");
    }
    assert_eq!(dir.names(), ["scan.h5"]);
    // Not a terminal: no bar.
    let out = dir.run("cg scan.h5 --iterations 150 --threads 1 -o image.h5");
    assert!(out.status == Some(0) && out.stderr.is_empty(), "{out:?}");
}
