#!/usr/bin/env python3
"""Packs a folder into an archive whose bytes depend only on the files' names, contents and modes.

    archive.py FOLDER ARCHIVE       ARCHIVE ends with .tar.xz, .tar.gz or .zip

All entries have the time SOURCE_DATE_EPOCH (seconds since 1970), owner and group 0, and are sorted by name. A link in a
Markdown file of the folder that leads to no file of the folder is an error.
"""

import gzip
import io
import lzma
import os
import pathlib
import re
import stat
import sys
import tarfile
import time
import zipfile


def entries(folder):
    """Yields the paths of a folder's entries, relative to the folder's parent, parents first."""
    yield os.path.basename(folder)
    for place, folders, files in os.walk(folder):
        folders.sort()
        for name in sorted(folders + files):
            yield os.path.relpath(os.path.join(place, name), os.path.dirname(folder))


def dead_links(folder):
    """Returns the links of Markdown files to files that the folder does not contain, as `file: link`."""
    found = []
    for page in sorted(pathlib.Path(folder).rglob("*.md")):
        for link in re.findall(r"\]\(([^()\s#]+)[^()]*\)", page.read_text(encoding="utf-8")):
            target = (page.parent / link).resolve()
            inside = target.is_relative_to(pathlib.Path(folder).resolve())
            if not re.match(r"[a-z]+:", link) and not (inside and target.exists()):
                found.append(f"{page.relative_to(folder)}: {link}")
    return found


def mode(path):
    """Returns 0755 for folders and executable files, otherwise 0644, whatever the umask was."""
    found = os.lstat(path).st_mode
    return 0o755 if stat.S_ISDIR(found) or found & stat.S_IXUSR else 0o644


def tar(folder, when):
    """Returns the bytes of a tar archive."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for name in sorted(entries(folder)):
            path = os.path.join(os.path.dirname(folder), name)
            entry = archive.gettarinfo(path, arcname=name)
            # A second link to a file would otherwise be stored as a link.
            if entry.islnk():
                entry.type, entry.size, entry.linkname = tarfile.REGTYPE, os.path.getsize(path), ""
            entry.uid = entry.gid = 0
            entry.uname = entry.gname = ""
            entry.mtime = when
            entry.mode = 0o777 if entry.issym() else mode(path)
            if entry.isreg():
                with open(path, "rb") as contents:
                    archive.addfile(entry, contents)
            else:
                archive.addfile(entry)
    return buffer.getvalue()


def write_zip(folder, path, when):
    """Writes a zip archive. Links are replaced by the files that they name, as Windows needs."""
    # The format has no times before 1980.
    date = time.gmtime(max(when, 315532800))[:6]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name in sorted(entries(folder)):
            source = os.path.join(os.path.dirname(folder), name)
            if os.path.isdir(source):
                continue
            entry = zipfile.ZipInfo(name.replace(os.sep, "/"), date)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system = 3
            entry.external_attr = (stat.S_IFREG | mode(source)) << 16
            with open(source, "rb") as contents:
                archive.writestr(entry, contents.read())


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    folder, path = os.path.abspath(sys.argv[1]), sys.argv[2]
    if not os.path.isdir(folder):
        sys.exit(f"archive.py: {folder} is not a folder")
    try:
        when = int(os.environ["SOURCE_DATE_EPOCH"])
    except (KeyError, ValueError):
        sys.exit("archive.py: set SOURCE_DATE_EPOCH to the seconds since 1970 that all entries get")
    if dead := dead_links(folder):
        sys.exit(f"archive.py: links to files that {folder} does not contain: " + ", ".join(dead))
    if path.endswith(".tar.xz"):
        data = lzma.compress(tar(folder, when), preset=9)
    elif path.endswith(".tar.gz"):
        data = gzip.compress(tar(folder, when), 9, mtime=when)
    elif path.endswith(".zip"):
        write_zip(folder, path, when)
        return
    else:
        sys.exit(f"archive.py: {path} ends with neither .tar.xz, .tar.gz nor .zip")
    with open(path, "wb") as output:
        output.write(data)


if __name__ == "__main__":
    main()
