//! Shared by grid, fhd and cg: groups of scans with one plan, density weights, and the steps from coil images to the
//! finished image.

use crate::defaults;
use crate::io::cfl::MAX_DIMS;
use crate::io::{read_cfl, Image, Scan};
use crate::options::{Combination, DensityArgs, InputArgs, PlanArgs};
use crate::progress::ProgressIndicator;
use crate::reader::read_image;
use crate::run::frames::{self, Frames};
use crate::run::input::name;
use crate::run::off_resonance::{OfScan, OffResonance};
use crate::run::output::{check_together, has_ending};
use crate::run::resize::{order_hint, zeros, Resize};
use recon::bail;
use recon::coverage::missing_share;
use recon::error::try_vec;
use recon::{combine, Complex, Density, Geometry, Plan, Real, Result};
use std::path::Path;
use std::time::Instant;

/// The scans of each plan, by position: scans with the same trajectory, weights, matrix and coils, for whose positions
/// `also` is true.
pub fn groups(scans: &[Scan], also: impl Fn(usize, usize) -> bool) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for (i, scan) in scans.iter().enumerate() {
        let same = |first: usize| {
            let other = &scans[first];
            other.coils == scan.coils
                && other.encoded_matrix == scan.encoded_matrix
                && other.coordinates == scan.coordinates
                && other.weights == scan.weights
                && other.coil_matrix == scan.coil_matrix
                && also(first, i)
        };
        match groups.iter_mut().find(|g| same(g[0])) {
            Some(group) => group.push(i),
            None => groups.push(vec![i]),
        }
    }
    groups
}

/// One image a scan, or one a frame, in the order of the scans. `plan_of` makes the plan of a scan, or of the plan
/// before where there is one, and `image_of` the image of a scan with that plan; both get the scan's position as well.
pub fn each_scan<P>(
    scans: &[Scan],
    frames: Option<Frames>,
    maps: &OffResonance<'_>,
    what: &str,
    mut plan_of: impl FnMut(&Scan, usize, Option<P>) -> Result<P>,
    mut image_of: impl FnMut(&P, &Scan, usize) -> Result<Image>,
) -> Result<Vec<Image>> {
    let progress = ProgressIndicator::new(scans.iter().map(|scan| frames::count(frames, scan)).sum(), what);
    let mut images: Vec<Vec<Image>> = vec![Vec::new(); scans.len()];
    let mut done = 0;
    let mut plan = None;
    for group in groups(scans, |a, b| frames.is_none() && maps.same(scans, a, b)) {
        for &i in &group {
            for scan in frames::each(frames, &scans[i]) {
                let started = Instant::now();
                let here = match plan.take() {
                    Some(plan) if frames.is_none() && i != group[0] => plan,
                    before => plan_of(&scan, i, before)?,
                };
                images[i].push(image_of(&here, &scan, i)?);
                plan = Some(here);
                let seconds = started.elapsed().as_secs_f64();
                log::info!("{}: {} samples of {} coils, {seconds:.3} s", name(&scan), scan.samples(), scan.coils);
                done += 1;
                progress.set(done);
            }
        }
    }
    Ok(images.into_iter().flatten().collect())
}

/// A plan, and what it cannot be given another of.
pub struct Kept<T: Real> {
    pub plan: Plan<T>,
    dims: Vec<usize>,
    coils: usize,
    combined: bool,
}

impl<T: Real> Kept<T> {
    /// A plan with these weights: the plan before, which is given the trajectory, where its image and coils are the
    /// same, or else a new one, as under a memory limit: two trajectories would count. Results have the same bits.
    pub fn new(
        before: Option<Self>,
        geometry: &Geometry<'_, T>,
        weights: &Weights<T>,
        options: &recon::Options,
    ) -> Result<Self> {
        let mut geometry = geometry.clone();
        geometry.weights = weights.given();
        let alike = |kept: &Self| {
            (&kept.dims, kept.coils, kept.combined) == (&geometry.dims, geometry.coils, geometry.coil_maps.is_some())
        };
        let plan = match before.filter(|kept| alike(kept) && options.memory_limit.is_none()) {
            Some(Kept { plan, .. }) => {
                if geometry.weights.is_none() {
                    // A plan with weights takes no trajectory without.
                    plan.set_weights(None)?;
                }
                plan.set_trajectory(&geometry)?;
                plan
            }
            None => Plan::new(&geometry, options)?,
        };
        weights.compute(&plan)?;
        let (dims, coils, combined) = (geometry.dims.clone(), geometry.coils, geometry.coil_maps.is_some());
        Ok(Kept { plan, dims, coils, combined })
    }
}

