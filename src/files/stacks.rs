//! Stacks of slices: which images share a NIfTI file, the order of slices and repetitions in it, and the positions of
//! its voxels in the patient.
//!
//! Slices are sorted by their position along the slice direction, because their numbers may follow the order of
//! acquisition. The step between slices comes from the positions: it includes the gap, which the slice thickness in the
//! header does not.

use super::image::{Image, Placement, ScanIndex};
use recon::error::{bail, Result};
use std::collections::{BTreeMap, BTreeSet};

/// Smallest tolerance of positions in mm. Headers may round positions to a hundredth of a millimetre.
const MIN_TOLERANCE_MM: f64 = 0.01;
/// Largest tolerance of positions in mm: each voxel is within 0.1 mm of its position in the headers.
const MAX_TOLERANCE_MM: f64 = 0.1;

/// Returns the tolerance of positions for slices that are `step` mm apart: 1 % of the step, between 0.01 and 0.1 mm.
pub fn tolerance_mm(step: f64) -> f64 {
    (0.01 * step).clamp(MIN_TOLERANCE_MM, MAX_TOLERANCE_MM)
}

/// The parts of an image that determine its place in a file.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ImageGeometry {
    /// The counters.
    pub index: ScanIndex,
    /// The number of voxels along x, y and z.
    pub dims: [usize; 3],
    /// The field of view along x, y and z in mm; 0 if unknown.
    pub fov_mm: [f32; 3],
    /// The position in the patient.
    pub placement: Placement,
}

impl ImageGeometry {
    /// Returns the geometry of an image.
    pub fn new(image: &Image) -> ImageGeometry {
        ImageGeometry { index: image.index, dims: image.dims, fov_mm: image.fov_mm, placement: image.placement }
    }

    /// Returns whether the field of view is known along all axes.
    pub fn is_fov_known(&self) -> bool {
        self.fov_mm.iter().all(|&mm| mm > 0.0 && mm.is_finite())
    }

    /// Returns the voxel size along an axis in mm; 1 if the field of view is unknown.
    pub fn voxel_mm(&self, axis: usize) -> f64 {
        let size = f64::from(self.fov_mm[axis]) / self.dims[axis] as f64;
        if size > 0.0 && size.is_finite() {
            size
        } else {
            1.0
        }
    }

    /// Returns the largest shift of a voxel in mm if this image had the directions and voxel sizes of `other`.
    fn turn_mm(&self, other: &ImageGeometry) -> f64 {
        let (a, b) = (self.placement.directions().map(wide), other.placement.directions().map(wide));
        let shift = |axis: usize| {
            let half = (self.dims[axis] / 2) as f64;
            length(minus(times(a[axis], half * self.voxel_mm(axis)), times(b[axis], half * other.voxel_mm(axis))))
        };
        (0..3).map(shift).sum()
    }
}

/// The images of one NIfTI file: a volume, or the slices of a volume, once or repeated.
#[derive(Debug, Clone, PartialEq)]
pub struct SliceStack {
    /// The counters that all images of the file share; 0 for the others.
    pub index: ScanIndex,
    /// The number of voxels of the volume along x, y and z.
    pub dims: [usize; 3],
    /// The number of repetitions.
    pub repetitions: usize,
    /// The numbers of the images, [slices, repetitions], slices in the order of z.
    pub images: Vec<usize>,
    /// The vector from one voxel to the next along each axis in mm, in the patient's coordinates of ISMRMRD.
    pub columns: [[f64; 3]; 3],
    /// The position of the first voxel in mm, in the patient's coordinates of ISMRMRD.
    pub origin: [f64; 3],
    /// Whether the position in the patient is known. If not, the origin of coordinates is in the middle of the volume.
    pub is_placed: bool,
    /// Whether the voxel size is known. If not, it is 1 mm.
    pub has_voxel_size: bool,
    /// The time from one repetition to the next in ms; `None` if unknown.
    pub repetition_time_ms: Option<f32>,
}

/// Divides images of one size into stacks, one per file. Images of different contrasts, phases, sets or encodings are
/// in different stacks. So are the slabs of 3D images.
///
/// # Errors
/// - `InvalidArgument` if two images have the same counters, if two slices have the same position, or if slices are not
///   parallel, not evenly spaced, or not above each other along the slice direction.
/// - `SizeMismatch` if slices have different numbers of repetitions.
pub fn divide_into_stacks(images: &[ImageGeometry]) -> Result<Vec<SliceStack>> {
    group_by_counters(images).into_iter().map(|(index, members)| stack(index, images, &members)).collect()
}

