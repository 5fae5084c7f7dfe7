//! Small valid measurements, which the tests alter.

use recon::scan::AcquisitionHeader;
use recon::Complex;

/// An acquisition with its arrays.
#[derive(Clone)]
pub struct Acquisition {
    pub header: AcquisitionHeader,
    pub trajectory: Vec<f32>,
    pub data: Vec<Complex<f32>>,
}

/// How the expected data are computed from the acquisitions.
#[derive(Clone, Copy)]
pub struct Interpretation {
    pub matrix: [usize; 3],
    /// The steps through the centre of k-space.
    pub centres: [f64; 2],
    /// Whether calibration lines are part of the image.
    pub is_embedded: bool,
}

#[derive(Clone)]
pub struct Measurement {
    pub xml: String,
    pub acquisitions: Vec<Acquisition>,
    pub interpretation: Interpretation,
}

pub const COILS: usize = 2;
pub const READOUT: usize = 16;
pub const LINES: usize = 12;
pub const PARTITIONS: usize = 4;
/// The distance of slices in mm.
const SLICE_STEP: f32 = 6.0;

// Flags of ISMRMRD.
pub const NOISE: u32 = 19;
pub const CALIBRATION: u32 = 20;
pub const CALIBRATION_AND_IMAGING: u32 = 21;
pub const REVERSE: u32 = 22;

pub fn mask(flags: &[u32]) -> u64 {
    flags.iter().map(|flag| 1 << (flag - 1)).sum()
}

/// Returns different numbers for each seed, coil and sample.
fn numbers(seed: usize, count: usize) -> Vec<Complex<f32>> {
    let value = |i: usize, factor: f64| ((seed * 7919 + i) as f64 * factor).sin() as f32;
    (0..count).map(|i| Complex::new(value(i, 0.37), value(i, 0.71))).collect()
}

fn acquisition(seed: usize, steps: [usize; 2], slice: usize) -> Acquisition {
    let mut header = AcquisitionHeader {
        version: 1,
        measurement_uid: 5,
        scan_counter: seed as u32,
        number_of_samples: READOUT as u16,
        available_channels: COILS as u16,
        active_channels: COILS as u16,
        center_sample: READOUT as u16 / 2,
        sample_time_us: 5.0,
        position: [10.0, -20.0, 30.0 + SLICE_STEP * slice as f32],
        read_dir: [1.0, 0.0, 0.0],
        phase_dir: [0.0, 1.0, 0.0],
        slice_dir: [0.0, 0.0, 1.0],
        ..Default::default()
    };
    header.channel_mask[0] = 3;
    header.idx.kspace_encode_step_1 = steps[0] as u16;
    header.idx.kspace_encode_step_2 = steps[1] as u16;
    header.idx.slice = slice as u16;
    Acquisition { header, trajectory: Vec::new(), data: numbers(seed, READOUT * COILS) }
}

/// The XML header of a measurement. `extra` limits are in the form (name, maximum).
fn xml(matrix: [usize; 3], trajectory: &str, extra: &[(&str, usize)], parallel: &str) -> String {
    let space = |name: &str| {
        let [x, y, z] = matrix;
        format!(
            "<{name}><matrixSize><x>{x}</x><y>{y}</y><z>{z}</z></matrixSize>\
             <fieldOfView_mm><x>200</x><y>180</y><z>24</z></fieldOfView_mm></{name}>\n"
        )
    };
    let limits = |name: &str, maximum: usize, center: usize| {
        format!("<{name}><minimum>0</minimum><maximum>{maximum}</maximum><center>{center}</center></{name}>\n",)
    };
    let extra: String = extra.iter().map(|(name, maximum)| limits(name, *maximum, 0)).collect();
    format!(
        "<?xml version=\"1.0\"?>\n<ismrmrdHeader xmlns=\"http://www.ismrm.org/ISMRMRD\">\n\
         <measurementInformation><patientPosition>HFS</patientPosition></measurementInformation>\n\
         <acquisitionSystemInformation><systemVendor>vendor</systemVendor>\
         <relativeReceiverNoiseBandwidth>0.8</relativeReceiverNoiseBandwidth>\
         <receiverChannels>2</receiverChannels></acquisitionSystemInformation>\n\
         <experimentalConditions><H1resonanceFrequency_Hz>63500000</H1resonanceFrequency_Hz>\
         </experimentalConditions>\n\
         <encoding>\n{}{}<trajectory>{trajectory}</trajectory>\n<encodingLimits>\n{}{}{extra}</encodingLimits>\n\
         {parallel}</encoding>\n\
         <sequenceParameters><TR>100</TR><TE>5</TE></sequenceParameters>\n\
         </ismrmrdHeader>\n",
        space("encodedSpace"),
        space("reconSpace"),
        limits("kspace_encoding_step_1", matrix[1] - 1, matrix[1] / 2),
        limits("kspace_encoding_step_2", matrix[2] - 1, matrix[2] / 2),
    )
}