impl<T: Real> Kept<T> {
    /// Makes a plan with these weights that estimates coil maps.
    pub fn for_coil_maps(
        geometry: &Geometry<'_, T>,
        weights: &Weights<T>,
        options: &recon::Options,
    ) -> Result<Plan<T>> {
        let mut geometry = geometry.clone();
        geometry.weights = weights.given();
        let plan = Plan::for_coil_maps(&geometry, options)?;
        weights.compute(&plan)?;
        Ok(plan)
    }
}

/// The matrix and coordinates of a scan, in the precision of the computation.
pub struct Sampling<T: Real> {
    pub dims: Vec<usize>,
    pub coordinates: Vec<Vec<T>>,
    pub coils: usize,
    /// Off-resonance and decay, where there are maps.
    pub maps: Option<OfScan<T>>,
}

impl<T: Real> Sampling<T> {
    /// Without off-resonance.
    pub fn of(scan: &Scan) -> Self {
        let axis = |k: &Vec<f32>| k.iter().map(|&k| T::of(k as f64)).collect();
        Sampling {
            dims: scan.encoded_matrix[..scan.ndim].to_vec(),
            coordinates: scan.coordinates.iter().map(axis).collect(),
            coils: scan.coils,
            maps: None,
        }
    }

    /// Of scan number `i`, with the maps and times that it has.
    pub fn with_maps(scan: &Scan, i: usize, maps: &OffResonance<'_>) -> Result<Self> {
        Ok(Sampling { maps: maps.of(i, scan)?, ..Self::of(scan) })
    }

    pub fn geometry(&self, plan: &PlanArgs) -> Geometry<'_, T> {
        let mut geometry = self.without_maps(plan);
        if let Some(OfScan { field_map, decay_map, times }) = &self.maps {
            (geometry.field_map, geometry.decay_map) = (field_map.as_deref(), decay_map.as_deref());
            geometry.times = Some(times);
        }
        geometry
    }

    /// The geometry without off-resonance and decay, for what does not depend on these.
    pub fn without_maps(&self, plan: &PlanArgs) -> Geometry<'_, T> {
        let k: Vec<&[T]> = self.coordinates.iter().map(|k| &k[..]).collect();
        let mut geometry = Geometry::new(&self.dims, &k).coils(self.coils);
        geometry.basis = plan.basis();
        geometry
    }
}

/// Density weights of a scan.
pub enum Weights<T: Real> {
    /// Volumes of k-space: the weighted adjoint is the image, at the scale of the object.
    Volumes(Vec<T>),
    /// Weights of any scale.
    Relative(Vec<T>),
    /// Weights that are computed for the plan's trajectory.
    Computed(Density),
    /// None are given: for gridding the library computes those of Pipe and Menon.
    Default,
}

impl<T: Real> Weights<T> {
    /// Computes the weights of a plan, if they are to be computed.
    fn compute(&self, plan: &Plan<T>) -> Result<()> {
        match self {
            Weights::Computed(density) => plan.set_weights(Some(&plan.density(*density)?)),
            Weights::Volumes(_) | Weights::Relative(_) | Weights::Default => Ok(()),
        }
    }

    fn given(&self) -> Option<&[T]> {
        match self {
            Weights::Volumes(w) | Weights::Relative(w) => Some(w),
            Weights::Computed(_) | Weights::Default => None,
        }
    }

    /// Returns the weights of the file or of the options; equal weights for a whole Cartesian grid.
    pub fn of(scan: &Scan, density: &DensityArgs) -> Self {
        let weights = Self::for_coil_maps(scan, density);
        if matches!(weights, Weights::Default) && density.density.is_none() {
            if let Some(weights) = whole_grid(scan) {
                log::info!("{}: a whole Cartesian grid, equal weights", name(scan));
                return Weights::Volumes(weights.into_iter().map(T::of).collect());
            }
        }
        weights
    }

