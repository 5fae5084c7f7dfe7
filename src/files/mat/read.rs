//! Reads `.mat` files.

use super::layout::{class, element, COMPLEX, HEADER};
use crate::bytes::{read_up_to, EndianBytes};
use flate2::read::ZlibDecoder;
use num_complex::Complex;
use recon::error::{bail, checked_product, try_reserve, Result};
use std::io::Read;
use std::path::Path;

/// A variable of a file.
#[derive(Debug, Clone, PartialEq)]
pub struct MatArray {
    /// The name in MATLAB.
    pub name: String,
    /// The sizes, fastest first; at least two.
    pub dims: Vec<usize>,
    /// The numbers, rounded to single precision. For other contents than full arrays of numbers, the name of their
    /// class in MATLAB, such as `struct`.
    pub data: std::result::Result<Vec<Complex<f32>>, &'static str>,
}

/// Reads all variables of a `.mat` file of level 5, compressed or not, of either byte order. Numbers of all classes are
/// read, also logical ones. Cells, structures, objects, texts and sparse arrays are listed without their contents.
///
/// # Errors
/// - `IO`: the file cannot be read.
/// - `BadFile`: it is not a `.mat` file, or it is damaged.
/// - `Unsupported`: it is of level 4 or of version 7.3.
pub fn read_mat(path: impl AsRef<Path>) -> Result<Vec<MatArray>> {
    let path = path.as_ref();
    read_up_to(path, usize::MAX).and_then(|file| parse(&file)).map_err(|e| e.within(path.display()))
}

/// The start of HDF5 files, at the beginning or after the text of MATLAB's version 7.3.
const HDF5: &[u8] = b"\x89HDF\r\n\x1a\n";
const REMEDY: &str = "save it by save('-v7', ...) in MATLAB or Octave";

fn parse(file: &[u8]) -> Result<Vec<MatArray>> {
    if file.starts_with(HDF5) || file.get(512..520) == Some(HDF5) {
        bail!(Unsupported, "this is a file of MATLAB's version 7.3: {REMEDY}");
    }
    if file.starts_with(b"Octave-1-L") || file.starts_with(b"# Created by Octave") {
        bail!(Unsupported, "this is a file in Octave's own format: {REMEDY}");
    }
    let is_big_endian = match file.get(126..HEADER) {
        Some(b"IM") => false,
        Some(b"MI") => true,
        _ if is_level_4(file) => bail!(Unsupported, "this is a .mat file of level 4: {REMEDY}"),
        _ => bail!(BadFile, "this is not a .mat file: it does not have the header of level 5"),
    };
    let mut rest = EndianBytes { is_big_endian, bytes: &file[HEADER..] };
    let mut arrays = Vec::new();
    while !rest.bytes.is_empty() {
        let (kind, body, next) = split(&rest, false)?;
        let body = EndianBytes { is_big_endian, bytes: body };
        match kind {
            element::MATRIX => arrays.push(array(&body)?),
            element::COMPRESSED => {
                let inflated = inflate(&body)?;
                arrays.push(array(&EndianBytes { is_big_endian, bytes: &inflated })?);
            }
            // MATLAB adds other elements for objects.
            _ => {}
        }
        rest.bytes = next;
    }
    Ok(arrays)
}

/// Returns whether the first number is a type of level 4: byte order, 0, number type, kind of matrix.
fn is_level_4(file: &[u8]) -> bool {
    let Some(Ok(bytes)) = file.get(..4).map(<[u8; 4]>::try_from) else { return false };
    let is_type = |n: u32| n < 5000 && n / 100 % 10 == 0 && n / 10 % 10 <= 5 && n % 10 <= 2;
    is_type(u32::from_le_bytes(bytes)) || is_type(u32::from_be_bytes(bytes))
}

/// Splits off the first element. Returns its type, its data, and the bytes after it. Elements of an array are padded to
/// multiples of 8 bytes.
fn split<'a>(bytes: &EndianBytes<'a>, is_padded: bool) -> Result<(u32, &'a [u8], &'a [u8])> {
    let all = bytes.bytes;
    if all.len() < 8 {
        bail!(BadFile, "{} bytes are left where an element must begin: the file is damaged", all.len());
    }
    let first = bytes.u32(0);
    // The length of small elements is in the first four bytes.
    let (kind, start, length) = match first >> 16 {
        0 => (first, 8, bytes.u32(4) as usize),
        length => (first & 0xffff, 4, length as usize),
    };
    let end = start + length;
    if start == 4 && length > 4 || end > all.len() {
        bail!(BadFile, "an element announces {length} bytes, and {} follow: the file is damaged", all.len() - start);
    }
    // The last element of a file may lack its padding.
    let next = if start == 4 {
        8
    } else if is_padded {
        end.div_ceil(8) * 8
    } else {
        end
    };
    Ok((kind, &all[start..end], &all[next.min(all.len())..]))
}

