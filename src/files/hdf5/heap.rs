//! Reads arrays of variable length from the global heap of a file.

use super::numbers::Number;
use super::open::{FileBytes, Hdf5File};
use recon::error::{bail, Error, ErrorKind, Result};
use std::collections::{HashMap, VecDeque};
use std::ops::Range;

/// Maximum number of collections that are kept in memory.
const COLLECTIONS: usize = 16;
/// Maximum size of the collections that are kept in memory, in bytes. One larger collection is kept alone.
const COLLECTION_BYTES: usize = 32 << 20;
/// Bytes of an object before its length: its number, its count of references, and four that are not used.
const OBJECT_START: usize = 8;

/// The place of an array in the heap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeapReference {
    count: usize,
    address: u64,
    object: u32,
}

/// Objects of the heap that are stored together.
struct Collection {
    address: u64,
    bytes: Vec<u8>,
    objects: HashMap<u16, Range<usize>>,
}

/// A reader of arrays of variable length.
pub struct HeapReader {
    bytes: FileBytes,
    base: u64,
    address_size: usize,
    length_size: usize,
    collections: VecDeque<Collection>,
}

/// Returns an integer of up to 8 bytes.
fn integer(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |sum, &byte| sum << 8 | byte as u64)
}

impl HeapReader {
    /// Creates a reader for the arrays of a file.
    pub fn new(file: &Hdf5File) -> HeapReader {
        let superblock = file.file.superblock();
        HeapReader {
            bytes: file.bytes.clone(),
            base: superblock.base_address.get(),
            address_size: superblock.offset_size as usize,
            length_size: superblock.length_size as usize,
            collections: VecDeque::new(),
        }
    }

    /// Returns the number of bytes of a reference in a record.
    pub fn reference_size(&self) -> usize {
        8 + self.address_size
    }

    /// Reads a reference from a record.
    pub fn reference(&self, bytes: &[u8]) -> HeapReference {
        let (count, rest) = bytes.split_at(4);
        let (address, object) = rest.split_at(self.address_size);
        HeapReference {
            count: integer(count) as usize,
            address: integer(address),
            object: integer(&object[..4]) as u32,
        }
    }

    /// Appends the numbers of an array to `to`.
    ///
    /// # Errors
    /// `BadFile` if the array is not in the heap, or is shorter.
    pub fn read_f32(&mut self, reference: HeapReference, number: Number, to: &mut Vec<f32>) -> Result<()> {
        let bytes = self.array(reference, number.size())?;
        if to.try_reserve(reference.count).is_err() {
            bail!(OutOfHostMemory, "could not allocate {} bytes for an array", 4 * reference.count);
        }
        number.read_f32(bytes, to);
        Ok(())
    }

    /// Returns the bytes of an array whose entries have `size` bytes.
    ///
    /// # Errors
    /// `BadFile` if the array is not in the heap, or is shorter.
    pub fn array(&mut self, reference: HeapReference, size: usize) -> Result<&[u8]> {
        let HeapReference { count, address, object } = reference;
        if count == 0 {
            return Ok(&[]);
        }
        let position = match self.collections.iter().position(|c| c.address == address) {
            Some(position) => position,
            None => {
                let collection = self.collection(address)?;
                let used = |list: &VecDeque<Collection>| list.iter().map(|c| c.bytes.len()).sum::<usize>();
                while self.collections.len() >= COLLECTIONS
                    || !self.collections.is_empty()
                        && used(&self.collections) + collection.bytes.len() > COLLECTION_BYTES
                {
                    self.collections.pop_front();
                }
                self.collections.push_back(collection);
                self.collections.len() - 1
            }
        };
        let Collection { bytes, objects, .. } = &self.collections[position];
        let range = u16::try_from(object).ok().and_then(|object| objects.get(&object));
        match range.map(|range| &bytes[range.clone()]) {
            Some(found) if count.checked_mul(size).is_some_and(|need| need <= found.len()) => {
                Ok(&found[..count * size])
            }
            Some(found) => {
                let have = found.len();
                bail!(BadFile, "an array of {count} numbers of {size} bytes has {have} bytes: the file is damaged")
            }
            None => bail!(BadFile, "an array has a reference to nothing (object {object}): the file is damaged"),
        }
    }

    /// Reads the collection at an address.
    fn collection(&self, address: u64) -> Result<Collection> {
        let damaged = |what: &str| {
            let text = format!("the heap of arrays at {address} {what}: the file is damaged");
            Error::new(ErrorKind::BadFile, text)
        };
        let read = |start: u64, to: &mut [u8]| {
            self.bytes.read(start, to).map_err(|e| damaged(&format!("cannot be read ({e})")))
        };
        let start = self.base.checked_add(address).ok_or_else(|| damaged("is outside the file"))?;
        let mut header = vec![0; 8 + self.length_size];
        let header_size = header.len();
        read(start, &mut header)?;
        if &header[..4] != b"GCOL" || header[4] != 1 {
            return Err(damaged("does not begin as one"));
        }
        let size = integer(&header[8..]);
        if size < header_size as u64 || size > self.bytes.length() {
            return Err(damaged(&format!("announces {size} bytes")));
        }
        let mut bytes = Vec::new();
        if bytes.try_reserve_exact(size as usize).is_err() {
            bail!(OutOfHostMemory, "could not allocate {size} bytes for arrays of the file");
        }
        bytes.resize(size as usize, 0);
        read(start, &mut bytes)?;
        let (mut objects, mut at) = (HashMap::new(), header_size);
        while let Some(head) = bytes.get(at..at + OBJECT_START + self.length_size) {
            let number = integer(&head[..2]) as u16;
            // Bytes after object 0 are unused.
            if number == 0 {
                break;
            }
            at += head.len();
            let end = usize::try_from(integer(&head[OBJECT_START..])).ok().and_then(|length| at.checked_add(length));
            let Some(end) = end.filter(|&end| end <= bytes.len()) else {
                return Err(damaged(&format!("has an object {number} that is longer than the heap")));
            };
            objects.insert(number, at..end);
            at = end.next_multiple_of(8);
        }
        Ok(Collection { address, bytes, objects })
    }
}
