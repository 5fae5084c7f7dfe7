//! Reads the XML header of ISMRMRD.

use super::header::*;
use super::header_writer::{DOUBLE, LONG};
use crate::base::error::{bail, checked_product, Result};
use roxmltree::{Document, Node};

fn child<'a>(node: Node<'a, 'a>, name: &str) -> Option<Node<'a, 'a>> {
    node.children().find(|c| c.is_element() && c.tag_name().name() == name)
}

/// Returns the child element of this name.
///
/// # Errors
/// `BadFile` if the element does not have it.
fn required_child<'a>(node: Node<'a, 'a>, name: &str) -> Result<Node<'a, 'a>> {
    match child(node, name) {
        Some(c) => Ok(c),
        None => bail!(BadFile, "the XML header has no <{name}> in <{}>", node.tag_name().name()),
    }
}

fn text<'a>(node: Node<'a, 'a>) -> &'a str {
    node.text().unwrap_or("").trim()
}

fn number<T: std::str::FromStr>(node: Node) -> Result<T> {
    match text(node).parse() {
        Ok(v) => Ok(v),
        Err(_) => {
            let at = node.document().text_pos_at(node.range().start);
            let name = node.tag_name().name();
            bail!(BadFile, "the XML header, line {}: <{name}> cannot be {:?}", at.row, text(node))
        }
    }
}

fn optional<T: std::str::FromStr>(node: Option<Node>) -> Result<Option<T>> {
    node.map(number).transpose()
}

fn space(encoding: Node, name: &str) -> Result<EncodingSpace> {
    let node = required_child(encoding, name)?;
    let (matrix, fov) = (required_child(node, "matrixSize")?, required_child(node, "fieldOfView_mm")?);
    let mut space = EncodingSpace::default();
    for (i, axis) in ["x", "y", "z"].iter().enumerate() {
        space.matrix[i] = number::<u16>(required_child(matrix, axis)?)? as usize;
        space.fov_mm[i] = number(required_child(fov, axis)?)?;
        if space.matrix[i] == 0 {
            bail!(BadFile, "the XML header: the matrix size of <{name}> along {axis} is 0: it must be at least 1");
        }
        if !space.fov_mm[i].is_finite() || space.fov_mm[i] < 0.0 {
            bail!(BadFile, "the XML header: the field of view of <{name}> along {axis} is {} mm", space.fov_mm[i]);
        }
    }
    checked_product(&space.matrix, name)?;
    Ok(space)
}

fn parallel_imaging(encoding: Node) -> Result<Option<ParallelImaging>> {
    let Some(node) = child(encoding, "parallelImaging") else { return Ok(None) };
    let factor = |name: &str| optional(child(node, "accelerationFactor").and_then(|n| child(n, name)));
    let mode = child(node, "calibrationMode").map(|n| text(n).to_ascii_lowercase());
    Ok(Some(ParallelImaging {
        acceleration: [factor("kspace_encoding_step_1")?.unwrap_or(1), factor("kspace_encoding_step_2")?.unwrap_or(1)],
        calibration: mode.map(|mode| {
            let entry = CalibrationMode::NAMES.iter().find(|(_, name)| *name == mode);
            entry.map_or(CalibrationMode::Other, |entry| entry.0)
        }),
    }))
}

/// Returns the text of an element, or `None` if it is empty.
fn words(node: Node) -> Option<String> {
    Some(text(node).to_owned()).filter(|text| !text.is_empty())
}

fn elements<'a>(node: Node<'a, 'a>, name: &'a str) -> impl Iterator<Item = Node<'a, 'a>> {
    node.children().filter(move |c| c.is_element() && c.tag_name().name() == name)
}

/// Returns the times of the sequence parameters of this name; NaN for a text that is not a number.
fn times(root: Node, name: &str) -> Vec<f64> {
    let Some(parameters) = child(root, "sequenceParameters") else { return Vec::new() };
    elements(parameters, name).map(|node| text(node).parse().unwrap_or(f64::NAN)).collect()
}

/// Returns the types and identifiers of the measurements on which this one depends.
fn dependencies(information: Node) -> Vec<(String, String)> {
    let part = |node, name| child(node, name).and_then(words).unwrap_or_default();
    elements(information, "measurementDependency")
        .map(|node| (part(node, "dependencyType"), part(node, "measurementID")))
        .collect()
}

