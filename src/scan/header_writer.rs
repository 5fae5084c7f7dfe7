//! Writes the XML header of ISMRMRD. Elements are in the order of its schema.

use super::header::*;

/// The elements of named numbers.
pub(super) const LONG: &str = "userParameterLong";
pub(super) const DOUBLE: &str = "userParameterDouble";

/// Returns an element with content that needs no escapes.
fn element(name: &str, content: impl std::fmt::Display) -> String {
    format!("<{name}>{content}</{name}>")
}

/// Returns an element with this text.
fn text_element(name: &str, text: &str) -> String {
    element(name, text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;"))
}

/// Returns an element with one child per line, or nothing without children.
fn parent(name: &str, children: &[String]) -> String {
    match children.is_empty() {
        true => String::new(),
        false => format!("<{name}>\n{}\n</{name}>", children.join("\n")),
    }
}

fn space(name: &str, space: &EncodingSpace) -> String {
    let xyz = |values: [String; 3]| -> String {
        ["x", "y", "z"].iter().zip(values).map(|(axis, value)| element(axis, value)).collect()
    };
    let matrix = element("matrixSize", xyz(space.matrix.map(|n| n.to_string())));
    let fov = element("fieldOfView_mm", xyz(space.fov_mm.map(|f| f.to_string())));
    parent(name, &[matrix, fov])
}

fn limits(encoding: &HeaderEncoding) -> String {
    let all = [
        ("kspace_encoding_step_0", encoding.readout),
        ("kspace_encoding_step_1", encoding.steps[0]),
        ("kspace_encoding_step_2", encoding.steps[1]),
        ("average", encoding.averages),
        ("slice", encoding.slices),
        ("contrast", encoding.contrasts),
        ("phase", encoding.phases),
        ("repetition", encoding.repetitions),
        ("set", encoding.sets),
    ];
    let known = all.iter().filter_map(|(name, limits)| limits.map(|limits| (name, limits)));
    let lines = known.map(|(name, EncodingLimits { minimum, maximum, center })| {
        let range = [element("minimum", minimum), element("maximum", maximum), element("center", center)];
        element(name, range.concat())
    });
    element("encodingLimits", lines.map(|line| format!("\n{line}")).collect::<String>() + "\n")
}

fn user_numbers(numbers: &[UserParameter]) -> Vec<String> {
    let of_kind = |is_integer| numbers.iter().filter(move |number| number.is_integer == is_integer);
    let line = |UserParameter { name, value, is_integer }: &UserParameter| {
        let content = text_element("name", name) + &element("value", value);
        element(if *is_integer { LONG } else { DOUBLE }, content)
    };
    of_kind(true).chain(of_kind(false)).map(line).collect()
}

fn encoding(encoding: &HeaderEncoding) -> String {
    let mut children = vec![
        space("encodedSpace", &encoding.encoded),
        space("reconSpace", &encoding.recon),
        limits(encoding),
        element("trajectory", encoding.trajectory.name()),
    ];
    if let Some(description) = &encoding.description {
        let mut lines = vec![text_element("identifier", &description.identifier)];
        lines.extend(user_numbers(&description.numbers));
        children.push(parent("trajectoryDescription", &lines));
    }
    if let Some(ParallelImaging { acceleration: [first, second], calibration }) = encoding.parallel {
        let factors = element("kspace_encoding_step_1", first) + &element("kspace_encoding_step_2", second);
        let mut lines = vec![element("accelerationFactor", factors)];
        lines.extend(calibration.map(|mode| element("calibrationMode", mode.name())));
        children.push(parent("parallelImaging", &lines));
    }
    parent("encoding", &children)
}

impl Header {
    /// Returns the XML text of this header.
    pub fn to_xml(&self) -> String {
        let mut information: Vec<String> =
            self.patient_position.iter().map(|position| text_element("patientPosition", position)).collect();
        information.extend(self.dependencies.iter().map(|(kind, identifier)| {
            let content = text_element("dependencyType", kind) + &text_element("measurementID", identifier);
            element("measurementDependency", content)
        }));
        let texts = [("systemVendor", &self.vendor), ("systemModel", &self.model)];
        let texts = texts.iter().filter_map(|(name, text)| text.as_ref().map(|text| text_element(name, text)));
        let system: Vec<String> = texts
            .chain(self.noise_bandwidth.map(|x| element("relativeReceiverNoiseBandwidth", x)))
            .chain(self.receiver_channels.map(|n| element("receiverChannels", n)))
            .collect();
        // The schema requires this element; 0 means that the frequency is unknown.
        let frequency = element("H1resonanceFrequency_Hz", self.h1_resonance_hz.unwrap_or(0));
        let repetition_times = self.repetition_times_ms.iter().map(|time| element("TR", time));
        let sequence: Vec<String> =
            repetition_times.chain(self.echo_times_ms.iter().map(|time| element("TE", time))).collect();
        let parts = [
            "<?xml version=\"1.0\" encoding=\"utf-8\"?>".to_owned(),
            "<ismrmrdHeader xmlns=\"http://www.ismrm.org/ISMRMRD\">".to_owned(),
            parent("measurementInformation", &information),
            parent("acquisitionSystemInformation", &system),
            parent("experimentalConditions", &[frequency]),
            self.encodings.iter().map(encoding).collect::<Vec<_>>().join("\n"),
            parent("sequenceParameters", &sequence),
            parent("userParameters", &user_numbers(&self.user_parameters)),
            "</ismrmrdHeader>\n".to_owned(),
        ];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
    }
}
