"""Tests of what decides where a table goes and what is claimed of it. `make check` runs them: they need Python alone.

    python3 benches/test_benches.py
"""

import json
import sys
import tempfile
import unittest
from pathlib import Path
from types import SimpleNamespace

import index
import processor
from rows import stem_in

sys.path.insert(0, str(Path(__file__).resolve().parent / "papers"))

import power  # noqa: E402


def x86(vendor, family, model, name, flags):
    return (
        f"processor\t: 0\nvendor_id\t: {vendor}\ncpu family\t: {family}\nmodel\t\t: {model}\n"
        f"model name\t: {name}\nflags\t\t: {flags}\nbugs\t\t:\n\nprocessor\t: 1\nvendor_id\t: other\n"
    )


class Names(unittest.TestCase):
    def test_a_hidden_name_does_not_matter(self):
        flags = "fpu sse2 avx avx2 avx512f"
        self.assertEqual(processor.name(x86("AuthenticAMD", 26, 2, "AMD EPYC", flags)), "amd-epyc-zen5")
        self.assertEqual(processor.name(x86("AuthenticAMD", 25, 17, "AMD EPYC", flags)), "amd-epyc-zen4")
        self.assertEqual(processor.name(x86("AuthenticAMD", 25, 1, "AMD EPYC", "sse2 avx2")), "amd-epyc-zen3")
        known = processor.name(x86("GenuineIntel", 6, 143, "Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz", flags))
        self.assertEqual(known, "intel-xeon-sapphire-rapids")

    def test_no_brand_is_no_part_of_the_name(self):
        self.assertEqual(processor.name(x86("AuthenticAMD", 26, 2, "unknown", "avx512f")), "amd-zen5")

    def test_a_hidden_vector_unit_is_named(self):
        hidden = x86("AuthenticAMD", 26, 2, "AMD EPYC", "sse2 avx avx2")
        self.assertEqual(processor.name(hidden), "amd-epyc-zen5-avx2")

    def test_an_unknown_processor_is_named_after_its_numbers(self):
        new = x86("GenuineIntel", 19, 1, "Intel(R) Xeon(R)", "sse2 avx2 avx512f")
        self.assertEqual(processor.name(new), "intel-family-19-model-1-avx512")
        self.assertEqual(processor.name(x86("HygonGenuine", 24, 1, "", "sse2")), "hygongenuine-family-24-model-1-sse2")

    def test_arm(self):
        text = "processor\t: 0\nFeatures\t: fp asimd\nCPU implementer\t: {}\nCPU part\t: {}\n"
        self.assertEqual(processor.name(text.format("0x41", "0xd40")), "arm-neoverse-v1")
        unknown = processor.name(text.format("0x61", "0x022"))
        self.assertEqual(unknown, "arm-implementer-0x61-part-0x22-neon")

    def test_nothing_known(self):
        self.assertEqual(processor.name(""), "unknown-unknown-no-vectors")


class Files(unittest.TestCase):
    def test_the_table_of_another_machine_is_not_overwritten(self):
        small, large = ({"machine": {"cpu": "AMD EPYC (family 26, model 2)", "cores": n}} for n in (2, 64))
        with tempfile.TemporaryDirectory() as folder:
            folder = Path(folder)
            self.assertEqual(stem_in(folder, "cpu-amd-epyc-zen5", large), "cpu-amd-epyc-zen5")
            (folder / "cpu-amd-epyc-zen5.json").write_text(json.dumps(small))
            self.assertEqual(stem_in(folder, "cpu-amd-epyc-zen5", small), "cpu-amd-epyc-zen5")
            self.assertEqual(stem_in(folder, "cpu-amd-epyc-zen5", large), "cpu-amd-epyc-zen5-64-cores")


