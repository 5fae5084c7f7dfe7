//! Scans and images of BART's files: which dimension of an array is which counter.
//!
//! The file src/misc/mri.h of BART lists its dimensions. 0 to 2 are x, y and z, 3 coils, and 4 sets of coil maps.
//! 5 are echoes, 10 time, 11 a second time (phases of the heart), 13 slices, 14 averages, and 15 independent data.
//! BART has no dimension for sets, such as velocity encodings. They are in dimension 15, because BART's tools treat its
//! entries as independent.

use super::cfl::{
    check_trajectory, kspace_from_bart, read_cfl, trajectory_from_bart, write_cfl, BartTrajectory, Cfl, COUNTER_DIMS,
    MAX_DIMS,
};
use super::image::{Image, Placement, ScanIndex};
use num_complex::Complex;
use recon::atomic_file::AtomicFiles;
use recon::error::{bail, try_reserve, Error, Result};
use recon::scan::{Dataset, Header, Scan, TrajectoryKind};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The dimension of BART's arrays that holds sets of coil maps.
const MAPS_DIM: usize = 4;
/// The dimension of BART's arrays that holds averages.
const AVERAGE_DIM: usize = 14;

/// The trajectory of k-space that is not Cartesian.
#[derive(Debug, Clone, Copy)]
pub struct TrajectoryFile<'a> {
    /// The `.cfl` or `.hdr` file.
    pub path: &'a Path,
    /// The number of voxels of the field of view, in whose units the trajectory is.
    pub matrix: [usize; 3],
}

/// Returns the counters of an index in the order of [`COUNTER_DIMS`].
fn counters(index: &ScanIndex) -> [u16; 5] {
    [index.contrast, index.repetition, index.phase, index.slice, index.set]
}

/// Returns the index with these counters, in the order of [`COUNTER_DIMS`].
fn index_of([contrast, repetition, phase, slice, set]: [u16; 5]) -> ScanIndex {
    ScanIndex { contrast, repetition, phase, slice, set, ..ScanIndex::default() }
}

/// A part of an array that is one scan or one image.
struct ArrayPart {
    index: ScanIndex,
    /// The position along each dimension of a counter, in the order of [`COUNTER_DIMS`].
    positions: [usize; 5],
}

/// Returns the parts of an array of these sizes, sorted by their index.
///
/// # Errors
/// `InvalidSize` if a size along a counter is above 65536.
fn parts(sizes: &[usize; MAX_DIMS]) -> Result<Vec<ArrayPart>> {
    let limit = usize::from(u16::MAX) + 1;
    if let Some(dim) = COUNTER_DIMS.into_iter().find(|&dim| sizes[dim] > limit) {
        bail!(InvalidSize, "dimension {dim} has size {}: at most {limit} scans or images are possible", sizes[dim]);
    }
    let counts = COUNTER_DIMS.map(|dim| sizes[dim]);
    let mut all = Vec::new();
    for number in 0..counts.iter().product() {
        let mut rest: usize = number;
        let positions = counts.map(|count| {
            let position = rest % count;
            rest /= count;
            position
        });
        all.push(ArrayPart { index: index_of(positions.map(|position| position as u16)), positions });
    }
    all.sort_by_key(|part| part.index);
    Ok(all)
}

/// Returns the numbers of a part of an array: all other dimensions, in their order. Along a dimension of size 1 the
/// position of the part is ignored.
///
/// # Errors
/// `OutOfHostMemory`.
fn gather(array: &Cfl, part: &ArrayPart) -> Result<Vec<Complex<f32>>> {
    let sizes = array.sizes();
    let stride = |dim: usize| sizes[..dim].iter().product::<usize>();
    let position = |(&dim, &position): (&usize, &usize)| if sizes[dim] > 1 { position * stride(dim) } else { 0 };
    let mut starts = vec![COUNTER_DIMS.iter().zip(&part.positions).map(position).sum::<usize>()];
    for dim in (MAPS_DIM + 1..MAX_DIMS).filter(|dim| !COUNTER_DIMS.contains(dim)) {
        let step = stride(dim);
        starts = (0..sizes[dim]).flat_map(|i| starts.iter().map(move |start| start + i * step)).collect();
    }
    let block = stride(MAPS_DIM + 1);
    let mut data = try_reserve(starts.len() * block, "a part of the array")?;
    starts.iter().for_each(|&start| data.extend_from_slice(&array.data[start..start + block]));
    Ok(data)
}