/// Returns the numbers of the images of each stack, by the counters that they share.
pub fn group_by_counters(images: &[ImageGeometry]) -> BTreeMap<ScanIndex, Vec<usize>> {
    let mut groups: BTreeMap<ScanIndex, Vec<usize>> = BTreeMap::new();
    for (number, image) in images.iter().enumerate() {
        let ScanIndex { encoding, contrast, phase, set, .. } = image.index;
        let slab = if image.dims[2] > 1 { image.index.slice } else { 0 };
        let key = ScanIndex { encoding, slice: slab, contrast, phase, set, ..ScanIndex::default() };
        groups.entry(key).or_default().push(number);
    }
    groups
}

/// Returns the text that distinguishes the file name of each stack: the counters that differ, such as `_contrast1`.
/// Empty if there is one stack.
pub fn name_suffixes(stacks: &[SliceStack]) -> Vec<String> {
    counter_suffixes(&stacks.iter().map(|stack| stack.index).collect::<Vec<_>>())
}

/// Returns, for each index, the text with the counters that differ between them, such as `_contrast1`.
pub fn counter_suffixes(indices: &[ScanIndex]) -> Vec<String> {
    let counters = |i: &ScanIndex| {
        [("encoding", i.encoding), ("slice", i.slice), ("contrast", i.contrast), ("phase", i.phase), ("set", i.set)]
    };
    let differs = |which: usize| {
        let values: BTreeSet<u16> = indices.iter().map(|index| counters(index)[which].1).collect();
        values.len() > 1
    };
    let suffix = |index: &ScanIndex| -> String {
        let all = counters(index).into_iter().enumerate();
        all.filter(|(which, _)| differs(*which)).map(|(_, (name, number))| format!("_{name}{number}")).collect()
    };
    indices.iter().map(suffix).collect()
}

/// Returns the stack of images that share these counters.
///
/// # Errors
/// Returns the errors of [`divide_into_stacks`].
pub fn stack(index: ScanIndex, images: &[ImageGeometry], members: &[usize]) -> Result<SliceStack> {
    let slices = group_by_slice(images, members)?;
    let is_placed = all_or_none_placed(images, members)?;
    if is_placed {
        check_repetitions(images, &slices)?;
    }
    // The first image of each slice stands for its repetitions.
    let first = |slice: &Vec<usize>| &images[slice[0]];
    let (order, step) = match slices.len() {
        count if count > 1 && is_placed => {
            let (order, step) = order_of_slices(&slices.iter().map(first).collect::<Vec<_>>())?;
            (order, Some(step))
        }
        count => ((0..count).collect(), None),
    };
    let lowest = first(&slices[order[0]]);
    let directions = lowest.placement.directions().map(wide);
    let mut columns = std::array::from_fn(|axis| times(directions[axis], lowest.voxel_mm(axis)));
    columns[2] = step.unwrap_or(columns[2]);
    let dims = [lowest.dims[0], lowest.dims[1], if slices.len() > 1 { slices.len() } else { lowest.dims[2] }];
    // The position of a slice is that of its voxel with index floor(n/2); the lowest slice has z index 0.
    let centre_z = if is_placed && slices.len() > 1 { 0 } else { dims[2] / 2 };
    let mut origin = if is_placed { wide(lowest.placement.position) } else { [0.0; 3] };
    for (column, centre) in columns.iter().zip([dims[0] / 2, dims[1] / 2, centre_z]) {
        origin = minus(origin, times(*column, centre as f64));
    }
    let repetitions = slices[0].len();
    Ok(SliceStack {
        index,
        dims,
        repetitions,
        images: (0..repetitions).flat_map(|r| order.iter().map(|&s| slices[s][r]).collect::<Vec<_>>()).collect(),
        columns,
        origin,
        is_placed,
        has_voxel_size: members.iter().all(|&i| images[i].is_fov_known()),
        repetition_time_ms: lowest.placement.repetition_time_ms,
    })
}