    /// Returns the weights of the file or of the options. The library itself finds those of calibration lines.
    pub fn for_coil_maps(scan: &Scan, density: &DensityArgs) -> Self {
        if let Some(weights) = scan.weights.as_ref().filter(|_| !density.ignore_weights) {
            return Weights::Relative(weights.iter().map(|&w| T::of(w as f64)).collect());
        }
        match Density::from(density.density.unwrap_or(defaults::DENSITY)) {
            d if d == Density::default() => Weights::Default,
            d => Weights::Computed(d),
        }
    }

    /// These weights, where they are computed: those of the sampling.
    pub fn computed(self, sampling: &Sampling<T>, plan: &PlanArgs) -> Result<Self> {
        match self {
            Weights::Computed(density) => {
                let plain = Plan::new(&sampling.without_maps(plan), &plan.options()?)?;
                plain.density(density).map(Weights::Relative)
            }
            other => Ok(other),
        }
    }

    /// The same as [`Weights::of`], computed also where they are the default.
    pub fn explicit(scan: &Scan, density: &DensityArgs) -> Self {
        match Weights::of(scan, density) {
            Weights::Default => Weights::Computed(Density::default()),
            given => given,
        }
    }
}

/// Warns of weights in the file that win over those of the options.
pub fn warn_of_weights(scans: &[Scan], density: &DensityArgs) {
    if density.density.is_some() && !density.ignore_weights && scans.iter().any(|scan| scan.weights.is_some()) {
        log::warn!("the file has density weights, and they are used: --ignore-weights computes others");
    }
}

/// Warns of gaps between samples that alias gridded images, once for all scans.
///
/// Counted are the points of a Cartesian grid that were not measured, and of other trajectories the gaps in the centre
/// of k-space: radial scans of fewer spokes than the edge of k-space would take have few of these, and only streaks.
pub fn warn_of_gaps(scans: &[Scan], frames: Option<Frames>) -> Result<()> {
    /// Shares that are tolerated: single missing lines; the irregular gaps of few spokes.
    const TOLERATED: [f64; 2] = [0.01, 0.2];
    const REMEDY: &str = "gridding cannot undo that; recon cg can, with coil maps from calibration lines or --maps";
    let mut tested: Option<&[Vec<f32>]> = None;
    for scan in scans {
        if tested.replace(&scan.coordinates).is_some_and(|before| before == scan.coordinates) {
            continue;
        }
        let Some(scan) = frames::each(frames, scan).next() else { continue };
        if let Some(missing) = missing_of_grid(&scan)? {
            if missing > TOLERATED[0] {
                log::warn!(
                    "{}: {:.0} % of the points of the Cartesian grid were not measured, as in parallel imaging: the \
                     image is aliased; {REMEDY}",
                    name(&scan),
                    100.0 * missing
                );
                return Ok(());
            }
            continue;
        }
        let k: Vec<&[f32]> = scan.coordinates.iter().map(|k| &k[..]).collect();
        let missing = missing_share(&k, &scan.encoded_matrix[..scan.ndim])?;
        if missing > TOLERATED[1] {
            log::warn!(
                "{}: in {:.0} % of the centre of k-space, gaps between the samples are wider than 1/FOV: the image is \
                 aliased; {REMEDY}, or measure more shots",
                name(&scan),
                100.0 * missing
            );
            return Ok(());
        }
    }
    Ok(())
}

/// Returns the share of a Cartesian grid's points that was not measured, within the ellipsoid that the samples span:
/// corners may be left out on purpose. `None` if samples lie between the points.
fn missing_of_grid(scan: &Scan) -> Result<Option<f64>> {
    let Some(Grid { low, size, points }) = Grid::of(scan) else { return Ok(None) };
    let dims = &scan.encoded_matrix[..scan.ndim];
    let mut measured = try_vec(points, false, "the points of the grid")?;
    (0..scan.samples()).for_each(|m| measured[Grid::place(scan, dims, &low, &size, m)] = true);
    let (mut all, mut missing) = (0usize, 0usize);
    for (i, measured) in measured.iter().enumerate() {
        let mut rest = i;
        let from_middle = |&n: &usize| {
            let at = (rest % n) as f64 - (n - 1) as f64 / 2.0;
            rest /= n;
            (2.0 * at / n as f64).powi(2)
        };
        if size.iter().map(from_middle).sum::<f64>() <= 1.0 {
            all += 1;
            missing += usize::from(!measured);
        }
    }
    Ok(Some(missing as f64 / all.max(1) as f64))
}

