//! The XML header of ISMRMRD: the elements that image reconstruction needs.

use recon::error::{bail, checked_product, Result};
use roxmltree::{Document, Node};

/// How k-space is traversed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TrajectoryKind {
    /// Lines of a Cartesian grid.
    Cartesian,
    /// Echo-planar.
    Epi,
    /// Spokes through the centre.
    Radial,
    /// Spokes at golden angles.
    GoldenAngle,
    /// Spirals.
    Spiral,
    /// Anything else.
    #[default]
    Other,
}

impl TrajectoryKind {
    /// All kinds with their names, in the order of the variants.
    pub const NAMES: [(TrajectoryKind, &'static str); 6] = [
        (TrajectoryKind::Cartesian, "cartesian"),
        (TrajectoryKind::Epi, "epi"),
        (TrajectoryKind::Radial, "radial"),
        (TrajectoryKind::GoldenAngle, "goldenangle"),
        (TrajectoryKind::Spiral, "spiral"),
        (TrajectoryKind::Other, "other"),
    ];

    /// Returns the name in ISMRMRD.
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize].1
    }
}

/// The relation of calibration lines for parallel imaging to the undersampled scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CalibrationMode {
    /// Lines in the centre of the scan itself.
    Embedded,
    /// Undersampled images that together are complete.
    Interleaved,
    /// Lines of a separate acquisition of the same encoding.
    Separate,
    /// Lines of a different scan.
    External,
    /// Anything else.
    Other,
}

impl CalibrationMode {
    /// All modes with their names, in the order of the variants.
    pub const NAMES: [(CalibrationMode, &'static str); 5] = [
        (CalibrationMode::Embedded, "embedded"),
        (CalibrationMode::Interleaved, "interleaved"),
        (CalibrationMode::Separate, "separate"),
        (CalibrationMode::External, "external"),
        (CalibrationMode::Other, "other"),
    ];

    /// Returns the name in ISMRMRD.
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize].1
    }
}

/// Parallel imaging of an encoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParallelImaging {
    /// Acceleration factors along `kspace_encode_step_1` and `kspace_encode_step_2`.
    pub acceleration: [u16; 2],
    /// The calibration mode; `None` if the header does not have one.
    pub calibration: Option<CalibrationMode>,
}

/// The voxel grid of an encoded or reconstructed space.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct EncodingSpace {
    /// The number of voxels along x, y, z; never 0.
    pub matrix: [usize; 3],
    /// The field of view along x, y, z in mm.
    pub fov_mm: [f32; 3],
}

/// The range of an encoding step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EncodingLimits {
    /// The first step.
    pub minimum: u16,
    /// The last step.
    pub maximum: u16,
    /// The step through the centre of k-space.
    pub center: u16,
}

impl EncodingLimits {
    /// Returns the number of steps.
    pub fn count(&self) -> usize {
        self.maximum.saturating_sub(self.minimum) as usize + 1
    }
}

/// One encoding of a measurement: matrix sizes, trajectory and encoding steps.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct HeaderEncoding {
    /// The grid that k-space is sampled for.
    pub encoded: EncodingSpace,
    /// The grid of the reconstructed image.
    pub recon: EncodingSpace,
    /// How k-space is traversed.
    pub trajectory: TrajectoryKind,
    /// The ranges of `kspace_encode_step_1` and `kspace_encode_step_2`; `None` if the header does not have them.
    pub steps: [Option<EncodingLimits>; 2],
    /// Parallel imaging; `None` if the header does not have it.
    pub parallel: Option<ParallelImaging>,
}

/// The XML header of a dataset.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Header {
    /// The encodings; acquisitions refer to them by position.
    pub encodings: Vec<HeaderEncoding>,
    /// The number of receive channels; `None` if the header does not have it.
    pub receiver_channels: Option<u16>,
    /// The ratio of the receiver's noise bandwidth to its sampling bandwidth; `None` if the header does not have it.
    pub noise_bandwidth: Option<f64>,
    /// The resonance frequency of protons in Hz; `None` if the header does not have it.
    pub h1_resonance_hz: Option<u64>,
    /// The echo times in ms, one per contrast; empty if the header does not have them.
    pub echo_times_ms: Vec<f64>,
    /// The patient's position in the scanner, such as `HFS`; `None` if the header does not have it.
    pub patient_position: Option<String>,
    /// The names and values of `userParameterLong` and `userParameterDouble`.
    pub user_parameters: Vec<(String, f64)>,
}

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

