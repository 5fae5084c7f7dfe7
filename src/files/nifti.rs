//! Reads and writes NIfTI-1 files, `.nii` and `.nii.gz`.
//!
//! The reader is our own, 190 lines. The crate nifti 0.18 was tried on the same files. It adds 9 packages and reads
//! `.nii.gz` files whose checksum is wrong or missing without an error. For a damaged file of 260 kB it reserves the
//! announced 4.2 GB before it reads. It converts integers only through ndarray, and positions not to the patient's
//! coordinates.

use super::bytes::{read_up_to, write_blocks, EndianBytes};
use super::image::{Image, Placement};
use super::stacks::{cross, divide_into_stacks, length, name_suffixes, placement_of, ImageGeometry, SliceStack};
use flate2::{read::MultiGzDecoder, write::GzEncoder, Compression};
use num_complex::Complex;
use recon::atomic_file::AtomicFiles;
use recon::error::{bail, checked_product, Error, ErrorKind, Result};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

/// The length of the header in bytes.
const HEADER: usize = 348;
/// The position of the data in files that we write: after the header and four bytes for "no extension".
const OFFSET: usize = 352;
/// NIfTI's codes of units, for lengths and times; 0 means unknown.
const MILLIMETRE: u8 = 2;
const SECOND: u8 = 8;

/// Returns the names of the files of these stacks: `path`, or one name per stack, such as `image_contrast1.nii.gz`.
pub fn file_names(path: &Path, stacks: &[SliceStack]) -> Vec<PathBuf> {
    let name = Path::new(path.file_name().unwrap_or_default());
    let is = |text: Option<&OsStr>, expected: &str| text.is_some_and(|text| text.eq_ignore_ascii_case(expected));
    let gz = name.extension().filter(|e| is(Some(*e), "gz"));
    let inner = Path::new(if gz.is_some() { name.file_stem().unwrap_or_default() } else { name.as_os_str() });
    // A name without a stem, `.nii`, has no extension for the standard library.
    let stem = if is(Some(inner.as_os_str()), ".nii") { OsStr::new("") } else { inner.file_stem().unwrap_or_default() };
    let suffixes = name_suffixes(stacks);
    let numbered = |suffix: &String| {
        let mut name = stem.to_owned();
        name.push(suffix);
        name.push(".nii");
        if let Some(gz) = gz {
            name.push(".");
            name.push(gz);
        }
        path.with_file_name(name)
    };
    match stacks.len() {
        0 | 1 => vec![path.to_owned()],
        _ => suffixes.iter().map(numbered).collect(),
    }
}

/// Writes images of one size to `files`, in single precision.
///
/// The dimensions of a file are x, y, z, repetitions and channels. Slices of 2D images are along z, sorted by their
/// position ([`divide_into_stacks`]). Other images than slices and repetitions have their own files ([`file_names`]),
/// and a warning lists them.
///
/// The numbers are magnitudes, or the values themselves if all are real. The file is compressed if its name ends with
/// `.gz`. Voxel sizes are in mm. Position and directions become the affine transform of the file. x and y change their
/// signs: ISMRMRD has x to the left and y to the back, NIfTI x to the right and y to the front. If position and
/// directions are unknown, the file has those of [`Placement::directions`], with the origin in the middle of the image,
/// and sform code 2 (aligned) instead of 1 (scanner).
///
/// # Errors
///
/// - `InvalidArgument`: there are no images, or they do not form volumes ([`divide_into_stacks`]).
/// - `InvalidSize`, `SizeMismatch`: images are not well formed, or differ in size.
/// - `Unsupported`: a size is above 32767, the maximum of NIfTI-1.
/// - `IO`: the file cannot be written.
pub fn write_nifti(files: &mut AtomicFiles, path: &Path, images: &[Image]) -> Result<()> {
    let within = |e: Error| e.within(path.display());
    let channels = check_sizes(images).map_err(within)?;
    let geometries: Vec<ImageGeometry> = images.iter().map(ImageGeometry::new).collect();
    let stacks = divide_into_stacks(&geometries).map_err(within)?;
    let names = file_names(path, &stacks);
    if names.len() > 1 {
        let list = names.iter().map(|name| name.display().to_string()).collect::<Vec<_>>().join(", ");
        log::warn!("{}: images that do not form one volume are in separate files: {list}", path.display());
    }
    for (stack, name) in stacks.iter().zip(&names) {
        warn_about_geometry(stack, images, name);
        let header = header(stack, channels).map_err(|e| e.within(name.display()))?;
        write_file(&files.add(name)?, name, &header, stack, images)?;
    }
    Ok(())
}

