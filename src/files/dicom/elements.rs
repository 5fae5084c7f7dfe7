//! The elements of a DICOM file that images need.

use crate::bytes::EndianBytes;
use dicom_core::{PrimitiveValue, Tag};
use dicom_dictionary_std::tags;
use dicom_encoding::transfer_syntax::{TransferSyntax, TransferSyntaxIndex};
use dicom_parser::dataset::lazy_read::LazyDataSetReader;
use dicom_parser::dataset::LazyDataToken;
use dicom_parser::StatefulDecode;
use dicom_transfer_syntax_registry::{entries, TransferSyntaxRegistry};
use recon::error::{bail, Error, ErrorKind, Result};
use std::collections::HashMap;
use std::io::Cursor;
use std::ops::Range;

/// The position of the first element: after the preamble and the text DICM.
const START: usize = 132;

/// The maximum length in bytes of an element that is read. Longer ones are damaged: all have a few numbers.
const MAX_LENGTH: u32 = 1024;

/// The remedy for compressed pixels.
const REMEDY: &str = "decompress the file, for example by gdcmconv --raw (Debian: libgdcm-tools)";

/// The part of a file that an element describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scope {
    /// The whole file.
    File,
    /// All frames, in the shared functional groups of an enhanced file.
    AllFrames,
    /// One frame, by its index, in the functional groups of an enhanced file.
    Frame(usize),
}

/// The elements of a file.
#[derive(Debug)]
pub struct Elements {
    values: HashMap<(Scope, Tag), PrimitiveValue>,
    /// The bytes of the pixels in the file; `None` if it has no pixels.
    pub pixels: Option<Range<usize>>,
    /// Whether numbers are big-endian.
    pub is_big_endian: bool,
    /// Whether the pixels are words, although one may be a byte.
    pub has_words: bool,
    /// Whether a table maps pixels to values.
    pub has_value_table: bool,
}

/// Elements of the functional groups and of the file that are read.
const USED: [Tag; 23] = [
    tags::ROWS,
    tags::COLUMNS,
    tags::NUMBER_OF_FRAMES,
    tags::SAMPLES_PER_PIXEL,
    tags::PHOTOMETRIC_INTERPRETATION,
    tags::BITS_ALLOCATED,
    tags::BITS_STORED,
    tags::HIGH_BIT,
    tags::PIXEL_REPRESENTATION,
    tags::RESCALE_INTERCEPT,
    tags::RESCALE_SLOPE,
    tags::DOSE_GRID_SCALING,
    tags::IMAGE_POSITION_PATIENT,
    tags::IMAGE_ORIENTATION_PATIENT,
    tags::PIXEL_SPACING,
    tags::SLICE_THICKNESS,
    tags::SPACING_BETWEEN_SLICES,
    tags::ECHO_NUMBERS,
    tags::TEMPORAL_POSITION_IDENTIFIER,
    tags::TEMPORAL_RESOLUTION,
    tags::TEMPORAL_POSITION_INDEX,
    tags::IN_STACK_POSITION_NUMBER,
    tags::TRANSFER_SYNTAX_UID,
];

impl Elements {
    /// Reads the elements of a file.
    ///
    /// # Errors
    /// - `BadFile`: the file is not DICOM, or is damaged.
    /// - `Unsupported`: the transfer syntax is compressed or unknown.
    pub fn of_file(file: &[u8]) -> Result<Elements> {
        if file.get(START - 4..START) != Some(b"DICM") {
            bail!(BadFile, "this is not a DICOM file: it does not have the text DICM at byte {}", START - 4);
        }
        let (meta, rest) = meta_group(file)?;
        let meta = walk(&file[..meta.end], meta.start, &entries::EXPLICIT_VR_LITTLE_ENDIAN.erased())?;
        let Some(syntax) = meta.text(Scope::File, tags::TRANSFER_SYNTAX_UID) else {
            bail!(BadFile, "the header does not have a transfer syntax: the file is damaged");
        };
        let syntax = transfer_syntax(&syntax)?;
        let mut elements = walk(file, rest, &syntax)?;
        elements.is_big_endian = syntax.uid() == entries::EXPLICIT_VR_BIG_ENDIAN.uid();
        Ok(elements)
    }

