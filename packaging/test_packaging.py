#!/usr/bin/env python3
"""Checks licence expressions and texts, the bytes of archives, and the links of their pages."""

import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import unittest
import zipfile

import licence_texts
from licences import is_accepted

HERE = os.path.dirname(os.path.abspath(__file__))
ACCEPTED = {"MIT", "Apache-2.0", "Unicode-3.0", "Apache-2.0 WITH LLVM-exception"}


class Licences(unittest.TestCase):
    def test_expressions(self):
        for expression, expected in [
            ("MIT", True),
            ("GPL-3.0-only", False),
            ("MIT OR GPL-3.0-only", True),
            ("GPL-3.0-only/MIT", True),
            ("MIT AND GPL-3.0-only", False),
            ("(MIT OR Apache-2.0) AND Unicode-3.0", True),
            ("(MIT OR Apache-2.0) AND MPL-2.0", False),
            ("GPL-2.0-only OR MPL-2.0 AND MIT", False),
            ("Apache-2.0 WITH LLVM-exception", True),
            ("GPL-2.0-only WITH Classpath-exception-2.0", False),
        ]:
            self.assertEqual(is_accepted(expression, ACCEPTED), expected, expression)

    def test_malformed(self):
        for expression in ["", "(MIT", "MIT MIT", "OR MIT", "MIT WITH", "MIT OR"]:
            with self.assertRaises(ValueError, msg=expression):
                is_accepted(expression, ACCEPTED)


class ImportLibraries(unittest.TestCase):
    def library(self, folder, definitions):
        """Returns an import library that a stand-in for dlltool has made: its path and the definitions."""
        tool = "x86_64-w64-mingw32-dlltool"
        made, path = os.path.join(folder, "made"), os.path.join(folder, "kernel32.def")
        os.makedirs(made)
        with open(os.path.join(folder, tool), "w", encoding="utf-8") as file:
            file.write('#!/bin/sh\n[ "$1 $3" = "-d -l" ] && { echo "$4"; cat "$2"; } > "$4"\n')
        os.chmod(file.name, 0o755)
        with open(path, "w", encoding="utf-8") as file:
            file.write(definitions)
        search = os.pathsep.join([os.path.join(HERE, "dlltool"), folder, os.environ["PATH"]])
        subprocess.run([tool, "-d", path, "-l", "made/kernel32.lib"], cwd=folder, env=dict(os.environ, PATH=search),
                       check=True)
        with open(os.path.join(made, "kernel32.lib"), encoding="utf-8") as file:
            return file.read()

    def test_paths_depend_on_contents_only(self):
        with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
            first = self.library(one, "Sleep\n")
            self.assertEqual(first, self.library(other, "Sleep\n"))
            path, definitions = first.splitlines()
            self.assertRegex(path, r"^imports_[0-9a-f]{16}/kernel32\.lib$")
            self.assertEqual(definitions, "Sleep")
            third = self.library(os.path.join(one, "third"), "Beep\n")
            self.assertNotEqual(third.splitlines()[0], path)


class LicenceTexts(unittest.TestCase):
    def test_a_shared_text_is_written_once(self):
        with tempfile.TemporaryDirectory() as folder:
            first, second = pathlib.Path(folder, "first"), pathlib.Path(folder, "second")
            first.write_text("text one\n", encoding="utf-8")
            second.write_text("\ntext two", encoding="utf-8")
            components = [("a 1.0", "MIT", [first]), ("b 2.0", "MIT OR ISC", [second, first])]
            text = licence_texts.report("a-target", components)
            self.assertEqual((text.count("text one"), text.count("text two")), (1, 1))
            for line in ["  a 1.0: MIT", "  b 2.0: MIT OR ISC"]:
                self.assertIn(line, text.splitlines())
            with self.assertRaises(SystemExit):
                licence_texts.report("a-target", [("c 1.0", "MIT", [pathlib.Path(folder, "third")])])

    def test_crates_without_a_text(self):
        with tempfile.TemporaryDirectory() as folder:
            crate = {"name": "a", "version": "1", "manifest_path": os.path.join(folder, "Cargo.toml")}
            found = licence_texts.crate_texts(dict(crate, license="MIT OR Apache-2.0"))
            self.assertEqual([path.name for path in found], ["LICENSE-APACHE"])
            for licence in ["ISC", None]:
                with self.assertRaises(SystemExit):
                    licence_texts.crate_texts(dict(crate, license=licence))