/// Checks that images are well formed and have the same size, and returns their number of channels.
fn check_sizes(images: &[Image]) -> Result<usize> {
    let Some(first) = images.first() else {
        bail!(InvalidArgument, "no image was given: give one or more");
    };
    for image in images {
        image.check()?;
        if (image.dims, image.channels) != (first.dims, first.channels) {
            bail!(
                SizeMismatch,
                "images of {:?} voxels in {} channels and of {:?} in {} cannot share a file: write a .h5 file",
                first.dims,
                first.channels,
                image.dims,
                image.channels
            );
        }
    }
    Ok(first.channels)
}

/// Warns if the order or the step of slices, or the size of voxels, is not from the headers.
fn warn_about_geometry(stack: &SliceStack, images: &[Image], path: &Path) {
    let slices = stack.images.len() / stack.repetitions;
    if !stack.is_placed && slices > 1 {
        log::warn!(
            "{}: the acquisition headers have no valid positions and directions: the {slices} slices are in the order \
             of their numbers, {} mm apart",
            path.display(),
            length(stack.columns[2])
        );
    }
    if stack.is_placed && !stack.has_voxel_size {
        let fov = images[stack.images[0]].fov_mm;
        log::warn!(
            "{}: the field of view is {fov:?} mm: the voxel size is unknown along axes with 0, and 1 mm is written",
            path.display()
        );
    }
}

/// Writes the images of a stack to the file `part`, which becomes the file `path`.
fn write_file(part: &Path, path: &Path, header: &[u8], stack: &SliceStack, images: &[Image]) -> Result<()> {
    let gzip = path.extension().is_some_and(|e| e.eq_ignore_ascii_case("gz"));
    let write = || {
        let mut file = File::create(part)?;
        if gzip {
            let mut out = GzEncoder::new(&mut file, Compression::default());
            write_body(&mut out, header, stack, images)?;
            out.finish()?;
        } else {
            write_body(&mut file, header, stack, images)?;
        }
        file.flush()
    };
    write().map_err(|e| Error::new(ErrorKind::IO, format!("{}: {e}", path.display())))
}

fn write_body(out: &mut impl Write, header: &[u8], stack: &SliceStack, images: &[Image]) -> std::io::Result<()> {
    out.write_all(header)?;
    let members = || stack.images.iter().map(|&i| &images[i]);
    let real = members().all(|image| image.data.iter().all(|z| z.im == 0.0));
    let channels = members().next().map_or(0, |image| image.channels);
    for image_channel in (0..channels).flat_map(|channel| members().map(move |image| image.channel(channel))) {
        write_blocks(out, image_channel, |z, block| block.extend(if real { z.re } else { z.norm() }.to_le_bytes()))?;
    }
    Ok(())
}

