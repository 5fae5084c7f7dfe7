//! Writes files with arrays of variable length.

use super::errors::hdf5_error;
use hdf5_pure::{CharacterSet, Datatype, FileBuilder, LibVer, StringPadding};
use recon::error::{Error, ErrorKind, Result};
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::Path;

/// The size from which a collection of arrays is written, in bytes.
const COLLECTION: usize = 1 << 16;
/// The smallest collection that HDF5's library reads, in bytes.
const SMALLEST_COLLECTION: usize = 4096;
/// Bytes of a collection before its first array, and of an array before its numbers.
const HEAD: usize = 16;
/// Bytes of the superblock before its checksum.
const SUPERBLOCK: usize = 44;
/// The place of the file's end in the superblock.
const END_OF_FILE: usize = 28;

/// Returns the type of arrays of variable length.
pub fn array_type(number: Datatype) -> Datatype {
    Datatype::VariableLength { is_string: false, padding: None, charset: None, base_type: Box::new(number) }
}

/// A file whose records refer to arrays of variable length.
///
/// hdf5-pure makes the structure of the file, which is written last, at its beginning: its length does not depend on
/// the numbers in it. The arrays follow, and are written while they come.
pub struct HeapFile {
    out: BufWriter<File>,
    /// The address of the collection that is being filled.
    address: u64,
    /// The arrays of the collection, with what precedes them.
    collection: Vec<u8>,
    arrays: u16,
    structure_length: u64,
}

/// Counts the bytes that are written to it.
struct ByteCount(u64);

impl Write for ByteCount {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Bytes of a reference to an array.
pub const REFERENCE: usize = 16;

impl HeapFile {
    /// Begins a file that replaces the empty file `path`. `structure` is the structure with any numbers in it.
    ///
    /// # Errors
    /// `IO` if the file cannot be written.
    pub fn new(path: &Path, structure: FileBuilder) -> Result<HeapFile> {
        let mut length = ByteCount(0);
        write_structure(structure, &mut length)?;
        let (structure_length, address) = (length.0, length.0.next_multiple_of(8));
        let mut out = BufWriter::new(OpenOptions::new().read(true).write(true).open(path).map_err(io_error)?);
        out.seek(SeekFrom::Start(address)).map_err(io_error)?;
        Ok(HeapFile { out, address, collection: vec![0; HEAD], arrays: 0, structure_length })
    }

    /// Adds an array of `count` entries, and returns the reference to it.
    ///
    /// # Errors
    /// `IO` if the file cannot be written.
    pub fn add(&mut self, count: usize, bytes: &[u8]) -> Result<[u8; REFERENCE]> {
        let mut reference = [0; REFERENCE];
        if count == 0 {
            return Ok(reference);
        }
        if self.arrays == u16::MAX || self.arrays > 0 && self.collection.len() + HEAD + bytes.len() > COLLECTION {
            self.finish_collection()?;
        }
        self.arrays += 1;
        reference[..4].copy_from_slice(&(count as u32).to_le_bytes());
        reference[4..12].copy_from_slice(&self.address.to_le_bytes());
        reference[12..].copy_from_slice(&(self.arrays as u32).to_le_bytes());
        self.collection.extend(self.arrays.to_le_bytes());
        // The number of references to the array, and four bytes that are not used.
        self.collection.extend([0; 6]);
        self.collection.extend((bytes.len() as u64).to_le_bytes());
        self.collection.extend(bytes);
        self.collection.resize(self.collection.len().next_multiple_of(8), 0);
        Ok(reference)
    }

    fn finish_collection(&mut self) -> Result<()> {
        if self.arrays == 0 {
            return Ok(());
        }
        let used = self.collection.len();
        if used < SMALLEST_COLLECTION {
            self.collection.resize(SMALLEST_COLLECTION, 0);
            // Object 0 is what is not used, with its own head.
            if SMALLEST_COLLECTION - used >= HEAD {
                let unused = (SMALLEST_COLLECTION - used) as u64;
                self.collection[used + 8..][..8].copy_from_slice(&unused.to_le_bytes());
            }
        }
        self.collection[..8].copy_from_slice(b"GCOL\x01\0\0\0");
        let length = self.collection.len() as u64;
        self.collection[8..HEAD].copy_from_slice(&length.to_le_bytes());
        self.out.write_all(&self.collection).map_err(io_error)?;
        self.address += length;
        self.collection.truncate(HEAD);
        self.arrays = 0;
        Ok(())
    }

