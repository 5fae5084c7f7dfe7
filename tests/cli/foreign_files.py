"""Writes ISMRMRD files as other programs might, with h5py, and reads those of recon.

foreign_files.py write SCAN IMAGES FOLDER  writes variants of both files, and prints their names
foreign_files.py damage SCAN FOLDER        writes files that announce what they do not have, and prints name and message
foreign_files.py compare SCAN RAW          compares a file of recon with the numbers in RAW (.npy)
"""

import sys

import h5py
import numpy as np


def array_of(base):
    """Returns the type of arrays of variable length."""
    return h5py.vlen_dtype(np.dtype(base))


def record(head, order, trajectory, data):
    """Returns the type of acquisitions with their fields in `order`."""
    types = {"head": head, "traj": array_of(trajectory), "data": array_of(data)}
    return np.dtype([(name, types[name]) for name in order])


def converted(table, kind, trajectory, data):
    """Returns the acquisitions in a different type."""
    new = np.empty(table.shape, kind)
    for i, old in enumerate(table):
        for name in old["head"].dtype.names:
            new[i]["head"][name] = old["head"][name]
        new[i]["traj"] = old["traj"].astype(trajectory)
        new[i]["data"] = old["data"].astype(data)
    return new


def big_endian(kind):
    """Returns a type with its bytes in the other order."""
    return kind.newbyteorder(">")


def write_scan(path, xml, table, fixed=False, **options):
    """Writes raw data. `fixed`: the header is a text of fixed length."""
    file_options = {name: options.pop(name) for name in ("libver", "userblock_size") if name in options}
    with h5py.File(path, "w", **file_options) as file:
        group = file.create_group("dataset")
        if fixed:
            group.create_dataset("xml", data=np.array([xml], f"S{len(xml) + 5}"))
        else:
            group.create_dataset("xml", (1,), h5py.string_dtype("ascii"))[0] = xml
        group.create_dataset("data", data=table, **options)


def write(scan, images, folder):
    """Writes variants of a scan and of images."""
    with h5py.File(scan) as file:
        xml, table = file["dataset/xml"][0].decode(), file["dataset/data"][:]
    head, order = table.dtype["head"], ["head", "traj", "data"]
    plain = converted(table, record(head, order, "<f4", "<f4"), "<f4", "<f4")
    variants = {
        "scan_plain": (plain, {}),
        "scan_latest": (plain, {"libver": "latest"}),
        "scan_v108": (plain, {"libver": ("earliest", "v108")}),
        "scan_user_block": (plain, {"userblock_size": 1024}),
        "scan_user_block_latest": (plain, {"userblock_size": 512, "libver": "latest"}),
        "scan_chunks": (plain, {"chunks": (3,), "maxshape": (None,)}),
        "scan_chunks_latest": (plain, {"chunks": (3,), "maxshape": (None,), "libver": "latest"}),
        "scan_compressed": (plain, {"chunks": (4,), "compression": "gzip", "shuffle": True, "fletcher32": True}),
        "scan_lzf": (plain, {"chunks": (5,), "compression": "lzf"}),
        "scan_fixed_text": (plain, {"fixed": True}),
        "scan_order": (converted(table, record(head, order[::-1], "<f4", "<f4"), "<f4", "<f4"), {}),
        "scan_double": (converted(table, record(head, order, "<f8", "<f8"), "<f8", "<f8"), {}),
        "scan_big_endian": (converted(table, record(big_endian(head), order, ">f4", ">f8"), ">f4", ">f8"), {}),
    }
    for name, (content, options) in variants.items():
        write_scan(f"{folder}/{name}.h5", xml, content, **options)
        print(name)
    with h5py.File(images) as file:
        header, data = file["dataset/image_0/header"][:], file["dataset/image_0/data"][:]
    complex_type = np.dtype([("real", ">f8"), ("imag", ">f8")])
    values = np.empty(data.shape, complex_type)
    values["real"], values["imag"] = data["real"], data["imag"]
    variants = {
        "images_plain": (header, data, {}),
        "images_h5py": (header, data["real"] + 1j * data["imag"], {"libver": "latest"}),
        "images_big_endian": (header.astype(big_endian(header.dtype)), values, {}),
        "images_compressed": (header, data, {"compression": "gzip", "shuffle": True, "fletcher32": True, "chunks": (1, 1, 1, 3, 5)}),
        "images_growing": (header, data, {"chunks": (1, 1, 1, 4, 4), "maxshape": (None, 9, 9, None, None)}),
    }
    for name, (head, values, options) in variants.items():
        file_options = {"libver": options.pop("libver")} if "libver" in options else {}
        with h5py.File(f"{folder}/{name}.h5", "w", **file_options) as file:
            group = file.create_group("dataset/image_0")
            group.create_dataset("header", data=head)
            group.create_dataset("data", data=values, **options)
        print(name)


def damage(scan, folder):
    """Writes files whose structure announces more than they have, or that recon cannot read."""
    with h5py.File(scan) as file:
        xml, table = file["dataset/xml"][0].decode(), file["dataset/data"][:]
    kind = record(table.dtype["head"], ["head", "traj", "data"], "<f4", "<f4")

    def begin(name):
        file = h5py.File(f"{folder}/{name}.h5", "w")
        file.create_dataset("dataset/xml", (1,), h5py.string_dtype("ascii"))[0] = xml
        return file

    with begin("rows") as file:
        file.create_dataset("dataset/data", (1 << 40,), kind, chunks=(2,))
    print("rows", "but 0 are stored")
    with begin("chunk") as file:
        file.create_dataset("dataset/data", (1 << 20,), kind, chunks=(1 << 20,))
    print("chunk", "has chunks of")
    with begin("contiguous") as file:
        file.create_dataset("dataset/data", (1 << 40,), kind)
    print("contiguous", "but 0 are stored")
    with begin("virtual") as file:
        layout = h5py.VirtualLayout((4,), "<f4")
        layout[:] = h5py.VirtualSource("other.h5", "x", (4,))
        file.create_virtual_dataset("dataset/data", layout)
    print("virtual", "data")
    # A layout that only HDF5 2.0 and newer have.
    with h5py.File(f"{folder}/newest.h5", "w", libver="latest") as file:
        file.create_dataset("dataset/xml", (1,), h5py.string_dtype("ascii"))[0] = xml
        file.create_dataset("dataset/data", data=table, chunks=(2,), compression="gzip")
    print("newest", "h5repack" if h5py.version.hdf5_version_tuple >= (2, 0, 0) else "")
    # Two fields of a record in one place: the type of h5py's file has no checksum.
    with begin("overlap") as file:
        file.create_dataset("dataset/data", data=converted(table, kind, "<f4", "<f4"))
    with open(f"{folder}/overlap.h5", "rb") as file:
        content = bytearray(file.read())
    at = content.index(b"data\0\0\0\0" + (356).to_bytes(4, "little"))
    content[at + 8:at + 12] = (350).to_bytes(4, "little")
    with open(f"{folder}/overlap.h5", "wb") as file:
        file.write(content)
    print("overlap", "overlap or reach beyond")


def compare(scan, raw):
    """Compares the data of a file of recon, [acquisitions, coils, samples], with an array."""
    with h5py.File(scan) as file:
        found = np.array([row["data"] for row in file["dataset/data"][:]]).view(np.complex64)
    assert np.array_equal(found.ravel(), np.load(raw).ravel()), "the data are different"


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
