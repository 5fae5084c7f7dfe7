//! The sizes of a plan and one transform, from which their time on a device is estimated before either exists.

use crate::base::defaults;
use crate::base::fft_size::next_fast_size;
use crate::base::options::Options;
use crate::base::scan_size::ScanSize;

/// Mean number of plain transforms per transform with a field map or a decay map. The number itself follows from the
/// values of the maps, which estimates do not read.
const SEGMENTS: f64 = 8.0;

/// Sizes of a plan and one adjoint transform of all coils and frames, with arrays in host memory.
pub struct CallSize {
    /// Image size.
    pub dims: Vec<usize>,
    /// Oversampled grid, approximately.
    pub grid: Vec<usize>,
    /// Width of the window in grid cells, approximately.
    pub width: usize,
    /// Samples of one coil and frame.
    pub samples: usize,
    /// Voxels of one image.
    pub voxels: usize,
    /// Bytes of a real number.
    pub real: usize,
    /// Number of transforms: coils times frames, and segments with a field map or decay map.
    pub transforms: f64,
    /// Bytes of coordinates, weights and coil maps.
    pub geometry_bytes: f64,
    /// Bytes of k-space and images.
    pub data_bytes: f64,
    /// Whether transforms are exact sums.
    pub exact: bool,
    /// Whether the voxels are a list.
    pub is_list: bool,
}

impl CallSize {
    /// Computes the sizes of a call in reals of `real` bytes.
    pub fn new(size: &ScanSize, options: &Options, exact: bool, has_maps: bool, real: usize) -> Self {
        let tolerance = if options.tolerance > 0.0 { options.tolerance } else { defaults::TOLERANCE };
        // Minimax windows at an oversampling of about 1.5 gain a digit with every 1.2 cells.
        let width = if options.width > 0 { options.width } else { (1.0 - 1.2 * tolerance.log10()).round() as usize };
        let oversampling = if options.oversampling > 0.0 { options.oversampling } else { 1.5 };
        let grid = size.dims.iter().map(|&n| next_fast_size((n as f64 * oversampling) as usize + 1));
        let (samples, voxels) = (size.samples as f64, size.voxels() as f64);
        let (arrays, images) = ((size.coils * size.frames) as f64, (size.images() * size.frames) as f64);
        let reals_per_sample = size.dims.len() + usize::from(size.weights);
        let map_reals = if size.coil_maps { 2.0 * voxels * size.coils as f64 } else { 0.0 };
        CallSize {
            grid: grid.collect(),
            dims: size.dims.clone(),
            width: width.clamp(2, super::MAX_WIDTH),
            samples: size.samples,
            voxels: size.voxels(),
            real,
            transforms: arrays * if has_maps && !exact { SEGMENTS } else { 1.0 },
            geometry_bytes: real as f64 * (samples * reals_per_sample as f64 + map_reals),
            data_bytes: 2.0 * real as f64 * (samples * arrays + voxels * images),
            exact,
            is_list: size.listed.is_some(),
        }
    }

    /// Returns the coordinates of all samples in words of 4 bytes.
    pub fn coordinate_words(&self) -> f64 {
        self.samples as f64 * (self.dims.len() * self.real) as f64 / 4.0
    }

    /// Returns the number of pairs of a sample and a voxel.
    pub fn pairs(&self) -> f64 {
        self.samples as f64 * self.voxels as f64
    }
}
