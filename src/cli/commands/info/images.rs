//! The contents of a file of images: sizes, kinds of values, counters and positions.

use super::text::{counted, list, sizes};
use crate::run::output::{counted_images, say};
use crate::run::value_kind::ValueKind;
use recon::{Complex, Result};
use recon_files::cfl::Cfl;
use recon_files::stacks::ImageGeometry;
use recon_files::{Image, ScanIndex};
use serde_json::{json, Value};
use std::collections::BTreeSet;

/// The values of an image or array.
#[derive(Clone, Copy, PartialEq)]
struct ValueSummary {
    kind: ValueKind,
    /// The largest magnitude of the finite numbers.
    largest: f32,
    /// The number of numbers that are infinite or not a number.
    not_finite: usize,
}

impl ValueSummary {
    fn of(data: &[Complex<f32>]) -> ValueSummary {
        let finite = data.iter().filter(|z| z.is_finite());
        let (count, largest) = finite.fold((0, 0.0), |(n, largest), z| (n + 1, z.norm().max(largest)));
        ValueSummary { kind: ValueKind::of(data), largest, not_finite: data.len() - count }
    }

    /// Adds the keys of JSON to an object.
    fn add_to(self, object: &mut Value) {
        object["values"] = self.kind.name().into();
        object["largest"] = json!(self.largest);
        object["not_finite"] = json!(self.not_finite);
    }

    fn print(self) -> Result<()> {
        say(&format!("values      {}", kind_text(self.kind)))?;
        if self.not_finite > 0 {
            say(&format!("not finite  {} numbers", self.not_finite))?;
        }
        say(&format!("largest     {}", self.largest))
    }
}

fn kind_text(kind: ValueKind) -> &'static str {
    match kind {
        ValueKind::Complex => "complex",
        ValueKind::Real => "real, some negative",
        ValueKind::Magnitude => "real, none negative",
    }
}

/// Prints an array of BART, whose axes have the meaning that a command gives them.
pub fn print_array(array: &Cfl) -> Result<()> {
    say(&format!("BART array of {:?} complex numbers", array.dims))?;
    ValueSummary::of(&array.data).print()
}

/// Returns the JSON keys of an array of BART.
pub fn array_json(array: &Cfl) -> Value {
    let mut object = json!({ "contents": "array", "dimensions": array.dims });
    ValueSummary::of(&array.data).add_to(&mut object);
    object
}

/// Prints images, once for successive images of one size and kind.
pub fn print_images(images: &[Image]) -> Result<()> {
    say(&counted_images(images.len()))?;
    let kind = |image: &Image| (image.dims, image.channels, image.fov_mm, ValueKind::of(&image.data));
    for group in images.chunk_by(|a, b| kind(a) == kind(b)) {
        print_group(group, images.len())?;
    }
    Ok(())
}

fn print_group(group: &[Image], total: usize) -> Result<()> {
    let image = &group[0];
    if group.len() < total {
        say(&format!("images      {}", group.len()))?;
    }
    say(&format!("voxels      {}", sizes(&image.dims)))?;
    // Files other than ISMRMRD do not say which of the two they are.
    let meaning = if image.channels > 1 { " (coils or frames)" } else { "" };
    say(&format!("channels    {}{meaning}", image.channels))?;
    type Counter = fn(&ScanIndex) -> u16;
    let counters: [(&str, Counter); 5] = [
        ("slices", |i| i.slice),
        ("repetitions", |i| i.repetition),
        ("contrasts", |i| i.contrast),
        ("phases", |i| i.phase),
        ("sets", |i| i.set),
    ];
    for (name, counter) in counters {
        let numbers: BTreeSet<u16> = group.iter().map(|image| counter(&image.index)).collect();
        if numbers.len() > 1 {
            say(&format!("{name:<11} {}", counted(&numbers)))?;
        }
    }
    let geometry = ImageGeometry::new(image);
    if geometry.is_fov_known() {
        say(&format!("field       {} mm", sizes(&image.fov_mm)))?;
        say(&format!("voxel size  {} mm", sizes(&voxel_mm(&geometry))))?;
    }
    match group.iter().filter(|image| image.placement.is_known()).count() {
        0 => say("position    not in the file")?,
        placed => {
            let first = group.iter().find(|image| image.placement.is_known()).unwrap_or(image).placement;
            let which = match (placed, group.len()) {
                (1, 1) => String::new(),
                (placed, all) if placed == all => " (first image)".into(),
                (placed, all) => format!(" ({placed} of {all} images have one; the first of them)"),
            };
            say(&format!("position    {} mm{which}", list(&first.position)))?;
            for (name, direction) in ["x", "y", "z"].iter().zip(first.directions()) {
                say(&format!("{name} axis      {}", list(&direction)))?;
            }
        }
    }
    let data: Vec<ValueSummary> = group.iter().map(|image| ValueSummary::of(&image.data)).collect();
    let largest = data.iter().map(|summary| summary.largest).fold(0.0, f32::max);
    let not_finite = data.iter().map(|summary| summary.not_finite).sum();
    ValueSummary { kind: data[0].kind, largest, not_finite }.print()
}

/// Returns the voxel size in mm in single precision, the precision of files.
fn voxel_mm(geometry: &ImageGeometry) -> [f32; 3] {
    [0, 1, 2].map(|axis| geometry.voxel_mm(axis) as f32)
}

/// Returns the JSON keys of a file of images.
pub fn images_json(images: &[Image]) -> Value {
    json!({ "contents": "images", "images": images.iter().map(image_json).collect::<Vec<_>>() })
}

fn image_json(image: &Image) -> Value {
    let geometry = ImageGeometry::new(image);
    let (index, placement) = (image.index, image.placement);
    let known = |value: [f32; 3], is_known: bool| is_known.then_some(value);
    let is_placed = placement.is_known();
    let mut object = json!({
        "voxels": image.dims,
        "channels": image.channels,
        "encoding": index.encoding,
        "slice": index.slice,
        "repetition": index.repetition,
        "contrast": index.contrast,
        "phase": index.phase,
        "set": index.set,
        "fov_mm": known(image.fov_mm, geometry.is_fov_known()),
        "voxel_mm": known(voxel_mm(&geometry), geometry.is_fov_known()),
        "position_mm": known(placement.position, is_placed),
        "read_dir": known(placement.read_dir, is_placed),
        "phase_dir": known(placement.phase_dir, is_placed),
        "slice_dir": known(placement.slice_dir, is_placed),
        "repetition_time_ms": placement.repetition_time_ms,
    });
    ValueSummary::of(&image.data).add_to(&mut object);
    object
}
