//! Reads and writes `.npy` files of NumPy.
//!
//! The reader is our own, 70 lines. Two crates were tried on damaged files; each adds 12 packages. ndarray-npy 0.10
//! aborts the process on a file of 88 bytes that announces 4 TiB. npyz 0.9 accepts bytes after the end of the array.
//! Both require the type of the numbers in advance: one attempt for each type and byte order.

use super::bytes::{read_up_to, write_blocks, write_complex, EndianBytes};
use num_complex::Complex;
use recon::atomic_file::AtomicFiles;
use recon::error::{bail, checked_product, Error, ErrorKind, Result};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

/// An array read from a `.npy` file.
#[derive(Debug, Clone, PartialEq)]
pub struct Npy {
    /// The sizes, fastest first. Both the shape `(ny, nx)` in C order, NumPy's default, and the shape `(nx, ny)` in
    /// Fortran order become `[nx, ny]`.
    pub dims: Vec<usize>,
    /// The numbers, in the order of the file; the imaginary part of real numbers is 0.
    pub data: Vec<Complex<f64>>,
    /// Whether the numbers in the file are complex.
    pub complex: bool,
}

/// Reads a `.npy` file of format version 1, 2 or 3 with real or complex floating-point numbers (`f4`, `f8`, `c8`,
/// `c16`) of either byte order.
///
/// # Errors
///
/// - `IO`: the file cannot be read.
/// - `BadFile`: it is not a `.npy` file, or its length is not that in its header.
/// - `Unsupported`: numbers of a different type, or a newer format version.
pub fn read_npy(path: impl AsRef<Path>) -> Result<Npy> {
    let path = path.as_ref();
    read(path).map_err(|e| e.within(path.display()))
}

fn read(path: &Path) -> Result<Npy> {
    let file = read_up_to(path, usize::MAX)?;
    if file.len() < 10 || &file[..6] != b"\x93NUMPY" {
        bail!(BadFile, "this is not a .npy file: it does not begin with \\x93NUMPY");
    }
    let (start, length) = match file[6] {
        1 => (10, u16::from_le_bytes([file[8], file[9]]) as usize),
        2 | 3 if file.len() >= 12 => (12, EndianBytes { is_big_endian: false, bytes: &file }.u32(8) as usize),
        2 | 3 => bail!(BadFile, "the file ends within its header: it is truncated"),
        v => bail!(Unsupported, ".npy format version {v} is not supported: save the array as version 1, 2 or 3"),
    };
    let Some(text) = file.get(start..).and_then(|f| f.get(..length)) else {
        bail!(BadFile, "the file ends within its header: it is truncated");
    };
    let Ok(text) = std::str::from_utf8(text) else {
        bail!(BadFile, "the header is not UTF-8 text: the file is damaged");
    };
    // The part of the header that messages contain.
    let excerpt = || text.trim().chars().take(200).collect::<String>();
    let (Some(descr), Some(order), Some(shape)) =
        (value_of(text, "descr"), value_of(text, "fortran_order"), value_of(text, "shape"))
    else {
        bail!(BadFile, "the header lacks descr, fortran_order or shape: {:?}", excerpt());
    };

    let descr = descr.trim_start().trim_start_matches(['\'', '"']);
    let descr = descr.split(['\'', '"']).next().unwrap_or("");
    let (size, complex) = match descr.trim_start_matches(['<', '>', '=']) {
        "f4" => (4, false),
        "f8" => (8, false),
        "c8" => (8, true),
        "c16" => (16, true),
        _ => bail!(Unsupported, "numbers of type {descr:?} cannot be read: save them as float32, float64 or complex64"),
    };
    let fortran = order.trim_start().starts_with("True");
    let sizes = shape.trim_start().strip_prefix('(').and_then(|s| s.split_once(')')).map(|(s, _)| s);
    let dims: Option<Vec<usize>> =
        sizes.and_then(|s| s.split(',').map(str::trim).filter(|s| !s.is_empty()).map(|s| s.parse().ok()).collect());
    let Some(mut dims) = dims else {
        bail!(BadFile, "the shape in the header is malformed: {:?}", excerpt());
    };
    if !fortran {
        dims.reverse();
    }

    let count = checked_product(&dims, "the array")?;
    let body = &file[start + length..];
    if count.checked_mul(size) != Some(body.len()) {
        let bytes = body.len();
        bail!(
            BadFile,
            "the header announces {count} numbers of {size} bytes, but {bytes} bytes follow it: the file is damaged"
        );
    }
    let bytes = EndianBytes { is_big_endian: descr.starts_with('>'), bytes: body };
    let scalar = |at: usize| match size >> complex as usize {
        4 => bytes.f32(at) as f64,
        _ => bytes.f64(at),
    };
    let data = (0..count)
        .map(|i| match complex {
            true => Complex::new(scalar(i * size), scalar(i * size + size / 2)),
            false => Complex::new(scalar(i * size), 0.0),
        })
        .collect();
    Ok(Npy { dims, data, complex })
}