/// Reads the images of an array `[x, y, z, channels]`, sorted by their index. Dimensions 5, 10, 11, 13 and 15 are
/// contrasts, repetitions, phases, slices and sets; all others become channels.
///
/// # Errors
/// Returns the errors of [`read_cfl`]; `InvalidSize` if an index would be above 65535.
pub fn read_bart_images(path: &Path) -> Result<Vec<Image>> {
    let array = read_cfl(path)?;
    let sizes = array.sizes();
    let image = |part: &ArrayPart, data: Vec<Complex<f32>>| {
        let voxels: usize = sizes[..3].iter().product();
        let mut image = Image::new([sizes[0], sizes[1], sizes[2]], data.len() / voxels, data)?;
        image.index = part.index;
        Ok(image)
    };
    let read = || match &parts(&sizes)?[..] {
        [only] => Ok(vec![image(only, array.data)?]),
        all => all.iter().map(|part| image(part, gather(&array, part)?)).collect(),
    };
    read().map_err(|e: Error| e.within(path.display()))
}

/// The order of images in an array.
#[derive(Debug, Clone, PartialEq)]
pub struct ArrayLayout {
    /// The number of images along each dimension of [`COUNTER_DIMS`].
    pub counts: [usize; 5],
    /// The numbers of the images in the order of the array.
    pub images: Vec<usize>,
}

/// Returns the order of images with these indices in an array. Images are sorted by their counters along each
/// dimension; counters without an image are left out.
///
/// # Errors
/// `InvalidArgument` if two images have the same counters, a combination of counters has no image, or the images belong
/// to several encodings.
pub fn arrange_images(indices: &[ScanIndex]) -> Result<ArrayLayout> {
    let encodings: BTreeSet<u16> = indices.iter().map(|index| index.encoding).collect();
    if encodings.len() > 1 {
        bail!(
            InvalidArgument,
            "images of {} encodings cannot share a BART array, which has no dimension for encodings: write a .h5 file",
            encodings.len()
        );
    }
    let mut numbers = BTreeMap::new();
    for (number, index) in indices.iter().enumerate() {
        if numbers.insert(counters(index), number).is_some() {
            bail!(
                InvalidArgument,
                "two images have the numbers {index}, but a BART array has one image for each: write a .h5 file"
            );
        }
    }
    let values: [Vec<u16>; 5] = std::array::from_fn(|i| {
        let values: BTreeSet<u16> = numbers.keys().map(|counters| counters[i]).collect();
        values.into_iter().collect()
    });
    let counts = values.each_ref().map(Vec::len);
    let mut images = Vec::new();
    for position in 0..counts.iter().product() {
        let mut rest: usize = position;
        let counters = std::array::from_fn(|i| {
            let value = values[i][rest % counts[i]];
            rest /= counts[i];
            value
        });
        let Some(&number) = numbers.get(&counters) else {
            bail!(
                InvalidArgument,
                "there is no image {}, but a BART array needs an image for each combination of slice, repetition, \
                 contrast, cardiac phase and set: select images that form a full grid by --slice, --repetition, \
                 --contrast, --cardiac-phase and --set, or write a .h5 file",
                index_of(counters)
            );
        };
        images.push(number);
    }
    Ok(ArrayLayout { counts, images })
}

/// Writes images of one size to `files`, complex, `[x, y, z, channels]`. Contrasts, repetitions, phases, slices and
/// sets are along dimensions 5, 10, 11, 13 and 15.
///
/// # Errors
/// Returns the errors of [`arrange_images`] and [`write_cfl`]; `InvalidSize` or `SizeMismatch` for a malformed image.
pub fn write_bart_images(files: &mut AtomicFiles, path: &Path, images: &[Image]) -> Result<()> {
    let Some(first) = images.first() else {
        bail!(InvalidArgument, "{}: no image was given: give one or more", path.display());
    };
    images.iter().try_for_each(Image::check).map_err(|e| e.within(path.display()))?;
    let mut dims = [1; MAX_DIMS];
    dims[..3].copy_from_slice(&first.dims);
    dims[3] = first.channels;
    if let [one] = images {
        return write_cfl(files, path, &dims, &one.data);
    }
    let indices: Vec<ScanIndex> = images.iter().map(|image| image.index).collect();
    let layout = arrange_images(&indices).map_err(|e| e.within(path.display()))?;
    for (dim, count) in COUNTER_DIMS.into_iter().zip(layout.counts) {
        dims[dim] = count;
    }
    let mut data = try_reserve(images.iter().map(|image| image.data.len()).sum(), "the images")?;
    layout.images.iter().for_each(|&number| data.extend_from_slice(&images[number].data));
    write_cfl(files, path, &dims, &data)
}

