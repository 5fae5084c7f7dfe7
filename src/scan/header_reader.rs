//! Reads the XML header of ISMRMRD.

use super::header::*;
use super::header_writer::{DOUBLE, LONG};
use super::warnings::warn;
use crate::base::error::{bail, checked_product, Result};
use roxmltree::{Document, Node};

/// Returns the child element of this name, or `None`.
///
/// # Errors
/// `BadFile` if there are several.
fn child<'a>(node: Node<'a, 'a>, name: &str) -> Result<Option<Node<'a, 'a>>> {
    let mut all = node.children().filter(|c| c.is_element() && c.tag_name().name() == name);
    let first = all.next();
    if let Some(second) = all.next() {
        let row = second.document().text_pos_at(second.range().start).row;
        let parent = node.tag_name().name();
        bail!(BadFile, "the XML header, line {row}: <{parent}> has more than one <{name}>: keep one of them");
    }
    Ok(first)
}

/// Returns the element with these names, from `node` down, or `None`.
fn descendant<'a>(node: Node<'a, 'a>, names: [&str; 2]) -> Result<Option<Node<'a, 'a>>> {
    match child(node, names[0])? {
        Some(parent) => child(parent, names[1]),
        None => Ok(None),
    }
}

/// Returns the child element of this name.
///
/// # Errors
/// `BadFile` if the element does not have it.
fn required_child<'a>(node: Node<'a, 'a>, name: &str) -> Result<Node<'a, 'a>> {
    match child(node, name)? {
        Some(c) => Ok(c),
        None => bail!(BadFile, "the XML header has no <{name}> in <{}>", node.tag_name().name()),
    }
}

/// Returns the text of an element, which comments may interrupt.
fn text(node: Node) -> String {
    let parts = node.children().filter(|part| part.is_text()).filter_map(|part| part.text());
    parts.collect::<String>().trim().to_owned()
}

fn number<T: std::str::FromStr>(node: Node) -> Result<T> {
    match text(node).parse() {
        Ok(v) => Ok(v),
        Err(_) => {
            let at = node.document().text_pos_at(node.range().start);
            let parent = node.parent_element().map_or("", |parent| parent.tag_name().name());
            let name = node.tag_name().name();
            bail!(BadFile, "the XML header, line {}: <{name}> of <{parent}> cannot be {:?}", at.row, text(node))
        }
    }
}

fn optional<T: std::str::FromStr>(node: Option<Node>) -> Result<Option<T>> {
    node.map(number).transpose()
}

/// The largest number of voxels along an axis that can be meant.
const MAX_MATRIX: usize = i16::MAX as usize;

/// The largest field of view in mm that can be meant.
const MAX_FOV_MM: f32 = 1e5;

fn space(encoding: Node, name: &str) -> Result<EncodingSpace> {
    let node = required_child(encoding, name)?;
    let (matrix, fov) = (required_child(node, "matrixSize")?, required_child(node, "fieldOfView_mm")?);
    let mut space = EncodingSpace::default();
    for (i, axis) in ["x", "y", "z"].iter().enumerate() {
        space.matrix[i] = number::<u16>(required_child(matrix, axis)?)? as usize;
        space.fov_mm[i] = number(required_child(fov, axis)?)?;
        // ISMRMRD's library writes a negative size as a number above MAX_MATRIX.
        if !(1..=MAX_MATRIX).contains(&space.matrix[i]) {
            let n = space.matrix[i];
            bail!(
                BadFile,
                "the XML header: matrixSize of <{name}> along {axis} is {n}: it must be from 1 to {MAX_MATRIX}"
            );
        }
        if !(0.0..=MAX_FOV_MM).contains(&space.fov_mm[i]) {
            let fov = space.fov_mm[i];
            bail!(
                BadFile,
                "the XML header: fieldOfView_mm of <{name}> along {axis} is {fov}: it must be 0 (unknown) to {MAX_FOV_MM}"
            );
        }
    }
    checked_product(&space.matrix, name)?;
    Ok(space)
}

fn parallel_imaging(encoding: Node) -> Result<Option<ParallelImaging>> {
    let Some(node) = child(encoding, "parallelImaging")? else { return Ok(None) };
    let factor = |name: &str| -> Result<u16> {
        match optional(descendant(node, ["accelerationFactor", name])?)? {
            Some(0) => {
                warn(format!("the XML header: <{name}> of <accelerationFactor> is 0: it is read as 1"));
                Ok(1)
            }
            factor => Ok(factor.unwrap_or(1)),
        }
    };
    let mode = child(node, "calibrationMode")?.map(|n| text(n).to_ascii_lowercase());
    Ok(Some(ParallelImaging {
        acceleration: [factor("kspace_encoding_step_1")?, factor("kspace_encoding_step_2")?],
        calibration: mode.map(|mode| named(&CalibrationMode::NAMES, &mode, "calibrationMode", CalibrationMode::Other)),
    }))
}

/// Returns the value of this name. Warns of an unknown name, which is `other`.
fn named<T: Copy>(names: &[(T, &str)], name: &str, element: &str, other: T) -> T {
    let entry = names.iter().find(|(_, known)| *known == name);
    entry.map_or_else(
        || {
            let known: Vec<&str> = names.iter().map(|(_, known)| *known).collect();
            let known = known.join(", ");
            warn(format!("the XML header: <{element}> is {name:?}, which is read as \"other\": known are {known}"));
            other
        },
        |entry| entry.0,
    )
}

