//! Phase differences of velocity encodings, which are the sets of ISMRMRD.

use crate::options::{MaxwellChoice, PhaseDifferenceArgs};
use crate::run::session::Session;
use recon::bail;
use recon::concomitant_phase::{maxwell_coefficients, ConcomitantPhase, ImagePosition};
use recon::error::try_vec;
use recon::scan::Header;
use recon::{phase_difference, Complex, PhaseDifferenceOptions, Result};
use recon_files::stacks::ImageGeometry;
use recon_files::{Image, Scan, ScanIndex};
use std::collections::{BTreeMap, BTreeSet};

/// Largest distance in mm of the positions of two images that are subtracted.
const SAME_POSITION_MM: f32 = 0.1;
/// Largest difference of their directions, which are unit vectors.
const SAME_DIRECTION: f32 = 1e-3;

/// The phase differences of a run.
pub struct PhaseDifference<'a> {
    args: &'a PhaseDifferenceArgs,
    maxwell: MaxwellTerms,
}

/// The concomitant fields that are corrected.
#[derive(Default)]
struct MaxwellTerms {
    /// Coefficients that are added, and the patient's position in the scanner; `None` without correction.
    terms: Option<([f64; 4], String)>,
    /// Lines for the user that report what is done.
    reports: Vec<String>,
}

impl<'a> PhaseDifference<'a> {
    /// Prepares the phase differences of a file with this header. `is_conjugated`: its samples are conjugated.
    pub fn new(args: &'a PhaseDifferenceArgs, header: &Header, is_conjugated: bool) -> Result<Self> {
        let parameters = header.user_parameters.iter().map(|parameter| (&*parameter.name, parameter.value));
        let maxwell = maxwell_of_header(args.maxwell(), parameters, header.patient_position.as_deref())?;
        if is_conjugated && maxwell.terms.is_some() && args.maxwell() == MaxwellChoice::Auto {
            bail!(
                InvalidArgument,
                "--conjugate changes the sign of the images' phase, and the header does not say which sign its Maxwell \
                 coefficients are for: give --maxwell negated if they are for the samples of the file, or --maxwell \
                 header"
            );
        }
        Ok(PhaseDifference { args, maxwell })
    }

    /// Checks before the computation that each set has its reference, with the same matrix and coils.
    pub fn check(&self, scans: &[Scan]) -> Result<()> {
        let indices: Vec<ScanIndex> = scans.iter().map(|scan| scan.index).collect();
        for (set, reference) in pairs(self.args, &indices)? {
            let size = |scan: &Scan| (scan.encoded_matrix, scan.recon_matrix, scan.coils);
            let (a, b) = (&scans[set], &scans[reference]);
            if size(a) != size(b) {
                bail!(
                    SizeMismatch,
                    "{}: --phase-difference: matrix and coils {:?} differ from those of set {}, {:?}: both must be the \
                     same",
                    name(&a.index),
                    size(a),
                    b.index.set,
                    size(b)
                );
            }
        }
        Ok(())
    }

    /// Returns the phase differences of images, whose channels are coils. Reports whether concomitant fields are
    /// corrected.
    pub fn of_images(&self, images: &[Image]) -> Result<Vec<Image>> {
        let indices: Vec<ScanIndex> = images.iter().map(|image| image.index).collect();
        let pairs = pairs(self.args, &indices)?;
        let of_pair = |(set, reference): (usize, usize)| {
            let image = &images[set];
            self.subtract(image, &images[reference]).map_err(|e| e.within(name(&image.index)))
        };
        let differences = pairs.into_iter().map(of_pair).collect::<Result<_>>()?;
        self.maxwell.reports.iter().for_each(|report| log::warn!("{report}"));
        Ok(differences)
    }

    fn subtract(&self, image: &Image, reference: &Image) -> Result<Image> {
        if (image.dims, image.channels) != (reference.dims, reference.channels) {
            bail!(
                SizeMismatch,
                "the image has {:?} voxels in {} channels, but the reference {:?} in {}: they must be the same",
                image.dims,
                image.channels,
                reference.dims,
                reference.channels
            );
        }
        check_same_place(image, reference)?;
        let concomitant = match &self.maxwell.terms {
            Some((coefficients, patient_position)) => Some(concomitant_phase(*coefficients, patient_position, image)?),
            None => None,
        };
        let options = PhaseDifferenceOptions { venc: self.args.venc, concomitant };
        let mut difference = try_vec(image.dims.iter().product(), 0.0f32, "the phase difference")?;
        let (a, b) = (&image.data, &reference.data);
        phase_difference(a, b, &image.dims, image.channels, &options, &mut difference)?;
        let data = difference.into_iter().map(|x| Complex::new(x, 0.0)).collect();
        Ok(Image { channels: 1, data, ..*image })
    }
}