/// Reads k-space of BART.
///
/// - With a trajectory: `[1, samples, shots, coils]`. The trajectory is `[3, samples, shots]` in units of 1/FOV.
/// - Without: a Cartesian grid `[x, y, z, coils]`, with the centre of k-space at index floor(n/2). A point that is zero
///   in all coils was not measured, as in BART. A line of the log has the number of measured points.
///
/// Echoes, time, cardiac phases, slices and sets (dimensions 5, 10, 11, 13 and 15) are scans of their own. The
/// trajectory has the same number of frames along these dimensions, or one for all.
///
/// # Errors
///
/// - `IO`, `BadFile`: a file cannot be read, or is not a BART array.
/// - `InvalidSize`, `SizeMismatch`: the sizes are different, or disagree with the trajectory.
/// - `NotFinite`, `CoordinateOutOfRange`.
/// - `InvalidArgument`: an array without a trajectory is probably not Cartesian k-space, or has no measured point.
pub fn read_bart(path: &Path, trajectory: Option<TrajectoryFile>) -> Result<Dataset> {
    let array = read_cfl(path)?;
    let scans = match trajectory {
        Some(trajectory) => scans_with_trajectory(path, array, trajectory)?,
        None => cartesian_scans(array, path).map_err(|e| e.within(path.display()))?,
    };
    Ok(Dataset { header: Header::default(), scans, noise: Vec::new(), calibration: Vec::new(), uses: Vec::new() })
}

/// Checks that the data of a scan are finite.
fn check_finite(path: &Path, index: &ScanIndex, samples: usize, data: &[Complex<f32>]) -> Result<()> {
    if let Some(i) = data.iter().position(|z| !z.is_finite()) {
        let (coil, m) = (i / samples, i % samples);
        bail!(NotFinite, "{}: {index}: coil {coil}, sample {m}: the data are {}", path.display(), data[i]);
    }
    Ok(())
}

/// Takes the data of a part from an array of `count` parts, without a copy if it is the only one.
fn take_part(array: &mut Cfl, count: usize, part: &ArrayPart) -> Result<Vec<Complex<f32>>> {
    match count {
        1 => Ok(std::mem::take(&mut array.data)),
        _ => gather(array, part),
    }
}

fn scans_with_trajectory(path: &Path, mut array: Cfl, trajectory: TrajectoryFile) -> Result<Vec<Scan>> {
    let points = read_cfl(trajectory.path)?;
    check_trajectory(&points).map_err(|e| e.within(trajectory.path.display()))?;
    let files = || format!("{} and {}", path.display(), trajectory.path.display());
    let (samples, coils) = kspace_from_bart(&array, &points).map_err(|e| e.within(files()))?;
    let all = parts(&array.sizes()).map_err(|e| e.within(path.display()))?;
    let frame_dims = &points.dims[..points.dims.len().min(3)];
    let has_frames = points.dims.len() > 3;
    let convert = |part: &ArrayPart| {
        let frame = Cfl { dims: frame_dims.to_vec(), data: gather(&points, part)? };
        trajectory_from_bart(&frame, trajectory.matrix).map_err(|e| match has_frames {
            true => e.within(part.index).within(trajectory.path.display()),
            false => e.within(trajectory.path.display()),
        })
    };
    let mut current = convert(&all[0])?;
    let mut scans = Vec::with_capacity(all.len());
    for (number, part) in all.iter().enumerate() {
        if has_frames && number > 0 {
            current = convert(part)?;
        }
        let data = take_part(&mut array, all.len(), part)?;
        check_finite(path, &part.index, samples, &data)?;
        scans.push(scan(part.index, trajectory.matrix, current.clone(), TrajectoryKind::Other, coils, data));
    }
    Ok(scans)
}

