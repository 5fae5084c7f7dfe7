//! Conversion of numbers and coordinates between files and memory.

use num_complex::Complex;
use recon::error::{bail, Error, ErrorKind, Result};
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;

/// Opens a file for reading.
///
/// # Errors
/// `IO` if the file cannot be opened, or is a folder.
pub fn open_file(path: &Path) -> Result<File> {
    // Windows refuses to open a folder as if permission were missing, Linux to read it.
    if path.is_dir() {
        bail!(IO, "this is a folder, not a file");
    }
    File::open(path).map_err(|e| Error::new(ErrorKind::IO, e.to_string()))
}

/// Reads a file. A file of more than `limit` bytes is an error.
pub fn read_up_to(path: &Path, limit: usize) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    match open_file(path)?.take((limit as u64).saturating_add(1)).read_to_end(&mut bytes) {
        Ok(n) if n > limit => bail!(BadFile, "the file is longer than {limit} bytes"),
        Ok(_) => Ok(bytes),
        Err(e) => Err(Error::new(ErrorKind::IO, e.to_string())),
    }
}

/// The bytes of numbers with their byte order.
pub struct EndianBytes<'a> {
    pub is_big_endian: bool,
    pub bytes: &'a [u8],
}

macro_rules! number {
    ($name:ident, $t:ty) => {
        pub fn $name(&self, at: usize) -> $t {
            let mut b = [0; std::mem::size_of::<$t>()];
            b.copy_from_slice(&self.bytes[at..at + std::mem::size_of::<$t>()]);
            if self.is_big_endian {
                <$t>::from_be_bytes(b)
            } else {
                <$t>::from_le_bytes(b)
            }
        }
    };
}

impl EndianBytes<'_> {
    number!(i8, i8);
    number!(u8, u8);
    number!(i16, i16);
    number!(u16, u16);
    number!(i32, i32);
    number!(u32, u32);
    number!(i64, i64);
    number!(u64, u64);
    number!(f32, f32);
    number!(f64, f64);
}

/// Writes values in blocks. `append` appends the bytes of one value to the block.
pub fn write_blocks<T>(out: &mut impl Write, data: &[T], append: impl Fn(&T, &mut Vec<u8>)) -> std::io::Result<()> {
    let mut block = Vec::with_capacity(1 << 16);
    for part in data.chunks(1 << 13) {
        block.clear();
        for value in part {
            append(value, &mut block);
        }
        out.write_all(&block)?;
    }
    Ok(())
}

/// Writes complex numbers in little-endian order, real parts first.
pub fn write_complex(out: &mut impl Write, data: &[Complex<f32>]) -> std::io::Result<()> {
    write_blocks(out, data, |z, block| {
        block.extend(z.re.to_le_bytes());
        block.extend(z.im.to_le_bytes());
    })
}