/// The box of a Cartesian grid that samples span.
struct Grid {
    low: [isize; 3],
    size: Vec<usize>,
    points: usize,
}

impl Grid {
    /// Returns the box, or `None` if samples lie between the points of the encoded matrix' grid.
    fn of(scan: &Scan) -> Option<Grid> {
        let dims = &scan.encoded_matrix[..scan.ndim];
        let (mut low, mut high) = ([isize::MAX; 3], [isize::MIN; 3]);
        for (axis, &n) in dims.iter().enumerate() {
            for &k in &scan.coordinates[axis] {
                let step = k as f64 * n as f64;
                if (step - step.round()).abs() > 1e-3 {
                    return None;
                }
                low[axis] = low[axis].min(step.round() as isize);
                high[axis] = high[axis].max(step.round() as isize);
            }
        }
        let size: Vec<usize> = (0..dims.len()).map(|a| (high[a] - low[a] + 1) as usize).collect();
        let points = size.iter().try_fold(1usize, |p, &n| p.checked_mul(n))?;
        Some(Grid { low, size, points })
    }

    /// Returns the position of a sample in the box.
    fn place(scan: &Scan, dims: &[usize], low: &[isize; 3], size: &[usize], m: usize) -> usize {
        (0..dims.len()).rev().fold(0, |at, axis| {
            let step = (scan.coordinates[axis][m] as f64 * dims[axis] as f64).round() as isize;
            at * size[axis] + (step - low[axis]) as usize
        })
    }
}

/// The weights with which the adjoint is the inverse discrete Fourier transform, where the samples are exactly the
/// points of a box of the encoded matrix' Cartesian grid. A point that was measured n times counts 1/n each time.
fn whole_grid(scan: &Scan) -> Option<Vec<f64>> {
    let dims = &scan.encoded_matrix[..scan.ndim];
    let voxels = dims.iter().try_fold(1usize, |p, &n| p.checked_mul(n))?;
    let Grid { low, size, points } = Grid::of(scan)?;
    // Fewer samples cannot fill the box.
    if points > scan.samples() {
        return None;
    }
    let place = |m: usize| Grid::place(scan, dims, &low, &size, m);
    let mut times = vec![0u32; points];
    (0..scan.samples()).for_each(|m| times[place(m)] += 1);
    if times.contains(&0) {
        return None;
    }
    Some((0..scan.samples()).map(|m| 1.0 / (voxels as f64 * times[place(m)] as f64)).collect())
}

/// Numbers in the precision of the computation.
pub fn cast<T: Real>(data: &[Complex<f32>]) -> Result<Vec<Complex<T>>> {
    let mut out = zeros(data.len())?;
    for (o, z) in out.iter_mut().zip(data) {
        *o = Complex::new(T::of(z.re as f64), T::of(z.im as f64));
    }
    Ok(out)
}

/// The last steps of images.
pub struct Finish<'a> {
    pub scan: &'a Scan,
    pub resize: Resize,
    pub combine: Combination,
}

/// The input of a reconstruction.
pub struct Input {
    /// The scans that the options select.
    pub scans: Vec<Scan>,
    /// Calibration data of the file, from which coil maps are estimated.
    pub calibration: Vec<Scan>,
    /// The frames that the scans are cut into.
    pub frames: Option<Frames>,
    /// Of each scan, the way of its images to the requested matrix.
    pub resizes: Vec<Resize>,
}

