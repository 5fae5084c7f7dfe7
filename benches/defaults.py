#!/usr/bin/env python3
"""The measurements behind the defaults of conjugate gradients: errors of `recon cg` over iterations, lambda and prior.

Reconstructs phantoms with noise on several trajectories, and the in-vivo brain slice if RECON_DATA_DIR is its folder.
Prints a table with the percent error of each setting for each case (best scale, within the object). Its last columns
are the excess over the best setting of the case: the mean and the worst over the cases. Then prints the difference
between the image at the default tolerance and that of exact transforms.

    python3 benches/defaults.py target/release/recon
"""
import argparse
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

# For each name the options of `recon simulate`.
PHANTOMS = {
    "radial 48 of 128^2, 8 coils": "--matrix 128,128 --trajectory radial --shots 48 --samples 256 --coils 8 --snr 30",
    "radial 24 of 128^2, 8 coils": "--matrix 128,128 --trajectory radial --shots 24 --samples 256 --coils 8 --snr 60",
    "golden 64 of 192^2, 4 coils":
        "--matrix 192,192 --trajectory golden-angle --shots 64 --samples 384 --coils 4 --snr 20",
    "radial 200 of 128^2, 1 coil": "--matrix 128,128 --trajectory radial --shots 200 --samples 256 --snr 15",
    "spiral 6 of 128^2, 8 coils":
        "--matrix 128,128 --trajectory spiral --shots 6 --samples 2048 --turns 8 --coils 8 --snr 40",
    "rosette 24 of 96^2, 8 coils": "--matrix 96,96 --trajectory rosette --shots 24 --samples 1600 --coils 8 --snr 30",
    "PROPELLER 9 x 14 of 128^2, 4 coils":
        "--matrix 128,128 --trajectory propeller --shots 9 --lines 14 --samples 192 --coils 4 --snr 30",
    "kooshball 700 x 160 to 80^3": "--matrix 80,80,80 --trajectory kooshball --shots 700 --samples 160 --snr 600",
    "kooshball 300 x 96 to 48^3, 4 coils":
        "--matrix 48,48,48 --trajectory kooshball --shots 300 --samples 96 --coils 4 --snr 30",
}
# cg3d of the benchmarks, with as many samples as the scan of Stone et al. 2008.
LARGE = {"cg3d: kooshball 1176 x 242 to 128^3":
         "--matrix 128,128,128 --trajectory kooshball --shots 1176 --samples 242 --snr 600"}
# For each name the options of `recon cg`.
BRAIN = {f"brain, {96 // every} spokes": f"--every {every}" for every in (1, 2, 4, 6)}


def run(*command):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stderr}")
    return done.stdout


def cases(program, folder, data, large):
    """Yields (name, scan, options of cg, options of compare, truth) for each case."""
    for i, (name, options) in enumerate({**PHANTOMS, **(LARGE if large else {})}.items()):
        scan, truth = folder / f"scan{i}.h5", folder / f"truth{i}.h5"
        run(program, "simulate", *options.split(), "--seed", 100 + i, "--truth", truth, "-o", scan)
        yield name, scan, [], ["--magnitude", "--scale", "best"], truth
    if not data:
        print("skipped: the brain (RECON_DATA_DIR is not set)")
        return
    truth = data / "brain_rss_230x180.npy"
    compare = ["--magnitude", "--scale", "best", "--transpose", "--mask", "0.1"]
    for name, options in BRAIN.items():
        yield name, data / "brain_8ch_radial96.h5", options.split(), compare, truth


def error(program, folder, scan, options, compare, truth):
    image = folder / "image.h5"
    run(program, "-q", "cg", scan, *options, "-o", image)
    return json.loads(run(program, "-q", "compare", image, truth, *compare, "--json"))["percent_error"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=Path)
    parser.add_argument("--iterations", default="8,12,16,20,30,60")
    parser.add_argument("--lambdas", default="0,0.001,0.003,0.01,0.03")
    parser.add_argument("--priors", default="identity,differences")
    parser.add_argument("--large", action="store_true", help="cg3d as well: minutes")
    parser.add_argument("--cg", default="", help="further options of recon cg")
    args = parser.parse_args()
    data = os.environ.get("RECON_DATA_DIR")
    iterations, lambdas = args.iterations.split(","), args.lambdas.split(",")
    settings = [(n, "0", "identity") for n in iterations]
    priors = args.priors.split(",")
    settings += [(n, l, p) for l, p, n in itertools.product(lambdas, priors, iterations) if float(l) > 0]
    with tempfile.TemporaryDirectory() as folder:
        folder, table, names = Path(folder), {s: [] for s in settings}, []
        for name, scan, options, compare, truth in cases(args.program, folder, data and Path(data), args.large):
            names.append(name)
            for n, l, prior in settings:
                given = [*options, *args.cg.split(), "--iterations", n, "--lambda", l, "--prior", prior]
                table[n, l, prior].append(error(args.program, folder, scan, given, compare, truth))
            print(f"{name}: {min(e[-1] for e in table.values()):.2f} % at best", file=sys.stderr, flush=True)
    best = [min(e[i] for e in table.values()) for i in range(len(names))]
    print("Percent error.\n")
    print("| iterations, lambda, prior | " + " | ".join(names) + " | times the best: mean | worst |")
    print("| --- |" + " --- |" * (len(names) + 2))
    for setting, errors in table.items():
        times = [e / b for e, b in zip(errors, best)]
        print(f"| {', '.join(setting)} | " + " | ".join(f"{e:.2f}" for e in errors)
              + f" | {statistics.mean(times):.2f} | {max(times):.2f} |")


if __name__ == "__main__":
    main()
