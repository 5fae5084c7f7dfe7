//! Numbers of all widths and byte orders.

use hdf5_pure::{Datatype, DatatypeByteOrder, FixedPointLayout, FloatingPointLayout};
use recon::error::{bail, Result};

/// A number of the structures of ISMRMRD, in little-endian order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scalar {
    /// An unsigned integer of 16 bits.
    U16,
    /// An unsigned integer of 32 bits.
    U32,
    /// An unsigned integer of 64 bits.
    U64,
    /// A signed integer of 32 bits.
    I32,
    /// A number in single precision.
    F32,
}

impl Scalar {
    /// Returns the number of bytes.
    pub const fn size(self) -> usize {
        match self {
            Scalar::U16 => 2,
            Scalar::U32 | Scalar::I32 | Scalar::F32 => 4,
            Scalar::U64 => 8,
        }
    }

    /// Returns the type in a file.
    pub fn datatype(self) -> Datatype {
        match self {
            Scalar::U16 => hdf5_pure::make_u16_type(),
            Scalar::U32 => hdf5_pure::make_u32_type(),
            Scalar::U64 => hdf5_pure::make_u64_type(),
            Scalar::I32 => hdf5_pure::make_i32_type(),
            Scalar::F32 => hdf5_pure::make_f32_type(),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NumberKind {
    Unsigned,
    Signed,
    Float,
}

/// The type of a number in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Number {
    kind: NumberKind,
    size: usize,
    is_big_endian: bool,
}

/// The value of a number in a file.
#[derive(Clone, Copy)]
enum Value {
    Integer(i128),
    Float(f64),
}

impl Number {
    /// Returns the type of the numbers `name` of a file.
    ///
    /// # Errors
    /// `BadFile` if they are not numbers; `Unsupported` for integers with unused bits and for floating-point numbers
    /// other than those of single and double precision.
    pub fn of(datatype: &Datatype, name: &str) -> Result<Number> {
        let (kind, size, order) = match datatype {
            Datatype::FixedPoint { size, byte_order, layout } => {
                let FixedPointLayout { signed, bit_offset, bit_precision } = *layout;
                if bit_offset != 0 || bit_precision as u32 != 8 * size || !matches!(size, 1 | 2 | 4 | 8) {
                    bail!(
                        Unsupported,
                        "{name} has integers of {bit_precision} bits in {size} bytes: store whole bytes"
                    );
                }
                (if signed { NumberKind::Signed } else { NumberKind::Unsigned }, *size, *byte_order)
            }
            Datatype::FloatingPoint { size, byte_order, layout } => {
                let is_ieee = match size {
                    4 => *layout == FloatingPointLayout::IEEE754_BINARY32,
                    8 => *layout == FloatingPointLayout::IEEE754_BINARY64,
                    _ => false,
                };
                if !is_ieee {
                    bail!(
                        Unsupported,
                        "{name} has floating-point numbers of {size} bytes that are neither single nor double \
                         precision: store one of these"
                    );
                }
                (NumberKind::Float, *size, *byte_order)
            }
            _ => bail!(BadFile, "{name} is not a number: this is not the layout of ISMRMRD"),
        };
        let is_big_endian = match order {
            DatatypeByteOrder::LittleEndian => false,
            DatatypeByteOrder::BigEndian => true,
            DatatypeByteOrder::Vax => bail!(Unsupported, "{name} has numbers in the order of a VAX: store them again"),
        };
        Ok(Number { kind, size: size as usize, is_big_endian })
    }

    /// Returns the number of bytes of a number.
    pub fn size(self) -> usize {
        self.size
    }

    /// Returns whether numbers of the file are those of `scalar`, byte for byte.
    pub fn is_stored_as(self, scalar: Scalar) -> bool {
        let kind = match scalar {
            Scalar::U16 | Scalar::U32 | Scalar::U64 => NumberKind::Unsigned,
            Scalar::I32 => NumberKind::Signed,
            Scalar::F32 => NumberKind::Float,
        };
        self == Number { kind, size: scalar.size(), is_big_endian: false }
    }

    fn value(self, bytes: &[u8]) -> Value {
        let mut number = [0; 8];
        number[..self.size].copy_from_slice(&bytes[..self.size]);
        if self.is_big_endian {
            number[..self.size].reverse();
        }
        let bits = u64::from_le_bytes(number);
        let unused = 64 - 8 * self.size as u32;
        match (self.kind, self.size) {
            (NumberKind::Unsigned, _) => Value::Integer(bits as i128),
            (NumberKind::Signed, _) => Value::Integer(((bits << unused) as i64 >> unused) as i128),
            (NumberKind::Float, 4) => Value::Float(f32::from_bits(bits as u32) as f64),
            (NumberKind::Float, _) => Value::Float(f64::from_bits(bits)),
        }
    }

    /// Returns the number at the beginning of `bytes`, rounded to single precision.
    pub fn f32(self, bytes: &[u8]) -> f32 {
        match self.value(bytes) {
            Value::Integer(value) => value as f32,
            Value::Float(value) => value as f32,
        }
    }

    /// Writes the number at `from` to `to` as `scalar`.
    ///
    /// # Errors
    /// `BadFile` if the value does not fit.
    pub fn convert(self, from: &[u8], scalar: Scalar, to: &mut [u8], name: &str) -> Result<()> {
        let integer = match (self.value(from), scalar) {
            (_, Scalar::F32) => {
                to.copy_from_slice(&self.f32(from).to_le_bytes());
                return Ok(());
            }
            (Value::Integer(value), _) => Some(value),
            (Value::Float(value), _) => (value.fract() == 0.0).then_some(value as i128),
        };
        let bytes = integer.and_then(|value| match scalar {
            Scalar::U16 => u16::try_from(value).ok().map(|v| v as u64),
            Scalar::U32 => u32::try_from(value).ok().map(|v| v as u64),
            Scalar::U64 => u64::try_from(value).ok(),
            Scalar::I32 => i32::try_from(value).ok().map(|v| v as u32 as u64),
            Scalar::F32 => None,
        });
        let Some(bytes) = bytes else {
            let value = match self.value(from) {
                Value::Integer(value) => value.to_string(),
                Value::Float(value) => value.to_string(),
            };
            bail!(BadFile, "{name} is {value}, which is not a number of the type that ISMRMRD has there");
        };
        to.copy_from_slice(&bytes.to_le_bytes()[..scalar.size()]);
        Ok(())
    }

    /// Appends the numbers in `bytes` to `to`, rounded to single precision.
    pub fn read_f32(self, bytes: &[u8], to: &mut Vec<f32>) {
        if self.is_stored_as(Scalar::F32) {
            let (numbers, _) = bytes.as_chunks::<4>();
            to.extend(numbers.iter().map(|&number| f32::from_le_bytes(number)));
        } else {
            to.extend(bytes.chunks_exact(self.size).map(|number| self.f32(number)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(kind: NumberKind, size: usize, is_big_endian: bool) -> Number {
        Number { kind, size, is_big_endian }
    }

    #[test]
    fn all_widths_and_orders_are_read() {
        let mut to = [0; 8];
        let mut get = |number: Number, bytes: &[u8], scalar: Scalar| {
            let to = &mut to[..scalar.size()];
            number.convert(bytes, scalar, to, "x").map(|()| to.to_vec())
        };
        let (unsigned, signed, float) = (NumberKind::Unsigned, NumberKind::Signed, NumberKind::Float);
        assert_eq!(get(number(unsigned, 2, true), &[1, 2], Scalar::U16).unwrap(), [2, 1]);
        assert_eq!(get(number(signed, 1, false), &[0xff], Scalar::I32).unwrap(), (-1i32).to_le_bytes());
        assert_eq!(get(number(signed, 8, true), &(-7i64).to_be_bytes(), Scalar::I32).unwrap(), (-7i32).to_le_bytes());
        assert_eq!(get(number(float, 8, true), &2.5f64.to_be_bytes(), Scalar::F32).unwrap(), 2.5f32.to_le_bytes());
        assert_eq!(get(number(float, 8, false), &9f64.to_le_bytes(), Scalar::U16).unwrap(), [9, 0]);
        let large = u64::MAX.to_le_bytes();
        assert_eq!(get(number(unsigned, 8, false), &large, Scalar::U64).unwrap(), large);
        for (number, bytes, scalar) in [
            (number(unsigned, 4, false), &70_000u32.to_le_bytes()[..], Scalar::U16),
            (number(signed, 4, false), &(-1i32).to_le_bytes()[..], Scalar::U32),
            (number(float, 4, false), &0.5f32.to_le_bytes()[..], Scalar::U32),
            (number(float, 4, false), &f32::NAN.to_le_bytes()[..], Scalar::I32),
        ] {
            assert!(get(number, bytes, scalar).unwrap_err().message().starts_with("x is "), "{number:?}");
        }
        let mut numbers = Vec::new();
        number(signed, 2, true).read_f32(&[0xff, 0xfe, 0, 3], &mut numbers);
        number(float, 4, false).read_f32(&[1.5f32.to_le_bytes(), (-2f32).to_le_bytes()].concat(), &mut numbers);
        assert_eq!(numbers, [-2.0, 3.0, 1.5, -2.0]);
    }
}
