//! The page's encoding, decoded again by a second implementation: zlib of flate2, and bits one by one.

use super::*;
use crate::tests::ramp;
use recon::error::ErrorKind;
use std::io::Read;

const EIGHT_SIX: ViewBits = ViewBits { magnitude: 8, phase: 6 };

/// Returns the levels of a slice; `mask` is the highest level.
fn inflate(bytes: &[u8], mask: u8) -> Vec<u8> {
    let mut levels = Vec::new();
    flate2::read::ZlibDecoder::new(bytes).read_to_end(&mut levels).unwrap();
    let filter = levels.remove(0);
    assert!(filter <= 1);
    if filter == 1 {
        (1..levels.len()).for_each(|i| levels[i] = levels[i].wrapping_add(levels[i - 1]) & mask);
    }
    levels
}

/// Decodes `count` bytes of text.
fn bytes_of(text: &[u16], count: usize) -> Vec<u8> {
    let bit = |i: usize| (text[i / 15] - 0x2000) >> (i % 15) & 1;
    (0..count).map(|byte| (0..8).map(|i| (bit(8 * byte + i) as u8) << i).sum()).collect()
}

#[test]
fn text_contains_all_bits() {
    for count in 0..70usize {
        let bytes: Vec<u8> = (0..count).map(|i| (i * i * 37 + 255) as u8).collect();
        let mut text = vec![0x2000];
        append_units(&mut text, &bytes);
        assert_eq!(text.len() - 1, (8 * count).div_ceil(15));
        assert!(text.iter().all(|unit| (0x2000..=0x9fff).contains(unit)));
        assert_eq!(bytes_of(&text[1..], count), bytes);
    }
    // The text of bytes that are all 1: the highest unit.
    let mut text = Vec::new();
    append_units(&mut text, &[255; 15]);
    assert_eq!(text, [0x9fff; 8]);
}

#[test]
fn levels_of_magnitudes() {
    let data: Vec<Complex<f32>> = (0..24).map(|i| Complex::from(i as f32)).collect();
    let image = Image::new([4, 3, 2], 1, data.clone()).unwrap();
    let series = EncodedSeries::new(&[&image], EIGHT_SIX).unwrap();
    let Quantisation { kind, step, zero, highest, phase_levels } = series.quantisation;
    assert_eq!((kind, zero, highest, phase_levels), (VoxelKind::Magnitude, 0, 255, 0));
    assert_eq!((step, series.clipped, series.slices.len()), (23.0 / 255.0, 0, 2));
    assert_eq!(series.window, [0, 255]);
    let levels: Vec<u8> = series.slices.iter().flat_map(|bytes| inflate(bytes, 255)).collect();
    for (&level, z) in levels.iter().zip(&data) {
        assert!((f64::from(level) * step - f64::from(z.re)).abs() <= step / 2.0 + 1e-9, "{level} {z}");
    }
    let text: usize = series.slices.iter().map(|bytes| (8 * bytes.len()).div_ceil(15)).sum();
    assert_eq!(series.page_bytes(), 2 * text);
}

#[test]
fn levels_of_signed_numbers_include_zero() {
    let data: Vec<Complex<f32>> = [-60.0, 0.0, 120.0, 0.3, -0.3].map(Complex::from).to_vec();
    let image = Image::new([5, 1, 1], 1, data.clone()).unwrap();
    let series = EncodedSeries::new(&[&image], EIGHT_SIX).unwrap();
    let q = series.quantisation;
    assert_eq!((q.kind, q.phase_levels, series.clipped), (VoxelKind::Real, 0, 0));
    let levels = inflate(&series.slices[0], 255);
    assert_eq!([u32::from(levels[1]), u32::from(levels[3]), u32::from(levels[4])], [q.zero; 3]);
    for (&level, z) in levels.iter().zip(&data) {
        let value = (f64::from(level) - f64::from(q.zero)) * q.step;
        assert!((value - f64::from(z.re)).abs() <= q.step / 2.0 + 1e-9, "{value} {z}");
    }
    // Only negative numbers.
    let image = Image::new([2, 1, 1], 1, vec![Complex::from(-5.0), Complex::from(-1.0)]).unwrap();
    let q = Quantisation::of(&[&image], EIGHT_SIX).unwrap();
    assert_eq!((q.level(Complex::from(-5.0)), u32::from(q.level(Complex::from(0.0)))), (0, q.zero));
}

