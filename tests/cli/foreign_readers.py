"""Reads the files of the test tests/cli/foreign_readers.rs by readers that share no code with recon.

reference.bin has the voxels [nx, ny, nz, channels, images], x fastest, as pairs of float32. The arguments are the
sizes. Prints one line per file.
"""

import sys

import h5py
import nibabel
import numpy as np
import scipy.io

sizes = [int(n) for n in sys.argv[1:]]
reference = np.fromfile("reference.bin", np.complex64).reshape(sizes, order="F")


def check(name, found, expected):
    found = np.asarray(found)
    assert found.shape == expected.shape, f"{name}: {found.shape}, not {expected.shape}"
    assert np.array_equal(found, expected), f"{name}: the values differ by {np.abs(found - expected).max()}"
    print("read", name)


data = h5py.File("image.h5")["dataset/image_0/data"][:]
check("image.h5", (data["real"] + 1j * data["imag"]).T, reference)

array = np.load("image.npy")
assert array.dtype == np.complex64 and array.flags.c_contiguous
check("image.npy", array.T, reference)
check("one.npy", np.load("one.npy").T, reference[..., 0])
real = np.load("real.npy")
assert real.dtype == np.float32, real.dtype
check("real.npy", real.T, reference[:, :, :, 0, 0].real)

mat = scipy.io.loadmat("image.mat")
assert mat["image"].dtype == np.complex64, mat["image"].dtype
check("image.mat", mat["image"], reference)
assert mat["repetition"].tolist() == [[0, 1]], mat["repetition"]
assert np.allclose(mat["voxel_size"].T, [2.0, 3.0, 4.0])
real = scipy.io.loadmat("real.mat")["image"]
assert real.dtype == np.float32, real.dtype
check("real.mat", real, reference[:, :, :, 0, 0].real)

for name in ["image.nii", "image.nii.gz"]:
    nifti = nibabel.load(name)
    # Repetitions are dimension 4, channels dimension 5, and numbers are magnitudes.
    expected = np.abs(reference.transpose(0, 1, 2, 4, 3))
    found = np.asarray(nifti.dataobj)
    assert np.allclose(found, expected, rtol=1e-6), name
    check(name, nifti.header.get_zooms()[:3], np.array([2, 3, 4], np.float32))
    for image in range(sizes[4]):
        assert np.allclose(mat["affine"][:, :, image], nifti.affine, atol=1e-4), (mat["affine"], nifti.affine)
