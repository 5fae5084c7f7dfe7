//! `.cfl` files of BART: complex numbers in single precision, with the sizes in a `.hdr` file. No crate reads them.

use super::bytes::{open_file, write_complex, EndianBytes};
use num_complex::Complex;
use recon::atomic_file::AtomicFiles;
use recon::error::{bail, checked_product, Error, ErrorKind, Result};
use recon::geometry::wrap_coordinate;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

/// The number of dimensions of BART, all of which its headers list.
pub const MAX_DIMS: usize = 16;

/// The dimensions along which an array has several scans or images: echoes, repetitions (time), cardiac phases, slices
/// and sets.
pub const COUNTER_DIMS: [usize; 5] = [5, 10, 11, 13, 15];

/// A BART array: complex numbers with up to 16 dimensions, fastest first.
#[derive(Debug, Clone, PartialEq)]
pub struct Cfl {
    /// The sizes, fastest first, without trailing ones.
    pub dims: Vec<usize>,
    /// The numbers; the length is the product of the sizes.
    pub data: Vec<Complex<f32>>,
}

/// Returns the paths of the `.cfl` and the `.hdr` file. `path` may have either extension or no extension.
pub fn pair(path: &Path) -> (PathBuf, PathBuf) {
    let is_one_of = |name: &OsStr, names: [&str; 2]| names.iter().any(|n| name.eq_ignore_ascii_case(n));
    let base = match (path.extension(), path.file_name()) {
        (Some(extension), _) if is_one_of(extension, ["cfl", "hdr"]) => path.with_extension(""),
        // The name is only the extension.
        (None, Some(name)) if is_one_of(name, [".cfl", ".hdr"]) => path.with_file_name(""),
        _ => path.to_owned(),
    };
    let with_extension = |extension: &str| {
        let mut name = base.clone().into_os_string();
        name.push(extension);
        PathBuf::from(name)
    };
    (with_extension(".cfl"), with_extension(".hdr"))
}

/// Reads an array written by BART. `path` is the `.cfl` file, the `.hdr` file, or their name without an extension.
///
/// # Errors
/// `IO` if either file cannot be read; `BadFile` if the header has no sizes, or not the sizes of the data.
pub fn read_cfl(path: impl AsRef<Path>) -> Result<Cfl> {
    let (cfl, hdr) = pair(path.as_ref());
    let dims = read_header(&hdr).map_err(|e| e.within(hdr.display()))?;
    read_data(&cfl, dims).map_err(|e| e.within(cfl.display()))
}