/// Returns the limits of a counter, or `None` if the header does not have them.
fn limits(encoding: Node, name: &str) -> Result<Option<EncodingLimits>> {
    let Some(node) = descendant(encoding, ["encodingLimits", name])? else { return Ok(None) };
    let limit = |which| number(required_child(node, which)?);
    let limits = EncodingLimits { minimum: limit("minimum")?, maximum: limit("maximum")?, center: limit("center")? };
    let EncodingLimits { minimum, maximum, center } = limits;
    if minimum > maximum {
        bail!(BadFile, "the XML header: the minimum of <{name}> is {minimum} and its maximum {maximum}: correct them");
    }
    // Only the centres of encoding steps are used.
    if name.starts_with("kspace") && !(minimum..=maximum).contains(&center) {
        warn(format!(
            "the XML header: the center of <{name}> is {center}, outside of {minimum} to {maximum}: the centre of \
             k-space is not measured, or the limits are wrong"
        ));
    }
    Ok(Some(limits))
}

/// Returns the text of an element, or `None` if it is empty.
fn words(node: Node) -> Option<String> {
    Some(text(node)).filter(|text| !text.is_empty())
}

fn elements<'a>(node: Node<'a, 'a>, name: &'a str) -> impl Iterator<Item = Node<'a, 'a>> {
    node.children().filter(move |c| c.is_element() && c.tag_name().name() == name)
}

/// Returns the times of the sequence parameters of this name; NaN for a text that is not a number.
fn times(root: Node, name: &str) -> Result<Vec<f64>> {
    let Some(parameters) = child(root, "sequenceParameters")? else { return Ok(Vec::new()) };
    Ok(elements(parameters, name).map(|node| text(node).parse().unwrap_or(f64::NAN)).collect())
}

/// Returns the types and identifiers of the measurements on which this one depends.
fn dependencies(information: Node) -> Result<Vec<(String, String)>> {
    let part = |node, name| Ok(child(node, name)?.and_then(words).unwrap_or_default());
    elements(information, "measurementDependency")
        .map(|node| Ok((part(node, "dependencyType")?, part(node, "measurementID")?)))
        .collect()
}

/// Returns the named numbers of `userParameterLong` and `userParameterDouble`.
fn user_numbers(parent: Node) -> Result<Vec<UserParameter>> {
    let mut numbers = Vec::new();
    for (kind, is_integer) in [(LONG, true), (DOUBLE, false)] {
        for node in elements(parent, kind) {
            let name = text(required_child(node, "name")?);
            numbers.push(UserParameter { name, value: number(required_child(node, "value")?)?, is_integer });
        }
    }
    Ok(numbers)
}

fn trajectory_description(encoding: Node) -> Result<Option<TrajectoryDescription>> {
    let Some(node) = child(encoding, "trajectoryDescription")? else { return Ok(None) };
    let identifier = child(node, "identifier")?.and_then(words).unwrap_or_default();
    Ok(Some(TrajectoryDescription { identifier, numbers: user_numbers(node)? }))
}

fn encoding(node: Node) -> Result<HeaderEncoding> {
    let kind = text(required_child(node, "trajectory")?).to_ascii_lowercase();
    let limits = |name| limits(node, name);
    Ok(HeaderEncoding {
        encoded: space(node, "encodedSpace")?,
        recon: space(node, "reconSpace")?,
        trajectory: named(&TrajectoryKind::NAMES, &kind, "trajectory", TrajectoryKind::Other),
        steps: [limits("kspace_encoding_step_1")?, limits("kspace_encoding_step_2")?],
        readout: limits("kspace_encoding_step_0")?,
        averages: limits("average")?,
        slices: limits("slice")?,
        contrasts: limits("contrast")?,
        phases: limits("phase")?,
        repetitions: limits("repetition")?,
        sets: limits("set")?,
        parallel: parallel_imaging(node)?,
        description: trajectory_description(node)?,
    })
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
            Err(e) => {
                // The parser quotes characters of the text, which can be line breaks.
                let text = e.to_string().replace(char::is_control, " ");
                bail!(BadFile, "the XML header is malformed: {text}")
            }
        };
        let root = document.root_element();
        if root.tag_name().name() != "ismrmrdHeader" {
            bail!(BadFile, "the XML header is a <{}>, not an <ismrmrdHeader>", root.tag_name().name());
        }
        let system = |name: &str| descendant(root, ["acquisitionSystemInformation", name]);
        let information = child(root, "measurementInformation")?;
        let patient_position = information.map(|n| child(n, "patientPosition")).transpose()?.flatten();
        let mut header = Header {
            receiver_channels: optional(system("receiverChannels")?)?,
            noise_bandwidth: optional(system("relativeReceiverNoiseBandwidth")?)?,
            h1_resonance_hz: optional(descendant(root, ["experimentalConditions", "H1resonanceFrequency_Hz"])?)?,
            encodings: Vec::new(),
            // Only field maps and time series use these times, and they report an error for NaN.
            echo_times_ms: times(root, "TE")?,
            repetition_times_ms: times(root, "TR")?,
            vendor: system("systemVendor")?.and_then(words),
            model: system("systemModel")?.and_then(words),
            patient_position: patient_position.and_then(words),
            dependencies: information.map_or_else(|| Ok(Vec::new()), dependencies)?,
            user_parameters: match child(root, "userParameters")? {
                Some(node) => user_numbers(node)?,
                None => Vec::new(),
            },
        };
        for node in elements(root, "encoding") {
            header.encodings.push(encoding(node)?);
        }
        if header.encodings.is_empty() {
            bail!(BadFile, "the XML header has no <encoding>");
        }
        Ok(header)
    }
}