    /// Writes the structure, now with the references in it, and completes the file.
    ///
    /// # Errors
    /// `IO` if the file cannot be written.
    pub fn finish(mut self, structure: FileBuilder) -> Result<()> {
        self.finish_collection()?;
        let mut file = self.out.into_inner().map_err(|e| io_error(e.into_error()))?;
        file.seek(SeekFrom::Start(0)).map_err(io_error)?;
        write_structure(structure, &mut file)?;
        let length = file.stream_position().map_err(io_error)?;
        assert_eq!(length, self.structure_length, "the structure must keep its length");
        // The structure's superblock does not know of the arrays.
        let mut superblock = [0; SUPERBLOCK + 4];
        file.seek(SeekFrom::Start(0)).and_then(|_| file.read_exact(&mut superblock)).map_err(io_error)?;
        superblock[END_OF_FILE..][..8].copy_from_slice(&self.address.to_le_bytes());
        let checksum = checksum(&superblock[..SUPERBLOCK]);
        superblock[SUPERBLOCK..].copy_from_slice(&checksum.to_le_bytes());
        file.seek(SeekFrom::Start(0)).and_then(|_| file.write_all(&superblock)).map_err(io_error)?;
        // A file without arrays ends after its structure.
        file.set_len(self.address).map_err(io_error)
    }
}

fn io_error(e: std::io::Error) -> Error {
    Error::new(ErrorKind::IO, format!("the file cannot be written ({e})"))
}

/// Writes a structure in the version of the format that HDF5 1.8 reads, and old versions of MATLAB with it.
fn write_structure(mut structure: FileBuilder, to: impl Write) -> Result<()> {
    structure.with_libver_bounds(LibVer::Earliest, LibVer::V18);
    structure.finish_to(to).map_err(hdf5_error(ErrorKind::IO, "the file cannot be written"))
}

/// Returns the type of texts of variable length in ASCII: the ISMRMRD library reads ASCII, and HDF5 does not convert
/// UTF-8 to it.
pub fn text_type() -> Datatype {
    Datatype::VariableLength {
        is_string: true,
        padding: Some(StringPadding::NullTerminate),
        charset: Some(CharacterSet::Ascii),
        base_type: Box::new(hdf5_pure::make_u8_type()),
    }
}

/// Computes the checksum of a superblock: lookup3 of Bob Jenkins, `hashlittle` with an initial value of 0.
fn checksum(bytes: &[u8]) -> u32 {
    let mut state = [0xdead_beef_u32.wrapping_add(bytes.len() as u32); 3];
    let blocks = bytes.len().div_ceil(12);
    for (number, block) in bytes.chunks(12).enumerate() {
        let mut padded = [0; 12];
        padded[..block.len()].copy_from_slice(block);
        let (words, _) = padded.as_chunks::<4>();
        state.iter_mut().zip(words).for_each(|(sum, &word)| *sum = sum.wrapping_add(u32::from_le_bytes(word)));
        if number + 1 < blocks {
            for (step, turn) in [4, 6, 8, 16, 19, 4].into_iter().enumerate() {
                let [x, y, z] = [step % 3, (step + 1) % 3, (step + 2) % 3];
                state[x] = state[x].wrapping_sub(state[z]) ^ state[z].rotate_left(turn);
                state[z] = state[z].wrapping_add(state[y]);
            }
        }
    }
    for (from, to, turn) in [(1, 2, 14), (2, 0, 11), (0, 1, 25), (1, 2, 16), (2, 0, 4), (0, 1, 14), (1, 2, 24)] {
        state[to] = (state[to] ^ state[from]).wrapping_sub(state[from].rotate_left(turn));
    }
    state[2]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksum_is_that_of_the_format() {
        for length in [1, 12, 1000] {
            let mut structure = FileBuilder::new();
            structure.create_dataset("x").with_f32_data(&vec![1.5; length]);
            let mut bytes = Vec::new();
            write_structure(structure, &mut bytes).unwrap();
            assert_eq!(checksum(&bytes[..SUPERBLOCK]).to_le_bytes(), bytes[SUPERBLOCK..][..4]);
        }
    }
}
