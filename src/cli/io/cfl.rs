//! BART's `.cfl` files: complex numbers in single precision, their sizes in a `.hdr` file beside them.

use super::atomic::write_files;
use super::{wrap_coordinate, write_complex, Bytes};
use num_complex::Complex;
use recon::error::{bail, checked_product, Error, ErrorKind, Result};
use std::fs::{self, File};
use std::io::{BufReader, Read, Write};
use std::path::{Path, PathBuf};

/// The most dimensions that BART knows; its headers list them all.
pub const MAX_DIMS: usize = 16;

/// An array of BART's: complex numbers with up to 16 dimensions, fastest first.
#[derive(Debug, Clone, PartialEq)]
pub struct Cfl {
    /// The sizes, fastest first, without the ones at the end.
    pub dims: Vec<usize>,
    /// As many numbers as the product of the sizes.
    pub data: Vec<Complex<f32>>,
}

/// `path` with its ending `.cfl` or `.hdr` (or without either) as the pair of the two.
fn pair(path: &Path) -> (PathBuf, PathBuf) {
    let known = path.extension().is_some_and(|e| e.eq_ignore_ascii_case("cfl") || e.eq_ignore_ascii_case("hdr"));
    let base = if known { path.with_extension("") } else { path.to_owned() };
    let with = |ending: &str| {
        let mut name = base.clone().into_os_string();
        name.push(ending);
        PathBuf::from(name)
    };
    (with(".cfl"), with(".hdr"))
}

/// Reads an array written by BART: `path` is that of the `.cfl` file, of the `.hdr` file, or of neither ending.
///
/// # Errors
/// `Io` when either file cannot be read; `BadFile` when the header lists no sizes, or not the sizes of the data.
pub fn read_cfl(path: impl AsRef<Path>) -> Result<Cfl> {
    let (cfl, hdr) = pair(path.as_ref());
    let dims = read_header(&hdr).map_err(|e| e.within(hdr.display()))?;
    read_data(&cfl, dims).map_err(|e| e.within(cfl.display()))
}

fn read_header(path: &Path) -> Result<Vec<usize>> {
    let mut text = Vec::new();
    let read = File::open(path).and_then(|f| f.take(1 << 20).read_to_end(&mut text));
    if let Err(e) = read {
        bail!(Io, "{e}: a .cfl file needs its .hdr file beside it");
    }
    let text = String::from_utf8_lossy(&text);
    if text.trim().is_empty() {
        bail!(BadFile, "the file is empty: the sizes belong under the line \"# Dimensions\"");
    }
    let mut lines = text.lines().skip_while(|l| l.trim() != "# Dimensions").skip(1);
    let Some(line) = lines.find(|l| !l.trim().is_empty()).filter(|l| !l.starts_with('#')) else {
        bail!(BadFile, "no sizes under a line \"# Dimensions\"");
    };
    let dims: Option<Vec<usize>> =
        line.split_whitespace().map(|n| n.parse().ok().filter(|&n| n > 0 && n <= i64::MAX as usize)).collect();
    let Some(mut dims) = dims else {
        bail!(BadFile, "malformed sizes {:?}: positive integers are expected", line.trim());
    };
    while dims.len() > 1 && dims.last() == Some(&1) {
        dims.pop();
    }
    if dims.len() > MAX_DIMS {
        bail!(BadFile, "{} sizes: BART's arrays have at most {MAX_DIMS}", dims.len());
    }
    Ok(dims)
}

fn read_data(path: &Path, dims: Vec<usize>) -> Result<Cfl> {
    let io = |e: std::io::Error| Error::new(ErrorKind::Io, e.to_string());
    let file = File::open(path).map_err(io)?;
    let length = file.metadata().map_err(io)?.len();
    let count = checked_product(&dims, "the array")?;
    if length != count as u64 * 8 {
        let wanted = count as u64 * 8;
        bail!(BadFile, "{length} bytes, but its header announces {dims:?}, that is {wanted}: the file is damaged");
    }
    let mut data = Vec::new();
    if data.try_reserve_exact(count).is_err() {
        bail!(OutOfHostMemory, "could not allocate {length} bytes for the array");
    }
    let mut reader = BufReader::new(file);
    let mut block = vec![0u8; 1 << 16];
    while data.len() < count {
        let bytes = ((count - data.len()) * 8).min(block.len());
        reader.read_exact(&mut block[..bytes]).map_err(io)?;
        let block = Bytes { big: false, bytes: &block[..bytes] };
        data.extend((0..bytes / 8).map(|i| Complex::new(block.f32(8 * i), block.f32(8 * i + 4))));
    }
    Ok(Cfl { dims, data })
}