fn header(stack: &SliceStack, channels: usize) -> Result<Vec<u8>> {
    let [nx, ny, nz] = stack.dims;
    let sizes = [nx, ny, nz, stack.repetitions, channels];
    if sizes.iter().any(|&n| n > i16::MAX as usize) {
        bail!(
            Unsupported,
            "the sizes are {sizes:?}, and NIfTI-1 allows at most {}: write a .h5 or .cfl file",
            i16::MAX
        );
    }

    let mut h = vec![0u8; OFFSET];
    let mut put = |at: usize, bytes: &[u8]| h[at..at + bytes.len()].copy_from_slice(bytes);
    let (f32s, i16s) = (f32::to_le_bytes, i16::to_le_bytes);
    put(0, &(HEADER as i32).to_le_bytes());
    put(38, b"r");
    put(40, &i16s(if channels > 1 { 5 } else { 3 + i16::from(stack.repetitions > 1) }));
    for i in 0..7 {
        put(42 + 2 * i, &i16s(*sizes.get(i).unwrap_or(&1) as i16));
    }
    put(70, &i16s(16)); // float32
    put(72, &i16s(32)); // bits
    let voxel = stack.columns.map(length);
    let repetition_time = stack.repetition_time_ms.filter(|ms| *ms > 0.0 && ms.is_finite());
    let spacings = voxel.map(|mm| mm as f32).into_iter().chain([repetition_time.map_or(0.0, |ms| ms / 1000.0)]);
    for (i, spacing) in spacings.chain([1.0; 3]).enumerate() {
        put(80 + 4 * i, &f32s(spacing));
    }
    put(108, &f32s(OFFSET as f32));
    put(112, &f32s(1.0)); // slope
    let units = if stack.has_voxel_size { MILLIMETRE } else { 0 } | if repetition_time.is_some() { SECOND } else { 0 };
    put(123, &[units]);
    put(148, b"recon");

    // The directions of x, y and z in RAS coordinates are the columns of the affine transform.
    let ras = |v: [f64; 3]| [-v[0], -v[1], v[2]];
    let (columns, origin) = (stack.columns.map(ras), ras(stack.origin));
    let (quaternion, qfac) = quaternion(std::array::from_fn(|axis| columns[axis].map(|v| v / voxel[axis])));
    let code = if stack.is_placed { 1 } else { 2 };
    put(76, &f32s(qfac));
    put(252, &i16s(code));
    put(254, &i16s(code));
    for i in 0..3 {
        put(256 + 4 * i, &f32s(quaternion[i] as f32));
        put(268 + 4 * i, &f32s(origin[i] as f32));
        for (axis, column) in columns.iter().enumerate() {
            put(280 + 16 * i + 4 * axis, &f32s(column[i] as f32));
        }
        put(292 + 16 * i, &f32s(origin[i] as f32));
    }
    put(344, b"n+1\0");
    Ok(h)
}

/// Returns the components b, c, d of the unit quaternion of a rotation, and the sign of its third column. `columns` are
/// the columns of the rotation matrix.
fn quaternion(mut columns: [[f64; 3]; 3]) -> ([f64; 3], f32) {
    let [x, y, z] = columns;
    let normal = cross(x, y);
    let determinant: f64 = (0..3).map(|i| normal[i] * z[i]).sum();
    let qfac = if determinant < 0.0 { -1.0 } else { 1.0 };
    columns[2] = z.map(|v| v * qfac as f64);
    let r = |row: usize, column: usize| columns[column][row];
    // Four times the squares of a, b, c, d. The largest one is the divisor.
    let squares = [
        1.0 + r(0, 0) + r(1, 1) + r(2, 2),
        1.0 + r(0, 0) - r(1, 1) - r(2, 2),
        1.0 - r(0, 0) + r(1, 1) - r(2, 2),
        1.0 - r(0, 0) - r(1, 1) + r(2, 2),
    ];
    let largest = (0..4).fold(0, |best, i| if squares[i] > squares[best] { i } else { best });
    let s = 2.0 * squares[largest].max(0.0).sqrt();
    let (ab, ac, ad) = ((r(2, 1) - r(1, 2)) / s, (r(0, 2) - r(2, 0)) / s, (r(1, 0) - r(0, 1)) / s);
    let (bc, bd, cd) = ((r(0, 1) + r(1, 0)) / s, (r(0, 2) + r(2, 0)) / s, (r(1, 2) + r(2, 1)) / s);
    let [a, b, c, d] = match largest {
        0 => [s / 4.0, ab, ac, ad],
        1 => [ab, s / 4.0, bc, bd],
        2 => [ac, bc, s / 4.0, cd],
        _ => [ad, bd, cd, s / 4.0],
    };
    let sign = if a < 0.0 { -1.0 } else { 1.0 };
    ([b * sign, c * sign, d * sign], qfac)
}

