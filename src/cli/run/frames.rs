//! Frames of a series of shots: sliding windows. Their images share one plan, which gets the trajectory of each frame.

use crate::options::InputArgs;
use crate::run::input::scan_name;
use recon::bail;
use recon::Result;
use recon_files::{Scan, ScanIndex};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Range;

/// The number of shots of a frame, and of shots from the start of a frame to the start of the next.
#[derive(Clone, Copy)]
pub struct Frames {
    shots: usize,
    step: usize,
}

impl Frames {
    /// Returns the frames that the options select; `None` without --frame-shots.
    ///
    /// # Errors
    /// `InvalidArgument` if the shots of a scan cannot be divided into such frames.
    pub fn new(args: &InputArgs, scans: &[Scan]) -> Result<Option<Frames>> {
        let Some(shots) = args.frame_shots else { return Ok(None) };
        let frames = Frames { shots, step: args.frame_step.unwrap_or(shots) };
        for scan in scans {
            let name = scan_name(scan);
            frames.check(scan, scans).map_err(|e| e.within(&name))?;
            let (count, total) = (frames.count(scan), scan.samples_per_shot.len());
            let unused = total - frames.range(count - 1).end;
            log::info!("{name}: {count} frames of {shots} of {total} shots; the last {unused} shots are not used");
        }
        Ok(Some(frames))
    }

    fn check(&self, scan: &Scan, scans: &[Scan]) -> Result<()> {
        let shots = scan.samples_per_shot.len();
        if self.shots > shots {
            bail!(
                InvalidArgument,
                "--frame-shots is {}, but there are {shots} shots: give at most {shots}",
                self.shots
            );
        }
        // Images of frames are numbered as repetitions.
        let series = |s: &Scan| ScanIndex { repetition: 0, ..s.index };
        let repetitions = scans.iter().filter(|other| series(other) == series(scan)).count();
        if repetitions > 1 {
            bail!(
                InvalidArgument,
                "--frame-shots divides one series of shots into frames, but the file already has {repetitions} \
                 repetitions: select one by --repetition, or leave out --frame-shots"
            );
        }
        let count = self.count(scan);
        if count > usize::from(u16::MAX) + 1 {
            bail!(InvalidArgument, "{count} frames, but a file numbers at most 65536: give a larger --frame-step");
        }
        self.check_lines(scan)?;
        if let Some(frame) = (0..count).find(|&i| is_one_line(scan, self.range(i))) {
            bail!(
                InvalidArgument,
                "the samples of frame {frame} lie on one line of k-space, which does not determine an image: give more \
                 than {} to --frame-shots",
                self.shots
            );
        }
        Ok(())
    }

    /// Checks that no frame lacks lines or partitions. If an axis is constant along each shot, as in Cartesian scans
    /// and stacks, each frame needs all of its values.
    fn check_lines(&self, scan: &Scan) -> Result<()> {
        for (axis, k) in scan.coordinates.iter().enumerate() {
            let shots: Vec<&[f32]> = split_into_shots(scan, k).collect();
            let is_constant = |shot: &&[f32]| shot.len() > 1 && shot.iter().all(|&value| value == shot[0]);
            if !shots.iter().all(is_constant) {
                continue;
            }
            let count_values = |range: Range<usize>| -> usize {
                shots[range].iter().map(|shot| shot[0].to_bits()).collect::<BTreeSet<_>>().len()
            };
            let total = count_values(0..shots.len());
            for frame in 0..self.count(scan) {
                let values = count_values(self.range(frame));
                if values < total {
                    bail!(
                        InvalidArgument,
                        "k{} is constant along each shot (a Cartesian scan or a stack), and the {} shots of frame \
                         {frame} have {values} of its {total} values: a frame needs all of them, so give more shots to \
                         --frame-shots, or leave it out",
                        ['x', 'y', 'z'][axis],
                        self.shots
                    );
                }
            }
        }
        Ok(())
    }

    /// Returns the number of frames of a scan.
    pub fn count(&self, scan: &Scan) -> usize {
        (scan.samples_per_shot.len() - self.shots) / self.step + 1
    }

    /// Returns the shots of a frame.
    fn range(&self, frame: usize) -> Range<usize> {
        frame * self.step..frame * self.step + self.shots
    }
}

/// Returns whether the samples of these shots are within half a Cartesian sampling distance of one line.
fn is_one_line(scan: &Scan, range: Range<usize>) -> bool {
    let first_sample = |shot: usize| -> usize { scan.samples_per_shot[..shot].iter().sum() };
    let samples = first_sample(range.start)..first_sample(range.end);
    let offset = |m: usize| -> [f64; 3] {
        let along = |axis: usize| {
            let k = scan.coordinates.get(axis)?;
            Some((f64::from(k[m]) - f64::from(k[samples.start])) * scan.encoded_matrix[axis] as f64)
        };
        std::array::from_fn(|axis| along(axis).unwrap_or(0.0))
    };
    let dot = |a: [f64; 3], b: [f64; 3]| a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
    let longer = |a: [f64; 3], b: [f64; 3]| if dot(b, b) > dot(a, a) { b } else { a };
    let line = samples.clone().map(offset).fold([0.0; 3], longer);
    let square = dot(line, line);
    let is_close = |p: [f64; 3]| dot(p, p) - dot(p, line).powi(2) / square < 0.25;
    square < 0.25 || samples.clone().map(offset).all(is_close)
}

/// Splits the coordinates along an axis into shots.
fn split_into_shots<'a>(scan: &'a Scan, mut k: &'a [f32]) -> impl Iterator<Item = &'a [f32]> {
    scan.samples_per_shot.iter().map(move |&count| {
        let (shot, rest) = k.split_at(count);
        k = rest;
        shot
    })
}

/// Returns the frames of a scan in their order, numbered as repetitions, or the scan itself if there are no frames.
pub fn split_into_frames(frames: Option<Frames>, scan: &Scan) -> impl Iterator<Item = Cow<'_, Scan>> {
    let count = frames.map_or(1, |frames| frames.count(scan));
    (0..count).map(move |i| match frames {
        None => Cow::Borrowed(scan),
        Some(frames) => {
            let mut frame = scan.shots(frames.range(i));
            // `Frames::check` limits the number of frames, so that no number is truncated.
            frame.index.repetition = i as u16;
            Cow::Owned(frame)
        }
    })
}
