//! The table of file formats. Recognition by extension, checks of file names, error messages and help texts come from
//! it.

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
    /// A picture.
    Png,
    /// An array of NumPy.
    Numpy,
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

const FORMATS: [FormatEntry; 5] = [
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
        ],
        contents: "raw data; complex images of any sizes",
    },
    FormatEntry {
        format: Format::Bart,
        name: "BART",
        extensions: &[".cfl", ".hdr"],
        uses: &[WriteRawData, ReadImages, WriteImages, WriteSignedImages, WriteComplexImages],
        contents: "k-space, with the trajectory in a second file; complex images of one size, in dimension 10",
    },
    FormatEntry {
        format: Format::Nifti,
        name: "NIfTI",
        extensions: &[".nii", ".nii.gz"],
        uses: &[ReadImages, WriteImages, WriteSignedImages],
        contents: "volumes of slices, repetitions in the fourth dimension; magnitudes unless all numbers are real",
    },
    FormatEntry {
        format: Format::Numpy,
        name: "NumPy",
        extensions: &[".npy"],
        uses: &[ReadImages],
        contents: "read only: images",
    },
    FormatEntry {
        format: Format::Png,
        name: "PNG",
        extensions: &[".png"],
        uses: &[WriteImages, WritePicture],
        contents: "written only: magnitudes of images of one size, side by side",
    },
];

impl Format {
    /// Returns the format that the extension of a name selects; `None` if the extension is unknown.
    pub fn of(path: &Path) -> Option<Format> {
        let name = path.file_name().map(|n| n.to_string_lossy().to_ascii_lowercase()).unwrap_or_default();
        let matches = |entry: &&FormatEntry| entry.extensions.iter().any(|extension| name.ends_with(extension));
        FORMATS.iter().find(matches).map(|entry| entry.format)
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
    /// Returns whether the format of a file allows this use.
    pub fn allows(self, path: &Path) -> bool {
        let format = Format::of(path);
        FORMATS.iter().any(|entry| Some(entry.format) == format && entry.uses.contains(&self))
    }

    /// Returns the format of a file.
    ///
    /// # Errors
    /// `InvalidArgument`, with the possible extensions, if the format does not allow this use.
    pub fn format(self, path: &Path) -> Result<Format> {
        match Format::of(path).filter(|_| self.allows(path)) {
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
