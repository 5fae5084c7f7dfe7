//! The command `info`: counts, noise scans, images, and JSON compared with other readers.

use crate::io::{Image, Placement};
use crate::{noise, scan, space, with_lock, write_dataset, TempDir};
use num_complex::Complex;
use recon::scan::EncodingLimits;
use recon::trajectory::SpokeOrder;
use recon::Trajectory;
use serde_json::{json, Value};
use std::process::{Command, Stdio};

fn write_images(dir: &TempDir, name: &str, images: &[Image]) {
    with_lock(|| crate::io::tests::write_images(dir.path(name), images)).unwrap();
}

/// Returns the object that `info --json` prints.
fn info_json(dir: &TempDir, file: &str) -> Value {
    let text = dir.ok(&format!("info {file} --json"));
    assert_eq!(text.matches('\n').count(), 1, "{text}");
    let object: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(object["file"], file);
    object
}

/// Writes a scan of slices 0, 2, 5 with two repetitions each, for which the header announces 8 slices and 2
/// repetitions. With a model of the scanner, the noise scan is in a different file.
fn write_slices(dir: &TempDir, name: &str, model: Option<&str>) {
    let trajectory = Trajectory::radial2d(12, 16, SpokeOrder::Linear).unwrap();
    let size = space([8, 8, 1], [80.0, 80.0, 4.0]);
    let mut dataset = scan(&trajectory, size, size, 2, noise(2 * 12 * 16, 1));
    let limits = |maximum| Some(EncodingLimits { minimum: 0, maximum, center: 0 });
    (dataset.header.encodings[0].slices, dataset.header.encodings[0].repetitions) = (limits(7), limits(1));
    dataset.header.vendor = Some("ACME".into());
    dataset.header.model = model.map(str::to_owned);
    dataset.header.dependencies = model.map(|_| ("Noise".into(), "66058_1".into())).into_iter().collect();
    let first = dataset.scans.remove(0);
    for (slice, repetition) in [(0, 0), (0, 1), (2, 0), (2, 1), (5, 0), (5, 1)] {
        let mut one = first.clone();
        (one.index.slice, one.index.repetition) = (slice, repetition);
        one.placement = Placement {
            position: [0.0, 1.5, 4.0 * f32::from(slice)],
            read_dir: [1.0, 0.0, 0.0],
            phase_dir: [0.0, 1.0, 0.0],
            slice_dir: [0.0, 0.0, 1.0],
            ..Default::default()
        };
        dataset.scans.push(one);
    }
    write_dataset(dir.path(name), &dataset);
}

#[test]
fn present_numbers_are_counted_and_compared_with_the_header() {
    let dir = TempDir::new();
    write_slices(&dir, "slices.h5", Some("A"));
    let text = dir.ok("info slices.h5");
    for line in [
        "ISMRMRD raw data of 6 images",
        "  slices                3 (0, 2, 5); the header announces 8\n",
        "  repetitions           2 (0 to 1)\n",
        "  contrasts             1 (0)\n",
        "  position              0, 1.5, 0 mm (first image)\n",
        "  z axis                0, 0, 1\n",
        "scanner                 ACME A\n",
        "separate noise scan     measurement 66058_1, not in this file\n",
    ] {
        assert!(text.contains(line), "{line:?}: {text}");
    }
    let object = info_json(&dir, "slices.h5");
    let encoding = &object["encodings"][0];
    assert_eq!(encoding["slices"], json!({ "count": 3, "numbers": [0, 2, 5], "announced": 8 }));
    assert_eq!(encoding["repetitions"]["announced"], 2);
    assert_eq!(encoding["contrasts"]["announced"], Value::Null);
    assert_eq!((&object["images"], &encoding["images_with_position"]), (&json!(6), &json!(6)));
    assert_eq!((&object["vendor"], &object["model"]), (&json!("ACME"), &json!("A")));
}

#[test]
fn noise_scans_are_named() {
    let dir = TempDir::new();
    dir.ok("simulate --matrix 16,16 --coils 3 --snr 9 --noise-samples 4000 --dwell 2.5 -o noisy.h5");
    let text = dir.ok("info noisy.h5");
    let line = "noise scan              4000 samples of 3 coils, 2.5 microseconds each (bandwidth 400 kHz)\n";
    assert!(text.contains(line) && text.contains("used for whitening"), "{text}");
    let object = info_json(&dir, "noisy.h5");
    let expected = json!([{ "coils": 3, "samples": 4000, "sample_time_us": 2.5, "bandwidth_hz": 400e3 }]);
    assert_eq!(object["noise"], expected);
    // Without a sample time.
    dir.ok("simulate --matrix 16,16 --coils 3 --snr 9 --noise-samples 4000 -o untimed.h5");
    let object = info_json(&dir, "untimed.h5");
    assert_eq!(
        (&object["noise"][0]["sample_time_us"], &object["noise"][0]["bandwidth_hz"]),
        (&Value::Null, &Value::Null)
    );
    assert_eq!(object["encodings"][0]["sample_times_us"], json!([null]));
}