/// Reads a NIfTI-1 file of real or complex numbers, compressed or not. Dimensions after `[x, y, z]` become channels.
///
/// The voxel size becomes the field of view. The affine transform becomes the [`Placement`]: the sform, otherwise the
/// qform. The placement is unknown if the file has neither, or if the directions are not perpendicular.
///
/// # Errors
///
/// - `IO`: the file cannot be read.
/// - `BadFile`: it is not NIfTI-1, or is shorter than its header announces.
/// - `Unsupported`: colours, real numbers of 128 bits, or a header in a separate file.
pub fn read_nifti(path: impl AsRef<Path>) -> Result<Image> {
    let path = path.as_ref();
    read_up_to(path, usize::MAX).and_then(parse).map_err(|e| e.within(path.display()))
}

fn parse(mut file: Vec<u8>) -> Result<Image> {
    let gzip = file.starts_with(&[0x1f, 0x8b]);
    if gzip {
        // The length in the header is the limit, so that a small file cannot expand without limit.
        let packed = file;
        let announced = file_length(&inflate(&packed, OFFSET)?)?;
        // Reading one byte more reaches the end of the stream, where its checksum is verified.
        file = inflate(&packed, announced.saturating_add(1))?;
    }
    let announced = file_length(&file)?;
    if file.len() < announced {
        bail!(BadFile, "{} bytes where the header announces {announced}: the file is truncated", file.len());
    }
    let n = EndianBytes { is_big_endian: is_big_endian(&file), bytes: &file };
    let (dims, kind) = layout(&n)?;
    let count = dims.iter().product::<usize>();
    let body = EndianBytes { is_big_endian: n.is_big_endian, bytes: &file[n.f32(108) as usize..announced] };
    let real = |at: usize| match kind.code {
        2 => body.u8(at) as f32,
        4 => body.i16(at) as f32,
        8 => body.i32(at) as f32,
        16 | 32 => body.f32(at),
        64 | 1792 => body.f64(at) as f32,
        256 => body.i8(at) as f32,
        512 => body.u16(at) as f32,
        768 => body.u32(at) as f32,
        1024 => body.i64(at) as f32,
        _ => body.u64(at) as f32,
    };
    let (slope, intercept) = (n.f32(112), n.f32(116));
    let is_scaled = slope.is_finite() && intercept.is_finite() && slope != 0.0 && !kind.is_complex;
    let data = (0..count)
        .map(|i| match kind.is_complex {
            true => Complex::new(real(i * kind.size), real(i * kind.size + kind.size / 2)),
            false if is_scaled => Complex::new(real(i * kind.size) * slope + intercept, 0.0),
            false => Complex::new(real(i * kind.size), 0.0),
        })
        .collect();
    let mut image = Image::new([dims[0], dims[1], dims[2]], dims[3..].iter().product(), data)?;
    image.fov_mm = std::array::from_fn(|i| n.f32(80 + 4 * i) * dims[i] as f32);
    image.placement = placement(&n, image.dims);
    Ok(image)
}

/// Returns position and directions from the header, for an image of `dims` voxels.
fn placement(header: &EndianBytes, dims: [usize; 3]) -> Placement {
    let candidates = [(254, sform(header)), (252, qform(header))];
    let valid = |(code, affine): (usize, AffineTransform)| {
        let placement = affine.placement(dims);
        (header.i16(code) > 0 && placement.is_known()).then_some(placement)
    };
    candidates.into_iter().find_map(valid).unwrap_or_default()
}

/// The map from voxel indices to millimetres in NIfTI's coordinates: x to the right, y to the front, z to the head.
pub(crate) struct AffineTransform {
    /// The vector from one voxel to the next along each axis of the image.
    pub columns: [[f64; 3]; 3],
    /// The position of the first voxel.
    pub origin: [f64; 3],
}

impl AffineTransform {
    /// Converts to the patient's coordinates of ISMRMRD. The position is that of the voxel with index floor(n/2).
    pub fn placement(&self, dims: [usize; 3]) -> Placement {
        // NIfTI has x to the right and y to the front.
        let patient = |[x, y, z]: [f64; 3]| [-x, -y, z];
        placement_of(self.columns.map(patient), patient(self.origin), dims)
    }
}

