//! The options for the file that a command writes.

use clap::error::ErrorKind;
use clap::{value_parser, Arg, ArgMatches, Args, Command, Error, FromArgMatches};
use recon_files::{FileUse, Format};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

/// The contents of an output.
pub trait OutputContents {
    /// Returns the help text of the option `--output`.
    fn help() -> String;
}

/// An image.
pub struct ImageFile;

impl OutputContents for ImageFile {
    fn help() -> String {
        FileUse::WriteImages.help("Image to write; its ending selects the file format. `-` is the standard output")
    }
}

/// Raw data.
pub struct RawDataFile;

impl OutputContents for RawDataFile {
    fn help() -> String {
        format!(
            "Raw data to write. Its ending selects the file format: {} for ISMRMRD; {} for BART, with the trajectory \
             in NAME_traj.cfl. `-` is the standard output",
            Format::Ismrmrd.extensions(),
            Format::Bart.extensions()
        )
    }
}

/// Images or raw data.
pub struct AnyFile;

impl OutputContents for AnyFile {
    fn help() -> String {
        FileUse::WriteImages.help("File to write; its ending selects the file format. `-` is the standard output")
    }
}

/// A map of numbers with a sign.
pub struct MapFile;

impl OutputContents for MapFile {
    fn help() -> String {
        FileUse::WriteSignedImages.help("Map to write; its ending selects the file format. `-` is the standard output")
    }
}

/// Density weights.
pub struct WeightFile;

impl OutputContents for WeightFile {
    fn help() -> String {
        FileUse::WriteWeights.help("Weights to write; the ending selects the file format. `-` is the standard output")
    }
}

/// The options `--output` and `--format`.
pub struct OutputArgs<C = ImageFile> {
    /// The file, or `-.npy` and the like for the standard output in this format.
    pub output: PathBuf,
    contents: PhantomData<C>,
}

const OUTPUT: &str = "output";
const FORMAT: &str = "format";

/// Checks that a file of this extension can be a stream.
fn parse_format(text: &str) -> Result<String, String> {
    let path = PathBuf::from(format!("-.{text}"));
    let words = FileUse::WriteStream.extensions().replace('.', "").replace("niigz", "nii.gz");
    match Format::of(&path) {
        Some(_) if FileUse::WriteStream.allows(&path) => Ok(text.to_owned()),
        Some(Format::Bart) => {
            Err(format!("files of BART are pairs, which one stream cannot carry: give one of {words}"))
        }
        _ => Err(format!("a format is expected, one of {words}")),
    }
}

impl<C: OutputContents> Args for OutputArgs<C> {
    fn augment_args(command: Command) -> Command {
        let output = Arg::new(OUTPUT).short('o').long(OUTPUT).value_name("FILE").required(true).help(C::help());
        let format = Arg::new(FORMAT).long(FORMAT).value_name("FORMAT").value_parser(parse_format);
        command
            .arg(output.value_parser(value_parser!(PathBuf)))
            .arg(format.help("Format of the standard output, with -o -: an ending without the dot, such as npy"))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<C: OutputContents> FromArgMatches for OutputArgs<C> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let error = |text: String| Error::raw(ErrorKind::ValueValidation, text);
        let Some(output) = matches.get_one::<PathBuf>(OUTPUT) else {
            return Err(Error::raw(ErrorKind::MissingRequiredArgument, "--output is required"));
        };
        let output = match (matches.get_one::<String>(FORMAT), output == Path::new("-")) {
            (Some(format), true) => format!("-.{format}").into(),
            (None, true) => {
                let extensions = FileUse::WriteStream.extensions();
                return Err(error(format!("-o - needs --format with the ending of a format ({extensions})")));
            }
            (Some(_), false) => {
                return Err(error(format!(
                    "--format is for the standard output, -o -: the ending of {} selects its format",
                    output.display()
                )))
            }
            // A file whose name looks like the standard output.
            (None, false) if output.as_os_str().as_encoded_bytes().starts_with(b"-.") => Path::new(".").join(output),
            (None, false) => output.clone(),
        };
        Ok(OutputArgs { output, contents: PhantomData })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
