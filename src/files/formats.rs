//! The table of file formats. Recognition by extension, checks of file names, error messages and help texts come from
//! it.

use super::cfl::pair;
use recon::error::{bail, Result};
use std::path::Path;

/// A file format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// HDF5 in the layout of ISMRMRD.
    Ismrmrd,
    /// A pair of files of BART.
    Bart,
    /// NIfTI-1, also compressed.
    Nifti,
    /// Classic MR files of DICOM.
    Dicom,
    /// A picture.
    Png,
    /// An array of NumPy.
    Numpy,
    /// Variables of MATLAB and Octave.
    Matlab,
}

/// A use of a file that only some formats allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileUse {
    /// Reading a whole dataset: acquisitions with their header, trajectory and times.
    ReadDataset,
    /// Writing samples and trajectory.
    WriteRawData,
    /// Writing a whole dataset, such as a scan with density weights.
    WriteDataset,
    /// Reading images.
    ReadImages,
    /// Writing images.
    WriteImages,
    /// Writing images whose real numbers keep their sign.
    WriteSignedImages,
    /// Writing complex images, such as coil maps and gridded k-space.
    WriteComplexImages,
    /// Writing images of different sizes to one file.
    WriteMixedSizes,
    /// Writing a picture.
    WritePicture,
    /// Writing density weights.
    WriteWeights,
    /// Reading from the standard input: one file, recognised by its contents.
    ReadStream,
    /// Writing to the standard output: one file.
    WriteStream,
}

/// A row of the table of file formats.
struct FormatEntry {
    format: Format,
    name: &'static str,
    /// Extensions in lower case. The files of a pair have one each.
    extensions: &'static [&'static str],
    uses: &'static [FileUse],
    /// Contents of a file, for the help.
    contents: &'static str,
}

use FileUse::*;

const FORMATS: [FormatEntry; 7] = [
    FormatEntry {
        format: Format::Ismrmrd,
        name: "ISMRMRD",
        extensions: &[".h5", ".mrd"],
        uses: &[
            ReadDataset,
            WriteRawData,
            WriteDataset,
            ReadImages,
            WriteImages,
            WriteSignedImages,
            WriteComplexImages,
            WriteMixedSizes,
            WriteWeights,
            ReadStream,
            WriteStream,
        ],
        contents: "raw data; complex images of any sizes",
    },
    FormatEntry {
        format: Format::Bart,
        name: "BART",
        extensions: &[".cfl", ".hdr"],
        uses: &[WriteRawData, ReadImages, WriteImages, WriteSignedImages, WriteComplexImages, WriteWeights],
        contents: "k-space, Cartesian or with the trajectory in a second file; complex images of one size, slices in \
                   dimension 13, time in 10, echoes in 5; inputs also without the ending",
    },
    FormatEntry {
        format: Format::Nifti,
        name: "NIfTI",
        extensions: &[".nii", ".nii.gz"],
        uses: &[ReadImages, WriteImages, WriteSignedImages, ReadStream, WriteStream],
        contents: "volumes of slices, repetitions in the fourth dimension; magnitudes unless all numbers are real",
    },
    FormatEntry {
        format: Format::Dicom,
        name: "DICOM",
        extensions: &[".dcm"],
        uses: &[ReadImages, WriteImages, WriteSignedImages, WriteMixedSizes, ReadStream, WriteStream],
        contents: "a file for each slice and repetition, 16 bits; magnitudes unless all numbers are real",
    },
    FormatEntry {
        format: Format::Numpy,
        name: "NumPy",
        extensions: &[".npy"],
        uses: &[ReadImages, WriteImages, WriteSignedImages, WriteComplexImages, WriteWeights, ReadStream, WriteStream],
        contents: "complex images of one size, [images, channels, z, y, x] without leading ones",
    },
    FormatEntry {
        format: Format::Matlab,
        name: "MATLAB and Octave",
        extensions: &[".mat"],
        uses: &[ReadImages, WriteImages, WriteSignedImages, WriteComplexImages, WriteWeights, ReadStream, WriteStream],
        contents: "complex images of one size, [x, y, z, channels, images], with positions and counters",
    },
    FormatEntry {
        format: Format::Png,
        name: "PNG",
        extensions: &[".png"],
        uses: &[WriteImages, WritePicture, WriteStream],
        contents: "written only: magnitudes of images of one size, a mosaic of slices, coils and frames",
    },
];

impl Format {
    /// Returns the format that the extension of a name selects; `None` if the extension is unknown.
    pub fn of(path: &Path) -> Option<Format> {
        let name = path.file_name().map(|n| n.to_string_lossy().to_ascii_lowercase()).unwrap_or_default();
        let matches = |entry: &&FormatEntry| entry.extensions.iter().any(|extension| name.ends_with(extension));
        FORMATS.iter().find(matches).map(|entry| entry.format)
    }

    /// Returns the format of a file that is read. A name without a known extension selects BART if there is no file of
    /// this name, but one with `.cfl` or `.hdr` appended, because BART's tools take names without an extension.
    pub fn of_input(path: &Path) -> Option<Format> {
        let is_bart_name = || {
            let (cfl, hdr) = pair(path);
            (!path.exists() || path.is_dir()) && (cfl.is_file() || hdr.is_file())
        };
        Format::of(path).or_else(|| is_bart_name().then_some(Format::Bart))
    }

    /// Returns the name of the format.
    pub fn name(self) -> &'static str {
        FORMATS.iter().find(|entry| entry.format == self).map_or("", |entry| entry.name)
    }

    /// Returns the extensions of the format, separated by commas.
    pub fn extensions(self) -> String {
        list(|entry| entry.format == self)
    }
}

