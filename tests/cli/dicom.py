"""DICOM files, by pydicom: reads the files of recon, and writes files for recon.

`dicom.py check FOLDER` compares the files image_*.dcm, which `recon grid` made of scan.h5, with the ISMRMRD images of
the same scan (image.h5) and with the header that tests/cli/dicom.rs wrote. `dicom.py write FOLDER` writes small files
of several formats, and prints one line of JSON for each: name and expected images, or the expected words of an error.
"""

import json
import sys
from pathlib import Path

import ismrmrd
import numpy as np
import pydicom
from pydicom.dataset import Dataset, FileDataset, FileMetaDataset
from pydicom.uid import (
    EnhancedMRImageStorage, ExplicitVRBigEndian, ExplicitVRLittleEndian, ImplicitVRLittleEndian, MRImageStorage,
    RLELossless, generate_uid,
)

LIMIT_MM = 0.01


def check_geometry(file, image):
    """Compares the position of the first voxel, directions and spacing with the header of an ISMRMRD image."""
    matrix = np.array(image.getHead().matrix_size)
    voxel = np.array(image.field_of_view) / matrix
    directions = np.array([image.read_dir, image.phase_dir, image.slice_dir], float)
    first = np.array(image.position) - (matrix // 2 * voxel) @ directions
    assert (file.Columns, file.Rows) == tuple(matrix[:2])
    assert np.abs(np.array(file.ImagePositionPatient, float) - first).max() < LIMIT_MM, file.ImagePositionPatient
    assert np.abs(np.array(file.ImageOrientationPatient, float) - directions[:2].ravel()).max() < 1e-6
    assert np.allclose([file.PixelSpacing[1], file.PixelSpacing[0], file.SliceThickness], voxel, atol=1e-5)
    assert abs(file.SliceLocation - np.dot(first, directions[2])) < LIMIT_MM


def check_values(file, image):
    """Compares magnitudes within half a step of the integers."""
    values = file.pixel_array * float(file.RescaleSlope) + float(file.RescaleIntercept)
    error = np.abs(values - np.abs(image.data[0, 0])).max()
    assert error < 0.501 * float(file.RescaleSlope), f"{file.filename}: error {error}"
    return file.pixel_array.max()


def images_of(path):
    dataset = ismrmrd.Dataset(str(path), "dataset", create_if_needed=False)
    images = [dataset.read_image("image_0", i) for i in range(dataset.number_of_images("image_0"))]
    dataset.close()
    return images


def check(folder):
    largest, uids, series, shared = 0, set(), {}, set()
    images = images_of(folder / "image.h5")
    assert len(images) == 12
    for image in images:
        name = f"image_contrast{image.contrast}_repetition{image.repetition}_slice{image.slice}.dcm"
        file = pydicom.dcmread(folder / name)
        check_geometry(file, image)
        largest = max(largest, check_values(file, image))
        assert (file.TemporalPositionIdentifier, file.NumberOfTemporalPositions) == (image.repetition + 1, 2)
        assert file.TemporalResolution == 250
        assert (file.EchoNumbers, file.EchoTime) == (image.contrast + 1, [5, 12.5][image.contrast])
        assert (file.RepetitionTime, file.ImagingFrequency) == (250, 123.2)
        assert abs(file.MagneticFieldStrength - 2.8935) < 1e-4
        assert (file.Manufacturer, file.ManufacturerModelName) == ("Vendor A", "Model 3T")
        assert (str(file.PatientName), file.PatientID, file.PatientPosition) == ("Müller^Jürgen", "4711", "FFP")
        assert abs(file.SpacingBetweenSlices - 6) < 1e-4 and file.PixelRepresentation == 0
        # The slices of the scan are in reversed order.
        assert file.InstanceNumber == 3 * image.repetition + (2 - image.slice) + 1
        uids.add(file.SOPInstanceUID)
        assert file.SOPInstanceUID == file.file_meta.MediaStorageSOPInstanceUID
        series.setdefault(file.SeriesInstanceUID, []).append((image.contrast, file.SeriesNumber))
        shared.add((file.StudyInstanceUID, file.FrameOfReferenceUID, file.RescaleSlope))
    assert largest == 32767 and len(uids) == 12 and len(shared) == 1
    assert sorted(map(tuple, map(set, series.values()))) == [((0, 1),), ((1, 2),)], series
    # A different reconstruction of the same scan is a different series of the same study.
    other = pydicom.dcmread(folder / "other_contrast0_repetition0_slice0.dcm")
    assert (other.StudyInstanceUID, other.FrameOfReferenceUID) == list(shared)[0][:2]
    assert other.SeriesInstanceUID not in series and other.SOPInstanceUID not in uids
    # A map of real numbers keeps its sign.
    signed = pydicom.dcmread(folder / "map.dcm")
    values = signed.pixel_array * float(signed.RescaleSlope)
    truth = np.load(folder / "map.npy")
    assert signed.PixelRepresentation == 1 and values.min() < 0 < values.max()
    assert np.abs(values - truth).max() < 0.501 * float(signed.RescaleSlope)
    assert signed.StudyInstanceUID == "1.2.3.4" and signed.ImageType[0] == "DERIVED"


def base(size, syntax, sop_class=MRImageStorage):
    """Returns a file of [columns, rows] without pixels."""
    meta = FileMetaDataset()
    meta.TransferSyntaxUID, meta.MediaStorageSOPClassUID = syntax, sop_class
    meta.MediaStorageSOPInstanceUID = generate_uid()
    file = FileDataset(None, {}, file_meta=meta, preamble=b"\0" * 128, is_implicit_VR=syntax.is_implicit_VR,
                       is_little_endian=syntax.is_little_endian)
    file.SOPClassUID, file.SOPInstanceUID = sop_class, meta.MediaStorageSOPInstanceUID
    file.Columns, file.Rows = size
    file.SamplesPerPixel, file.PhotometricInterpretation = 1, "MONOCHROME2"
    return file


def put_pixels(file, values, bits, signed, stored=None, word=True):
    stored = stored or bits
    file.BitsAllocated, file.BitsStored, file.HighBit, file.PixelRepresentation = bits, stored, stored - 1, int(signed)
    big = file.file_meta.TransferSyntaxUID == ExplicitVRBigEndian
    kind = np.dtype(f"{'i' if signed else 'u'}{bits // 8}").newbyteorder(">" if big else "<")
    data = np.array(values).astype(kind)
    if stored < bits:
        # Bits above those of the value have no meaning.
        data = (data.astype(np.int64) & (2**stored - 1) | 2**stored).astype(f"u{bits // 8}").astype(
            kind.str.replace("i", "u"))
    data = data.tobytes() + b"\0" * (data.nbytes % 2)
    if bits == 8 and big and word:
        data = np.frombuffer(data, "u2").byteswap().tobytes()
    file.add_new("PixelData", "OW" if word else "OB", data)


def expected(values, size, slice=0, repetition=0, contrast=0, position=None, directions=None, fov=(0, 0, 0)):
    return dict(dims=[*size, 1], values=np.array(values, float).ravel().tolist(), slice=slice, repetition=repetition,
                contrast=contrast, position=position, directions=directions, fov=list(fov))


def classic_files():
    """Yields names, files and expected images."""
    rng = np.random.default_rng(1)
    size = (5, 3)
    for name, syntax in [("explicit", ExplicitVRLittleEndian), ("implicit", ImplicitVRLittleEndian),
                         ("big", ExplicitVRBigEndian)]:
        for bits, signed, stored in [(16, False, 16), (16, False, 12), (16, True, 12), (16, True, 16), (8, False, 8),
                                     (8, True, 8), (32, False, 32), (32, True, 32)]:
            low, high = (-(2 ** (stored - 1)), 2 ** (stored - 1)) if signed else (0, 2**stored)
            values = rng.integers(low, high, (3, 5))
            file = base(size, syntax)
            put_pixels(file, values, bits, signed, stored)
            file.RescaleSlope, file.RescaleIntercept = "0.5", "-3"
            # A private sequence with elements that must not be taken for those of the file.
            inner = Dataset()
            inner.Rows, inner.RescaleSlope = 7, "9"
            file.RequestAttributesSequence = [inner, Dataset()]
            file.EchoNumbers, file.TemporalPositionIdentifier = 3, 2
            file.PixelSpacing, file.SliceThickness = [2, 1.5], 4
            row, column = np.array([0.6, 0.8, 0.0]), np.array([0.0, 0.0, -1.0])
            file.ImageOrientationPatient = [*row, *column]
            file.ImagePositionPatient = [-10, 20.5, 7]
            position = np.array([-10, 20.5, 7]) + 2 * 1.5 * row + 1 * 2 * column
            yield f"{name}_{bits}_{int(signed)}_{stored}", file, [
                expected(values * 0.5 - 3, size, repetition=1, contrast=2, position=position.tolist(),
                         directions=[row.tolist(), column.tolist(), np.cross(row, column).tolist()],
                         fov=(7.5, 6, 4))]
    for name in ["first_frame_only", "no_position"]:
        file = base((2, 2), ExplicitVRLittleEndian)
        values = np.arange(12).reshape(3, 2, 2)
        put_pixels(file, values, 8, False, word=False)
        file.NumberOfFrames = 3
        if name == "first_frame_only":
            file.ImagePositionPatient, file.ImageOrientationPatient = [1, 2, 3], [1, 0, 0, 0, 1, 0]
        yield name, file, [expected(values[i], (2, 2), slice=i) for i in range(3)]


def enhanced_file(syntax):
    """Returns an enhanced MR file of 3 slices and 2 repetitions, and the expected images."""
    size, frames = (4, 2), []
    file = base(size, syntax, EnhancedMRImageStorage)
    values = np.arange(48).reshape(6, 2, 4) * 100
    put_pixels(file, values, 16, False)
    file.NumberOfFrames = 6
    shared, measures, orientation = Dataset(), Dataset(), Dataset()
    measures.PixelSpacing, measures.SliceThickness = [2, 1], 3
    orientation.ImageOrientationPatient = [0, 1, 0, 0, 0, 1]
    shared.PixelMeasuresSequence, shared.PlaneOrientationSequence = [measures], [orientation]
    file.SharedFunctionalGroupsSequence = [shared]
    images = []
    for number in range(6):
        repetition, place = divmod(number, 3)
        frame, content, position, transform = Dataset(), Dataset(), Dataset(), Dataset()
        content.InStackPositionNumber, content.TemporalPositionIndex = place + 1, repetition + 1
        position.ImagePositionPatient = [5 * place, -1, -2]
        transform.RescaleSlope, transform.RescaleIntercept = str(number + 1), "10"
        frame.FrameContentSequence, frame.PlanePositionSequence = [content], [position]
        frame.PixelValueTransformationSequence = [transform]
        frames.append(frame)
        images.append(expected(values[number] * (number + 1) + 10, size, slice=place, repetition=repetition,
                               position=[5 * place, -1 + 2, -2 + 2], directions=[[0, 1, 0], [0, 0, 1], [1, 0, 0]],
                               fov=(4, 4, 3)))
    file.PerFrameFunctionalGroupsSequence = frames
    return file, images


def bad_files():
    """Yields names, files and words of the errors."""
    file = base((4, 2), ExplicitVRLittleEndian)
    put_pixels(file, np.arange(8).reshape(2, 4), 16, False)
    file.compress(RLELossless)
    yield "rle", file, ["RLE Lossless", "uncompressed"]
    file = base((2, 2), ExplicitVRLittleEndian)
    put_pixels(file, np.arange(12), 8, False, word=False)
    file.SamplesPerPixel, file.PhotometricInterpretation, file.PlanarConfiguration = 3, "RGB", 0
    yield "colour", file, ["RGB", "3 samples"]
    file = base((2, 2), ExplicitVRLittleEndian)
    put_pixels(file, np.arange(4), 16, False)
    table = Dataset()
    table.LUTDescriptor, table.ModalityLUTType = [4, 0, 16], "US"
    file.ModalityLUTSequence = [table]
    yield "table", file, ["table"]
    file = base((2, 2), ExplicitVRLittleEndian)
    put_pixels(file, np.arange(4), 16, False)
    file.DoseGridScaling = "0.1"
    yield "dose", file, ["DoseGridScaling"]
    file = base((2, 3), ExplicitVRLittleEndian)
    put_pixels(file, np.arange(4), 16, False)
    yield "short", file, ["2 x 3 pixels", "12 bytes", "8"]
    yield "no_pixels", base((2, 3), ExplicitVRLittleEndian), ["does not have pixels"]


def write(folder):
    good = list(classic_files())
    for name, syntax in [("explicit", ExplicitVRLittleEndian), ("implicit", ImplicitVRLittleEndian),
                         ("big", ExplicitVRBigEndian)]:
        good.append((f"enhanced_{name}", *enhanced_file(syntax)))
    for name, file, images in good:
        file.save_as(folder / f"{name}.dcm", enforce_file_format=True)
        print(json.dumps(dict(name=name, images=images)))
    for name, file, words in bad_files():
        file.save_as(folder / f"{name}.dcm", enforce_file_format=True)
        print(json.dumps(dict(name=name, words=words)))


if __name__ == "__main__":
    {"check": check, "write": write}[sys.argv[1]](Path(sys.argv[2]))
