//! The loaded scans of a run, from a file or from memory.

use crate::options::{ImageScale, InputArgs, OffResonanceArgs, PlanArgs};
use crate::run::frames::{split_into_frames, Frames};
use crate::run::input;
use crate::run::off_resonance::OffResonanceMaps;
use crate::run::resize::MatrixResize;
use crate::run::sampling::Sampling;
use recon::{Options, Real, Result, VoxelBasis};
use recon_files::{Dataset, Scan, ScanIndex};
use std::borrow::Cow;

/// The scans that are reconstructed, with what their plans and images need.
pub struct Session {
    /// Whitened, compressed and selected scans.
    pub scans: Vec<Scan>,
    /// Calibration data, from which coil maps are estimated, as they were measured.
    pub calibration: Vec<Scan>,
    /// Frames of each scan; `None` if each scan is one image.
    pub frames: Option<Frames>,
    /// Resizing from the encoded to the requested matrix, per scan.
    pub resizes: Vec<MatrixResize>,
    pub off_resonance: OffResonanceMaps,
    pub options: Options,
    pub basis: VoxelBasis,
    /// Scale of the images that are written.
    pub scale: ImageScale,
}

impl Session {
    /// Prepares raw data, which a file or a scanner supplied, as the options require.
    pub fn new(
        dataset: Dataset,
        input: &InputArgs,
        off_resonance: Option<&OffResonanceArgs>,
        plan: &PlanArgs,
    ) -> Result<Session> {
        let Dataset { scans, calibration, .. } = input::prepare(input, dataset)?;
        let frames = Frames::new(input, &scans)?;
        let resizes = scans.iter().map(|s| MatrixResize::new(s, input.matrix.as_ref())).collect::<Result<Vec<_>>>()?;
        let off_resonance = match off_resonance {
            Some(args) => OffResonanceMaps::read(args, &scans, &resizes)?,
            None => OffResonanceMaps::default(),
        };
        let options = plan.options()?;
        Ok(Session {
            scans,
            calibration,
            frames,
            resizes,
            off_resonance,
            options,
            basis: plan.basis.into(),
            scale: ImageScale::Recon,
        })
    }

    /// Returns the frames of scan `number`, or the scan itself if there are no frames.
    pub fn frames(&self, number: usize) -> impl Iterator<Item = Cow<'_, Scan>> {
        split_into_frames(self.frames, &self.scans[number])
    }

    /// Returns the number of images of a scan.
    pub fn frame_count(&self, scan: &Scan) -> usize {
        self.frames.map_or(1, |frames| frames.count(scan))
    }

    /// Returns the indices of the images of scan `number`: frames are numbered as repetitions.
    pub fn frame_indices(&self, number: usize) -> impl Iterator<Item = ScanIndex> + '_ {
        let index = self.scans[number].index;
        let count = self.frames.map_or(1, |frames| frames.count(&self.scans[number]));
        // `Frames::new` limits the number of frames, so that no number is truncated.
        let repetition = move |frame| if self.frames.is_some() { frame as u16 } else { index.repetition };
        (0..count).map(move |frame| ScanIndex { repetition: repetition(frame), ..index })
    }

    /// Returns the sampling of scan `number`, of which `scan` is a frame, with its field maps.
    pub fn sampling<T: Real>(&self, number: usize, scan: &Scan) -> Result<Sampling<T>> {
        Sampling::with_maps(scan, self.basis, number, &self.off_resonance)
    }

    /// Returns whether scans `a` and `b` have the same trajectory, weights, matrix, coils and field maps. With frames
    /// no two scans do: each frame has its own trajectory.
    pub fn is_same_trajectory(&self, a: usize, b: usize) -> bool {
        let (first, second) = (&self.scans[a], &self.scans[b]);
        self.frames.is_none()
            && first.coils == second.coils
            && first.encoded_matrix == second.encoded_matrix
            && first.coordinates == second.coordinates
            && first.weights == second.weights
            && first.coil_matrix == second.coil_matrix
            && self.off_resonance.is_same(&self.scans, a, b)
    }

    /// Returns the numbers of the scans of each trajectory.
    pub fn trajectories(&self) -> Vec<Vec<usize>> {
        partition(0..self.scans.len(), |a, b| self.is_same_trajectory(a, b))
    }

    /// Returns the numbers of the scans of each plan: scans of one trajectory for which `shares_plan` is true.
    pub fn groups(&self, shares_plan: impl Fn(&Scan, &Scan) -> bool) -> Vec<Vec<usize>> {
        let split = |members: Vec<usize>| partition(members, |a, b| shares_plan(&self.scans[a], &self.scans[b]));
        self.trajectories().into_iter().flat_map(split).collect()
    }
}

/// Divides numbers into groups. Each member is alike the first member of its group.
fn partition(members: impl IntoIterator<Item = usize>, is_alike: impl Fn(usize, usize) -> bool) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for i in members {
        match groups.iter_mut().find(|group| is_alike(group[0], i)) {
            Some(group) => group.push(i),
            None => groups.push(vec![i]),
        }
    }
    groups
}
