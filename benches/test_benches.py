"""Tests of what decides where a table goes and what is claimed of it. `make check` runs them: they need Python alone.

    python3 benches/test_benches.py
"""

import json
import sys
import tempfile
import unittest
from pathlib import Path
from types import SimpleNamespace

import gpu_page
import index
import processor
import shapes
import sweep_page
import sweep_search
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


class RandomShapes(unittest.TestCase):
    def test_ratios_are_to_the_fastest_peer_of_each_case(self):
        def row(operation, ours, ducc0, finufft):
            ms = {"transform": {"recon": ours, "DUCC0": ducc0, "FINUFFT": finufft}}
            return {"operation": operation, "threads": 2, "ms": ms, "settings": {"recon": "f32"}}

        rows = [row("adjoint", 1.0, 2.0, 4.0), row("adjoint", 3.0, 9.0, 2.0), row("forward", 1.0, 5.0, 4.0)]
        lines = index.random_lines({"sweep-cpu-a": {"rows": rows, "machine": {"cpu": "A"}}}).splitlines()
        self.assertEqual(lines[2:], ["| [A, 2 threads](docs/benchmarks/sweep-cpu-a.md) | transform | 1.00 / 0.25 | 1.50 / 0.25 | 1.50 / 0.25 |"])


class Shapes(unittest.TestCase):
    def test_a_seed_gives_the_same_cases_everywhere(self):
        texts = [shapes.draw(device, 7, number).text() for device, number in (("cpu", 6), ("cpu", 19), ("gpu", 6))]
        self.assertEqual(
            texts,
            [
                "dims=80x32 samples=483 coils=1 precision=f32 error=1.0e-03 points=spiral",
                "dims=16x16 samples=10790 coils=8 precision=f64 error=1.1e-10 points=clustered",
                "dims=224x80 samples=483 coils=1 precision=f32 error=1.0e-03 points=spiral",
            ],
        )

    def test_cases_are_within_the_limits(self):
        for device, limits in shapes.LIMITS.items():
            for shape in (shapes.draw(device, 3, number) for number in range(500)):
                self.assertLessEqual(shapes.seconds(shape, limits), limits.seconds)
                self.assertLessEqual(max(shape.dims), limits.sides[shape.ndim][1])
                self.assertGreaterEqual(min(shape.dims), limits.sides[shape.ndim][0] // 2)
                self.assertTrue(shape.samples > 0 and shape.coils > 0)

    def test_cases_cover_what_they_should(self):
        drawn = [shapes.draw("gpu", 3, number) for number in range(500)]
        for name, values in (
            ("points", shapes.POINTS), ("precision", ("f32", "f64")), ("ndim", (2, 3)), ("coils", (1, 2, 8, 16)),
        ):  # fmt: skip
            self.assertLessEqual(set(values), {getattr(shape, name) for shape in drawn})
        self.assertLess(min(shape.samples for shape in drawn), 300)
        self.assertGreater(max(shape.samples for shape in drawn), 10_000_000)
        self.assertGreater(max(max(shape.dims) / min(shape.dims) for shape in drawn), 20)

    def test_the_text_of_a_case_gives_the_case(self):
        shape = shapes.draw("cpu", 5, 11)
        self.assertEqual(shapes.changed(shapes.draw("cpu", 5, 12), shape.text()), shape)
        for wrong in ("dims=3", "sides=3x3", "points=square", "precision=f16"):
            with self.assertRaises(ValueError):
                shapes.changed(shape, wrong)


class Search(unittest.TestCase):
    def found(self, least, bound=1e-3):
        """Searches the settings of a side whose error is a third of the tolerance, but at least `least`."""
        tried = []

        class Fake(sweep_search.Side):
            ladder = sweep_search.ladder(5, -1)

            def make(self, problem, tolerance, variant):
                tried.append(tolerance)
                if tolerance < 6e-4:
                    raise sweep_search.Unsupported("too wide")
                error = max(least, tolerance / 3)
                return SimpleNamespace(run=lambda: None, output=error, tolerance=tolerance)

        device = SimpleNamespace(transform_seconds=lambda run: 0.001, runs=9, budget=0.1)
        problem = SimpleNamespace(checked_coil=lambda output: output)
        reference = SimpleNamespace(error=lambda output: output)
        made = sweep_search.search(device, Fake(), problem, reference, bound, float("inf"))
        return [one.candidate.tolerance for one in made], tried

    def test_the_loosest_tolerance_that_meets_the_error_is_found(self):
        kept, tried = self.found(0.0)
        self.assertEqual(max(kept), 2e-3)
        self.assertLess(len(tried), 5)

    def test_a_side_that_does_not_meet_the_error_has_no_setting(self):
        self.assertEqual(self.found(2e-3)[0], [])

    def test_rounds_fit_a_budget(self):
        device = SimpleNamespace(runs=15, budget=0.2)
        self.assertEqual([sweep_search.rounds(device, s) for s in (1e-6, 0.02, 5.0)], [15, 10, 3])


def swept(case, ours, theirs, **others):
    """Returns a row of a sweep. `ours` is None if recon does not meet the error."""
    settings = {"DUCC0": "f32 1e-3"} | ({} if ours is None else {"recon": "f32 1e-3"})
    times = {"DUCC0": theirs} | ({} if ours is None else {"recon": ours})
    shape = {"dims": [8, 9], "samples": 300, "coils": 1, "precision": "f32", "error": 1e-3, "points": "random"}
    common = {"seed": 7, "threads": 2, "operation": "adjoint", "settings": settings, "ms": {"transform": times}}
    return {"case": case, **shape, **common, **others}


class Sweep(unittest.TestCase):
    def test_quantiles(self):
        self.assertEqual(sweep_page.quantile(range(1, 11), 0.9), 9)
        self.assertEqual(sweep_page.quantile([3.0], 0.9), 3.0)

    def test_short_times_do_not_count_on_a_cpu(self):
        rows = [swept(1, 0.015, 0.010), swept(2, 3.0, 2.0), swept(3, 1.0, 2.0)]
        self.assertEqual([row["case"] for row, _ in sweep_page.worst(rows, "transform", "cpu")], [2, 3])
        self.assertEqual([row["case"] for row, _ in sweep_page.worst(rows, "transform", "gpu")][:2], [1, 2])
        self.assertIn("| transform | adjoint | DUCC0 | 3 | 1.50 | 1.50 | 1.50 | 2 | 1 |", sweep_page.summary(rows, "cpu"))

    def test_an_error_that_recon_does_not_reach_is_the_worst(self):
        rows = [swept(1, 3.0, 2.0), swept(2, None, 2.0)]
        self.assertEqual(sweep_page.worst(rows, "transform", "cpu")[0][0]["case"], 2)
        self.assertIn("not reached", "".join(sweep_page.worst_lines(rows, "transform", "cpu")))

    def test_what_a_library_does_not_offer_is_left_out(self):
        row = swept(1, 1.0, 2.0)
        row["ms"]["plan, device"] = {"DUCC0": 1.0}
        self.assertIsNone(sweep_page.ratio(row, "plan, device"))

    def test_a_case_counts_if_it_stays_above_each_time(self):
        rows = [
            swept(1, 3.0, 2.0, again={"transform": [1.1, 1.2, 0.9]}),
            swept(2, 3.0, 2.0, again={"transform": [1.1, 1.2, 1.3]}),
        ]
        self.assertEqual([row["case"] for row in sweep_page.staying(rows, "transform")], [2])
        self.assertIn("above 1.0 that count: 2", sweep_page.verdict(rows, "transform", "cpu"))

    def test_the_page_names_the_command_of_a_case(self):
        results = {"device": "cpu", "machine": {"cpu": "x"}, "versions": {"recon": "0"}, "date": "today"}
        text = sweep_page.page({**results, "rows": [swept(4, 3.0, 2.0)]})
        self.assertIn('make bench-sweep BENCH_FLAGS="--seed 7 --case 4 --runs 3 --threads 2"', text)
        self.assertIn("## Seed 7, 2 threads: 1 cases", text)


class GpuPage(unittest.TestCase):
    def row(self, **ms):
        return {
            "case": "stone", "operation": "adjoint", "error": 1e-3, "precision": "f32", "asked": "0.18 of cuFINUFFT",
            "settings": {"recon": "1.0e-03", "cuFINUFFT": "1.0e-03, method 3"}, "limit_ms": 0.02,
            "errors": {"recon": 2e-4, "cuFINUFFT": 6e-4}, "first_ms": {"cuFINUFFT": {"1.25": 0.5, "2.0": 0.8}}, "ms": ms,
        }  # fmt: skip

    def test_both_tables_of_a_transform(self):
        both = {"recon": 0.16, "cuFINUFFT": 0.5}
        row = self.row(**{"transform": both, "transform, Python": both, "plan, host": {"recon": 2.0, "cuFINUFFT": 2.5}})
        lines = gpu_page.transform_tables([row])
        self.assertIn("| 0.32 | 0.32 | 0.20 | 0.18 of cuFINUFFT | 0.0200 ms | - |", lines[2])
        self.assertIn("| 2.00 ms / 2.50 ms | - / - | - / - | - / - |", lines[-1])

    def test_without_cufinufft_its_columns_are_empty(self):
        row = self.row(transform={"recon": 0.16})
        row["first_ms"] = {"recon": {"None": 0.16}}
        self.assertIn("| - | - | - | - | 0.18 of cuFINUFFT |", gpu_page.transform_tables([row])[2])

    def test_a_plan_without_device_geometry(self):
        row = {"what": "stone", "ms": {"host": 2.0, "copy": 0.5, "cuFINUFFT": 2.5}}
        self.assertEqual(gpu_page.plan_table([row])[2], "| stone | - | 2.00 ms | 2.50 ms | - | 0.5000 ms | 3.15 ms |")

    def test_a_page_keeps_the_order_of_its_suites(self):
        results = {"several": [], "machine": {"GPU": "x"}, "first": []}
        tables = {"first": gpu_page.first_table, "several": gpu_page.several_table, "exact": gpu_page.exact_table}
        text = gpu_page.page(results, tables)
        self.assertLess(text.index("## first"), text.index("## several"))
        self.assertNotIn("## exact", text)


if __name__ == "__main__":
    unittest.main()
