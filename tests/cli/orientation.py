"""Positions in the patient: 48 poses of an asymmetric phantom, as raw data and as images.

`orientation.py write FOLDER` writes a raw file for each pose and prints their names. `orientation.py check FOLDER`
reads the images that `recon grid` made of them (NAME.nii, NAME_image.h5, NAME_dicom/*.dcm), compares the positions of
the phantom's points with the truth, prints a table, and fails if a distance is 0.1 mm or more. DICOM files are read by
`pydicom`, and also converted by `dcm2niix` if it is installed.

The phantom is three Gaussians of different brightness. Their Fourier transform is known, and the centre of a sampled
Gaussian follows exactly from the logarithms of three neighbouring voxels. Files are written and read by the packages
`ismrmrd`, `nibabel` and `pydicom`, which share no code with recon.
"""

import shutil
import subprocess
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path

import h5py
import ismrmrd
import ismrmrd.file
import nibabel
import numpy as np
import pydicom

# Standard deviation of the points in mm, and the largest distance allowed.
SIGMA = 5.0
LIMIT_MM = 0.1
AMPLITUDES = [1.0, 0.8, 0.6]
# Positions of the points in the patient in mm (to the left, back and head), except in single slices.
POINTS = np.array([[22.3, -9.1, 14.7], [-17.6, 20.2, 9.4], [5.2, -24.8, -19.9]]) + [12.0, -20.0, 35.0]
# Positions of the points of a single slice along read and phase, in mm from its centre.
POINTS_OF_SLICE = np.array([[20.3, -11.2], [-16.7, 8.9], [4.1, 27.6]])
# The centre of the volume: not the centre of the points.
CENTRE = np.array([12.9, -18.7, 36.3])
SLICES, STEP, THICKNESS = 16, 6.0, 5.0


def turned(degrees, axis):
    """Returns the matrix of a rotation about x, y or z."""
    angle, (i, j) = np.radians(degrees), [(1, 2), (2, 0), (0, 1)]["xyz".index(axis)]
    matrix = np.eye(3)
    matrix[i, i] = matrix[j, j] = np.cos(angle)
    matrix[j, i], matrix[i, j] = np.sin(angle), -np.sin(angle)
    return matrix


# The directions of read, phase and slice are the columns.
AXIAL = np.eye(3)
CORONAL = np.array([[1, 0, 0], [0, 0, -1], [0, -1, 0]], float).T
SAGITTAL = np.array([[0, 1, 0], [0, 0, -1], [1, 0, 0]], float).T
DOUBLE_OBLIQUE = turned(33, "x") @ turned(-21, "y") @ turned(12, "z")
ORIENTATIONS = {
    "axial": AXIAL,
    "coronal": CORONAL,
    "sagittal": SAGITTAL,
    "oblique": turned(27, "x"),
    "double oblique": DOUBLE_OBLIQUE,
    "read and phase swapped": DOUBLE_OBLIQUE @ np.array([[0, 1, 0], [-1, 0, 0], [0, 0, 1]], float),
    "read and phase reversed": DOUBLE_OBLIQUE @ np.diag([-1.0, -1.0, 1.0]),
    "left-handed": DOUBLE_OBLIQUE @ np.diag([1.0, 1.0, -1.0]),
}
# Positions of the slices 0, 1, ... along the slice direction.
INTERLEAVED = list(range(0, SLICES, 2)) + list(range(1, SLICES, 2))
REVERSED = list(range(SLICES))[::-1]


@dataclass(frozen=True)
class Pose:
    """A pose: a scan of the phantom."""

    name: str
    kind: str
    directions: np.ndarray
    # Encoded and reconstructed matrix and field of view.
    encoded: tuple = (112, 40, 1)
    encoded_fov: tuple = (224.0, 112.0, THICKNESS)
    recon: tuple = (56, 40, 1)
    recon_fov: tuple = (112.0, 112.0, THICKNESS)
    # Positions of the slices in steps; empty for a single slice or a volume.
    order: list = field(default_factory=list)
    repetitions: int = 1
    patient_position: str = "HFS"
    table: tuple = (0.0, 0.0, 0.0)