fn read_header(path: &Path) -> Result<Vec<usize>> {
    let mut text = Vec::new();
    let read = File::open(path).and_then(|f| f.take(1 << 20).read_to_end(&mut text));
    if let Err(e) = read {
        bail!(IO, "{e}: a .cfl file needs its .hdr file in the same folder");
    }
    let text = String::from_utf8_lossy(&text);
    if text.trim().is_empty() {
        bail!(BadFile, "the file is empty: the sizes must follow a line \"# Dimensions\"");
    }
    let mut lines = text.lines().skip_while(|l| l.trim() != "# Dimensions").skip(1);
    let Some(line) = lines.find(|l| !l.trim().is_empty()).filter(|l| !l.starts_with('#')) else {
        bail!(BadFile, "no sizes after a line \"# Dimensions\": the file is not a BART header or is damaged");
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
    let io = |e: std::io::Error| Error::new(ErrorKind::IO, e.to_string());
    let file = open_file(path)?;
    let length = file.metadata().map_err(io)?.len();
    let count = checked_product(&dims, "the array")?;
    if length != count as u64 * 8 {
        let announced = count as u64 * 8;
        bail!(BadFile, "{length} bytes, but the header announces {dims:?}, {announced} bytes: the file is damaged");
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
        let block = EndianBytes { is_big_endian: false, bytes: &block[..bytes] };
        data.extend((0..bytes / 8).map(|i| Complex::new(block.f32(8 * i), block.f32(8 * i + 4))));
    }
    Ok(Cfl { dims, data })
}

/// Writes an array for BART to `files`, as `.cfl` and `.hdr`. `dims` are the sizes, fastest first; `path` is as for
/// [`read_cfl`].
///
/// # Errors
/// `InvalidSize` if there are no sizes, more than 16, or a size of 0; `SizeMismatch` if their product is not the length
/// of `data`; `IO` if the files cannot be written.
pub fn write_cfl(files: &mut AtomicFiles, path: &Path, dims: &[usize], data: &[Complex<f32>]) -> Result<()> {
    let (cfl, hdr) = pair(path);
    if dims.is_empty() || dims.len() > MAX_DIMS || dims.contains(&0) {
        bail!(InvalidSize, "{}: the sizes are {dims:?}: 1 to {MAX_DIMS} positive sizes are expected", cfl.display());
    }
    let count = checked_product(dims, "the array")?;
    if count != data.len() {
        bail!(SizeMismatch, "{}: sizes {dims:?} need {count} numbers, not {}", cfl.display(), data.len());
    }
    let mut header = String::from("# Dimensions\n");
    for i in 0..MAX_DIMS {
        header += &format!("{} ", dims.get(i).unwrap_or(&1));
    }
    header += "\n";
    let io = |e: std::io::Error| Error::new(ErrorKind::IO, format!("{}: {e}", cfl.display()));
    File::create(files.add(&cfl)?).and_then(|mut file| write_complex(&mut file, data)).map_err(io)?;
    fs::write(files.add(&hdr)?, &header).map_err(io)
}

/// The layout of a BART trajectory, for messages.
const TRAJECTORY: &str = "[3, samples, shots]";
/// The layout of BART k-space data, for messages.
const KSPACE: &str = "[1, samples, shots, coils]";

/// Maximum imaginary part of numbers that are real up to rounding, relative to the largest real part.
const IMAGINARY_ROUNDING: f32 = 1e-5;

impl Cfl {
    /// Returns all 16 sizes.
    pub fn sizes(&self) -> [usize; MAX_DIMS] {
        std::array::from_fn(|i| self.dims.get(i).copied().unwrap_or(1))
    }

    /// Returns the real parts of numbers that are real up to rounding.
    ///
    /// # Errors
    /// `NotFinite`; `BadFile` if an imaginary part is too large. The message has the position of the largest one.
    fn real_parts(&self, what: &str) -> Result<impl Iterator<Item = f32> + '_> {
        let position = |i: usize| {
            let indices = self.dims.iter().scan(i, |rest, &n| {
                let index = *rest % n;
                *rest /= n;
                Some(index)
            });
            indices.collect::<Vec<_>>()
        };
        let (mut real, mut imaginary, mut largest) = (0f32, 0f32, 0);
        for (i, z) in self.data.iter().enumerate() {
            if !z.is_finite() {
                bail!(NotFinite, "{what} is {z} at {:?}", position(i));
            }
            real = real.max(z.re.abs());
            if z.im.abs() > imaginary {
                (imaginary, largest) = (z.im.abs(), i);
            }
        }
        if real == 0.0 && imaginary > 0.0 {
            bail!(
                BadFile,
                "{what} is purely imaginary, {} at {:?}, and must be real. If the imaginary parts are the data, \
                 bart scale -- -1i IN OUT makes them real",
                self.data[largest],
                position(largest)
            );
        }
        if imaginary > IMAGINARY_ROUNDING * real {
            bail!(
                BadFile,
                "{what} is {} at {:?}, and must be real. If the real parts are the data, bart creal IN OUT removes \
                 the imaginary parts",
                self.data[largest],
                position(largest)
            );
        }
        Ok(self.data.iter().map(|z| z.re))
    }

    /// Returns the command that exchanges two dimensions of this array; `None` if `fits` accepts no such order.
    pub fn reorder(&self, fits: impl Fn(&[usize; MAX_DIMS]) -> bool) -> Option<String> {
        let mut pairs = (0..MAX_DIMS).flat_map(|a| (a + 1..MAX_DIMS).map(move |b| (a, b)));
        let pair = pairs.find(|&(a, b)| {
            let mut sizes = self.sizes();
            sizes.swap(a, b);
            fits(&sizes)
        });
        pair.map(|(a, b)| format!("bart transpose {a} {b} IN OUT exchanges two dimensions"))
    }
}

/// Returns whether all dimensions from `first` have size 1, except those of counters.
fn has_only_counters(first: usize, sizes: &[usize; MAX_DIMS]) -> bool {
    (first..MAX_DIMS).all(|dim| sizes[dim] == 1 || COUNTER_DIMS.contains(&dim))
}