/// Checks that an array without a trajectory is Cartesian k-space: `[x, y, z, coils]` with counters.
fn check_cartesian(array: &Cfl) -> Result<()> {
    let (sizes, dims) = (array.sizes(), &array.dims);
    let is_counter_or_one = |&dim: &usize| sizes[dim] == 1 || COUNTER_DIMS.contains(&dim);
    if sizes[0] == 1 && sizes[1..3].iter().any(|&n| n > 1) {
        bail!(
            InvalidArgument,
            "k-space of sizes {dims:?} without a trajectory could be [1, samples, shots, coils] or a Cartesian grid of \
             one point along x: give --trajectory and --matrix, or, if it is Cartesian, exchange x and z by bart \
             transpose 0 2 IN OUT"
        );
    }
    if sizes[0] == 3 && sizes[3] == 1 && array.data.iter().all(|z| z.im == 0.0) {
        bail!(
            InvalidArgument,
            "real numbers of sizes {dims:?} are a trajectory, not k-space: give k-space, and this file by --trajectory"
        );
    }
    let Some(dim) = (MAPS_DIM..MAX_DIMS).find(|dim| !is_counter_or_one(dim)) else { return Ok(()) };
    let remedy = match dim {
        AVERAGE_DIM => "bart avg -w 16384 IN OUT computes the mean of averages".into(),
        _ => format!("bart slice {dim} 0 IN OUT selects its first part"),
    };
    bail!(
        InvalidSize,
        "Cartesian k-space of BART must have sizes [x, y, z, coils], with echoes, time, cardiac phases, slices and sets \
         in dimensions 5, 10, 11, 13 and 15, not {dims:?}: {remedy}"
    );
}

fn cartesian_scans(mut array: Cfl, path: &Path) -> Result<Vec<Scan>> {
    check_cartesian(&array)?;
    let sizes = array.sizes();
    let matrix = [sizes[0], sizes[1], sizes[2]];
    let all = parts(&sizes)?;
    let points: usize = matrix.iter().product();
    let (mut scans, mut measured) = (Vec::with_capacity(all.len()), 0);
    for part in &all {
        let data = take_part(&mut array, all.len(), part)?;
        check_finite(path, &part.index, points, &data)?;
        let scan = cartesian_scan(part.index, matrix, sizes[3], data)?;
        measured += scan.samples();
        scans.push(scan);
    }
    log::info!(
        "{}: Cartesian k-space of {matrix:?} points, {} in all: {measured} of {} points were measured; points that are \
         zero in all coils were not",
        path.display(),
        counted(scans.len(), "scan"),
        points * all.len()
    );
    Ok(scans)
}

fn counted(n: usize, noun: &str) -> String {
    format!("{n} {noun}{}", if n == 1 { "" } else { "s" })
}

/// Returns the measured points of a Cartesian grid `[x, y, z, coils]`. Each line along x is a shot.
fn cartesian_scan(index: ScanIndex, matrix: [usize; 3], coils: usize, data: Vec<Complex<f32>>) -> Result<Scan> {
    let points: usize = matrix.iter().product();
    let is_measured: Vec<bool> =
        (0..points).map(|i| (0..coils).any(|coil| data[coil * points + i] != Complex::ZERO)).collect();
    let samples_per_shot: Vec<usize> = is_measured
        .chunks_exact(matrix[0])
        .map(|line| line.iter().filter(|&&measured| measured).count())
        .filter(|&count| count > 0)
        .collect();
    if samples_per_shot.is_empty() {
        bail!(InvalidArgument, "{index}: all points of k-space are zero: zero means that a point was not measured");
    }
    let ndim = if matrix[2] == 1 { 2 } else { 3 };
    let selected: Vec<usize> = (0..points).filter(|&i| is_measured[i]).collect();
    let strides = [1, matrix[0], matrix[0] * matrix[1]];
    let coordinate = |i: usize, axis: usize| {
        let n = matrix[axis];
        ((i / strides[axis] % n) as f64 - (n / 2) as f64) / n as f64
    };
    let coordinates = (0..ndim).map(|axis| selected.iter().map(|&i| coordinate(i, axis) as f32).collect()).collect();
    let mut measured = data;
    if selected.len() < points {
        let all = std::mem::take(&mut measured);
        measured = try_reserve(selected.len() * coils, "the measured points")?;
        all.chunks_exact(points).for_each(|coil| measured.extend(selected.iter().map(|&i| coil[i])));
    }
    let trajectory = BartTrajectory { coordinates, samples_per_shot };
    Ok(scan(index, matrix, trajectory, TrajectoryKind::Cartesian, coils, measured))
}