/// Returns whether the positions of these images in the patient are known.
///
/// # Errors
/// `InvalidArgument` if only some of them are known.
pub fn all_or_none_placed(images: &[ImageGeometry], members: &[usize]) -> Result<bool> {
    let known = members.iter().filter(|&&i| images[i].placement.is_known()).count();
    if known != 0 && known != members.len() {
        let unknown = members.iter().find(|&&i| !images[i].placement.is_known()).map(|&i| images[i].index.slice);
        bail!(
            InvalidArgument,
            "slice {} has no valid position and directions, but other slices have: correct the headers, select slices \
             by --slice, or write a .h5 file",
            unknown.unwrap_or_default()
        );
    }
    Ok(known > 0)
}

/// Returns the images of each slice, by slice number, in the order of repetitions.
fn group_by_slice(images: &[ImageGeometry], members: &[usize]) -> Result<Vec<Vec<usize>>> {
    let mut slices: BTreeMap<u16, BTreeMap<u16, usize>> = BTreeMap::new();
    for &number in members {
        let ScanIndex { slice, repetition, .. } = images[number].index;
        if slices.entry(slice).or_default().insert(repetition, number).is_some() {
            bail!(
                InvalidArgument,
                "two images have the numbers slice {slice} and repetition {repetition}, but a NIfTI file has one image \
                 for each slice and repetition: write a .h5 file"
            );
        }
    }
    let mut all = slices.iter();
    if let Some((first, repetitions)) = all.next() {
        for (slice, other) in all {
            if !other.keys().eq(repetitions.keys()) {
                bail!(
                    SizeMismatch,
                    "slice {first} has {} repetitions and slice {slice} has {}, or their numbers differ, but all slices \
                     of a NIfTI file have the same repetitions: select some by --slice and --repetition, or write a \
                     .h5 file",
                    repetitions.len(),
                    other.len()
                );
            }
        }
    }
    Ok(slices.into_values().map(|repetitions| repetitions.into_values().collect()).collect())
}

/// Checks that the repetitions of each slice have the same position.
fn check_repetitions(images: &[ImageGeometry], slices: &[Vec<usize>]) -> Result<()> {
    for slice in slices {
        let first = &images[slice[0]];
        for other in slice[1..].iter().map(|&i| &images[i]) {
            let shift = minus(wide(other.placement.position), wide(first.placement.position));
            let shift = length(shift) + first.turn_mm(other);
            if shift > MIN_TOLERANCE_MM {
                bail!(
                    InvalidArgument,
                    "slice {} moved by {shift:.3} mm between repetition {} and repetition {}, but a NIfTI file has one \
                     position for all repetitions: select one by --repetition, or write a .h5 file",
                    first.index.slice,
                    first.index.repetition,
                    other.index.repetition
                );
            }
        }
    }
    Ok(())
}

/// The remedy for slices that do not form a volume.
const REMEDY: &str = "select slices by --slice, or write a .h5 or .dcm file, in which each slice has its own position";

/// Returns the order of slices along the slice direction, and the vector from one slice to the next.
fn order_of_slices(slices: &[&ImageGeometry]) -> Result<(Vec<usize>, [f64; 3])> {
    let normal = wide(slices[0].placement.slice_dir);
    let normal = times(normal, 1.0 / length(normal));
    let offset = |i: usize| minus(wide(slices[i].placement.position), wide(slices[0].placement.position));
    let heights: Vec<f64> = (0..slices.len()).map(|i| dot(offset(i), normal)).collect();
    let mut order: Vec<usize> = (0..slices.len()).collect();
    order.sort_by(|&a, &b| heights[a].total_cmp(&heights[b]));
    let (lowest, highest) = (order[0], order[slices.len() - 1]);
    let step = (heights[highest] - heights[lowest]) / (slices.len() - 1) as f64;
    check_parallel(slices, tolerance_mm(step))?;
    let sorted: Vec<(&ImageGeometry, f64)> = order.iter().map(|&i| (slices[i], heights[i])).collect();
    check_spacing(&sorted, step)?;
    for &i in &order {
        let along = times(normal, heights[i] - heights[lowest]);
        let aside = length(minus(minus(offset(i), offset(lowest)), along));
        if aside > tolerance_mm(step) {
            bail!(
                InvalidArgument,
                "slice {} is {aside:.3} mm beside slice {}, but the slices of a NIfTI file are above each other along \
                 the slice direction: {REMEDY}",
                slices[i].index.slice,
                slices[lowest].index.slice
            );
        }
    }
    Ok((order, times(normal, step)))
}