#[test]
fn images_are_described() {
    let dir = TempDir::new();
    let placement = Placement {
        position: [1.0, 2.0, 3.0],
        read_dir: [0.0, 1.0, 0.0],
        phase_dir: [0.0, 0.0, 1.0],
        slice_dir: [1.0, 0.0, 0.0],
        ..Default::default()
    };
    let complex = Image { placement, fov_mm: [80.0, 60.0, 5.0], ..Image::new([8, 6, 1], 1, noise(48, 1)).unwrap() };
    let mut real = complex.clone();
    real.data.iter_mut().for_each(|z| z.im = 0.0);
    real.index.slice = 1;
    let mut magnitude = Image::new([4, 4, 1], 2, vec![Complex::new(2.0, 0.0); 32]).unwrap();
    magnitude.index.slice = 2;
    write_images(&dir, "images.h5", &[complex, real, magnitude]);
    let out = dir.run("info images.h5");
    for line in [
        "3 images\n",
        "values      complex\n",
        "values      real, some negative\n",
        "values      real, none negative\n",
        "voxel size  10 x 10 x 5 mm\n",
        "position    1, 2, 3 mm\n",
        "x axis      0, 1, 0\n",
        "position    not in the file\n",
        "channels    2 (coils or frames)\n",
    ] {
        assert!(out.stdout.contains(line), "{line:?}: {out:?}");
    }
    let images = serde_json::from_str::<Value>(&dir.run("info images.h5 --json").stdout).unwrap()["images"].clone();
    assert_eq!((&images[0]["values"], &images[1]["values"], &images[2]["values"]), {
        (&json!("complex"), &json!("real"), &json!("magnitude"))
    });
    assert_eq!((&images[1]["slice"], &images[2]["position_mm"]), (&json!(1), &Value::Null));
    dir.fails(2, "info --json", &["FILE"]);
}

/// Writes a NumPy array of f64.
fn write_npy(dir: &TempDir, name: &str, shape: &str, values: &[f64]) {
    let mut header = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}");
    while (header.len() + 11) % 64 != 0 {
        header.push(' ');
    }
    header.push('\n');
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(values.iter().flat_map(|v| v.to_le_bytes()));
    std::fs::write(dir.path(name), bytes).unwrap();
}

#[test]
fn numbers_that_are_not_finite_leave_valid_json() {
    let dir = TempDir::new();
    write_npy(&dir, "bad.npy", "(2, 3)", &[1.0, f64::NAN, f64::INFINITY, -4.0, f64::NEG_INFINITY, 0.0]);
    let image = info_json(&dir, "bad.npy")["images"][0].clone();
    assert_eq!(
        (&image["largest"], &image["not_finite"], &image["voxels"]),
        (&json!(4.0), &json!(3), &json!([3, 2, 1]))
    );
    let text = dir.ok("info bad.npy");
    assert!(text.contains("not finite  3 numbers\n") && text.contains("largest     4\n"), "{text}");
    // A header whose position and field of view are not numbers.
    write_slices(&dir, "slices.h5", None);
    let mut image = Image::new([2, 2, 1], 1, noise(4, 1)).unwrap();
    image.placement.position = [f32::NAN; 3];
    image.fov_mm = [f32::INFINITY; 3];
    write_images(&dir, "lost.h5", &[image]);
    let image = info_json(&dir, "lost.h5")["images"][0].clone();
    assert_eq!((&image["position_mm"], &image["fov_mm"]), (&Value::Null, &Value::Null));
}

/// Other readers find the same in raw data, images of ISMRMRD, NIfTI, BART and NumPy.
const CHECK: &str = r#"
import json, sys
import h5py, nibabel, numpy as np

def info(name):
    return json.load(open(name + ".json"))

# Raw data: counters, sizes and noise by h5py.
for name in ["slices.h5", "noisy.h5"]:
    found, rows = info(name), h5py.File(name)["dataset/data"][:]
    heads = rows["head"]
    is_noise = heads["flags"] & (1 << 18) != 0
    assert sum(use["count"] for use in found["acquisitions"]) == len(rows)
    assert sum(use["count"] for use in found["acquisitions"] if use["kind"] == "noise") == is_noise.sum()
    assert sum(noise["samples"] for noise in found["noise"]) == heads["number_of_samples"][is_noise].sum()
    heads = heads[~is_noise]
    encoding, = found["encodings"]
    for key in ["slice", "repetition", "contrast", "phase", "set"]:
        assert encoding[key + "s"]["numbers"] == sorted(set(heads["idx"][key].tolist())), key
        assert encoding[key + "s"]["count"] == len(set(heads["idx"][key].tolist())), key
    assert encoding["coils"] == [heads["active_channels"].min(), heads["active_channels"].max()]
    assert encoding["samples_per_shot"] == [heads["number_of_samples"].min(), heads["number_of_samples"].max()]
    assert encoding["shots_per_image"][0] * encoding["images"] == len(heads)
    k = np.concatenate([traj.reshape(-1, 2) for traj in rows["traj"][~is_noise]])
    assert np.allclose(encoding["trajectory_range"], np.stack([k.min(0), k.max(0)]).T, atol=1e-6)