/// Returns the names and values of user parameters that are numbers.
fn user_parameters(node: Node) -> Vec<(String, f64)> {
    let is_number = |n: &Node| ["userParameterLong", "userParameterDouble"].contains(&n.tag_name().name());
    let parameter = |n: Node| {
        // Most parameters are never used, and a use reports an error for NaN.
        Some((text(child(n, "name")?).to_owned(), text(child(n, "value")?).parse().unwrap_or(f64::NAN)))
    };
    node.children().filter(is_number).filter_map(parameter).collect()
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

impl Header {
    /// Reads the XML text of a header.
    ///
    /// # Errors
    /// `BadFile` if it is not well-formed XML, is not an `ismrmrdHeader`, has no encoding, or if a matrix size or field
    /// of view is missing or invalid.
    pub fn from_xml(xml: &str) -> Result<Header> {
        let document = match Document::parse(xml.trim_start_matches('\u{feff}').trim()) {
            Ok(d) => d,
            Err(e) => bail!(BadFile, "the XML header is malformed: {e}"),
        };
        let root = document.root_element();
        if root.tag_name().name() != "ismrmrdHeader" {
            bail!(BadFile, "the XML header is a <{}>, not an <ismrmrdHeader>", root.tag_name().name());
        }
        let system = |name: &str| child(root, "acquisitionSystemInformation").and_then(|n| child(n, name));
        let mut header = Header {
            receiver_channels: optional(system("receiverChannels"))?,
            noise_bandwidth: optional(system("relativeReceiverNoiseBandwidth"))?,
            h1_resonance_hz: optional(
                child(root, "experimentalConditions").and_then(|n| child(n, "H1resonanceFrequency_Hz")),
            )?,
            encodings: Vec::new(),
            echo_times_ms: Vec::new(),
            patient_position: child(root, "measurementInformation")
                .and_then(|n| child(n, "patientPosition"))
                .map(|n| text(n).to_owned()),
            user_parameters: child(root, "userParameters").map(user_parameters).unwrap_or_default(),
        };
        let parameters = child(root, "sequenceParameters").into_iter().flat_map(|n| n.children());
        for node in parameters.filter(|c| c.is_element() && c.tag_name().name() == "TE") {
            // Only field maps use echo times, and they report an error for NaN.
            header.echo_times_ms.push(text(node).parse().unwrap_or(f64::NAN));
        }
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
                parallel: parallel_imaging(node)?,
            });
        }
        if header.encodings.is_empty() {
            bail!(BadFile, "the XML header has no <encoding>");
        }
        Ok(header)
    }

    /// Returns the XML text of this header.
    pub fn to_xml(&self) -> String {
        let space = |name: &str, s: &EncodingSpace| {
            let xyz = |v: [String; 3]| format!("<x>{}</x><y>{}</y><z>{}</z>", v[0], v[1], v[2]);
            let (matrix, fov) = (xyz(s.matrix.map(|n| n.to_string())), xyz(s.fov_mm.map(|f| f.to_string())));
            format!(
                "  <{name}>\n   <matrixSize>{matrix}</matrixSize>\n   <fieldOfView_mm>{fov}</fieldOfView_mm>\n  \
                 </{name}>\n"
            )
        };
        let mut xml = String::from("<?xml version=\"1.0\" encoding=\"utf-8\"?>\n");
        xml += "<ismrmrdHeader xmlns=\"http://www.ismrm.org/ISMRMRD\">\n";
        if let Some(position) = &self.patient_position {
            xml += " <measurementInformation>\n";
            xml += &format!("  <patientPosition>{position}</patientPosition>\n </measurementInformation>\n");
        }
        if self.receiver_channels.is_some() || self.noise_bandwidth.is_some() {
            xml += " <acquisitionSystemInformation>\n";
            if let Some(x) = self.noise_bandwidth {
                xml += &format!("  <relativeReceiverNoiseBandwidth>{x}</relativeReceiverNoiseBandwidth>\n");
            }
            if let Some(n) = self.receiver_channels {
                xml += &format!("  <receiverChannels>{n}</receiverChannels>\n");
            }
            xml += " </acquisitionSystemInformation>\n";
        }
        // The schema requires this element; 0 means that the frequency is unknown.
        let hz = self.h1_resonance_hz.unwrap_or(0);
        xml += " <experimentalConditions>\n";
        xml += &format!("  <H1resonanceFrequency_Hz>{hz}</H1resonanceFrequency_Hz>\n </experimentalConditions>\n");
        for e in &self.encodings {
            xml += " <encoding>\n";
            xml += &space("encodedSpace", &e.encoded);
            xml += &space("reconSpace", &e.recon);
            xml += "  <encodingLimits>\n";
            for (i, limits) in e.steps.iter().enumerate() {
                if let Some(l) = limits {
                    xml += &format!(
                        "   <kspace_encoding_step_{0}><minimum>{1}</minimum><maximum>{2}</maximum><center>{3}</center>\
                         </kspace_encoding_step_{0}>\n",
                        i + 1,
                        l.minimum,
                        l.maximum,
                        l.center
                    );
                }
            }
            xml += &format!("  </encodingLimits>\n  <trajectory>{}</trajectory>\n", e.trajectory.name());
            if let Some(ParallelImaging { acceleration: [first, second], calibration }) = e.parallel {
                xml += &format!(
                    "  <parallelImaging>\n   <accelerationFactor><kspace_encoding_step_1>{first}\
                     </kspace_encoding_step_1><kspace_encoding_step_2>{second}</kspace_encoding_step_2>\
                     </accelerationFactor>\n"
                );
                if let Some(mode) = calibration {
                    xml += &format!("   <calibrationMode>{}</calibrationMode>\n", mode.name());
                }
                xml += "  </parallelImaging>\n";
            }
            xml += " </encoding>\n";
        }
        if !self.echo_times_ms.is_empty() {
            xml += " <sequenceParameters>\n";
            for t in &self.echo_times_ms {
                xml += &format!("  <TE>{t}</TE>\n");
            }
            xml += " </sequenceParameters>\n";
        }
        if !self.user_parameters.is_empty() {
            xml += " <userParameters>\n";
            for (name, value) in &self.user_parameters {
                xml += &format!(
                    "  <userParameterDouble><name>{name}</name><value>{value}</value></userParameterDouble>\n"
                );
            }
            xml += " </userParameters>\n";
        }
        xml + "</ismrmrdHeader>\n"
    }
}