class Archives(unittest.TestCase):
    NAMES = ["out.tar.xz", "out.tar.gz", "out.zip"]

    def pack(self, place, order, umask):
        """Makes the same files in another order, with other times and another umask, and packs them."""
        folder = os.path.join(place, "recon-1")
        old = os.umask(umask)
        os.makedirs(os.path.join(folder, "lib"))
        for name in order:
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.write(name)
            os.utime(os.path.join(folder, name), (1000 * umask, 1000 * umask))
        os.chmod(os.path.join(folder, "run"), 0o700)
        os.symlink("b.so.1", os.path.join(folder, "lib", "b.so"))
        os.umask(old)
        environment = dict(os.environ, SOURCE_DATE_EPOCH="1700000000")
        for name in self.NAMES:
            command = [sys.executable, os.path.join(HERE, "archive.py"), folder, os.path.join(place, name)]
            subprocess.run(command, env=environment, check=True)

    def test_bytes(self):
        names = ["run", "a", os.path.join("lib", "b.so.1")]
        with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
            self.pack(first, names, 0o022)
            self.pack(second, names[::-1], 0o077)
            for name in self.NAMES:
                with open(os.path.join(first, name), "rb") as a, open(os.path.join(second, name), "rb") as b:
                    self.assertEqual(a.read(), b.read(), name)
            with tarfile.open(os.path.join(first, "out.tar.xz")) as archive:
                entries = {entry.name: entry for entry in archive}
                self.assertEqual(list(entries), sorted(entries))
                self.assertEqual({(e.uid, e.gid, e.mtime) for e in entries.values()}, {(0, 0, 1700000000)})
                self.assertEqual(entries["recon-1/run"].mode, 0o755)
                self.assertEqual(entries["recon-1/a"].mode, 0o644)
                self.assertEqual(entries["recon-1/lib/b.so"].linkname, "b.so.1")
            with zipfile.ZipFile(os.path.join(first, "out.zip")) as archive:
                # Windows has no links: the archive contains the file twice.
                self.assertEqual(archive.read("recon-1/lib/b.so"), archive.read("recon-1/lib/b.so.1"))

    def test_dead_links(self):
        with tempfile.TemporaryDirectory() as place:
            folder = pathlib.Path(place, "recon-1")
            (folder / "docs").mkdir(parents=True)
            (folder / "README.md").write_text("[page](docs/page.md#part) [site](https://example.org/a) [part](#part)\n")
            page = folder / "docs" / "page.md"
            page.write_text("[up](../README.md) ![picture](picture.png) [outside](../../x.zip)\n")
            command = [sys.executable, os.path.join(HERE, "archive.py"), str(folder), os.path.join(place, "x.zip")]
            environment = dict(os.environ, SOURCE_DATE_EPOCH="1700000000")
            for content, dead in [(None, ["docs/page.md: picture.png", "docs/page.md: ../../x.zip"]), ("[up](..)", [])]:
                if content is not None:
                    page.write_text(content)
                result = subprocess.run(command, env=environment, stderr=subprocess.PIPE, text=True, check=False)
                self.assertEqual(result.returncode != 0, bool(dead), result.stderr)
                self.assertTrue(all(link in result.stderr for link in dead), result.stderr)
                self.assertNotIn("README.md:", result.stderr)

    def test_wrong_arguments(self):
        for arguments, words in [(["nowhere", "x.zip"], "not a folder"), ([HERE, "x.rar"], "ends with neither"), ([], "FOLDER")]:
            command = [sys.executable, os.path.join(HERE, "archive.py"), *arguments]
            environment = dict(os.environ, SOURCE_DATE_EPOCH="1")
            result = subprocess.run(command, env=environment, stderr=subprocess.PIPE, text=True, check=False)
            self.assertNotEqual(result.returncode, 0)
            self.assertIn(words, result.stderr)


if __name__ == "__main__":
    unittest.main()