/// Reads the rows of the sform.
fn sform(header: &EndianBytes) -> AffineTransform {
    let entry = |row: usize, column: usize| f64::from(header.f32(280 + 16 * row + 4 * column));
    AffineTransform {
        columns: std::array::from_fn(|axis| std::array::from_fn(|row| entry(row, axis))),
        origin: std::array::from_fn(|row| entry(row, 3)),
    }
}

/// Reads the quaternion, the voxel sizes and the offset of the qform.
fn qform(header: &EndianBytes) -> AffineTransform {
    let [b, c, d] = std::array::from_fn(|i| f64::from(header.f32(256 + 4 * i)));
    let a = (1.0 - b * b - c * c - d * d).max(0.0).sqrt();
    let rotation = [
        [a * a + b * b - c * c - d * d, 2.0 * (b * c + a * d), 2.0 * (b * d - a * c)],
        [2.0 * (b * c - a * d), a * a + c * c - b * b - d * d, 2.0 * (c * d + a * b)],
        [2.0 * (b * d + a * c), 2.0 * (c * d - a * b), a * a + d * d - b * b - c * c],
    ];
    let handedness = if header.f32(76) < 0.0 { -1.0 } else { 1.0 };
    let scale = |axis: usize| f64::from(header.f32(80 + 4 * axis)) * if axis == 2 { handedness } else { 1.0 };
    AffineTransform {
        columns: std::array::from_fn(|axis| rotation[axis].map(|v| v * scale(axis))),
        origin: std::array::from_fn(|i| f64::from(header.f32(268 + 4 * i))),
    }
}

fn inflate(packed: &[u8], limit: usize) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    match MultiGzDecoder::new(packed).take(limit as u64).read_to_end(&mut bytes) {
        Ok(_) => Ok(bytes),
        Err(e) => bail!(BadFile, "the compressed data are damaged: {e}"),
    }
}

fn is_big_endian(file: &[u8]) -> bool {
    file.starts_with(&(HEADER as i32).to_be_bytes())
}

/// Checks the header, and returns the length that it announces for the file.
fn file_length(file: &[u8]) -> Result<usize> {
    if file.len() < HEADER {
        bail!(
            BadFile,
            "{} bytes are too few for a NIfTI-1 header: the file is truncated or is not a NIfTI-1 file",
            file.len()
        );
    }
    let n = EndianBytes { is_big_endian: is_big_endian(file), bytes: file };
    if n.i32(0) != HEADER as i32 || !(&file[344..347] == b"n+1" || &file[344..347] == b"ni1") {
        bail!(BadFile, "this is not a NIfTI-1 file: its header does not have the length 348 and the text n+1");
    }
    if file[345] == b'i' {
        bail!(Unsupported, "the header and the data are separate files: convert them to one .nii file");
    }
    let (dims, kind) = layout(&n)?;
    let mut sizes = dims;
    sizes.push(kind.size);
    let (bytes, offset) = (checked_product(&sizes, "the image")?, n.f32(108));
    if !(OFFSET as f32..=1e9).contains(&offset) {
        bail!(BadFile, "the header announces the data at byte {offset}, not {OFFSET} or later: the file is damaged");
    }
    Ok(offset as usize + bytes)
}

/// The type of the numbers in a file.
struct NiftiDataType {
    /// NIfTI's code.
    code: i16,
    /// The size of a number in bytes.
    size: usize,
    is_complex: bool,
}