/// Returns a scan whose position and field of view are unknown.
pub fn scan(
    index: ScanIndex,
    matrix: [usize; 3],
    trajectory: BartTrajectory,
    kind: TrajectoryKind,
    coils: usize,
    data: Vec<Complex<f32>>,
) -> Scan {
    let BartTrajectory { coordinates, samples_per_shot } = trajectory;
    Scan {
        index,
        encoded_matrix: matrix,
        recon_matrix: matrix,
        encoded_fov_mm: [0.0; 3],
        recon_fov_mm: [0.0; 3],
        trajectory: kind,
        ndim: coordinates.len(),
        weights: None,
        skipped_per_shot: vec![0; samples_per_shot.len()],
        times: vec![0.0; coordinates[0].len()],
        coordinates,
        samples_per_shot,
        coils,
        data,
        placement: Placement::default(),
        coil_matrix: None,
        noise_level: None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{ramp, write_cfl, write_images, TempDir};
    use super::*;
    use recon::error::ErrorKind;

    fn index(contrast: u16, repetition: u16, slice: u16) -> ScanIndex {
        ScanIndex { contrast, repetition, slice, ..ScanIndex::default() }
    }

    #[test]
    fn images_fill_a_grid() {
        // Slices 1 and 4, repetitions 0 and 2, in the order of a scan.
        let indices = [index(0, 0, 1), index(0, 2, 1), index(0, 0, 4), index(0, 2, 4)];
        let layout = arrange_images(&indices).unwrap();
        assert_eq!((layout.counts, layout.images), ([1, 2, 1, 2, 1], vec![0, 1, 2, 3]));
        let reversed: Vec<ScanIndex> = indices.into_iter().rev().collect();
        assert_eq!(arrange_images(&reversed).unwrap().images, [3, 2, 1, 0]);
        let of = |indices: &[ScanIndex]| arrange_images(indices).unwrap_err().message().to_owned();
        assert!(of(&indices[..3]).contains("no image slice 4, repetition 2"), "{}", of(&indices[..3]));
        let doubled = [indices[0], indices[1], indices[0]];
        assert!(of(&doubled).contains("two images have the numbers slice 1"), "{}", of(&doubled));
        let other = ScanIndex { encoding: 1, ..indices[1] };
        assert!(of(&[indices[0], other]).contains("2 encodings"));
        assert_eq!(arrange_images(&[]).unwrap().images, [0; 0]);
    }

    /// Every counter has its own dimension. The images are read back in the order of their index.
    #[test]
    fn counters_have_their_dimensions() {
        let dir = TempDir::new();
        let mut images = Vec::new();
        for number in 0..96u16 {
            let part = |divisor: u16, count: u16| number / divisor % count;
            let mut image = Image::new([2, 1, 1], 2, ramp(4)).unwrap();
            image.data[0].re = f32::from(number);
            image.index = ScanIndex {
                slice: part(48, 2),
                repetition: part(16, 3),
                contrast: part(8, 2),
                phase: part(2, 4),
                set: part(1, 2),
                ..ScanIndex::default()
            };
            images.push(image);
        }
        write_images(dir.path("a.cfl"), &images).unwrap();
        let array = read_cfl(dir.path("a.cfl")).unwrap();
        assert_eq!(array.dims, [2, 1, 1, 2, 1, 2, 1, 1, 1, 1, 3, 4, 1, 2, 1, 2]);
        // Position 1 along each of the dimensions 5, 10, 11, 13 and 15: contrast, repetition, phase, slice and set.
        let numbers = [4, 8, 24, 96, 192].map(|at| array.data[at].re);
        assert_eq!(numbers, [8.0, 16.0, 2.0, 48.0, 1.0]);
        let back = read_bart_images(&dir.path("a")).unwrap();
        assert_eq!(
            back.iter().map(|i| i.index).collect::<Vec<_>>(),
            images.iter().map(|i| i.index).collect::<Vec<_>>()
        );
        assert!(back.iter().zip(&images).all(|(a, b)| a.data == b.data && a.channels == 2));
        // Coils, maps and coefficients become channels.
        write_cfl(dir.path("b.cfl"), &[2, 1, 1, 2, 2, 2, 2], &ramp(32)).unwrap();
        let back = read_bart_images(&dir.path("b.cfl")).unwrap();
        assert_eq!((back.len(), back[1].channels), (2, 8));
        let expected: Vec<_> = [&ramp(32)[8..16], &ramp(32)[24..]].concat();
        assert_eq!(back[1].data, expected);
    }

    #[test]
    fn cartesian_points_that_are_zero_were_not_measured() {
        let dir = TempDir::new();
        let path = dir.path("k.cfl");
        let mut data = ramp(5 * 4 * 2);
        // Point (1, 0) is zero in one coil, point (2, 0) in both, and the line y = 3 in both.
        data[1] = Complex::ZERO;
        for coil in 0..2 {
            data[20 * coil + 2] = Complex::ZERO;
            data[20 * coil + 15..20 * coil + 20].fill(Complex::ZERO);
        }
        write_cfl(&path, &[5, 4, 1, 2], &data).unwrap();
        let scan = &read_bart(&path, None).unwrap().scans[0];
        assert!(scan.check().is_ok());
        assert_eq!((scan.samples_per_shot.clone(), scan.coils, scan.ndim), (vec![4, 5, 5], 2, 2));
        assert_eq!(scan.coordinates[0][..4], [-0.4, -0.2, 0.2, 0.4]);
        assert_eq!((scan.coordinates[1][0], scan.coordinates[1][13]), (-0.5, 0.0));
        assert_eq!((scan.data[1], scan.data[14 + 2]), (data[1], data[20 + 3]));

        let error = |dims: &[usize], data: &[Complex<f32>]| {
            write_cfl(&path, dims, data).unwrap();
            let e = read_bart(&path, None).unwrap_err();
            assert!(e.message().contains("k.cfl"), "{e}");
            (e.kind(), e.message().to_owned())
        };
        let (kind, message) = error(&[1, 5, 4, 2], &data);
        assert!(kind == ErrorKind::InvalidArgument && message.contains("bart transpose 0 2"), "{message}");
        let real: Vec<_> = (0..12).map(|i| Complex::from(i as f32)).collect();
        assert!(error(&[3, 4], &real).1.contains("a trajectory, not k-space"));
        assert!(error(&[4, 3], &[Complex::ZERO; 12]).1.contains("all points of k-space are zero"));
        let averages = [&[4][..], &[1; 13], &[3]].concat();
        assert!(error(&averages, &real).1.contains("bart avg -w 16384"));
        assert!(error(&[4, 1, 1, 1, 3], &real).1.contains("bart slice 4 0"));
        data[7].im = f32::NAN;
        assert_eq!(error(&[5, 4, 1, 2], &data).0, ErrorKind::NotFinite);
        let long = [&[1; 10][..], &[65537]].concat();
        assert!(error(&long, &vec![Complex::from(1.0); 65537]).1.contains("at most 65536"));
    }

    #[test]
    fn frames_have_their_trajectory() {
        let dir = TempDir::new();
        let (k, t) = (dir.path("k.cfl"), dir.path("t.cfl"));
        let trajectory = Some(TrajectoryFile { path: &t, matrix: [16, 16, 1] });
        let points = |frames: usize| -> Vec<Complex<f32>> {
            (0..6 * frames).flat_map(|i| [i as f32 - 8.0, 0.5, 0.0]).map(Complex::from).collect()
        };
        // Two coils; two echoes of three times.
        write_cfl(&k, &[1, 3, 2, 2, 1, 2, 1, 1, 1, 1, 3], &ramp(72)).unwrap();
        write_cfl(&t, &[3, 3, 2], &points(1)).unwrap();
        let shared = read_bart(&k, trajectory).unwrap().scans;
        let numbers: Vec<_> = shared.iter().map(|s| (s.index.repetition, s.index.contrast)).collect();
        assert_eq!(numbers, [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1)]);
        assert!(shared.iter().all(|s| s.coordinates == shared[0].coordinates && s.check().is_ok()));
        assert_eq!(shared[3].data, ramp(72)[36..48]);

        write_cfl(&t, &[3, 3, 2, 1, 1, 1, 1, 1, 1, 1, 2], &points(2)).unwrap();
        let e = read_bart(&k, trajectory).unwrap_err();
        assert!(e.kind() == ErrorKind::SizeMismatch && e.message().contains("size 3 along dimension 10"), "{e}");
        write_cfl(&t, &[3, 3, 2, 1, 1, 2], &points(2)).unwrap();
        let echoes = read_bart(&k, trajectory).unwrap().scans;
        assert_eq!(echoes[3].coordinates[0][0], -2.0 / 16.0);
        assert_eq!(echoes[4].coordinates, shared[0].coordinates);
        // The message names the frame.
        let mut bad = points(2);
        bad[20].re = 1.0;
        write_cfl(&t, &[3, 3, 2, 1, 1, 2], &bad).unwrap();
        let e = read_bart(&k, trajectory).unwrap_err();
        assert!(e.message().contains("t.cfl") && e.message().contains("contrast 1"), "{e}");
    }
}