fn list_counter_dims() -> String {
    COUNTER_DIMS.map(|dim| dim.to_string()).join(", ")
}

/// A trajectory in the units of this library.
#[derive(Debug, Clone, PartialEq)]
pub struct BartTrajectory {
    /// The coordinates of the samples in cycles per voxel, [-0.5, 0.5), one vector per axis; two axes if `matrix[2]` is
    /// 1.
    pub coordinates: Vec<Vec<f32>>,
    /// The number of samples of each shot.
    pub samples_per_shot: Vec<usize>,
}

/// Checks the sizes of a BART trajectory: `[3, samples, shots]`, and frames along the dimensions of counters.
///
/// # Errors
/// `InvalidSize`, with the BART command that helps.
pub fn check_trajectory(array: &Cfl) -> Result<()> {
    let sizes = array.sizes();
    let fits = |n: &[usize; MAX_DIMS]| n[0] == 3 && has_only_counters(3, n);
    if fits(&sizes) {
        return Ok(());
    }
    let remedy = match sizes[0] {
        3 => format!(
            "only dimensions {} may have further sizes: bart slice selects a part, bart reshape joins dimensions to \
             the shots",
            list_counter_dims()
        ),
        2 if has_only_counters(3, &sizes) => "bart resize 0 3 IN OUT appends a third component of zeros".into(),
        _ => array.reorder(fits).unwrap_or_else(|| {
            "the first dimension must be the components x, y and z: bart transpose exchanges dimensions, bart join 0 \
             joins components"
                .into()
        }),
    };
    bail!(InvalidSize, "a BART trajectory must have sizes {TRAJECTORY}, not {:?}: {remedy}", array.dims);
}

/// Converts a BART trajectory of one frame, `[3, samples, shots]` in units of 1/FOV, for an image of `matrix` voxels.
///
/// Coordinates in 1/FOV are divided by the matrix size. Imaginary parts of the size of rounding are ignored, and a
/// coordinate outside k-space by rounding only becomes the edge.
///
/// # Errors
///
/// - `InvalidSize`: the sizes are different, or one of `matrix` is 0.
/// - `NotFinite`.
/// - `BadFile`: coordinates have imaginary parts.
/// - `CoordinateOutOfRange`: a coordinate is outside [-0.5, 0.5], or is not 0 along an axis of one voxel.
pub fn trajectory_from_bart(array: &Cfl, matrix: [usize; 3]) -> Result<BartTrajectory> {
    check_trajectory(array)?;
    let sizes = array.sizes();
    if sizes[3..].iter().any(|&n| n > 1) {
        bail!(InvalidSize, "the trajectory of one frame must have sizes {TRAJECTORY}, not {:?}", array.dims);
    }
    if matrix.contains(&0) {
        bail!(InvalidSize, "the matrix is {matrix:?}: its sizes must be at least 1");
    }
    let ndim = if matrix[2] == 1 { 2 } else { 3 };
    let mut coordinates = vec![Vec::with_capacity(array.data.len() / 3); ndim];
    for (i, value) in array.real_parts("the trajectory")?.enumerate() {
        let (sample, axis) = (i / 3, i % 3);
        let k = if axis < ndim { wrap_coordinate(value / matrix[axis] as f32) } else { Some(0.0) };
        match k {
            Some(k) if axis < ndim => coordinates[axis].push(k),
            Some(_) if value == 0.0 => {}
            _ => bail!(
                CoordinateOutOfRange,
                "sample {sample} of the trajectory, axis {axis}: {value} is outside the range of a matrix of {n} \
                 voxels, -{n}/2 to {n}/2: give the matrix size that the trajectory was made for",
                n = matrix[axis]
            ),
        }
    }
    Ok(BartTrajectory { coordinates, samples_per_shot: vec![sizes[1]; sizes[2]] })
}