def poses():
    """Returns the 48 poses."""
    all_poses = []
    odd = dict(encoded=(114, 41, 1), recon=(57, 41, 1), encoded_fov=(228.0, 114.8, THICKNESS),
               recon_fov=(114.0, 114.8, THICKNESS))
    for number, (name, directions) in enumerate(ORIENTATIONS.items()):
        all_poses.append(Pose(name, "one slice", directions, **(odd if number % 2 else {})))
        all_poses.append(Pose(name, "interleaved slices", directions, order=INTERLEAVED, **(odd if number % 3 else {})))
        all_poses.append(Pose(name, "slices in reversed order", directions, order=REVERSED))
        volume = dict(encoded=(80, 40, 36), encoded_fov=(224.0, 112.0, 144.0), recon=(40, 40, 28),
                      recon_fov=(112.0, 112.0, 112.0))
        all_poses.append(Pose(name, "volume, oversampled along z", directions, **volume))
    sizes = [
        ((80, 40, 29), (40, 40, 29)),
        ((80, 41, 37), (40, 41, 29)),
        ((82, 39, 36), (41, 39, 29)),
        ((40, 40, 28), (40, 40, 28)),
    ]
    for number, (encoded, recon) in enumerate(sizes):
        voxel = np.array([2.8, 3.0, 4.0])
        all_poses.append(Pose(f"matrix {number}", "volume, odd and even matrices", DOUBLE_OBLIQUE, encoded, tuple(
            encoded * voxel), recon, tuple(recon * voxel)))
    for position in ["HFS", "HFP", "HFDR", "HFDL", "FFS", "FFP", "FFDR", "FFDL"]:
        all_poses.append(Pose(position, "patient position", DOUBLE_OBLIQUE, order=INTERLEAVED, patient_position=position))
    table = Pose("table", "table position", DOUBLE_OBLIQUE, order=INTERLEAVED, table=(0.0, 0.0, -1234.5))
    all_poses += [table, replace(table, name="table of a slice", order=[])]
    repeated = Pose("repeated", "repetitions", turned(27, "x"), order=INTERLEAVED, repetitions=3)
    all_poses += [repeated, replace(repeated, name="repeated slice", order=[])]
    return all_poses


def file_name(pose):
    return f"{pose.kind} {pose.name}".replace(",", "").replace(" ", "_")


def truth(pose):
    """Returns the positions of the points in the patient."""
    if pose.encoded[2] == 1 and not pose.order:
        return CENTRE + POINTS_OF_SLICE @ pose.directions[:, :2].T
    return POINTS


def slice_positions(pose):
    """Returns the position of each slice, by its number."""
    offsets = [(place - (SLICES - 1) / 2) * STEP for place in pose.order] or [0.0]
    return [CENTRE + offset * pose.directions[:, 2] for offset in offsets]


