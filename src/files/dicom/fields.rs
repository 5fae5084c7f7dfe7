//! Facts that DICOM files contain in addition to images.

use super::uids::is_valid;
use recon::error::{bail, Result};
use recon::scan::Header;
use uuid::Uuid;

/// Facts about patient and scan that images do not contain. The default is unknown.
#[derive(Debug, Clone, Default)]
pub struct DicomFields {
    /// The patient's name, in the form `Family^Given`; empty if unknown.
    pub patient_name: String,
    /// The patient's identifier in the hospital; empty if unknown.
    pub patient_id: String,
    /// The UID of an existing study that the images belong to; `None` makes one ([`write_dicom`](super::write_dicom)).
    pub study_uid: Option<String>,
    /// The identity of the raw data ([`identify_dataset`](super::identify_dataset)), so that all images of a scan are
    /// in one study; `None` if the images are not from raw data.
    pub raw_data: Option<Uuid>,
    /// The header of the raw data.
    pub header: Header,
}

impl DicomFields {
    /// Checks the texts that a user gave.
    ///
    /// # Errors
    /// `InvalidArgument` if a text is too long, has characters that DICOM does not allow, or is not a UID.
    pub fn check(&self) -> Result<()> {
        for (name, text) in [("name", &self.patient_name), ("identifier", &self.patient_id)] {
            let (length, bad) = (text.chars().count(), text.chars().find(|c| c.is_control() || *c == '\\'));
            if length > 64 || bad.is_some() {
                bail!(
                    InvalidArgument,
                    "the patient's {name} {text:?}: DICOM allows at most 64 characters, none of them a backslash or a \
                     control character"
                );
            }
        }
        match &self.study_uid {
            Some(uid) if !is_valid(uid) => bail!(
                InvalidArgument,
                "the study UID {uid:?}: a UID has at most 64 characters, and is numbers without leading zeros that are \
                 separated by dots, such as 1.2.840.113619.2"
            ),
            _ => Ok(()),
        }
    }
}