# Images: sizes, affine transform, values.
found, nifti = info("image.nii")["images"], nibabel.load("image.nii")
image, = found
assert tuple(image["voxels"]) == nifti.shape[:3] and image["channels"] == nifti.shape[3], (image, nifti.shape)
assert np.allclose(image["voxel_mm"], nifti.header.get_zooms()[:3], rtol=1e-6)
middle = nifti.affine @ np.array([n // 2 for n in nifti.shape[:3]] + [1])
assert np.allclose(np.array(image["position_mm"]) * [-1, -1, 1], middle[:3], atol=1e-3)
for axis, key in enumerate(["read_dir", "phase_dir", "slice_dir"]):
    column = np.array(image[key]) * [-1, -1, 1] * image["voxel_mm"][axis]
    assert np.allclose(column, nifti.affine[:3, axis], atol=1e-4), key
assert np.isclose(image["largest"], np.abs(nifti.get_fdata()).max(), rtol=1e-6)
assert np.isclose(image["repetition_time_ms"] or 0, nifti.header.get_zooms()[3] * 1000)

group = h5py.File("image.h5")["dataset"]
headers = np.concatenate([np.atleast_1d(group[name]["header"][:]) for name in group if name.startswith("image_")])
found = info("image.h5")["images"]
assert len(found) == len(headers)
for image, header in zip(found, headers):
    assert image["voxels"] == header["matrix_size"].tolist() and image["channels"] == header["channels"]
    assert np.allclose(image["position_mm"], header["position"], atol=1e-4)
    assert (image["slice"], image["repetition"]) == (header["slice"], header["repetition"])

array = np.load("array.npy")
image, = info("array.npy")["images"]
assert image["voxels"] == list(array.shape[::-1]) and image["values"] == "complex"
assert np.isclose(image["largest"], np.abs(array).max())
dims = [int(n) for n in open("image.hdr").read().split("\n")[1].split()]
found = info("image.cfl")
data = np.fromfile("image.cfl", np.complex64)
while dims[-1] == 1:
    dims.pop()
assert found["dimensions"] == dims and np.isclose(found["largest"], np.abs(data).max()) and found["contents"] == "array"
print("agreed")
"#;

fn python(dir: &TempDir, code: &str) -> Option<String> {
    let mut python = Command::new(std::env::var_os("RECON_TEST_PYTHON").unwrap_or("python3".into()));
    python.args(["-c", code]).current_dir(&dir.0).stdout(Stdio::piped()).stderr(Stdio::piped());
    let out = with_lock(|| python.spawn()).ok()?.wait_with_output().unwrap();
    let text = String::from_utf8(out.stdout).unwrap();
    assert!(out.status.success() || text.is_empty(), "{}", String::from_utf8_lossy(&out.stderr));
    out.status.success().then_some(text).or_else(|| {
        let errors = String::from_utf8_lossy(&out.stderr).into_owned();
        assert!(errors.contains("ModuleNotFoundError"), "{errors}");
        None
    })
}

#[test]
fn json_agrees_with_other_readers() {
    let dir = TempDir::new();
    if python(&dir, "import h5py, nibabel, numpy; print()").is_none() {
        crate::common::say("skipped: JSON of info against h5py and nibabel (RECON_TEST_PYTHON)");
        return;
    }
    write_slices(&dir, "slices.h5", None);
    dir.ok("simulate --matrix 16,16 --coils 3 --snr 9 --noise-samples 4000 --dwell 2.5 -o noisy.h5");
    dir.ok("grid slices.h5 -o image.h5");
    dir.ok("grid slices.h5 --combine none -o image.cfl --slice 2");
    // Slices 0 and 2, 8 mm apart, in 2 repetitions.
    python(&dir, "import numpy as np; np.save('array.npy', np.arange(24).reshape(2, 3, 4) * (1 - 2j))").unwrap();
    with_lock(|| std::fs::copy(dir.path("slices.h5"), dir.path("even.h5"))).unwrap();
    python(
        &dir,
        "import h5py; f = h5py.File('even.h5', 'r+'); d = f['dataset/data'][:]\n\
        d['head']['position'][:, 2] = d['head']['idx']['slice'] // 2 * 7.5\nf['dataset/data'][:] = d",
    )
    .unwrap();
    dir.ok("grid even.h5 -o image.nii");
    for name in ["slices.h5", "noisy.h5", "image.h5", "image.nii", "array.npy", "image.cfl"] {
        std::fs::write(dir.path(&format!("{name}.json")), dir.ok(&format!("info {name} --json"))).unwrap();
    }
    assert_eq!(python(&dir, CHECK).unwrap(), "agreed\n");
}
