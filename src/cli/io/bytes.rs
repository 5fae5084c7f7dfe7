//! Numbers and coordinates as files hold them.

use num_complex::Complex;
use recon::error::{bail, Error, ErrorKind, Result};
use recon::geometry::in_range;
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;

/// The coordinate in [-0.5, 0.5) of the same point of k-space, if there is one up to rounding: 0.5 is the same as -0.5
/// for voxels at integer positions.
pub fn wrap_coordinate(k: f32) -> Option<f32> {
    match k {
        k if (-0.5..0.5).contains(&k) => Some(k),
        k if in_range(k as f64) => Some(-0.5),
        _ => None,
    }
}

/// The bytes of a file, at most `limit` of them; more are an error.
pub fn read_up_to(path: &Path, limit: usize) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    match File::open(path).and_then(|f| f.take((limit as u64).saturating_add(1)).read_to_end(&mut bytes)) {
        Ok(n) if n > limit => bail!(BadFile, "the file is longer than {limit} bytes"),
        Ok(_) => Ok(bytes),
        Err(e) => Err(Error::new(ErrorKind::IO, e.to_string())),
    }
}

/// Numbers in a file of known byte order.
pub struct Bytes<'a> {
    pub big: bool,
    pub bytes: &'a [u8],
}

macro_rules! number {
    ($name:ident, $t:ty) => {
        pub fn $name(&self, at: usize) -> $t {
            let mut b = [0; std::mem::size_of::<$t>()];
            b.copy_from_slice(&self.bytes[at..at + std::mem::size_of::<$t>()]);
            if self.big {
                <$t>::from_be_bytes(b)
            } else {
                <$t>::from_le_bytes(b)
            }
        }
    };
}

impl Bytes<'_> {
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

/// Writes numbers in little-endian order, a block at a time.
pub fn write_blocks<T>(out: &mut impl Write, data: &[T], each: impl Fn(&T, &mut Vec<u8>)) -> std::io::Result<()> {
    let mut block = Vec::with_capacity(1 << 16);
    for part in data.chunks(1 << 13) {
        block.clear();
        for value in part {
            each(value, &mut block);
        }
        out.write_all(&block)?;
    }
    Ok(())
}

pub fn write_complex(out: &mut impl Write, data: &[Complex<f32>]) -> std::io::Result<()> {
    write_blocks(out, data, |z, block| {
        block.extend(z.re.to_le_bytes());
        block.extend(z.im.to_le_bytes());
    })
}