/// Returns all seven sizes and the type of the numbers.
fn layout(n: &EndianBytes) -> Result<(Vec<usize>, NiftiDataType)> {
    let (rank, code) = (n.i16(40), n.i16(70));
    let sizes: Vec<i16> = (0..7).map(|i| if i < rank as usize { n.i16(42 + 2 * i) } else { 1 }).collect();
    if !(1..=7).contains(&rank) || sizes.iter().any(|&s| s < 1) {
        bail!(BadFile, "the header announces {rank} dimensions of sizes {sizes:?}: the file is damaged");
    }
    let (size, is_complex) = match code {
        2 | 256 => (1, false),
        4 | 512 => (2, false),
        8 | 16 | 768 => (4, false),
        64 | 1024 | 1280 => (8, false),
        32 => (8, true),
        1792 => (16, true),
        _ => bail!(Unsupported, "numbers of NIfTI type {code} cannot be read: convert them to float32 (type 16)"),
    };
    Ok((sizes.iter().map(|&s| s as usize).collect(), NiftiDataType { code, size, is_complex }))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{ramp, write_nifti, TempDir};
    use super::super::Placement;
    use super::*;

    /// Returns the affine transforms of the qform and of the sform.
    fn affines(file: &[u8]) -> [[[f64; 4]; 3]; 2] {
        let n = EndianBytes { is_big_endian: false, bytes: file };
        let f = |at: usize| n.f32(at) as f64;
        let (b, c, d) = (f(256), f(260), f(264));
        let a = (1.0 - b * b - c * c - d * d).max(0.0).sqrt();
        let r = [
            [a * a + b * b - c * c - d * d, 2.0 * (b * c - a * d), 2.0 * (b * d + a * c)],
            [2.0 * (b * c + a * d), a * a + c * c - b * b - d * d, 2.0 * (c * d - a * b)],
            [2.0 * (b * d - a * c), 2.0 * (c * d + a * b), a * a + d * d - b * b - c * c],
        ];
        let size = [f(80), f(84), f(88) * f(76)];
        let q =
            std::array::from_fn(|i| std::array::from_fn(|j| if j < 3 { r[i][j] * size[j] } else { f(268 + 4 * i) }));
        [q, std::array::from_fn(|i| std::array::from_fn(|j| f(280 + 16 * i + 4 * j)))]
    }

    /// Reads the placement that was written, from the sform and from the qform.
    #[test]
    fn placement_is_read() {
        let dir = TempDir::new();
        let path = dir.path("a.nii");
        let mut image = Image::new([4, 5, 6], 1, ramp(120)).unwrap();
        image.fov_mm = [8.0, 15.0, 24.0];
        let (s, c) = 0.7f32.sin_cos();
        let near = |a: [f32; 3], b: [f32; 3]| (0..3).all(|i| (a[i] - b[i]).abs() < 1e-4);
        for slice_dir in [[0.0, 0.0, 1.0], [0.0, 0.0, -1.0]] {
            let position = [10.0, -20.0, 30.0];
            let (read_dir, phase_dir) = ([c, s, 0.0], [-s, c, 0.0]);
            image.placement = Placement { position, read_dir, phase_dir, slice_dir, ..Default::default() };
            write_nifti(&path, std::slice::from_ref(&image)).unwrap();
            let good = std::fs::read(&path).unwrap();
            let of = |change: &dyn Fn(&mut Vec<u8>)| {
                let mut file = good.clone();
                change(&mut file);
                parse(file).unwrap().placement
            };
            let no_sform = |file: &mut Vec<u8>| file[254..256].fill(0);
            // The second column of this sform is its first one: it has no valid directions.
            let sheared = |file: &mut Vec<u8>| {
                for row in 0..3 {
                    let first: [u8; 4] = file[280 + 16 * row..][..4].try_into().unwrap();
                    file[284 + 16 * row..][..4].copy_from_slice(&first);
                }
            };
            for found in [of(&|_| ()), of(&no_sform), of(&sheared)] {
                assert!(found.is_known(), "{found:?}");
                assert!(near(found.position, position) && near(found.read_dir, read_dir), "{found:?}");
                assert!(near(found.phase_dir, phase_dir) && near(found.slice_dir, slice_dir), "{found:?}");
            }
            let neither = of(&|file| file[252..256].fill(0));
            assert_eq!(neither, Placement::default());
        }
    }

    #[test]
    fn affine_transform() {
        let dir = TempDir::new();
        let path = dir.path("a.nii");
        let mut image = Image::new([4, 5, 6], 1, ramp(120)).unwrap();
        image.fov_mm = [8.0, 15.0, 24.0];
        write_nifti(&path, std::slice::from_ref(&image)).unwrap();
        let file = std::fs::read(&path).unwrap();
        assert_eq!(file.len(), OFFSET + 480);
        let rows = [[-2.0, 0.0, 0.0, 4.0], [0.0, 3.0, 0.0, -6.0], [0.0, 0.0, 4.0, -12.0]];
        assert_eq!(affines(&file), [rows, rows]);
        assert_eq!(EndianBytes { is_big_endian: false, bytes: &file }.i16(254), 2);

        let (s, c) = 0.7f32.sin_cos();
        let (s2, c2) = 0.4f32.sin_cos();
        for handed in [1.0, -1.0] {
            for (read_dir, phase_dir, slice_dir) in [
                ([c, s, 0.0], [-s * c2, c * c2, s2], [s * s2, -c * s2, c2]),
                ([0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]),
                ([-1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, -1.0]),
                ([1.0, 0.0, 0.0], [0.0, -1.0, 0.0], [0.0, 0.0, -1.0]),
                ([-1.0, 0.0, 0.0], [0.0, -1.0, 0.0], [0.0, 0.0, 1.0]),
            ] {
                let slice_dir: [f32; 3] = slice_dir.map(|v: f32| v * handed);
                let position = [10.0, -20.0, 30.0];
                image.placement = Placement { position, read_dir, phase_dir, slice_dir, ..Default::default() };
                assert!(image.placement.is_known());
                write_nifti(&path, std::slice::from_ref(&image)).unwrap();
                let [q, rows] = affines(&std::fs::read(&path).unwrap());
                for i in 0..3 {
                    let flip = if i < 2 { -1.0 } else { 1.0 };
                    // The voxel floor(n/2) is at the position.
                    let centre = rows[i][0] * 2.0 + rows[i][1] * 2.0 + rows[i][2] * 3.0 + rows[i][3];
                    assert!((centre - flip * position[i] as f64).abs() < 1e-4);
                    assert!((rows[i][1] - flip * 3.0 * phase_dir[i] as f64).abs() < 1e-5);
                    for j in 0..4 {
                        assert!((q[i][j] - rows[i][j]).abs() < 2e-3, "{q:?} {rows:?}");
                    }
                }
            }
        }
    }

    /// Sizes, spacings and units of a file with repetitions and channels, whose order in the data is checked too.
    #[test]
    fn repetitions_and_channels() {
        let dir = TempDir::new();
        let path = dir.path("a.nii");
        let image = |slice: u16, repetition: u16, time: Option<f32>| {
            let value = |channel: u16| Complex::from(f32::from(100 * channel + 10 * repetition + slice));
            let mut image = Image::new([1, 1, 1], 2, vec![value(0), value(1)]).unwrap();
            image.fov_mm = [2.0, 3.0, 4.0];
            (image.index.slice, image.index.repetition) = (slice, repetition);
            let position = [0.0, 0.0, -5.0 * f32::from(slice)];
            let (read_dir, phase_dir, slice_dir) = ([1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]);
            image.placement = Placement { position, read_dir, phase_dir, slice_dir, ..Default::default() };
            image.placement.repetition_time_ms = time;
            image
        };
        for (time, spacing, units) in [(Some(2500.0), 2.5, 10), (None, 0.0, 2), (Some(f32::NAN), 0.0, 2)] {
            let images: Vec<_> = (0..6).map(|i| image(i % 3, i / 3, time)).collect();
            write_nifti(&path, &images).unwrap();
            let file = std::fs::read(&path).unwrap();
            let n = EndianBytes { is_big_endian: false, bytes: &file };
            assert_eq!([40, 42, 44, 46, 48, 50].map(|at| n.i16(at)), [5, 1, 1, 3, 2, 2]);
            assert_eq!([80, 84, 88, 92].map(|at| n.f32(at)), [2.0, 3.0, 5.0, spacing]);
            assert_eq!(n.u8(123), units);
            let data: Vec<f32> = (0..12).map(|i| n.f32(OFFSET + 4 * i)).collect();
            assert_eq!(data, [2., 1., 0., 12., 11., 10., 102., 101., 100., 112., 111., 110.]);
            // The first voxel is that of slice 2.
            assert_eq!(affines(&file)[1][2], [0.0, 0.0, 5.0, -10.0]);
        }
        // Two echoes of two slabs are four files.
        let slab = |slice: u16, contrast: u16| {
            let mut image = Image::new([1, 1, 2], 1, ramp(2)).unwrap();
            (image.index.slice, image.index.contrast) = (slice, contrast);
            image
        };
        let stacks =
            divide_into_stacks(&[slab(0, 0), slab(0, 1), slab(1, 0), slab(1, 1)].map(|i| ImageGeometry::new(&i)));
        let stacks = stacks.unwrap();
        let names = |path: &str| file_names(Path::new(path), &stacks);
        let found = names("folder.nii/a.b.nii.GZ");
        let expected = ["slice0_contrast0", "slice0_contrast1", "slice1_contrast0", "slice1_contrast1"];
        assert_eq!(found, expected.map(|part| PathBuf::from(format!("folder.nii/a.b_{part}.nii.GZ"))));
        let found = names(".nii");
        assert_eq!(found, expected.map(|part| PathBuf::from(format!("_{part}.nii"))));
        assert_eq!(file_names(Path::new("a.NII"), &stacks[..1]), [Path::new("a.NII")]);
    }

    #[test]
    fn types_and_byte_orders() {
        let dir = TempDir::new();
        let path = dir.path("a.nii");
        write_nifti(&path, &[Image::new([2, 1, 1], 1, ramp(2)).unwrap()]).unwrap();
        let mut file = std::fs::read(&path).unwrap();
        file.truncate(OFFSET);
        file[70..72].copy_from_slice(&4i16.to_le_bytes());
        file[112..116].copy_from_slice(&0.5f32.to_le_bytes());
        file[116..120].copy_from_slice(&1.0f32.to_le_bytes());
        file.extend([6i16, -2].iter().flat_map(|v| v.to_le_bytes()));
        std::fs::write(&path, &file).unwrap();
        assert_eq!(read_nifti(&path).unwrap().data, [Complex::new(4.0, 0.0), Complex::new(0.0, 0.0)]);

        let mut big = vec![0u8; OFFSET];
        big[..4].copy_from_slice(&348i32.to_be_bytes());
        for (i, v) in [3i16, 1, 1, 1].iter().enumerate() {
            big[40 + 2 * i..][..2].copy_from_slice(&v.to_be_bytes());
        }
        big[70..72].copy_from_slice(&32i16.to_be_bytes());
        big[108..112].copy_from_slice(&352f32.to_be_bytes());
        big[344..348].copy_from_slice(b"n+1\0");
        big.extend([1.5f32, -2.0].iter().flat_map(|v| v.to_be_bytes()));
        std::fs::write(&path, &big).unwrap();
        assert_eq!(read_nifti(&path).unwrap().data, [Complex::new(1.5, -2.0)]);
    }

    #[test]
    fn bad_files() {
        let dir = TempDir::new();
        for name in ["a.nii", "a.nii.gz"] {
            let path = dir.path(name);
            assert_eq!(read_nifti(&path).unwrap_err().kind(), ErrorKind::IO);
            write_nifti(&path, &[Image::new([3, 2, 1], 1, ramp(6)).unwrap()]).unwrap();
            let good = std::fs::read(&path).unwrap();
            for length in (0..good.len()).step_by(17) {
                std::fs::write(&path, &good[..length]).unwrap();
                let e = read_nifti(&path).unwrap_err();
                assert!(e.kind() == ErrorKind::BadFile && e.message().contains(name), "{length}: {e}");
            }
            // Invalid values in each byte of the header: an error or an image, but no panic and no huge buffer.
            for at in 0..good.len().min(HEADER) {
                for value in [0, 1, 0x7f, 0x80, 0xff] {
                    let mut bad = good.clone();
                    bad[at] = value;
                    let _ = parse(bad);
                }
            }
        }
        let long = Image::new([40000, 1, 1], 1, ramp(40000)).unwrap();
        assert_eq!(write_nifti(dir.path("long.nii"), &[long]).unwrap_err().kind(), ErrorKind::Unsupported);
        assert!(!dir.path("long.nii").exists());
    }
}