fn measurement(matrix: [usize; 3], xml: String, acquisitions: Vec<Acquisition>) -> Measurement {
    let centres = [(matrix[1] / 2) as f64, (matrix[2] / 2) as f64];
    Measurement { xml, acquisitions, interpretation: Interpretation { matrix, centres, is_embedded: false } }
}

const FLAT: [usize; 3] = [READOUT, LINES, 1];

pub fn cartesian_2d() -> Measurement {
    let lines = (0..LINES).map(|step| acquisition(step, [step, 0], 0)).collect();
    measurement(FLAT, xml(FLAT, "cartesian", &[], ""), lines)
}

/// Two images that differ in a counter, for which the header has limits.
pub fn pair(limits: &str, counter: fn(&mut AcquisitionHeader) -> &mut u16) -> Measurement {
    let line = |i: usize| {
        let mut line = acquisition(i, [i % LINES, 0], 0);
        *counter(&mut line.header) = (i / LINES) as u16;
        line
    };
    let lines = (0..2 * LINES).map(line).collect();
    measurement(FLAT, xml(FLAT, "cartesian", &[(limits, 1)], ""), lines)
}

pub fn cartesian_3d() -> Measurement {
    let matrix = [READOUT, LINES, PARTITIONS];
    let line = |i: usize| acquisition(i, [i % LINES, i / LINES], 0);
    measurement(matrix, xml(matrix, "cartesian", &[], ""), (0..LINES * PARTITIONS).map(line).collect())
}

fn spoke(seed: usize, number: usize, slice: usize) -> Acquisition {
    let mut spoke = acquisition(seed, [number, 0], slice);
    let angle = std::f32::consts::PI * number as f32 / LINES as f32;
    spoke.header.trajectory_dimensions = 2;
    let points = (0..READOUT).map(|i| (i as f32 - READOUT as f32 / 2.0) / READOUT as f32);
    spoke.trajectory = points.flat_map(|k| [k * angle.cos(), k * angle.sin()]).collect();
    spoke
}

const SQUARE: [usize; 3] = [READOUT, READOUT, 1];

/// Spokes with stored trajectories. The header calls them `kind`.
pub fn radial(kind: &str) -> Measurement {
    let spokes = (0..LINES).map(|i| spoke(i, i, 0)).collect();
    let xml = xml(SQUARE, kind, &[], "").replace("<maximum>15</maximum><center>8", "<maximum>11</maximum><center>6");
    measurement(SQUARE, xml, spokes)
}

/// Spokes of two slices.
pub fn radial_slices() -> Measurement {
    let all = (0..2 * LINES).map(|i| spoke(i, i % LINES, i / LINES)).collect();
    let xml = xml(SQUARE, "other", &[("slice", 1)], "");
    measurement(SQUARE, xml.replace("<maximum>15</maximum><center>8", "<maximum>11</maximum><center>6"), all)
}

/// Three slices, in the order 0, 2, 1.
pub fn slices() -> Measurement {
    let lines = [0, 2, 1]
        .into_iter()
        .flat_map(|slice| (0..LINES).map(move |step| acquisition(slice * LINES + step, [step, 0], slice)));
    measurement(FLAT, xml(FLAT, "cartesian", &[("slice", 2)], ""), lines.collect())
}