/// Returns the named numbers of `userParameterLong` and `userParameterDouble`.
fn user_numbers(parent: Node) -> Result<Vec<UserParameter>> {
    let mut numbers = Vec::new();
    for (kind, is_integer) in [(LONG, true), (DOUBLE, false)] {
        for node in elements(parent, kind) {
            let name = text(required_child(node, "name")?).to_owned();
            numbers.push(UserParameter { name, value: number(required_child(node, "value")?)?, is_integer });
        }
    }
    Ok(numbers)
}

fn trajectory_description(encoding: Node) -> Result<Option<TrajectoryDescription>> {
    let Some(node) = child(encoding, "trajectoryDescription") else { return Ok(None) };
    let identifier = child(node, "identifier").and_then(words).unwrap_or_default();
    Ok(Some(TrajectoryDescription { identifier, numbers: user_numbers(node)? }))
}

impl Header {
    /// Reads the XML text of a header.
    ///
    /// # Errors
    /// `BadFile` if it is longer than [`MAX_XML`], is not well-formed XML, is not an `ismrmrdHeader`, has no encoding,
    /// or if a matrix size or field of view is missing or invalid.
    pub fn from_xml(xml: &str) -> Result<Header> {
        if xml.len() > MAX_XML {
            bail!(BadFile, "the XML header has {} bytes: at most {MAX_XML} are read", xml.len());
        }
        let document = match Document::parse(xml.trim_start_matches('\u{feff}').trim()) {
            Ok(d) => d,
            Err(e) => bail!(BadFile, "the XML header is malformed: {e}"),
        };
        let root = document.root_element();
        if root.tag_name().name() != "ismrmrdHeader" {
            bail!(BadFile, "the XML header is a <{}>, not an <ismrmrdHeader>", root.tag_name().name());
        }
        let system = |name: &str| child(root, "acquisitionSystemInformation").and_then(|n| child(n, name));
        let information = child(root, "measurementInformation");
        let mut header = Header {
            receiver_channels: optional(system("receiverChannels"))?,
            noise_bandwidth: optional(system("relativeReceiverNoiseBandwidth"))?,
            h1_resonance_hz: optional(
                child(root, "experimentalConditions").and_then(|n| child(n, "H1resonanceFrequency_Hz")),
            )?,
            encodings: Vec::new(),
            // Only field maps and time series use these times, and they report an error for NaN.
            echo_times_ms: times(root, "TE"),
            repetition_times_ms: times(root, "TR"),
            vendor: system("systemVendor").and_then(words),
            model: system("systemModel").and_then(words),
            patient_position: information.and_then(|n| child(n, "patientPosition")).and_then(words),
            dependencies: information.map_or_else(Vec::new, dependencies),
            user_parameters: match child(root, "userParameters") {
                Some(node) => user_numbers(node)?,
                None => Vec::new(),
            },
        };
        for node in root.children().filter(|c| c.is_element() && c.tag_name().name() == "encoding") {
            let kind = text(required_child(node, "trajectory")?).to_ascii_lowercase();
            let limits = |name: &str| -> Result<Option<EncodingLimits>> {
                let Some(n) = child(node, "encodingLimits").and_then(|n| child(n, name)) else { return Ok(None) };
                Ok(Some(EncodingLimits {
                    minimum: number(required_child(n, "minimum")?)?,
                    maximum: number(required_child(n, "maximum")?)?,
                    center: number(required_child(n, "center")?)?,
                }))
            };
            header.encodings.push(HeaderEncoding {
                encoded: space(node, "encodedSpace")?,
                recon: space(node, "reconSpace")?,
                trajectory: TrajectoryKind::NAMES
                    .iter()
                    .find(|(_, n)| *n == kind)
                    .map_or_else(Default::default, |k| k.0),
                steps: [limits("kspace_encoding_step_1")?, limits("kspace_encoding_step_2")?],
                readout: limits("kspace_encoding_step_0")?,
                averages: limits("average")?,
                slices: limits("slice")?,
                parallel: parallel_imaging(node)?,
                description: trajectory_description(node)?,
            });
        }
        if header.encodings.is_empty() {
            bail!(BadFile, "the XML header has no <encoding>");
        }
        Ok(header)
    }
}
