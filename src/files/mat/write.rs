//! Writes `.mat` files.

use super::layout::{class, element, COMPLEX, HEADER};
use crate::bytes::write_blocks;
use num_complex::Complex;
use recon::atomic_file::AtomicFiles;
use recon::error::{bail, checked_product, Error, ErrorKind, Result};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

/// Maximum number of bytes of a variable, MATLAB's limit for level 5.
const MAX_BYTES: u64 = i32::MAX as u64;

/// A variable of a file to be written.
#[derive(Debug, Clone)]
pub struct MatVariable<'a> {
    /// The name in MATLAB: letters, digits and underscores.
    pub name: &'static str,
    /// The sizes, fastest first. MATLAB arrays have at least two.
    pub dims: Vec<usize>,
    /// The numbers.
    pub values: MatValues<'a>,
}

/// The numbers of a variable.
#[derive(Debug, Clone)]
pub enum MatValues<'a> {
    /// Class double.
    Double(Vec<f64>),
    /// Class single, one part after another. The array is real if all imaginary parts are 0.
    Single(Vec<&'a [Complex<f32>]>),
}

impl MatValues<'_> {
    fn len(&self) -> usize {
        match self {
            MatValues::Double(values) => values.len(),
            MatValues::Single(parts) => parts.iter().map(|part| part.len()).sum(),
        }
    }

    fn is_complex(&self) -> bool {
        match self {
            MatValues::Double(_) => false,
            MatValues::Single(parts) => parts.iter().any(|part| part.iter().any(|z| z.im != 0.0)),
        }
    }

    /// Returns the array class, and the type and size of the numbers.
    fn number_type(&self) -> (u8, u32, u64) {
        match self {
            MatValues::Double(_) => (class::DOUBLE, element::DOUBLE, 8),
            MatValues::Single(_) => (class::SINGLE, element::SINGLE, 4),
        }
    }
}

/// Writes variables to `files` as a `.mat` file of level 5, without compression, in little-endian order.
///
/// # Errors
/// - `SizeMismatch`: the product of a variable's sizes is not the number of its values.
/// - `Unsupported`: a variable needs 2 GiB or more, or a size is above 2147483647.
/// - `IO`: the file cannot be written.
pub fn write_mat(files: &mut AtomicFiles, path: &Path, variables: &[MatVariable]) -> Result<()> {
    let headers = variables.iter().map(variable_header).collect::<Result<Vec<_>>>();
    let headers = headers.map_err(|e| e.within(path.display()))?;
    let part = files.add(path)?;
    let write = || {
        let mut out = BufWriter::new(File::create(part)?);
        out.write_all(&file_header())?;
        for (header, variable) in headers.iter().zip(variables) {
            out.write_all(header)?;
            write_values(&mut out, &variable.values)?;
        }
        out.flush()
    };
    write().map_err(|e: std::io::Error| Error::new(ErrorKind::IO, format!("{}: {e}", path.display())))
}

fn file_header() -> Vec<u8> {
    let mut header = b"MATLAB 5.0 MAT-file, written by recon".to_vec();
    header.resize(HEADER - 12, b' ');
    // No subsystem data, version 1.0, and the mark of the byte order.
    header.extend([0; 8]);
    header.extend(0x0100u16.to_le_bytes());
    header.extend(b"IM");
    header
}

/// Returns the number of bytes of `length` bytes and the zeros after them: elements begin at multiples of 8.
fn padded(length: u64) -> u64 {
    length.div_ceil(8) * 8
}

/// Returns the bytes before the numbers: the element's tag, flags, sizes and name.
fn variable_header(variable: &MatVariable) -> Result<Vec<u8>> {
    let MatVariable { name, dims, values } = variable;
    let count = checked_product(dims, "the variable")?;
    if count != values.len() {
        bail!(SizeMismatch, "the variable {name} of sizes {dims:?} needs {count} numbers, not {}", values.len());
    }
    if let Some(n) = dims.iter().find(|&&n| n > i32::MAX as usize) {
        bail!(Unsupported, "a size of the variable {name} is {n}, and .mat files allow {}: write a .h5 file", i32::MAX);
    }
    let mut body = Vec::new();
    let (array_class, _, size) = values.number_type();
    let parts = if values.is_complex() { 2 } else { 1 };
    let flags = u32::from(array_class) | if parts == 2 { COMPLEX } else { 0 };
    push_element(&mut body, element::UINT32, &[flags.to_le_bytes(), [0; 4]].concat());
    // As in MATLAB: at least two sizes, and no trailing ones after them.
    let last = dims.iter().rposition(|&n| n != 1).map_or(0, |last| last + 1);
    let sizes = (0..last.max(2)).map(|i| dims.get(i).map_or(1, |&n| n as i32));
    let sizes: Vec<u8> = sizes.flat_map(i32::to_le_bytes).collect();
    push_element(&mut body, element::INT32, &sizes);
    push_element(&mut body, element::INT8, name.as_bytes());

    // The product cannot overflow: the numbers are in memory.
    let bytes = body.len() as u64 + parts * (8 + padded(count as u64 * size));
    if bytes > MAX_BYTES {
        bail!(
            Unsupported,
            "the variable {name} of sizes {dims:?} needs {bytes} bytes, and a .mat file of level 5 allows {MAX_BYTES}: \
             write a .h5 or .npy file, or one file per image"
        );
    }
    let mut header = [element::MATRIX.to_le_bytes(), (bytes as u32).to_le_bytes()].concat();
    header.extend(body);
    Ok(header)
}

fn push_element(to: &mut Vec<u8>, kind: u32, data: &[u8]) {
    to.extend(kind.to_le_bytes());
    to.extend((data.len() as u32).to_le_bytes());
    to.extend(data);
    to.resize(padded(to.len() as u64) as usize, 0);
}

/// Writes the real parts, and the imaginary parts of complex numbers.
fn write_values(out: &mut impl Write, values: &MatValues) -> std::io::Result<()> {
    let (_, kind, size) = values.number_type();
    let bytes = values.len() as u64 * size;
    let mut tag = kind.to_le_bytes().to_vec();
    // `variable_header` has checked that the length fits.
    tag.extend((bytes as u32).to_le_bytes());
    let padding = vec![0; (padded(bytes) - bytes) as usize];
    out.write_all(&tag)?;
    match values {
        MatValues::Double(values) => write_blocks(out, values, |x, block| block.extend(x.to_le_bytes()))?,
        MatValues::Single(parts) => {
            for part in parts {
                write_blocks(out, part, |z, block| block.extend(z.re.to_le_bytes()))?;
            }
        }
    }
    out.write_all(&padding)?;
    let MatValues::Single(parts) = values else { return Ok(()) };
    if !values.is_complex() {
        return Ok(());
    }
    out.write_all(&tag)?;
    for part in parts {
        write_blocks(out, part, |z, block| block.extend(z.im.to_le_bytes()))?;
    }
    out.write_all(&padding)
}
