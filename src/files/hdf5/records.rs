//! Records whose fields are found by name, in any order, width and byte order.

use super::numbers::{Number, Scalar};
use hdf5_pure::{CompoundTypeBuilder, Datatype};
use recon::error::{bail, ErrorKind, Result};

/// A field of a packed structure: numbers one after the other.
#[derive(Debug, Clone, Copy)]
pub struct RecordField {
    /// The name. For a field of an inner structure: the name of that structure, a dot, and the name of the field.
    pub name: &'static str,
    /// The type of the numbers.
    pub scalar: Scalar,
    /// The number of numbers; `None` for a single number that is not an array.
    pub count: Option<usize>,
}

impl RecordField {
    /// Returns the number of bytes.
    pub const fn size(&self) -> usize {
        let count = match self.count {
            Some(count) => count,
            None => 1,
        };
        self.scalar.size() * count
    }
}

/// Returns the type of a packed structure in a file. Fields of an inner structure must follow each other.
///
/// # Errors
/// `Internal` if there are no fields.
pub fn record_type(fields: &[RecordField]) -> Result<Datatype> {
    let mut builder = CompoundTypeBuilder::new();
    let mut rest = fields;
    while let Some(field) = rest.first() {
        let inner = field.name.split_once('.').map(|(name, _)| name);
        if let Some(name) = inner {
            let count = rest.iter().take_while(|f| f.name.split_once('.').is_some_and(|(n, _)| n == name)).count();
            let without = |f: &RecordField| RecordField { name: &f.name[name.len() + 1..], ..*f };
            builder = builder.field(name, record_type(&rest[..count].iter().map(without).collect::<Vec<_>>())?);
            rest = &rest[count..];
        } else {
            let scalar = field.scalar.datatype();
            let datatype = match field.count {
                None => scalar,
                Some(count) => Datatype::Array { base_type: Box::new(scalar), dimensions: vec![count as u32] },
            };
            builder = builder.field(field.name, datatype);
            rest = &rest[1..];
        }
    }
    builder.build().map_err(|e| recon::error::Error::new(ErrorKind::Internal, format!("a record's type: {e}")))
}

/// Checks that a type is a record whose fields lie in it and do not overlap.
///
/// # Errors
/// `BadFile` otherwise.
pub fn require_members(datatype: &Datatype, name: &str) -> Result<()> {
    let Datatype::Compound { size, members } = datatype else {
        bail!(BadFile, "{name} has no fields: this is not the layout of ISMRMRD");
    };
    let end = |start: u64, t: &Datatype| start.saturating_add(t.type_size() as u64);
    let mut ranges: Vec<_> = members.iter().map(|m| (m.byte_offset, end(m.byte_offset, &m.datatype))).collect();
    ranges.sort_unstable();
    let overlap = ranges.windows(2).any(|w| w[0].1 > w[1].0);
    if overlap || ranges.last().is_some_and(|last| last.1 > *size as u64) {
        bail!(BadFile, "the fields of {name} overlap or reach beyond its end: the file is damaged");
    }
    Ok(())
}

/// Returns the offset and the type of a field of the record `record`.
///
/// # Errors
/// `BadFile` if there is no such field, or the type is not a record.
pub fn member<'a>(datatype: &'a Datatype, record: &str, name: &str) -> Result<(usize, &'a Datatype)> {
    require_members(datatype, record)?;
    let Datatype::Compound { members, .. } = datatype else { unreachable!("it was just checked") };
    match members.iter().find(|m| m.name == name) {
        Some(m) => Ok((m.byte_offset as usize, &m.datatype)),
        None => bail!(BadFile, "there is no field {record}.{name}: this is not the layout of ISMRMRD"),
    }
}

/// A number, or consecutive ones, that is copied from a record of the file to a packed structure.
struct Copy {
    name: String,
    from: usize,
    to: usize,
    number: Number,
    scalar: Scalar,
    count: usize,
}

/// A reader of records that makes packed structures of them.
pub struct RecordReader {
    copies: Vec<Copy>,
    size: usize,
}

impl RecordReader {
    /// Creates a reader of records of the type `datatype`, for structures of `fields`. `name` is the name of the
    /// records in messages.
    ///
    /// # Errors
    /// `BadFile` if the records lack a field, or have one of another kind; `Unsupported` for unusual numbers.
    pub fn new(datatype: &Datatype, name: &str, fields: &[RecordField]) -> Result<RecordReader> {
        let (mut copies, mut to) = (Vec::new(), 0);
        for field in fields {
            let (mut record, mut record_name, mut from) = (datatype, name.to_owned(), 0);
            for part in field.name.split('.') {
                let (offset, inner) = member(record, &record_name, part)?;
                (record, record_name, from) = (inner, format!("{record_name}.{part}"), from + offset);
            }
            let count = field.count.unwrap_or(1);
            let element = match record {
                Datatype::Array { base_type, dimensions } => {
                    let have = dimensions.iter().fold(1usize, |n, &d| n.saturating_mul(d as usize));
                    if have != count {
                        bail!(BadFile, "{record_name} has {have} entries where ISMRMRD has {count}");
                    }
                    base_type
                }
                _ if count != 1 => bail!(BadFile, "{record_name} has one entry where ISMRMRD has {count}"),
                single => single,
            };
            let number = Number::of(element, &record_name)?;
            copies.push(Copy { name: record_name, from, to, number, scalar: field.scalar, count });
            to += field.size();
        }
        Ok(RecordReader { copies, size: to })
    }

    /// Writes the structure of a record to `to`.
    ///
    /// # Errors
    /// `BadFile` if a number does not fit.
    pub fn read(&self, record: &[u8], to: &mut [u8]) -> Result<()> {
        assert_eq!(to.len(), self.size);
        for copy in &self.copies {
            let (from_size, to_size) = (copy.number.size(), copy.scalar.size());
            let from = &record[copy.from..][..copy.count * from_size];
            let to = &mut to[copy.to..][..copy.count * to_size];
            if copy.number.is_stored_as(copy.scalar) {
                to.copy_from_slice(from);
                continue;
            }
            for (from, to) in from.chunks_exact(from_size).zip(to.chunks_exact_mut(to_size)) {
                copy.number.convert(from, copy.scalar, to, &copy.name)?;
            }
        }
        Ok(())
    }
}