/// Returns the numbers of samples and coils of each frame of BART k-space, `[1, samples, shots, coils]` with frames
/// along [`COUNTER_DIMS`].
///
/// Samples and shots must agree with `trajectory`, `[3, samples, shots]`, which has as many frames as k-space along
/// each of these dimensions, or one for all. If exchanging two dimensions would help, the error has the command.
/// Dimensions of the same size cannot be distinguished.
///
/// # Errors
/// `InvalidSize` if the array has other dimensions; `SizeMismatch` if samples, shots or frames disagree with the
/// trajectory.
pub fn kspace_from_bart(array: &Cfl, trajectory: &Cfl) -> Result<(usize, usize)> {
    let points = trajectory.sizes();
    let [_, samples, shots, ..] = points;
    let own = array.sizes();
    let is_kspace = |n: &[usize; MAX_DIMS]| n[0] == 1 && has_only_counters(4, n);
    let has_same_shots = |n: &[usize; MAX_DIMS]| is_kspace(n) && n[1..3] == [samples, shots];
    let differing = COUNTER_DIMS.into_iter().find(|&dim| points[dim] != 1 && points[dim] != own[dim]);
    let (dims, remedy) = (&array.dims, array.reorder(has_same_shots));
    match (has_same_shots(&own), differing) {
        (true, None) => return Ok((samples * shots, own[3])),
        (true, Some(dim)) => bail!(
            SizeMismatch,
            "k-space {dims:?} has size {} along dimension {dim}, and the trajectory {:?} has size {}: the trajectory must \
             have a frame for each frame of k-space, or one for all: bart slice and bart extract select some",
            own[dim],
            trajectory.dims,
            points[dim]
        ),
        _ => {}
    }
    if is_kspace(&own) {
        let remedy = remedy.map_or_else(
            || "the data belong to a different trajectory, or dimensions were joined or exchanged".into(),
            |command| format!("{command} of one of the two"),
        );
        bail!(
            SizeMismatch,
            "k-space {KSPACE} is {dims:?} and the trajectory {TRAJECTORY} is {:?}: samples and shots must agree: \
             {remedy}",
            trajectory.dims
        );
    }
    let remedy = match remedy {
        _ if own[0] == 3 => "an array with a first size of 3 is a trajectory".into(),
        Some(command) => command,
        None => "bart transpose exchanges dimensions, bart slice selects a part".into(),
    };
    bail!(
        InvalidSize,
        "BART k-space must have sizes {KSPACE}, with this trajectory [1, {samples}, {shots}, coils], not {dims:?}: \
         {remedy}"
    );
}

#[cfg(test)]
mod tests {
    use super::super::tests::{ramp, write_cfl, TempDir};
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
        assert_eq!(read_cfl(&cfl).unwrap_err().kind(), ErrorKind::IO);
        fs::write(&cfl, [0; 48]).unwrap();
        let e = read_cfl(&cfl).unwrap_err();
        assert!(e.kind() == ErrorKind::IO && e.message().contains("needs its .hdr"), "{e}");
        for (text, kind, part) in [
            ("", ErrorKind::BadFile, "empty"),
            ("\n\n", ErrorKind::BadFile, "empty"),
            ("2 3", ErrorKind::BadFile, "no sizes"),
            ("# Dimensions\n", ErrorKind::BadFile, "no sizes"),
            ("# Dimensions\n# Command\n2 3\n", ErrorKind::BadFile, "no sizes"),
            ("# Dimensions\n2 x 3\n", ErrorKind::BadFile, "malformed"),
            ("# Dimensions\n2 -3\n", ErrorKind::BadFile, "malformed"),
            ("# Dimensions\n2 0 3\n", ErrorKind::BadFile, "malformed"),
            ("# Dimensions\n2 4\n", ErrorKind::BadFile, "announces [2, 4], 64 bytes"),
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
        assert_eq!(read_cfl(&cfl).unwrap_err().kind(), ErrorKind::IO);
        assert_eq!(write_cfl(&cfl, &[2, 2], &ramp(3)).unwrap_err().kind(), ErrorKind::SizeMismatch);
        assert_eq!(write_cfl(&cfl, &[0], &[]).unwrap_err().kind(), ErrorKind::InvalidSize);
        assert!(!cfl.exists());
    }

    #[test]
    fn trajectories() {
        let points = [[-4.0, 2.0, 0.0], [4.0, -1.0, 0.0], [0.0, 0.5, 0.0], [1.0, 1.0, 0.0]];
        let data = points.iter().flatten().map(|&v| Complex::new(v, 2e-6)).collect();
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
        let (k, t) = (Cfl { dims: vec![1, 4, 3, 2], data: ramp(24) }, Cfl { dims: vec![3, 4, 3], data: ramp(36) });
        assert_eq!(kspace_from_bart(&k, &t).unwrap(), (12, 2));
        assert!(kspace_from_bart(&array, &t).is_err());
    }
}