    /// Returns the text of an element; `None` if the file does not have it, or if it is empty.
    pub fn text(&self, scope: Scope, tag: Tag) -> Option<String> {
        let text = self.values.get(&(scope, tag))?.to_str();
        Some(text.trim_matches(|c: char| c == '\0' || c.is_whitespace()).to_owned()).filter(|text| !text.is_empty())
    }

    /// Returns the numbers of an element; empty if the file does not have it.
    ///
    /// # Errors
    /// `BadFile` if they are not numbers, or not finite.
    pub fn numbers(&self, scope: Scope, tag: Tag) -> Result<Vec<f64>> {
        let Some(value) = self.values.get(&(scope, tag)) else { return Ok(Vec::new()) };
        if self.text(scope, tag).is_none() {
            return Ok(Vec::new());
        }
        match value.to_multi_float64() {
            Ok(numbers) if numbers.iter().all(|v| v.is_finite()) => Ok(numbers),
            _ => bail!(BadFile, "element {tag} is {:?}, which are not numbers: the file is damaged", value.to_str()),
        }
    }

    /// Returns the numbers that apply to a frame: its own, those of all frames, or those of the file.
    ///
    /// # Errors
    /// Returns the errors of [`Elements::numbers`].
    pub fn numbers_of_frame<const N: usize>(&self, frame: usize, tag: Tag) -> Result<Option<[f64; N]>> {
        for scope in [Scope::Frame(frame), Scope::AllFrames, Scope::File] {
            if let Some(numbers) = self.numbers_in_scope(scope, tag)? {
                return Ok(Some(numbers));
            }
        }
        Ok(None)
    }

    /// Returns the numbers of an element; `None` if it is missing or empty.
    ///
    /// # Errors
    /// `BadFile` if there are not `N` numbers; those of [`Elements::numbers`].
    pub fn numbers_in_scope<const N: usize>(&self, scope: Scope, tag: Tag) -> Result<Option<[f64; N]>> {
        let numbers = self.numbers(scope, tag)?;
        match (numbers.len(), <[f64; N]>::try_from(numbers)) {
            (0, _) => Ok(None),
            (_, Ok(numbers)) => Ok(Some(numbers)),
            (n, Err(_)) => bail!(BadFile, "element {tag} has {n} numbers, not {N}: the file is damaged"),
        }
    }

    /// Returns a whole number of the file; `None` if the file does not have it.
    ///
    /// # Errors
    /// `BadFile` if it is not a whole number from 0 to 2^32 - 1.
    pub fn count(&self, tag: Tag) -> Result<Option<usize>> {
        match self.numbers(Scope::File, tag)?[..] {
            [] => Ok(None),
            [n, ..] if n.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(&n) => Ok(Some(n as usize)),
            [n, ..] => bail!(BadFile, "element {tag} is {n}, which is not a whole number: the file is damaged"),
        }
    }
}

/// Returns the bytes of the file meta elements, and the position of the elements after them.
fn meta_group(file: &[u8]) -> Result<(Range<usize>, usize)> {
    let first = EndianBytes { is_big_endian: false, bytes: &file[START..] };
    // The first element is the length of the group: tag, UL, length 4, and the value.
    if file.len() < START + 12 || first.bytes[..8] != [2, 0, 0, 0, b'U', b'L', 4, 0] {
        bail!(BadFile, "the file does not begin with the length of its meta elements: it is damaged");
    }
    let (start, length) = (START + 12, first.u32(8) as usize);
    match start.checked_add(length) {
        Some(end) if end <= file.len() => Ok((start..end, end)),
        _ => bail!(BadFile, "the meta elements have {length} bytes, but the file ends earlier: it is truncated"),
    }
}

/// Returns the transfer syntax of this UID.
fn transfer_syntax(uid: &str) -> Result<TransferSyntax> {
    let known = [
        entries::IMPLICIT_VR_LITTLE_ENDIAN.erased(),
        entries::EXPLICIT_VR_LITTLE_ENDIAN.erased(),
        entries::EXPLICIT_VR_BIG_ENDIAN.erased(),
    ];
    match known.into_iter().find(|syntax| syntax.uid() == uid) {
        Some(syntax) => Ok(syntax),
        None => {
            let name = TransferSyntaxRegistry.get(uid).map_or("unknown", |other| other.name());
            bail!(
                Unsupported,
                "the transfer syntax is {uid} ({name}), and only uncompressed pixels can be read: {REMEDY}"
            )
        }
    }
}