impl FileUse {
    /// Returns the format of a file: of one that is read, or that will be written.
    fn format_of(self, path: &Path) -> Option<Format> {
        match self {
            ReadDataset | ReadImages => Format::of_input(path),
            _ => Format::of(path),
        }
    }

    /// Returns whether the format of a file allows this use.
    pub fn allows(self, path: &Path) -> bool {
        let format = self.format_of(path);
        FORMATS.iter().any(|entry| Some(entry.format) == format && entry.uses.contains(&self))
    }

    /// Returns the format of a file.
    ///
    /// # Errors
    /// `InvalidArgument`, with the possible extensions, if the format does not allow this use.
    pub fn format(self, path: &Path) -> Result<Format> {
        match self.format_of(path).filter(|_| self.allows(path)) {
            Some(format) => Ok(format),
            None => bail!(
                InvalidArgument,
                "{}: the ending of the name selects the file format, and must be one of {}",
                path.display(),
                self.extensions()
            ),
        }
    }

    /// Returns the extensions of the formats that allow this use, separated by commas.
    pub fn extensions(self) -> String {
        list(|entry| entry.uses.contains(&self))
    }

    /// Returns the help text of an option, followed by the possible extensions in parentheses.
    pub fn help(self, text: &str) -> String {
        format!("{text} ({})", self.extensions())
    }
}

/// Returns the extension for a file with these first bytes; `None` if they do not identify a format. 348 bytes identify
/// every format.
pub fn extension_of_contents(start: &[u8]) -> Option<&'static str> {
    let begins = |bytes: &[u8]| start.starts_with(bytes);
    match start {
        _ if begins(b"\x89HDF\r\n\x1a\n") => Some(".h5"),
        _ if begins(b"\x93NUMPY") => Some(".npy"),
        _ if begins(&[0x1f, 0x8b]) => Some(".nii.gz"),
        _ if begins(&348i32.to_le_bytes()) || begins(&348i32.to_be_bytes()) => Some(".nii"),
        _ if matches!(start.get(126..128), Some(b"IM" | b"MI")) => Some(".mat"),
        _ if matches!(start.get(128..132), Some(b"DICM")) => Some(".dcm"),
        _ => None,
    }
}

fn list(is_listed: impl Fn(&FormatEntry) -> bool) -> String {
    let extensions = FORMATS.iter().filter(|entry| is_listed(entry)).flat_map(|entry| entry.extensions);
    extensions.copied().collect::<Vec<_>>().join(", ")
}

/// Returns the help on file formats: one line per format.
pub fn help() -> String {
    let line =
        |entry: &FormatEntry| format!("\n  {} ({}): {}", entry.name, entry.extensions.join(", "), entry.contents);
    let lines: String = FORMATS.iter().map(line).collect();
    format!("The ending of a file's name selects its format:{lines}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extensions_select_formats() {
        for (name, format) in [
            ("a.h5", Some(Format::Ismrmrd)),
            ("folder.png/a.MRD", Some(Format::Ismrmrd)),
            (".hdr", Some(Format::Bart)),
            ("a.nii.gz", Some(Format::Nifti)),
            ("a.gz", None),
            ("h5", None),
            ("", None),
        ] {
            assert_eq!(Format::of(Path::new(name)), format, "{name}");
        }
        assert!(WriteComplexImages.allows(Path::new("a.cfl")) && !WriteComplexImages.allows(Path::new("a.nii")));
        assert_eq!(WriteRawData.extensions(), ".h5, .mrd, .cfl, .hdr");
        assert_eq!(Format::Nifti.extensions(), ".nii, .nii.gz");
    }

    #[test]
    fn contents_identify_formats() {
        for (start, extension) in [
            (&b"\x89HDF\r\n\x1a\nx"[..], Some(".h5")),
            (b"\x93NUMPY\x01", Some(".npy")),
            (b"\x1f\x8b\x08", Some(".nii.gz")),
            (&[0x5c, 1, 0, 0, 9], Some(".nii")),
            (&[0, 0, 1, 0x5c], Some(".nii")),
            (&[&[b' '; 124][..], b"\x00\x01IM"].concat(), Some(".mat")),
            (&[&[0; 128][..], b"DICM"].concat(), Some(".dcm")),
            (b"MATLAB", None),
            (b"", None),
        ] {
            assert_eq!(extension_of_contents(start), extension, "{start:?}");
            let allowed = extension.is_none_or(|e| ReadStream.allows(Path::new(&format!("a{e}"))));
            assert!(allowed, "{extension:?}");
        }
    }

    /// Compares the table under "Files" of docs/program.md with the table of formats: extensions, and whether a format
    /// is read and written.
    #[test]
    fn documentation_has_the_same_formats() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/program.md");
        let page = std::fs::read_to_string(page).unwrap();
        let section = page.split("\n## Files\n").nth(1).unwrap().split("\n## ").next().unwrap();
        let is_extension = |word: &&str| word.starts_with('.') && !word.contains(' ');
        let mut rows = FORMATS.iter();
        for line in section.lines().filter(|line| line.starts_with("| `.")) {
            let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
            let entry = rows.next().unwrap_or_else(|| panic!("no format for the row {line}"));
            let found: Vec<&str> = cells[0].split('`').filter(is_extension).collect();
            assert_eq!(found, entry.extensions, "{line}");
            let reads = entry.uses.iter().any(|file_use| matches!(file_use, ReadDataset | ReadImages));
            let writes = entry.uses.contains(&WriteImages);
            assert_eq!([cells[1] != "not read", cells[2] != "not written"], [reads, writes], "{line}");
        }
        assert!(rows.next().is_none(), "docs/program.md lacks a format");
    }
}