/// Reads the input of a reconstruction. Images of `channels` channels per scan that cannot share the output file are
/// refused, if there is one.
pub fn read_scans(args: &InputArgs, output: Option<&Path>, channels: impl Fn(&Scan) -> usize) -> Result<Input> {
    let (scans, calibration, frames) = frames::read(args)?;
    let resizes = scans.iter().map(|s| Resize::of(s, args.matrix.as_ref())).collect::<Result<Vec<_>>>()?;
    if let Some(output) = output {
        check_together(output, scans.iter().zip(&resizes).map(|(s, r)| (r.wanted(), channels(s))))?;
    }
    Ok(Input { scans, calibration, frames, resizes })
}

/// The channels of a finished image of `images` coil images.
pub fn channels(images: usize, combine: Combination) -> usize {
    match combine {
        Combination::None => images,
        _ => 1,
    }
}

impl Finish<'_> {
    /// Brings images [encoded matrix, images] to the reconstructed matrix, then combines them.
    pub fn image<T: Real>(&self, images: Vec<Complex<T>>) -> Result<Image> {
        let voxels: usize = self.resize.encoded().iter().product();
        let count = images.len() / voxels;
        let mut all = match count {
            1 => self.resize.apply(images)?,
            _ => {
                let mut all = Vec::new();
                for image in images.chunks_exact(voxels) {
                    all.extend(self.resize.apply(image.to_vec())?);
                }
                all
            }
        };
        let wanted = self.resize.wanted();
        if let Some(how) = self.combine.how().filter(|_| count > 1) {
            let mut one = zeros(wanted.iter().product())?;
            combine(&all, &wanted[..self.scan.ndim], count, how, &mut one)?;
            all = one;
        }
        let data = all.iter().map(|z| Complex::new(z.re.wide() as f32, z.im.wide() as f32)).collect();
        let mut image = self.scan.image(wanted, channels(count, self.combine), data)?;
        image.fov_mm = self.resize.fov_mm;
        Ok(image)
    }
}

/// Reads coil maps [encoded matrix, coils of the file], and makes those of the scan's virtual coils.
pub fn read_maps<T: Real>(path: &Path, scan: &Scan) -> Result<Vec<Complex<T>>> {
    let [x, y, z] = scan.encoded_matrix;
    let wanted = [x, y, z, scan.coil_matrix.as_ref().map_or(scan.coils, |m| m.coils())];
    let wrong = |found: &[usize], remedy: &str| -> Result<Vec<Complex<T>>> {
        bail!(
            SizeMismatch,
            "{}: coil maps of sizes {found:?}, but the encoded matrix of the scan and its coils are {wanted:?}: they \
             must be equal{remedy}",
            path.display()
        )
    };
    let data = if has_ending(path, &[".cfl", ".hdr"]) {
        let array = read_cfl(path)?;
        let fits = |n: &[usize; MAX_DIMS]| n[..4] == wanted && n[4..].iter().all(|&n| n == 1);
        if !fits(&array.sizes()) {
            let second = array.sizes()[4] > 1 && array.sizes()[..4] == wanted;
            let remedy = match array.reorder(fits) {
                _ if second => ": bart slice 4 0 IN OUT takes the first of several sets of maps".into(),
                Some(command) => format!(": {command}"),
                None => String::new(),
            };
            return wrong(&array.dims, &remedy);
        }
        array.data
    } else {
        let image = read_image(path)?;
        let [a, b, c] = image.dims;
        if [a, b, c, image.channels] != wanted {
            return wrong(&[a, b, c, image.channels], order_hint(image.dims, scan.encoded_matrix));
        }
        image.data
    };
    if wanted[3] > 1 && is_magnitude(&data) {
        log::warn!(
            "{}: the coil maps are real and nowhere negative: if they are magnitudes, their phases are lost, and the \
             image will be wrong (NIfTI files of recon hold magnitudes: use .cfl or .h5)",
            path.display()
        );
    }
    let maps = cast(&data)?;
    let Some(matrix) = &scan.coil_matrix else { return Ok(maps) };
    let mut virtual_maps = zeros(x * y * z * scan.coils)?;
    matrix.apply(x * y * z, &maps, &mut virtual_maps).map_err(|e| e.within(path.display()))?;
    Ok(virtual_maps)
}

/// Whether these are magnitudes: real, none negative.
pub fn is_magnitude<T: Real>(data: &[Complex<T>]) -> bool {
    data.iter().all(|z| z.im == T::ZERO && z.re >= T::ZERO)
}