/// Writes an array to `files` as a `.npy` file of format version 1, in C order. The shape is `dims` in reverse order:
/// the last axis is x. The numbers are complex64, or float32 if all imaginary parts are 0. `parts` are the
/// numbers, one part after another.
///
/// # Errors
/// `SizeMismatch` if the product of `dims` is not the number of values; `IO` if the file cannot be written.
pub fn write_npy(files: &mut AtomicFiles, path: &Path, dims: &[usize], parts: &[&[Complex<f32>]]) -> Result<()> {
    let (count, found) = (checked_product(dims, "the array")?, parts.iter().map(|part| part.len()).sum::<usize>());
    if count != found {
        bail!(SizeMismatch, "{}: sizes {dims:?} need {count} numbers, not {found}", path.display());
    }
    let is_complex = parts.iter().any(|part| part.iter().any(|z| z.im != 0.0));
    let descr = if is_complex { "<c8" } else { "<f4" };
    // A tuple of one number has a comma.
    let shape: String = dims.iter().rev().map(|n| format!("{n}, ")).collect();
    let mut header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({}), }}", shape.trim_end());
    // NumPy aligns the numbers to 64 bytes. The header ends with a newline.
    const START: usize = 10;
    header += &" ".repeat(63 - (START + header.len()) % 64);
    header.push('\n');
    let part_path = files.add(path)?;
    let write = || {
        let mut out = BufWriter::new(File::create(part_path)?);
        out.write_all(b"\x93NUMPY\x01\x00")?;
        // The header is short: 64-bit sizes have 20 digits.
        out.write_all(&(header.len() as u16).to_le_bytes())?;
        out.write_all(header.as_bytes())?;
        for part in parts {
            match is_complex {
                true => write_complex(&mut out, part)?,
                false => write_blocks(&mut out, part, |z, block| block.extend(z.re.to_le_bytes()))?,
            }
        }
        out.flush()
    };
    write().map_err(|e: std::io::Error| Error::new(ErrorKind::IO, format!("{}: {e}", path.display())))
}