def k_space(pose, position):
    """Returns the samples [z, y, x] of a slice or volume, whose origin of phase is `position`."""
    axes = [(np.arange(n) - n // 2) / fov for n, fov in zip(pose.encoded, pose.encoded_fov)]
    k = np.meshgrid(*axes[::-1], indexing="ij")[::-1]
    samples = np.zeros(pose.encoded[::-1], complex)
    ndim = 2 if pose.encoded[2] == 1 else 3
    for amplitude, point in zip(AMPLITUDES, truth(pose)):
        offset = (point - position) @ pose.directions
        phase = sum(k[i] * offset[i] for i in range(ndim))
        square = sum(k[i] ** 2 for i in range(ndim))
        if ndim == 2:
            amplitude = amplitude * np.exp(-offset[2] ** 2 / (2 * SIGMA**2))
        samples += amplitude * np.exp(-2 * np.pi**2 * SIGMA**2 * square - 2j * np.pi * phase)
    return samples.astype(np.complex64)


def header(pose):
    """Returns the XML header."""
    def space(name, matrix, fov):
        sizes = "".join(f"<{a}>{n}</{a}>" for a, n in zip("xyz", matrix))
        lengths = "".join(f"<{a}>{mm}</{a}>" for a, mm in zip("xyz", fov))
        return f"<{name}><matrixSize>{sizes}</matrixSize><fieldOfView_mm>{lengths}</fieldOfView_mm></{name}>"

    def limits(name, count):
        values = f"<minimum>0</minimum><maximum>{count - 1}</maximum><center>{count // 2}</center>"
        return f"<{name}>{values}</{name}>"

    return (
        '<?xml version="1.0"?><ismrmrdHeader xmlns="http://www.ismrm.org/ISMRMRD">'
        f"<measurementInformation><patientPosition>{pose.patient_position}</patientPosition></measurementInformation>"
        "<experimentalConditions><H1resonanceFrequency_Hz>123000000</H1resonanceFrequency_Hz></experimentalConditions>"
        f"<encoding>{space('encodedSpace', pose.encoded, pose.encoded_fov)}"
        f"{space('reconSpace', pose.recon, pose.recon_fov)}<encodingLimits>"
        f"{limits('kspace_encoding_step_1', pose.encoded[1])}{limits('kspace_encoding_step_2', pose.encoded[2])}"
        "</encodingLimits><trajectory>cartesian</trajectory></encoding></ismrmrdHeader>"
    )


def acquisitions(pose):
    """Returns the lines in the order in which a scanner measures them: slice by slice, in each repetition."""
    positions = slice_positions(pose)
    samples = [k_space(pose, position) for position in positions]
    lines = []
    for repetition in range(pose.repetitions):
        for number, position in enumerate(positions):
            for z in range(pose.encoded[2]):
                for y in range(pose.encoded[1]):
                    line = ismrmrd.Acquisition.from_array((1 + repetition) * samples[number][z, y][np.newaxis])
                    line.center_sample = pose.encoded[0] // 2
                    line.idx.kspace_encode_step_1, line.idx.kspace_encode_step_2 = y, z
                    line.idx.slice, line.idx.repetition = number, repetition
                    line.position[:] = position
                    line.read_dir[:], line.phase_dir[:], line.slice_dir[:] = pose.directions.T
                    line.patient_table_position[:] = pose.table
                    lines.append(line)
    return lines


def write(folder):
    for pose in poses():
        path = folder / f"{file_name(pose)}.h5"
        with ismrmrd.file.File(str(path), "w") as file:
            group = file["dataset"]
            group.header = ismrmrd.xsd.CreateFromDocument(header(pose))
            group.acquisitions = acquisitions(pose)
        print(file_name(pose))


def peaks(values, position_of):
    """Returns the positions of the three brightest Gaussians of an array [x, y, z], the brightest first.

    `position_of` maps indices, which need not be whole numbers, to millimetres.
    """
    zero = np.zeros(3)
    voxel = [np.linalg.norm(position_of(zero + axis) - position_of(zero)) for axis in np.eye(3)]
    left, found = values.copy(), []
    for _ in AMPLITUDES:
        peak = np.array(np.unravel_index(np.argmax(left), values.shape))
        index = peak.astype(float)
        for axis in (a for a in range(3) if values.shape[a] > 1):
            step = np.eye(3, dtype=int)[axis]
            below, middle, above = (np.log(float(values[tuple(peak + i * step)])) for i in (-1, 0, 1))
            index[axis] += (below - above) / (2 * (below - 2 * middle + above))
        found.append(position_of(index))
        # The points are further apart than this box reaches, and outside it a point is darker than the next one.
        reach = [int(14.0 / size) for size in voxel]
        left[tuple(slice(max(0, at - n), at + n + 1) for at, n in zip(peak, reach))] = 0
    return np.array(found)


def distance(found, pose):
    return np.linalg.norm(found - truth(pose), axis=1).max()


def check_brightness(values, first, repetition, name):
    ratio = values.max() / first.max()
    assert abs(ratio - (1 + repetition)) < 1e-3, f"{name}: repetition {repetition} is {ratio} times the first one"


def check_nifti(path, pose):
    """Returns the largest distance in a NIfTI file, by its sform and by its qform."""
    image = nibabel.load(path)
    assert image.header.get_xyzt_units() == ("mm", "unknown") and image.header["pixdim"][4] == 0, path.name
    assert image.shape == expected_shape(pose), f"{path.name}: {image.shape}"
    return distance_in_nifti(image, path.name, pose)


def distance_in_nifti(image, name, pose):
    data = image.get_fdata().reshape(*image.shape[:3], pose.repetitions)
    worst = 0.0
    for transform, code in (image.get_sform(coded=True), image.get_qform(coded=True)):
        assert code == 1, f"{name}: the code is {code}"
        # NIfTI has x to the right and y to the front.
        to_patient = np.diag([-1.0, -1.0, 1.0]) @ transform[:3]
        for repetition in range(pose.repetitions):
            values = data[..., repetition]
            check_brightness(values, data[..., 0], repetition, name)
            worst = max(worst, distance(peaks(values, lambda index: to_patient @ [*index, 1.0]), pose))
    return worst


def check_dicom(folder, pose):
    """Returns the largest distance in DICOM files, by the position of the first voxel of each slice."""
    files = [pydicom.dcmread(path) for path in folder.glob("*.dcm")]
    assert len(files) == pose.repetitions * (len(pose.order) or pose.recon[2]), f"{folder.name}: {len(files)} files"
    assert all(file.PatientPosition == pose.patient_position for file in files), folder.name
    assert len({file.SeriesInstanceUID for file in files}) == 1 and len({file.SOPInstanceUID for file in files}) == len(
        files), folder.name
    worst, first = 0.0, None
    for repetition in range(pose.repetitions):
        slices = [file for file in files if file.get("TemporalPositionIdentifier", 1) == repetition + 1]
        slices.sort(key=lambda file: file.InstanceNumber)
        positions = np.array([file.ImagePositionPatient for file in slices], float)
        values = np.stack([file.pixel_array * float(file.RescaleSlope) for file in slices]).transpose(2, 1, 0)
        assert values.shape == expected_shape(pose)[:3], folder.name
        row, column = np.array(slices[0].ImageOrientationPatient, float).reshape(2, 3)
        spacing = np.array(slices[0].PixelSpacing, float)

        def position_of(index):
            # Between slices, the positions of both neighbours are interpolated.
            lower = min(int(index[2]), max(0, len(slices) - 2))
            one_slice = np.cross(row, column) * float(slices[0].SliceThickness)
            step = positions[lower + 1] - positions[lower] if len(slices) > 1 else one_slice
            in_plane = index[0] * spacing[1] * row + index[1] * spacing[0] * column
            return positions[lower] + (index[2] - lower) * step + in_plane

        first = values if first is None else first
        check_brightness(values, first, repetition, folder.name)
        worst = max(worst, distance(peaks(values, position_of), pose))
    return worst


def check_converted(folder, nifti, pose):
    """Returns the largest distance in the NIfTI file that dcm2niix makes of DICOM files.

    Compares it with the NIfTI file of recon: the same affine, and values within half a step of the integers.
    """
    command = ["dcm2niix", "-b", "n", "-z", "n", "-f", "converted", "-o", str(folder), str(folder)]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
    paths = list(folder.glob("*.nii"))
    assert len(paths) == 1, f"{folder.name}: {paths}"
    image = nibabel.load(paths[0])
    # dcm2niix exchanges the axes of volumes.
    assert sorted(image.shape) == sorted(expected_shape(pose)), f"{folder.name}: {image.shape}"
    found, expected = (nibabel.as_closest_canonical(i) for i in (image, nibabel.load(nifti)))
    assert np.abs(found.affine - expected.affine).max() < 0.01, f"{folder.name}: {found.affine} {expected.affine}"
    error = np.abs(found.get_fdata() - expected.get_fdata()).max()
    assert error < 0.51 * image.dataobj.slope, f"{folder.name}: the error is {error}"
    return distance_in_nifti(image, folder.name, pose)


def expected_shape(pose):
    slices = len(pose.order) or pose.recon[2]
    return (*pose.recon[:2], slices) + ((pose.repetitions,) if pose.repetitions > 1 else ())


def check_mrd(path, pose):
    """Returns the largest distance in the images of an ISMRMRD file, by the header of each image."""
    dataset = ismrmrd.Dataset(str(path), "dataset", create_if_needed=False)
    images = [dataset.read_image("image_0", i) for i in range(dataset.number_of_images("image_0"))]
    dataset.close()
    assert len(images) == pose.repetitions * max(1, len(pose.order)), f"{path.name}: {len(images)} images"
    worst, first = 0.0, None
    for repetition in range(pose.repetitions):
        of_repetition = [image for image in images if image.repetition == repetition]
        of_repetition.sort(key=lambda image: np.dot(image.position, image.slice_dir))
        assert all(tuple(image.getHead().matrix_size) == pose.recon for image in of_repetition), path.name
        values = np.concatenate([np.abs(image.data[0]) for image in of_repetition]).transpose(2, 1, 0)

        def position_of(index):
            # Between slices, the positions of both neighbours are interpolated.
            lower = min(int(index[2]), len(of_repetition) - 2) if pose.order else 0
            image = of_repetition[lower]
            voxel = np.array(image.field_of_view) / np.array(pose.recon)
            middle = np.array(pose.recon) // 2
            offset = (np.array(index) - middle) * voxel
            position = np.array(image.position, float)
            if pose.order:
                offset[2] = 0
                step = np.array(of_repetition[lower + 1].position, float) - position
                position = position + (index[2] - lower) * step
            directions = np.array([image.read_dir, image.phase_dir, image.slice_dir], float)
            return position + offset @ directions

        first = values if first is None else first
        check_brightness(values, first, repetition, path.name)
        worst = max(worst, distance(peaks(values, position_of), pose))
    return worst


def check(folder):
    rows, positions = {}, set()
    has_converter = shutil.which("dcm2niix") is not None
    if not has_converter:
        print("skipped: dcm2niix of DICOM files (Debian: dcm2niix)", file=sys.stderr)
    for pose in poses():
        name = file_name(pose)
        nifti, mrd, dicom = folder / f"{name}.nii", folder / f"{name}_image.h5", folder / f"{name}_dicom"
        distances = {nifti: check_nifti(nifti, pose), mrd: check_mrd(mrd, pose), dicom: check_dicom(dicom, pose)}
        if has_converter:
            distances[f"{dicom}, by dcm2niix"] = check_converted(dicom, nifti, pose)
        rows.setdefault(pose.kind, []).append(list(distances.values()))
        for source, value in distances.items():
            assert value < LIMIT_MM, f"{source}: a point is {value:.3f} mm from its position"
        if pose.kind == "patient position":
            with h5py.File(mrd) as file:
                positions.add((nifti.read_bytes(), file["dataset/image_0/data"][()].tobytes()))
    assert len(positions) == 1, "the patient position of the header changes the image"
    assert sum(map(len, rows.values())) == 48
    print("| kind of pose | poses | NIfTI, mm | ISMRMRD image, mm | DICOM, mm | by dcm2niix, mm |")
    print("| --- | --- | --- | --- | --- | --- |")
    for kind, distances in rows.items():
        worst = [f"{value:.4f}" for value in np.max(distances, axis=0)] + ([] if has_converter else ["not run"])
        print(f"| {kind} | {len(distances)} | {' | '.join(worst)} |")


if __name__ == "__main__":
    {"write": write, "check": check}[sys.argv[1]](Path(sys.argv[2]))
