//! Options for DICOM files.

use clap::Args;
use recon::bail;
use recon::Result;
use recon_files::dicom::identify_dataset;
use recon_files::{Dataset, DicomFields, Format};
use std::path::Path;

/// Options for the patient and the study of DICOM files, which the program does not read from raw data.
#[derive(Args, Clone, Default)]
pub struct DicomArgs {
    /// Patient's name in DICOM files, such as Family^Given [default: empty]
    #[arg(long, value_name = "NAME", help_heading = "DICOM")]
    pub patient_name: Option<String>,

    /// Patient's identifier in DICOM files [default: empty]
    #[arg(long, value_name = "ID", help_heading = "DICOM")]
    pub patient_id: Option<String>,

    /// UID of the study that DICOM files belong to [default: a UID that all images of the same raw data share]
    #[arg(long, value_name = "UID", help_heading = "DICOM")]
    pub study_uid: Option<String>,
}

impl DicomArgs {
    /// Checks the options before a file is read.
    ///
    /// # Errors
    /// `InvalidArgument` for an invalid text, or if no output is DICOM.
    pub fn check(&self, outputs: &[&Path]) -> Result<()> {
        let options = [
            ("--patient-name", &self.patient_name),
            ("--patient-id", &self.patient_id),
            ("--study-uid", &self.study_uid),
        ];
        let given = options.iter().find(|(_, value)| value.is_some());
        if let (Some((option, _)), false) = (given, has_dicom(outputs)) {
            bail!(
                InvalidArgument,
                "{option} is only for DICOM files: leave it out, or give the output a name that ends with {}",
                Format::Dicom.extensions()
            );
        }
        self.fields().check()
    }

    /// Returns the fields of the DICOM files among `outputs`, which contain images of this dataset.
    pub fn fields_of(&self, dataset: &Dataset, outputs: &[&Path]) -> DicomFields {
        let raw_data = has_dicom(outputs).then(|| identify_dataset(dataset));
        DicomFields { header: dataset.header.clone(), raw_data, ..self.fields() }
    }

    /// Returns the fields that the options set.
    pub fn fields(&self) -> DicomFields {
        DicomFields {
            patient_name: self.patient_name.clone().unwrap_or_default(),
            patient_id: self.patient_id.clone().unwrap_or_default(),
            study_uid: self.study_uid.clone(),
            ..DicomFields::default()
        }
    }
}

fn has_dicom(outputs: &[&Path]) -> bool {
    outputs.iter().any(|output| Format::of(output) == Some(Format::Dicom))
}