/// Writes an array for BART: the files `.cfl` and `.hdr`, both or neither. `dims` are its sizes, fastest first; `path`
/// is as for [`read_cfl`].
///
/// # Errors
/// `InvalidSize` for no or more than 16 sizes, or one that is zero; `SizeMismatch` when their product is not the length
/// of `data`; `Io` when the files cannot be written.
pub fn write_cfl(path: impl AsRef<Path>, dims: &[usize], data: &[Complex<f32>]) -> Result<()> {
    let (cfl, hdr) = pair(path.as_ref());
    if dims.is_empty() || dims.len() > MAX_DIMS || dims.contains(&0) {
        bail!(InvalidSize, "{}: sizes {dims:?}: 1 to {MAX_DIMS} positive sizes are expected", cfl.display());
    }
    let count = checked_product(dims, "the array")?;
    if count != data.len() {
        bail!(SizeMismatch, "{}: sizes {dims:?} are {count} numbers, not {}", cfl.display(), data.len());
    }
    let mut header = String::from("# Dimensions\n");
    for i in 0..MAX_DIMS {
        header += &format!("{} ", dims.get(i).unwrap_or(&1));
    }
    header += "\n";
    write_files(&[&cfl, &hdr], |parts| {
        let io = |e: std::io::Error| Error::new(ErrorKind::Io, format!("{}: {e}", cfl.display()));
        let mut file = File::create(&parts[0]).map_err(io)?;
        write_complex(&mut file, data).and_then(|()| file.flush()).map_err(io)?;
        fs::write(&parts[1], &header).map_err(io)
    })
}

/// A trajectory in the form this library takes.
#[derive(Debug, Clone, PartialEq)]
pub struct BartTrajectory {
    /// Per axis, the coordinates of the samples in cycles per voxel, [-0.5, 0.5); two axes when `matrix[2]` is 1.
    pub coordinates: Vec<Vec<f32>>,
    /// The samples of each shot.
    pub samples_per_shot: Vec<usize>,
}

/// Converts a trajectory of BART's, `[3, samples, shots, ...]` in units of 1/FOV, for an image of `matrix` voxels:
/// cycles per voxel are that value divided by the matrix size. The imaginary parts are not looked at. A coordinate of
/// exactly 0.5 becomes -0.5, the same point for voxels at integer positions.
///
/// # Errors
/// `InvalidSize` when the first size is not 3 or one of `matrix` is zero; `NotFinite`; `CoordinateOutOfRange` for a
/// coordinate outside [-0.5, 0.5], and for any along an axis of one voxel.
pub fn trajectory_from_bart(array: &Cfl, matrix: [usize; 3]) -> Result<BartTrajectory> {
    let size = |i: usize| array.dims.get(i).copied().unwrap_or(1);
    if size(0) != 3 {
        let dims = &array.dims;
        bail!(InvalidSize, "a trajectory of BART's has sizes [3, samples, shots], these are {dims:?}");
    }
    if matrix.contains(&0) {
        bail!(InvalidSize, "an image of {matrix:?} voxels has none");
    }
    let (samples, count) = (size(1), array.data.len() / 3);
    let ndim = if matrix[2] == 1 { 2 } else { 3 };
    let mut coordinates = vec![Vec::with_capacity(count); ndim];
    for (i, point) in array.data.chunks_exact(3).enumerate() {
        for (axis, z) in point.iter().enumerate() {
            let value = z.re;
            if !value.is_finite() {
                bail!(NotFinite, "sample {i} of the trajectory, axis {axis}: {value}");
            }
            let k = if axis < ndim { wrap_coordinate(value / matrix[axis] as f32) } else { Some(0.0) };
            match k {
                Some(k) if axis < ndim => coordinates[axis].push(k),
                Some(_) if value == 0.0 => {}
                _ => bail!(
                    CoordinateOutOfRange,
                    "sample {i} of the trajectory, axis {axis}: {value} is outside the range of {} voxels, half of \
                     that either way: give the matrix size that the trajectory was made for",
                    matrix[axis]
                ),
            }
        }
    }
    Ok(BartTrajectory { coordinates, samples_per_shot: vec![samples; count / samples.max(1)] })
}

