//! Errors of the HDF5 crate.

use recon::error::{Error, ErrorKind};

/// Converts an error of the HDF5 crate to an error of this crate, with a message of one line.
pub fn hdf5_error(kind: ErrorKind, what: &str) -> impl Fn(hdf5_pure::Error) -> Error + '_ {
    move |e| {
        let detail = e.to_string();
        Error::new(kind, format!("{what} ({})", detail.split_whitespace().collect::<Vec<_>>().join(" ")))
    }
}