/// Two averages of each line.
pub fn averages() -> Measurement {
    let line = |i: usize| {
        let mut line = acquisition(i, [i % LINES, 0], 0);
        line.header.idx.average = (i / LINES) as u16;
        line
    };
    measurement(FLAT, xml(FLAT, "cartesian", &[("average", 1)], ""), (0..2 * LINES).map(line).collect())
}

/// Noise, then the lines.
pub fn noise() -> Measurement {
    let mut all = cartesian_2d();
    let mut noise = acquisition(500, [0, 0], 0);
    (noise.header.flags, noise.header.number_of_samples) = (mask(&[NOISE]), 900);
    noise.data = numbers(500, 900 * COILS);
    all.acquisitions.insert(0, noise);
    all
}

fn parallel(mode: &str) -> String {
    format!(
        "<parallelImaging><accelerationFactor><kspace_encoding_step_1>2</kspace_encoding_step_1>\
         <kspace_encoding_step_2>1</kspace_encoding_step_2></accelerationFactor>\
         <calibrationMode>{mode}</calibrationMode></parallelImaging>\n"
    )
}

/// Every second line, and the lines 4 to 8 for calibration.
pub fn embedded() -> Measurement {
    let line = |step: usize| {
        let mut line = acquisition(step, [step, 0], 0);
        line.header.flags = match ((4..=8).contains(&step), step % 2) {
            (true, 0) => mask(&[CALIBRATION_AND_IMAGING]),
            (true, _) => mask(&[CALIBRATION]),
            (false, 0) => 0,
            (false, _) => return None,
        };
        Some(line)
    };
    let mut all = measurement(FLAT, xml(FLAT, "cartesian", &[], &parallel("embedded")), vec![]);
    all.acquisitions = (0..LINES).filter_map(line).collect();
    all.interpretation.is_embedded = true;
    all
}

/// The lines 4 to 8 for calibration, then every second line.
pub fn separate() -> Measurement {
    let calibration = (4..=8).map(|step| {
        let mut line = acquisition(100 + step, [step, 0], 0);
        line.header.flags = mask(&[CALIBRATION]);
        line
    });
    let image = (0..LINES).step_by(2).map(|step| acquisition(step, [step, 0], 0));
    measurement(FLAT, xml(FLAT, "cartesian", &[], &parallel("separate")), calibration.chain(image).collect())
}

/// Lines of which each second one is reversed.
pub fn reversed() -> Measurement {
    let mut all = cartesian_2d();
    for line in all.acquisitions.iter_mut().skip(1).step_by(2) {
        line.header.flags = mask(&[REVERSE]);
    }
    all
}

/// Lines with two samples to discard at the beginning and three at the end.
pub fn discarded() -> Measurement {
    let mut all = cartesian_2d();
    for (seed, line) in all.acquisitions.iter_mut().enumerate() {
        let header = &mut line.header;
        (header.number_of_samples, header.discard_pre, header.discard_post) = (READOUT as u16 + 5, 2, 3);
        header.center_sample += 2;
        line.data = numbers(200 + seed, (READOUT + 5) * COILS);
    }
    all
}

impl Measurement {
    /// Returns the measurement with all acquisitions altered.
    pub fn all(mut self, change: impl Fn(&mut AcquisitionHeader)) -> Measurement {
        self.acquisitions.iter_mut().for_each(|acquisition| change(&mut acquisition.header));
        self
    }

    /// Returns the measurement with one acquisition altered.
    pub fn one(mut self, which: usize, change: impl FnOnce(&mut Acquisition)) -> Measurement {
        change(&mut self.acquisitions[which]);
        self
    }

    /// Returns the measurement with a different interpretation.
    pub fn interpreted_as(mut self, change: impl FnOnce(&mut Interpretation)) -> Measurement {
        change(&mut self.interpretation);
        self
    }
}