/// The counts (samples, coils) of k-space data of BART's, `[1, samples, shots, coils]`, whose numbers are in the order
/// `[samples, coils]` as they are.
///
/// # Errors
/// `InvalidSize` when the array has other sizes.
pub fn kspace_from_bart(array: &Cfl) -> Result<(usize, usize)> {
    let size = |i: usize| array.dims.get(i).copied().unwrap_or(1);
    if size(0) != 1 || array.dims.len() > 4 {
        bail!(InvalidSize, "k-space of BART's has sizes [1, samples, shots, coils], these are {:?}", array.dims);
    }
    Ok((size(1) * size(2), size(3)))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{ramp, TempDir};
    use super::*;

    #[test]
    fn round_trip_and_endings() {
        let dir = TempDir::new();
        let data = ramp(2 * 3 * 4);
        for name in ["a.cfl", "b.hdr", "c", "d.with.dots"] {
            let path = dir.path(name);
            write_cfl(&path, &[2, 3, 1, 4], &data).unwrap();
            assert_eq!(read_cfl(&path).unwrap(), Cfl { dims: vec![2, 3, 1, 4], data: data.clone() });
        }
        assert!(dir.path("d.with.dots.hdr").exists());
        let header = fs::read_to_string(dir.path("a.hdr")).unwrap();
        assert_eq!(header, "# Dimensions\n2 3 1 4 1 1 1 1 1 1 1 1 1 1 1 1 \n");
    }

    #[test]
    fn bad_files() {
        let dir = TempDir::new();
        let (cfl, hdr) = (dir.path("a.cfl"), dir.path("a.hdr"));
        assert_eq!(read_cfl(&cfl).unwrap_err().kind(), ErrorKind::Io);
        fs::write(&cfl, [0; 48]).unwrap();
        let e = read_cfl(&cfl).unwrap_err();
        assert!(e.kind() == ErrorKind::Io && e.message().contains("needs its .hdr"), "{e}");
        for (text, kind, part) in [
            ("", ErrorKind::BadFile, "empty"),
            ("\n\n", ErrorKind::BadFile, "empty"),
            ("2 3", ErrorKind::BadFile, "no sizes"),
            ("# Dimensions\n", ErrorKind::BadFile, "no sizes"),
            ("# Dimensions\n# Command\n2 3\n", ErrorKind::BadFile, "no sizes"),
            ("# Dimensions\n2 x 3\n", ErrorKind::BadFile, "malformed"),
            ("# Dimensions\n2 -3\n", ErrorKind::BadFile, "malformed"),
            ("# Dimensions\n2 0 3\n", ErrorKind::BadFile, "malformed"),
            ("# Dimensions\n2 4\n", ErrorKind::BadFile, "announces [2, 4], that is 64"),
            ("# Dimensions\n4294967296 4294967296\n", ErrorKind::SizeOverflow, "overflows"),
            ("# Dimensions\n2 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2\n", ErrorKind::BadFile, "17 sizes"),
        ] {
            fs::write(&hdr, text).unwrap();
            let e = read_cfl(&cfl).unwrap_err();
            assert!(e.kind() == kind && e.message().contains(part), "{text:?}: {e}");
        }
        fs::write(&hdr, "# Dimensions\n2 3 \n# Command\nphantom\n").unwrap();
        assert_eq!(read_cfl(&cfl).unwrap().data.len(), 6);
        fs::remove_file(&cfl).unwrap();
        assert_eq!(read_cfl(&cfl).unwrap_err().kind(), ErrorKind::Io);
        assert_eq!(write_cfl(&cfl, &[2, 2], &ramp(3)).unwrap_err().kind(), ErrorKind::SizeMismatch);
        assert_eq!(write_cfl(&cfl, &[0], &[]).unwrap_err().kind(), ErrorKind::InvalidSize);
        assert!(!cfl.exists());
    }

    #[test]
    fn trajectories() {
        let points = [[-4.0, 2.0, 0.0], [4.0, -1.0, 0.0], [0.0, 0.5, 0.0], [1.0, 1.0, 0.0]];
        let data = points.iter().flatten().map(|&v| Complex::new(v, 9.0)).collect();
        let mut array = Cfl { dims: vec![3, 2, 2], data };
        let t = trajectory_from_bart(&array, [8, 4, 1]).unwrap();
        assert_eq!(t.coordinates, [vec![-0.5, -0.5, 0.0, 0.125], vec![-0.5, -0.25, 0.125, 0.25]]);
        assert_eq!(t.samples_per_shot, [2, 2]);
        assert_eq!(trajectory_from_bart(&array, [8, 4, 2]).unwrap().coordinates.len(), 3);
        let kind = |a: &Cfl, m| trajectory_from_bart(a, m).unwrap_err().kind();
        assert_eq!(kind(&array, [6, 4, 1]), ErrorKind::CoordinateOutOfRange);
        assert_eq!(kind(&array, [6, 0, 1]), ErrorKind::InvalidSize);
        array.data[2].re = 1.0;
        assert_eq!(kind(&array, [8, 4, 1]), ErrorKind::CoordinateOutOfRange);
        array.data[2].re = f32::NAN;
        assert_eq!(kind(&array, [8, 4, 1]), ErrorKind::NotFinite);
        array.dims = vec![2, 6];
        assert_eq!(kind(&array, [8, 4, 1]), ErrorKind::InvalidSize);
        assert_eq!(kspace_from_bart(&Cfl { dims: vec![1, 4, 3, 2], data: ramp(24) }).unwrap(), (12, 2));
        assert!(kspace_from_bart(&array).is_err());
    }
}
