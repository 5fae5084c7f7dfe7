//! In-vivo data of a brain, if they are on this machine.

use crate::io::read_npy;
use crate::io::tests::test_data;
use crate::{inverse_fft, only_image, with_lock, TempDir};
use num_complex::Complex;

#[test]
fn brain_cartesian_is_the_inverse_fft() {
    let Some(path) = test_data("brain_8ch_cartesian.h5") else { return };
    let dir = TempDir::new();
    // One line of this scan is zero.
    let out = dir.run(&format!("grid {} -o image.h5 --combine none", path.display()));
    assert_eq!((out.status, out.stderr.matches('\n').count()), (Some(0), 1), "{out:?}");
    assert!(out.stderr.contains("1 of the 180 acquisitions of an image are zero"), "{out:?}");
    let image = only_image(&dir.path("image.h5"));
    assert_eq!((image.dims, image.channels), ([230, 180, 1], 8));
    let scan = with_lock(|| crate::io::tests::read_dataset(&path)).unwrap().scans.remove(0);
    let (mut error, mut norm) = (0.0, 0.0);
    for coil in 0..8 {
        let mut kspace = vec![Complex::default(); 230 * 180];
        for m in 0..scan.samples() {
            let place =
                |axis: usize, n: usize| (scan.coordinates[axis][m] * n as f32).round() as isize + n as isize / 2;
            kspace[(place(1, 180) * 230 + place(0, 230)) as usize] = scan.data[coil * scan.samples() + m];
        }
        for (z, e) in image.channel(coil).iter().zip(inverse_fft(&kspace, [230, 180])) {
            error += (Complex::new(z.re as f64, z.im as f64) - e).norm_sqr();
            norm += e.norm_sqr();
        }
    }
    let error = (error / norm).sqrt();
    assert!(error < 1e-4, "{error}");
}

#[test]
fn brain_radial_undersampled() {
    let (Some(scan), Some(truth)) = (test_data("brain_8ch_radial96.h5"), test_data("brain_rss_230x180.npy")) else {
        return;
    };
    // The array is indexed [x, y]: its fastest axis is y.
    assert_eq!(read_npy(&truth).unwrap().dims, [180, 230]);
    let dir = TempDir::new();
    // Errors inside the head. BART's pics has 5.8 % with every second spoke and 10.9 % with every fourth one. Gridding
    // has 4.7 % and 11.5 %.
    for (every, gridding, cg) in [(1, 2.0, 3.0), (2, 5.0, 4.7), (4, 12.0, 10.9)] {
        // Backprojection is similar to gridding with ramp weights.
        for (command, bound) in [("grid", gridding), ("fbp", 1.5 * gridding), ("cg", cg)] {
            let out = dir.run(&format!("{command} {} --every {every} -o image.h5", scan.display()));
            // 24 spokes leave gaps in the centre of k-space: gridding warns.
            let is_warned = (command, every) == ("grid", 4);
            assert_eq!((out.status, out.stderr.contains("the image is aliased")), (Some(0), is_warned), "{out:?}");
            let truth = truth.display();
            let error = dir.error(&format!("image.h5 {truth} --transpose --magnitude --scale best --mask 0.1"));
            println!("{command}, every {every}: {error:.2} %");
            assert!(error < bound, "{command}, every {every}: {error}");
        }
    }
}