/// Checks that the voxels of all slices have the same directions and sizes.
fn check_parallel(slices: &[&ImageGeometry], tolerance: f64) -> Result<()> {
    let first = slices[0];
    for slice in slices {
        let turn = first.turn_mm(slice);
        if turn <= tolerance {
            continue;
        }
        let same_directions = ImageGeometry { placement: first.placement, ..**slice };
        let cause = match first.turn_mm(&same_directions) > tolerance {
            true => "have voxels of different sizes".to_owned(),
            false => format!("are not parallel (their axes differ by {:.2} degrees)", turn_degrees(first, slice)),
        };
        bail!(
            InvalidArgument,
            "slices {} and {} {cause}: at the edge of the image they differ by {turn:.3} mm, and at most \
             {tolerance:.3} mm are allowed in a NIfTI file: {REMEDY}",
            first.index.slice,
            slice.index.slice
        );
    }
    Ok(())
}

/// Returns the largest angle between the axes of two images in degrees.
fn turn_degrees(a: &ImageGeometry, b: &ImageGeometry) -> f64 {
    let (a, b) = (a.placement.directions().map(wide), b.placement.directions().map(wide));
    let angle = |i: usize| (dot(a[i], b[i]) / (length(a[i]) * length(b[i]))).clamp(-1.0, 1.0).acos().to_degrees();
    (0..3).map(angle).fold(0.0, f64::max)
}

/// Checks that sorted slices have different positions, `step` mm apart. Each slice comes with its position along the
/// slice direction.
fn check_spacing(sorted: &[(&ImageGeometry, f64)], step: f64) -> Result<()> {
    let number = |rank: usize| sorted[rank].0.index.slice;
    let gap = |rank: usize| sorted[rank + 1].1 - sorted[rank].1;
    let gaps = 0..sorted.len() - 1;
    if let Some(rank) = gaps.clone().find(|&rank| gap(rank) < MIN_TOLERANCE_MM) {
        let [x, y, z] = sorted[rank].0.placement.position;
        bail!(
            InvalidArgument,
            "slices {} and {} have the same position along the slice direction ({x}, {y}, {z} mm): correct the \
             positions in the headers, {REMEDY}",
            number(rank).min(number(rank + 1)),
            number(rank).max(number(rank + 1))
        );
    }
    let error = |rank: usize| sorted[rank].1 - sorted[0].1 - rank as f64 * step;
    if (0..sorted.len()).all(|rank| error(rank).abs() <= tolerance_mm(step)) {
        return Ok(());
    }
    let narrow = gaps.clone().fold(0, |best, rank| if gap(rank) < gap(best) { rank } else { best });
    let broad = gaps.fold(0, |best, rank| if gap(rank) > gap(best) { rank } else { best });
    bail!(
        InvalidArgument,
        "the slices are not evenly spaced: slices {} and {} are {:.3} mm apart, but slices {} and {} {:.3} mm: {REMEDY}",
        number(narrow),
        number(narrow + 1),
        gap(narrow),
        number(broad),
        number(broad + 1),
        gap(broad)
    );
}

/// Returns the placement of an array of `dims` voxels with these vectors from voxel to voxel and this first voxel, in
/// the patient's coordinates of ISMRMRD. Its position is that of the voxel with index floor(n/2).
pub fn placement_of(columns: [[f64; 3]; 3], origin: [f64; 3], dims: [usize; 3]) -> Placement {
    let centre = |row: usize| (0..3).map(|axis| columns[axis][row] * (dims[axis] / 2) as f64).sum::<f64>();
    let direction = |axis: usize| times(columns[axis], 1.0 / length(columns[axis])).map(|v| v as f32);
    Placement {
        position: std::array::from_fn(|row| (origin[row] + centre(row)) as f32),
        read_dir: direction(0),
        phase_dir: direction(1),
        slice_dir: direction(2),
        ..Placement::default()
    }
}

/// Returns a vector in double precision.
pub fn wide(v: [f32; 3]) -> [f64; 3] {
    v.map(f64::from)
}

/// Returns the scalar product.
pub fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

/// Returns the difference of two vectors.
pub fn minus(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    std::array::from_fn(|i| a[i] - b[i])
}

/// Returns a multiple of a vector.
pub fn times(v: [f64; 3], factor: f64) -> [f64; 3] {
    v.map(|x| x * factor)
}

/// Returns the vector product.
pub fn cross(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

/// Returns the length of a vector.
pub fn length(v: [f64; 3]) -> f64 {
    dot(v, v).sqrt()
}