/// Returns the body of the array in a compressed element.
fn inflate(packed: &EndianBytes) -> Result<Vec<u8>> {
    let mut decoder = ZlibDecoder::new(packed.bytes);
    let mut tag = [0; 8];
    let mut body = Vec::new();
    let read = decoder.read_exact(&mut tag).and_then(|()| {
        // The announced length is the limit, so that a small file cannot expand without limit. One byte more reaches
        // the end of the stream, where its checksum is verified.
        let tag = EndianBytes { is_big_endian: packed.is_big_endian, bytes: &tag };
        let length = u64::from(tag.u32(4));
        decoder.take(length + 1).read_to_end(&mut body).map(|_| (tag.u32(0), length))
    });
    match read {
        Ok((element::MATRIX, length)) if body.len() as u64 == length => Ok(body),
        Ok((kind, length)) => {
            let found = body.len();
            bail!(
                BadFile,
                "a compressed element of type {kind} announces {length} bytes, and has {found}: the file is \
                            damaged"
            )
        }
        Err(e) => bail!(BadFile, "the compressed data are damaged: {e}"),
    }
}

/// Reads an array from its elements: flags, sizes, name and numbers.
fn array(body: &EndianBytes) -> Result<MatArray> {
    let is_big_endian = body.is_big_endian;
    let mut rest = EndianBytes { is_big_endian, bytes: body.bytes };
    let mut next = || -> Result<(u32, EndianBytes)> {
        let (kind, data, after) = split(&rest, true)?;
        rest.bytes = after;
        Ok((kind, EndianBytes { is_big_endian, bytes: data }))
    };
    let (kind, flags) = next()?;
    if kind != element::UINT32 || flags.bytes.len() != 8 {
        bail!(BadFile, "an array does not begin with its flags: the file is damaged");
    }
    let flags = flags.u32(0);
    let code = flags as u8;
    // Objects of newer classes do not have sizes.
    if code > class::UINT64 {
        return Ok(MatArray { name: String::new(), dims: vec![1, 1], data: Err("object") });
    }
    let (kind, sizes) = next()?;
    if kind != element::INT32 || sizes.bytes.len() < 8 || !sizes.bytes.len().is_multiple_of(4) {
        bail!(BadFile, "the sizes of an array are malformed: the file is damaged");
    }
    let sizes: Vec<i32> = (0..sizes.bytes.len() / 4).map(|i| sizes.i32(4 * i)).collect();
    let dims: Option<Vec<usize>> = sizes.iter().map(|&n| usize::try_from(n).ok()).collect();
    let Some(dims) = dims else { bail!(BadFile, "an array has the sizes {sizes:?}: the file is damaged") };
    let (_, name) = next()?;
    let name = String::from_utf8_lossy(name.bytes).into_owned();
    if let Some(other) = usize::from(code).checked_sub(1).and_then(|i| class::OTHERS.get(i)) {
        return Ok(MatArray { name, dims, data: Err(other) });
    }
    let count = checked_product(&dims, "the array")?;
    let mut read = || {
        let (kind, data) = next()?;
        numbers(kind, &data, count)
    };
    let real = read().map_err(|e| e.within(format_args!("variable {name}")))?;
    let imaginary = match flags & COMPLEX {
        0 => None,
        _ => Some(read().map_err(|e| e.within(format_args!("variable {name}")))?),
    };
    let mut data = try_reserve(count, "the array")?;
    match imaginary {
        Some(imaginary) => data.extend(real.iter().zip(imaginary.iter()).map(|(&re, &im)| Complex::new(re, im))),
        None => data.extend(real.iter().map(|&re| Complex::new(re, 0.0))),
    }
    Ok(MatArray { name, dims, data: Ok(data) })
}

/// Reads the numbers of an element, which may be stored in a smaller type than that of the array.
fn numbers(kind: u32, data: &EndianBytes, count: usize) -> Result<Vec<f32>> {
    macro_rules! read_as {
        ($name:ident, $size:expr) => {{
            if data.bytes.len() != count.saturating_mul($size) {
                let bytes = data.bytes.len();
                bail!(
                    BadFile,
                    "{count} numbers of {} bytes are expected, not {bytes} bytes: the file is damaged",
                    $size
                );
            }
            let mut numbers = try_reserve(count, "the array")?;
            numbers.extend((0..count).map(|i| data.$name($size * i) as f32));
            Ok(numbers)
        }};
    }
    match kind {
        element::INT8 => read_as!(i8, 1),
        element::UINT8 => read_as!(u8, 1),
        element::INT16 => read_as!(i16, 2),
        element::UINT16 => read_as!(u16, 2),
        element::INT32 => read_as!(i32, 4),
        element::UINT32 => read_as!(u32, 4),
        element::SINGLE => read_as!(f32, 4),
        element::DOUBLE => read_as!(f64, 8),
        element::INT64 => read_as!(i64, 8),
        element::UINT64 => read_as!(u64, 8),
        _ => bail!(BadFile, "the numbers have the unknown type {kind}: the file is damaged"),
    }
}