#[test]
fn levels_of_complex_numbers() {
    let data: Vec<Complex<f32>> =
        (0..400).map(|i| Complex::from_polar(1.0 + (i % 7) as f32, i as f32 * 0.37)).collect();
    let image = Image::new([20, 20, 1], 1, data.clone()).unwrap();
    for phase in [3, 6, 8] {
        let series = EncodedSeries::new(&[&image], ViewBits { magnitude: 8, phase }).unwrap();
        let q = series.quantisation;
        assert_eq!((q.kind, q.phase_levels, series.slices.len()), (VoxelKind::Complex, 1 << phase, 2));
        let (levels, phases) =
            (inflate(&series.slices[0], 255), inflate(&series.slices[1], (q.phase_levels - 1) as u8));
        let turn = std::f64::consts::TAU / f64::from(q.phase_levels);
        for ((&level, &angle), z) in levels.iter().zip(&phases).zip(&data) {
            let z = Complex::new(f64::from(z.re), f64::from(z.im));
            assert!((f64::from(level) * q.step - z.norm()).abs() <= 0.5001 * q.step);
            let difference = z * Complex::from_polar(1.0, std::f64::consts::PI - f64::from(angle) * turn);
            assert!(difference.arg().abs() <= 0.5001 * turn, "{z} {angle}");
        }
    }
    // Without phases, and where the magnitude is 0.
    let series = EncodedSeries::new(&[&image], ViewBits { magnitude: 8, phase: 0 }).unwrap();
    assert_eq!((series.quantisation.kind, series.slices.len()), (VoxelKind::Complex, 1));
    let small = Image::new([2, 1, 1], 1, vec![Complex::new(0.0, 1.0), Complex::new(0.0, 1e-3)]).unwrap();
    let series = EncodedSeries::new(&[&small], EIGHT_SIX).unwrap();
    assert_eq!((inflate(&series.slices[0], 255), inflate(&series.slices[1], 63)), (vec![255, 0], vec![48, 0]));
}

#[test]
fn order_of_slices_channels_and_images() {
    let image = |first: f32| {
        let data = (0..6).map(|i| Complex::from(first + i as f32)).collect();
        Image::new([1, 1, 3], 2, data).unwrap()
    };
    let (a, b) = (image(0.0), image(249.0));
    let series = EncodedSeries::new(&[&a, &b], EIGHT_SIX).unwrap();
    let levels: Vec<u8> = series.slices.iter().flat_map(|bytes| inflate(bytes, 255)).collect();
    let step = 254.0 / 255.0;
    let wanted: Vec<u8> = (0..6).chain(249..255).map(|v| (f64::from(v) / step).round() as u8).collect();
    assert_eq!(levels, wanted);
}

/// A few voxels much brighter than all others do not take all levels.
#[test]
fn bright_voxels_are_clipped_and_counted() {
    let mut data = vec![Complex::from(1.0); 10_000];
    data[..3].fill(Complex::from(1000.0));
    let image = Image::new([100, 100, 1], 1, data).unwrap();
    let series = EncodedSeries::new(&[&image], EIGHT_SIX).unwrap();
    assert_eq!((series.clipped, series.quantisation.step), (3, 4.0 / 255.0));
    assert_eq!(inflate(&series.slices[0], 255)[..4], [255, 255, 255, 64]);
    assert_eq!(series.window, [0, 64]);
}

#[test]
fn images_of_zeros_and_of_one_voxel() {
    for value in [0.0, 1e-30, 3.4e38] {
        let image = Image::new([1, 1, 1], 1, vec![Complex::from(value)]).unwrap();
        let series = EncodedSeries::new(&[&image], EIGHT_SIX).unwrap();
        assert!(series.quantisation.step > 0.0 && series.window[1] > series.window[0], "{series:?}");
        let shown = f64::from(inflate(&series.slices[0], 255)[0]) * series.quantisation.step;
        assert!((shown - f64::from(value)).abs() <= 1e-6 * f64::from(value), "{shown} {value}");
    }
    let mut image = Image::new([2, 2, 1], 1, ramp(4)).unwrap();
    image.data[3].im = f32::NAN;
    let e = EncodedSeries::new(&[&image], EIGHT_SIX).unwrap_err();
    assert!(e.kind() == ErrorKind::NotFinite && e.message().contains("NaN"), "{e}");
}

/// Noise and a ramp select different filters. Both are restored, also if levels have fewer than 8 bits.
#[test]
fn filters() {
    let mut state = 1u32;
    let mut random = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 24) as f32
    };
    let noise: Vec<Complex<f32>> = (0..4096).map(|_| Complex::from_polar(random(), 6.0 * random())).collect();
    let ramp = (0..4096).map(|i| Complex::from_polar(1.0 + (i % 500) as f32, i as f32 * 0.02)).collect();
    for (data, filter) in [(noise, 0), (ramp, 1)] {
        let image = Image::new([64, 64, 1], 1, data).unwrap();
        let series = EncodedSeries::new(&[&image], ViewBits { magnitude: 6, phase: 5 }).unwrap();
        for (i, bytes) in series.slices.iter().enumerate() {
            let mut first = [9];
            flate2::read::ZlibDecoder::new(bytes.as_slice()).read_exact(&mut first).unwrap();
            assert_eq!(first, [filter], "{i}");
            let (mask, q) = ([63, 31][i], series.quantisation);
            let wanted: Vec<u8> =
                image.data.iter().map(|&z| if i == 0 { q.level(z) } else { q.phase_level(z) }).collect();
            assert_eq!(inflate(bytes, mask), wanted);
        }
        // The estimate is made from the only slice.
        let estimate = EncodedSeries::estimate_page_bytes(&[&image], ViewBits { magnitude: 6, phase: 5 }).unwrap();
        assert_eq!(estimate, series.page_bytes());
    }
}
