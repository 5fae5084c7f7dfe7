//! Frames of a series of shots: sliding windows, whose images share one plan that is given each frame's trajectory.

use crate::io::{Scan, ScanIndex};
use crate::options::InputArgs;
use crate::run::input::{self, name};
use recon::bail;
use recon::Result;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Range;

/// Shots of a frame, and from one frame's first shot to the next one's.
#[derive(Clone, Copy)]
pub struct Frames {
    shots: usize,
    step: usize,
}

/// Reads the scans that the options select. Returns them, the calibration data of the file, and the frames that the
/// scans are cut into, if any.
pub fn read(args: &InputArgs) -> Result<(Vec<Scan>, Vec<Scan>, Option<Frames>)> {
    let frames = Frames::of(args)?;
    let (scans, calibration) = input::read(args)?;
    if let Some(frames) = frames {
        frames.check(&scans)?;
    }
    Ok((scans, calibration, frames))
}

impl Frames {
    /// The frames that the options name, if any.
    fn of(args: &InputArgs) -> Result<Option<Frames>> {
        let Some(shots) = args.frame_shots else { return Ok(None) };
        let step = args.frame_step.unwrap_or(shots);
        for (option, n) in [("--frame-shots", shots), ("--frame-step", step)] {
            if n == 0 {
                bail!(InvalidArgument, "{option} is 0: give 1 shot or more");
            }
        }
        Ok(Some(Frames { shots, step }))
    }

    /// Refuses scans whose shots are no series that can be cut into frames.
    fn check(&self, scans: &[Scan]) -> Result<()> {
        for scan in scans {
            let shots = scan.samples_per_shot.len();
            if self.shots > shots {
                bail!(
                    InvalidArgument,
                    "{}: --frame-shots is {}, but there are {shots} shots: give {shots} at most",
                    name(scan),
                    self.shots
                );
            }
            // Images of frames are numbered as repetitions.
            let series = |s: &Scan| ScanIndex { repetition: 0, ..s.index };
            let alike = |other: &Scan| series(other) == series(scan);
            let repetitions = scans.iter().filter(|other| alike(other)).count();
            if repetitions > 1 {
                bail!(
                    InvalidArgument,
                    "{}: --frame-shots makes frames of one series of shots, but the file has {repetitions} \
                     repetitions, which are frames already: choose one by --repetition, or leave out --frame-shots",
                    name(scan)
                );
            }
            if self.count(scan) > usize::from(u16::MAX) + 1 {
                bail!(
                    InvalidArgument,
                    "{}: {} frames, but a file numbers 65536 at most: give a larger --frame-step",
                    name(scan),
                    self.count(scan)
                );
            }
            self.check_lines(scan)?;
            if let Some(frame) = (0..self.count(scan)).find(|&i| on_one_line(scan, self.range(i))) {
                bail!(
                    InvalidArgument,
                    "{}: the samples of frame {frame} lie on one line of k-space, which makes no image: give more than \
                     {} to --frame-shots",
                    name(scan),
                    self.shots
                );
            }
            let left = shots - self.range(self.count(scan) - 1).end;
            log::info!(
                "{}: {} frames of {} of {shots} shots, the last {left} shots are in none",
                name(scan),
                self.count(scan),
                self.shots
            );
        }
        Ok(())
    }

    /// Refuses frames that lack lines or partitions: where an axis is constant along each shot, as in Cartesian scans
    /// and stacks, each frame needs all of its values.
    fn check_lines(&self, scan: &Scan) -> Result<()> {
        for (axis, k) in scan.coordinates.iter().enumerate() {
            let shots: Vec<&[f32]> = shots(scan, k).collect();
            let constant = |shot: &&[f32]| shot.len() > 1 && shot.iter().all(|&value| value == shot[0]);
            if !shots.iter().all(constant) {
                continue;
            }
            let different = |range: Range<usize>| -> usize {
                shots[range].iter().map(|shot| shot[0].to_bits()).collect::<BTreeSet<_>>().len()
            };
            let all = different(0..shots.len());
            for frame in 0..self.count(scan) {
                let some = different(self.range(frame));
                if some < all {
                    bail!(
                        InvalidArgument,
                        "{}: k{} is constant along each shot (a Cartesian scan or a stack), and the {} shots of frame \
                         {frame} have {some} of its {all} values: a frame needs all of them, so give more shots to \
                         --frame-shots, or leave it out",
                        name(scan),
                        ['x', 'y', 'z'][axis],
                        self.shots
                    );
                }
            }
        }
        Ok(())
    }

    /// The frames of a scan.
    fn count(&self, scan: &Scan) -> usize {
        (scan.samples_per_shot.len() - self.shots) / self.step + 1
    }

    /// The shots of a frame.
    fn range(&self, frame: usize) -> Range<usize> {
        frame * self.step..frame * self.step + self.shots
    }
}

/// Whether the samples of these shots are within half a Cartesian sampling distance of one line.
fn on_one_line(scan: &Scan, range: Range<usize>) -> bool {
    let before = |shot: usize| -> usize { scan.samples_per_shot[..shot].iter().sum() };
    let samples = before(range.start)..before(range.end);
    let from_first = |m: usize| -> [f64; 3] {
        let along = |axis: usize| {
            let k = scan.coordinates.get(axis)?;
            Some((f64::from(k[m]) - f64::from(k[samples.start])) * scan.encoded_matrix[axis] as f64)
        };
        std::array::from_fn(|axis| along(axis).unwrap_or(0.0))
    };
    let dot = |a: [f64; 3], b: [f64; 3]| a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
    let longer = |a: [f64; 3], b: [f64; 3]| if dot(b, b) > dot(a, a) { b } else { a };
    let line = samples.clone().map(from_first).fold([0.0; 3], longer);
    let square = dot(line, line);
    let close = |p: [f64; 3]| dot(p, p) - dot(p, line).powi(2) / square < 0.25;
    square < 0.25 || samples.clone().map(from_first).all(close)
}

/// The coordinates of each shot along an axis.
fn shots<'a>(scan: &'a Scan, mut k: &'a [f32]) -> impl Iterator<Item = &'a [f32]> {
    scan.samples_per_shot.iter().map(move |&count| {
        let (shot, rest) = k.split_at(count);
        k = rest;
        shot
    })
}

/// How many images there are of a scan.
pub fn count(frames: Option<Frames>, scan: &Scan) -> usize {
    frames.map_or(1, |frames| frames.count(scan))
}

/// The frames of a scan, in their order: the scan itself where there are none. They are numbered as repetitions.
pub fn each(frames: Option<Frames>, scan: &Scan) -> impl Iterator<Item = Cow<'_, Scan>> {
    (0..count(frames, scan)).map(move |i| match frames {
        None => Cow::Borrowed(scan),
        Some(frames) => {
            let mut frame = scan.shots(frames.range(i));
            // Not truncated: checked above.
            frame.index.repetition = i as u16;
            Cow::Owned(frame)
        }
    })
}