/// Returns the numbers of the scans from which the coil maps of `scan` are estimated: scans of the reference set with
/// the same encoding, slice and contrast, and one trajectory.
pub fn reference_scans(args: &PhaseDifferenceArgs, session: &Session, scan: &Scan) -> Result<Vec<usize>> {
    let scans = &session.scans;
    let reference = reference_set(args, scans.iter().map(|scan| scan.index))?;
    let key = |scan: &Scan| (scan.index.encoding, scan.index.slice, scan.index.contrast);
    let is_reference = |&i: &usize| scans[i].index.set == reference && key(&scans[i]) == key(scan);
    let Some(first) = (0..scans.len()).find(is_reference) else {
        bail!(InvalidArgument, "{}: --phase-difference: there is no set {reference}", name(&scan.index));
    };
    let shares_maps = |&i: &usize| i == first || session.is_same_trajectory(first, i);
    Ok((first..scans.len()).filter(is_reference).filter(shares_maps).collect())
}

/// Returns the concomitant fields that are corrected, from the user parameters of the header and the patient's position
/// in the scanner.
fn maxwell_of_header<'a>(
    choice: MaxwellChoice,
    parameters: impl IntoIterator<Item = (&'a str, f64)>,
    patient_position: Option<&str>,
) -> Result<MaxwellTerms> {
    if choice == MaxwellChoice::None {
        return Ok(MaxwellTerms::default());
    }
    let silence = "--maxwell none leaves it out";
    let not_corrected = |reason: &str, mut reports: Vec<String>| {
        let remedy = "--maxwell none omits this line";
        reports.push(format!("concomitant fields (Maxwell terms) are not corrected: {reason}; {remedy}"));
        Ok(MaxwellTerms { terms: None, reports })
    };
    let Some(found) = maxwell_coefficients(parameters)? else {
        if choice == MaxwellChoice::Auto {
            return not_corrected("the header has no MaxwellCoefficient_0 to 3", Vec::new());
        }
        bail!(
            InvalidArgument,
            "--maxwell: the header has no MaxwellCoefficient_0 to MaxwellCoefficient_3, on which the correction of \
             concomitant fields depends: add them, or give --maxwell none"
        );
    };
    let unknown =
        |term| format!("MaxwellCoefficient_{term} is not 0, but only the terms 0 to 3 are known: it is not used");
    let mut reports: Vec<String> = found.unknown_term.map(unknown).into_iter().collect();
    if found.coefficients == [0.0; 4] {
        return not_corrected("the coefficients 0 to 3 of the header are 0", reports);
    }
    let Some(position) = patient_position else {
        bail!(
            InvalidArgument,
            "the header has Maxwell coefficients, but no patientPosition (measurementInformation), on which the \
             direction of the gradients' axes depends: add it, or give --maxwell none"
        );
    };
    let (sign, verb, other) = match choice {
        MaxwellChoice::Negated => (-1.0, "subtracted from", "header adds"),
        _ => (1.0, "added to", "negated subtracts"),
    };
    reports.push(format!(
        "concomitant fields are corrected: the phase of MaxwellCoefficient_0 to 3 of the header is {verb} the phase \
         difference; --maxwell {other} it, {silence}"
    ));
    Ok(MaxwellTerms { terms: Some((found.coefficients.map(|c| sign * c), position.to_owned())), reports })
}