class Power(unittest.TestCase):
    def zone(self, folder, zone, name, joules):
        (folder / zone).mkdir()
        (folder / zone / "name").write_text(name + "\n")
        (folder / zone / "max_energy_range_uj").write_text("1000000000\n")
        (folder / zone / "energy_uj").write_text(f"{joules}000000\n")

    def test_packages_and_memory_count_once_and_counters_wrap(self):
        session = SimpleNamespace(cupy=None, no_gpu="none here")
        with tempfile.TemporaryDirectory() as folder:
            folder = Path(folder)
            for zone, name in (("0", "package-0"), ("0:0", "core"), ("0:1", "dram"), ("1", "package-1"), ("2", "psys")):
                self.zone(folder, f"intel-rapl:{zone}", name, 990)
            meter = power.EnergyMeter(session, folder=folder)

            def work():
                for zone, joules in (("0", 993), ("0:0", 992), ("0:1", 991), ("1", 15), ("2", 999)):
                    (folder / f"intel-rapl:{zone}" / "energy_uj").write_text(f"{joules}000000\n")

            measured = meter.measure(work, seconds=0.0)
            self.assertEqual(measured.times, 1)
            self.assertAlmostEqual(measured.joules[power.PROCESSORS], 3 + 1 + 25)
            self.assertIsNone(measured.joules[power.GPUS])
            self.assertEqual(measured.text(power.GPUS, "none here"), "not readable here (none here)")
            self.assertTrue(measured.text(power.PROCESSORS).startswith("29 J ("))

    def test_a_part_of_the_counters_is_not_taken_for_all(self):
        with tempfile.TemporaryDirectory() as folder:
            folder = Path(folder)
            self.assertIn("no counters", power.processor_zones(folder)[1])
            self.zone(folder, "intel-rapl:0", "package-0", 1)
            self.assertEqual(len(power.processor_zones(folder)[0]), 1)
            self.zone(folder, "intel-rapl:1", "package-1", 1)
            (folder / "intel-rapl:1" / "energy_uj").write_text("")
            zones, reason = power.processor_zones(folder)
            self.assertEqual(zones, [])
            self.assertIn("cannot be read", reason)


def transform(threads, side, milliseconds, error=1e-4):
    return {
        "case": "radial2d",
        "operation": "adjoint",
        "threads": threads,
        "side": side,
        "median_ms": milliseconds,
        "error": error,
    }


class Weakest(unittest.TestCase):
    def found(self, **tables):
        return {figure.peer: figure for figure in index.weakest(index.figures(tables), "claim", "peer")}

    def test_it_is_taken_over_processors_and_threads(self):
        one = {"transforms": [transform(1, "recon", 2.0), transform(1, "DUCC0", 4.0)]}
        two = {"transforms": [transform(8, "recon", 3.0), transform(8, "DUCC0", 4.0)]}
        weakest = self.found(**{"cpu-a": one, "cpu-b": two})["DUCC0"]
        self.assertEqual(weakest.ratio, 0.75)
        self.assertEqual(weakest.where, "adjoint, error 4e-04, 8 threads, b")

    def test_settings_that_err_too_much_do_not_count(self):
        rows = [transform(1, "recon", 1.0, 1e-3), transform(1, "recon", 3.0), transform(1, "DUCC0", 4.0)]
        self.assertEqual(self.found(a={"transforms": rows})["DUCC0"].ratio, 0.75)

    def test_an_error_that_recon_does_not_reach_is_the_weakest_of_all(self):
        rows = [transform(1, "recon", 1.0, 1e-3), transform(1, "DUCC0", 4.0)]
        rows += [transform(2, "recon", 8.0), transform(2, "DUCC0", 4.0)]
        found = self.found(a={"transforms": rows})["DUCC0"]
        self.assertIsNone(found.ratio)
        self.assertIn("not reached", index.weakest_lines([found]))

    def test_an_error_that_a_peer_does_not_reach_is_no_figure(self):
        rows = [transform(1, "recon", 1.0), transform(1, "DUCC0", 4.0, 1e-3)]
        self.assertEqual(self.found(a={"transforms": rows}), {})


if __name__ == "__main__":
    unittest.main()