/// A sequence that has begun.
struct OpenSequence {
    tag: Tag,
    /// The number of items that have begun.
    items: usize,
    /// Whether the last item has not ended.
    is_in_item: bool,
}

/// Returns the part of the file that the elements in these sequences describe; `None` if they are not used.
fn scope(open: &[OpenSequence]) -> Option<Scope> {
    match open {
        [] => Some(Scope::File),
        [groups, _] if groups.tag == tags::SHARED_FUNCTIONAL_GROUPS_SEQUENCE => Some(Scope::AllFrames),
        // An element of a frame may be one level deeper than the item of the frame.
        [groups, _] if groups.tag == tags::PER_FRAME_FUNCTIONAL_GROUPS_SEQUENCE => {
            groups.items.checked_sub(1).map(Scope::Frame)
        }
        _ => None,
    }
}

/// Reads the elements from byte `start` of a file up to its pixels.
fn walk(file: &[u8], start: usize, syntax: &TransferSyntax) -> Result<Elements> {
    let damaged = |e: &dyn std::fmt::Display| Error::new(ErrorKind::BadFile, format!("the file is damaged: {e}"));
    let mut source = Cursor::new(file);
    source.set_position(start as u64);
    let mut reader = LazyDataSetReader::new_with_ts(source, syntax).map_err(|e| damaged(&e))?;
    let mut open: Vec<OpenSequence> = Vec::new();
    let mut elements = Elements {
        values: HashMap::new(),
        pixels: None,
        is_big_endian: false,
        has_words: false,
        has_value_table: false,
    };
    while let Some(token) = reader.advance() {
        match token.map_err(|e| damaged(&e))? {
            LazyDataToken::SequenceStart { tag, .. } => {
                elements.has_value_table |= open.is_empty() && tag == tags::MODALITY_LUT_SEQUENCE;
                open.push(OpenSequence { tag, items: 0, is_in_item: false });
            }
            // The reader panics at an item that is in no sequence. Therefore each start and end is checked.
            LazyDataToken::ItemStart { .. } => match open.last_mut() {
                Some(sequence) if !sequence.is_in_item => {
                    sequence.items += 1;
                    sequence.is_in_item = true;
                }
                _ => return Err(damaged(&"an item is not in a sequence")),
            },
            LazyDataToken::ItemEnd => match open.last_mut() {
                Some(sequence) if sequence.is_in_item => sequence.is_in_item = false,
                _ => return Err(damaged(&"an item ends that has not begun")),
            },
            LazyDataToken::SequenceEnd => match open.pop() {
                Some(sequence) if !sequence.is_in_item => {}
                _ => return Err(damaged(&"a sequence ends that has not begun")),
            },
            LazyDataToken::LazyValue { header, decoder } => {
                let position = decoder.position() as usize;
                let length = header.len.0;
                let remaining = file.len().saturating_sub(position);
                if length as usize > remaining {
                    bail!(
                        BadFile,
                        "element {} has {length} bytes, but the file has {remaining} after it: it is truncated",
                        header.tag
                    );
                }
                let scope = scope(&open);
                if header.tag == tags::PIXEL_DATA && scope == Some(Scope::File) {
                    elements.pixels = Some(position..position + length as usize);
                    elements.has_words = header.vr == dicom_core::VR::OW;
                    return Ok(elements);
                }
                match scope.filter(|_| USED.contains(&header.tag) && length <= MAX_LENGTH) {
                    Some(scope) => {
                        let value = decoder.read_value_preserved(&header).map_err(|e| damaged(&e))?;
                        elements.values.insert((scope, header.tag), value);
                    }
                    None => decoder.skip_bytes(length).map_err(|e| damaged(&e))?,
                }
            }
            LazyDataToken::PixelSequenceStart => {
                bail!(Unsupported, "the pixels are compressed, and only uncompressed pixels can be read: {REMEDY}")
            }
            _ => {}
        }
    }
    if !open.is_empty() {
        return Err(damaged(&"it ends within a sequence"));
    }
    Ok(elements)
}