/// Returns the phase of concomitant fields in an image.
fn concomitant_phase(coefficients: [f64; 4], patient_position: &str, image: &Image) -> Result<ConcomitantPhase> {
    let (placement, remedy) = (&image.placement, "correct the file, or give --maxwell none");
    if !placement.is_known() {
        bail!(
            InvalidArgument,
            "Maxwell terms depend on the image's position and directions, which are unknown: {remedy}"
        );
    }
    let is_axis_known = |&axis: &usize| image.fov_mm[axis] > 0.0 && image.fov_mm[axis].is_finite();
    if let Some(axis) = (0..3).find(|axis| image.dims[*axis] > 1 && !is_axis_known(axis)) {
        let name = ["x", "y", "z"][axis];
        bail!(InvalidArgument, "Maxwell terms depend on the field of view along {name}, which is unknown: {remedy}");
    }
    let position = ImagePosition {
        centre_mm: placement.position.map(f64::from),
        directions: placement.directions().map(|d| d.map(f64::from)),
        voxel_mm: std::array::from_fn(|axis| ImageGeometry::new(image).voxel_mm(axis)),
        dims: image.dims,
    };
    ConcomitantPhase::of_image(coefficients, &position, patient_position)
}

/// Checks that two images are at the same place in the patient.
fn check_same_place(image: &Image, reference: &Image) -> Result<()> {
    let (a, b) = (&image.placement, &reference.placement);
    let differs = |a: [f32; 3], b: [f32; 3], most: f32| (0..3).any(|i| (a[i] - b[i]).abs() > most);
    let directions = [(a.read_dir, b.read_dir), (a.phase_dir, b.phase_dir), (a.slice_dir, b.slice_dir)];
    if differs(a.position, b.position, SAME_POSITION_MM)
        || differs(image.fov_mm, reference.fov_mm, SAME_POSITION_MM)
        || directions.iter().any(|&(a, b)| differs(a, b, SAME_DIRECTION))
    {
        bail!(
            InvalidArgument,
            "--phase-difference: position {:?} mm and field of view {:?} mm differ from those of set {}, {:?} and \
             {:?}, or the directions do: velocity encodings must be of the same slice",
            a.position,
            image.fov_mm,
            reference.index.set,
            b.position,
            reference.fov_mm
        );
    }
    Ok(())
}

/// Returns the number of the set whose phase is subtracted.
fn reference_set(args: &PhaseDifferenceArgs, indices: impl Iterator<Item = ScanIndex>) -> Result<u16> {
    let sets: BTreeSet<u16> = indices.map(|index| index.set).collect();
    let list = sets.iter().map(|set| set.to_string()).collect::<Vec<_>>().join(", ");
    if sets.len() < 2 {
        bail!(
            InvalidArgument,
            "--phase-difference: all data are of set {list}, but two sets or more are needed: leave the option out"
        );
    }
    match args.reference_set {
        Some(set) if sets.contains(&set) => Ok(set),
        Some(set) => bail!(InvalidArgument, "--reference-set {set}: the file has sets {list}: give one of them"),
        None if sets.len() == 2 && sets.contains(&0) => Ok(0),
        None => bail!(
            InvalidArgument,
            "--phase-difference: the file has sets {list}: give the set whose phase is subtracted from each of the \
             others by --reference-set"
        ),
    }
}

/// Returns the number of each image that is not of the reference set, with the number of its reference image.
fn pairs(args: &PhaseDifferenceArgs, indices: &[ScanIndex]) -> Result<Vec<(usize, usize)>> {
    let reference = reference_set(args, indices.iter().copied())?;
    let key = |index: &ScanIndex| ScanIndex { set: 0, average: 0, ..*index };
    let mut groups = BTreeMap::<ScanIndex, BTreeMap<u16, usize>>::new();
    for (i, index) in indices.iter().enumerate() {
        if groups.entry(key(index)).or_default().insert(index.set, i).is_some() {
            bail!(
                InvalidArgument,
                "{}: --phase-difference: there are two images with these numbers: select one by --repetition",
                name(index)
            );
        }
    }
    let mut pairs = Vec::new();
    for group in groups.values() {
        let Some(&first) = group.get(&reference) else {
            let index = indices[*group.values().next().unwrap_or(&0)];
            bail!(InvalidArgument, "{}: --phase-difference: there is no image of set {reference}", name(&index));
        };
        if group.len() == 1 {
            bail!(
                InvalidArgument,
                "{}: --phase-difference: there is an image of the reference set only",
                name(&indices[first])
            );
        }
        pairs.extend(group.values().filter(|&&i| i != first).map(|&i| (i, first)));
    }
    pairs.sort_unstable();
    Ok(pairs)
}

/// Returns the name of an image for messages.
fn name(index: &ScanIndex) -> String {
    format!("slice {}, repetition {}, set {}", index.slice, index.repetition, index.set)
}