/// Returns the text after `'key':` in a Python dictionary; `None` if it does not have the key.
fn value_of<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    ['\'', '"'].iter().find_map(|q| text.split_once(&format!("{q}{key}{q}:")).map(|(_, rest)| rest))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{ramp, TempDir};
    use super::*;

    fn npy(version: u8, header: &str, body: &[u8]) -> Vec<u8> {
        let mut f = b"\x93NUMPY".to_vec();
        f.extend([version, 0]);
        match version {
            1 => f.extend((header.len() as u16).to_le_bytes()),
            _ => f.extend((header.len() as u32).to_le_bytes()),
        }
        f.extend(header.as_bytes());
        f.extend(body);
        f
    }

    #[test]
    fn orders_types_and_versions() {
        let dir = TempDir::new();
        let six: Vec<u8> = (0..6).flat_map(|i| (i as f32).to_le_bytes()).collect();
        let real: Vec<f64> = (0..6).map(f64::from).collect();
        let path = dir.path("a.npy");
        for version in [1, 2] {
            for (fortran, dims) in [("False", vec![3, 2]), ("True", vec![2, 3])] {
                let header = format!("{{'descr': '<f4', 'fortran_order': {fortran}, 'shape': (2, 3), }}   \n");
                std::fs::write(&path, npy(version, &header, &six)).unwrap();
                let a = read_npy(&path).unwrap();
                assert_eq!(a.dims, dims);
                assert!(!a.complex);
                assert_eq!(a.data.iter().map(|z| z.re).collect::<Vec<_>>(), real);
            }
        }
        let header = "{'descr': '<c8', 'fortran_order': False, 'shape': (3,), }\n";
        std::fs::write(&path, npy(1, header, &six)).unwrap();
        let a = read_npy(&path).unwrap();
        assert_eq!((a.dims, a.complex, a.data[1]), (vec![3], true, Complex::new(2.0, 3.0)));
        let big: Vec<u8> = [1.5f64, -2.5].iter().flat_map(|v| v.to_be_bytes()).collect();
        std::fs::write(&path, npy(3, "{'descr': '>f8', 'fortran_order': False, 'shape': (2,), }\n", &big)).unwrap();
        assert_eq!(read_npy(&path).unwrap().data[1].re, -2.5);
        std::fs::write(&path, npy(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (), }\n", &six[..4])).unwrap();
        assert_eq!(read_npy(&path).unwrap().data.len(), 1);
    }

    #[test]
    fn arrays_are_read_back() {
        let dir = TempDir::new();
        let path = dir.path("a.npy");
        let write = |dims: &[usize], parts: &[&[Complex<f32>]]| {
            recon::atomic_file::write_atomically(|files| write_npy(files, &path, dims, parts))
        };
        let data = ramp(24);
        for dims in [&[24][..], &[4, 6], &[2, 3, 4, 1]] {
            write(dims, &[&data[..5], &data[5..]]).unwrap();
            let back = read_npy(&path).unwrap();
            assert!(back.complex && back.dims == dims);
            assert!(back.data.iter().zip(&data).all(|(a, b)| a.re == b.re as f64 && a.im == b.im as f64));
            // As NumPy writes it: the numbers begin at a multiple of 64 bytes.
            assert_eq!((std::fs::metadata(&path).unwrap().len() - 8 * 24) % 64, 0);
        }
        let real = vec![Complex::new(2.5f32, 0.0); 6];
        write(&[3, 2], &[&real]).unwrap();
        let text = std::fs::read(&path).unwrap();
        let text = String::from_utf8_lossy(&text[10..80]);
        assert!(text.starts_with("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3,), }"), "{text}");
        assert!(!read_npy(&path).unwrap().complex);
        assert_eq!(write(&[5], &[&real]).unwrap_err().kind(), ErrorKind::SizeMismatch);
    }

    #[test]
    fn bad_files() {
        let dir = TempDir::new();
        let path = dir.path("bad.npy");
        assert_eq!(read_npy(&path).unwrap_err().kind(), ErrorKind::IO);
        let good = npy(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n", &[0; 24]);
        for length in 0..good.len() {
            std::fs::write(&path, &good[..length]).unwrap();
            assert_eq!(read_npy(&path).unwrap_err().kind(), ErrorKind::BadFile, "{length}");
        }
        for (header, kind) in [
            ("{'descr': '<f4', 'fortran_order': False, 'shape': (18446744073709551615, 9), }", ErrorKind::SizeOverflow),
            ("{'descr': '<f4', 'fortran_order': False, 'shape': (-1, 9), }", ErrorKind::BadFile),
            ("{'descr': '<f4', 'fortran_order': False, 'shape': 9, }", ErrorKind::BadFile),
            ("{'descr': '|O', 'fortran_order': False, 'shape': (3,), }", ErrorKind::Unsupported),
            ("{'descr': '<f4', 'fortran_order': False}", ErrorKind::BadFile),
        ] {
            std::fs::write(&path, npy(1, header, &[0; 24])).unwrap();
            let e = read_npy(&path).unwrap_err();
            assert_eq!(e.kind(), kind, "{e}");
            assert!(e.message().contains("bad.npy"), "{e}");
        }
    }
}
