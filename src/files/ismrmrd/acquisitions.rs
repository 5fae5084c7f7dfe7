//! Reads the acquisitions of a raw dataset: all headers first, then trajectories and samples one after the other.

use super::layout::{Acquisition, ACQUISITION_HEADER};
use crate::hdf5::{hdf5_error, member, HeapReader, HeapReference, Number, RecordReader};
use hdf5_pure::Datatype;
use num_complex::Complex;
use recon::error::{bail, ErrorKind, Result};
use recon::scan::AcquisitionHeader;

/// Number of acquisitions whose records are read at a time.
const BATCH: u64 = 4096;

/// A field of variable length.
struct ArrayField {
    offset: usize,
    number: Number,
}

impl ArrayField {
    fn of(record: &Datatype, name: &str) -> Result<ArrayField> {
        let (offset, datatype) = member(record, "data", name)?;
        match datatype {
            Datatype::VariableLength { is_string: false, base_type, .. } => {
                Ok(ArrayField { offset, number: Number::of(base_type, &format!("data.{name}"))? })
            }
            _ => bail!(BadFile, "data.{name} is not an array of variable length: this is not the layout of ISMRMRD"),
        }
    }
}

/// The acquisitions of a file.
pub struct AcquisitionTable {
    /// The headers of all acquisitions.
    pub headers: Vec<AcquisitionHeader>,
    /// The places of trajectory and data.
    references: Vec<[HeapReference; 2]>,
    numbers: [Number; 2],
    heap: HeapReader,
    /// The numbers of the data, before they are complex.
    parts: Vec<f32>,
}

impl AcquisitionTable {
    /// Reads all headers of `set`.
    ///
    /// # Errors
    /// `BadFile` if the records are not acquisitions, or cannot be read.
    pub fn read(set: &hdf5_pure::Dataset, heap: HeapReader) -> Result<AcquisitionTable> {
        let bad = |what| hdf5_error(ErrorKind::BadFile, what);
        let record = set.datatype().map_err(bad("the type of data cannot be read"))?;
        let (head_offset, head) = member(&record, "data", "head")?;
        let size = record.type_size() as usize;
        let reader = RecordReader::new(head, "data.head", &ACQUISITION_HEADER)?;
        let [trajectory, data] = [ArrayField::of(&record, "traj")?, ArrayField::of(&record, "data")?];
        let count = set.shape().map_err(bad("the number of acquisitions cannot be read"))?[0];
        let (mut headers, mut references) = (Vec::new(), Vec::new());
        let head_size = head.type_size() as usize;
        for start in (0..count).step_by(BATCH as usize) {
            let rows = BATCH.min(count - start);
            let last = start + rows - 1;
            let what = format!("the headers of acquisitions {start} to {last} cannot be read: the file is damaged");
            let records = set.read_raw_rows(start, rows).map_err(hdf5_error(ErrorKind::BadFile, &what))?;
            if records.len() != rows as usize * size {
                bail!(BadFile, "{what}");
            }
            for (number, record) in records.chunks_exact(size).enumerate() {
                let mut bytes = [0; AcquisitionHeader::BYTES];
                let read = reader.read(&record[head_offset..][..head_size], &mut bytes);
                read.map_err(|e| e.within(format_args!("acquisition {}", start as usize + number)))?;
                headers.push(AcquisitionHeader::from_bytes(&bytes));
                let reference = |field: &ArrayField| heap.reference(&record[field.offset..][..heap.reference_size()]);
                references.push([reference(&trajectory), reference(&data)]);
            }
        }
        let numbers = [trajectory.number, data.number];
        Ok(AcquisitionTable { headers, references, numbers, heap, parts: Vec::new() })
    }

    /// Reads trajectory and data of an acquisition, with its header.
    ///
    /// # Errors
    /// `BadFile` if they cannot be read, or the data are an odd number of numbers.
    pub fn acquisition(&mut self, number: usize, to: &mut Acquisition) -> Result<()> {
        let header = self.headers[number];
        let [trajectory, data] = self.references[number];
        to.header = header;
        to.trajectory.clear();
        to.data.clear();
        self.heap.read_f32(trajectory, self.numbers[0], &mut to.trajectory)?;
        self.parts.clear();
        self.heap.read_f32(data, self.numbers[1], &mut self.parts)?;
        let (pairs, rest) = self.parts.as_chunks::<2>();
        if !rest.is_empty() {
            let (samples, coils) = (header.number_of_samples as usize, header.active_channels as usize);
            let (n, need) = (self.parts.len(), 2 * samples * coils);
            bail!(BadFile, "the data have {n} numbers, but {samples} complex samples of {coils} coils need {need}");
        }
        to.data.extend(pairs.iter().map(|&[re, im]| Complex::new(re, im)));
        Ok(())
    }
}
