"""Writes the files of tests/files/data with h5py: small scans and images of all versions of HDF5's format.

    write_data.py SCAN IMAGES FOLDER

The files in the repository were made from

    recon simulate --matrix 6,5 --coils 2 --shots 6 -o scan.h5
    recon grid scan.h5 --combine none -o images.h5
"""

import importlib.util
import os
import sys
import tempfile

path = os.path.join(os.path.dirname(__file__), "..", "cli", "foreign_files.py")
spec = importlib.util.spec_from_file_location("foreign_files", path)
foreign_files = importlib.util.module_from_spec(spec)
spec.loader.exec_module(foreign_files)

KEPT = [
    "scan_plain", "scan_latest", "scan_chunks", "scan_chunks_latest", "scan_compressed", "scan_user_block",
    "images_plain", "images_h5py", "images_compressed",
]

with tempfile.TemporaryDirectory() as folder:
    foreign_files.write(sys.argv[1], sys.argv[2], folder)
    for name in KEPT:
        os.rename(f"{folder}/{name}.h5", f"{sys.argv[3]}/{name}.h5")
