#!/usr/bin/env bash
# Runs the benchmark of the CPU from this folder, with the options of benches/run.py:
#
#     ./run.sh --quick --only stone
#     ./run.sh sweep --seed 7 --cases 100        random shapes, with the options of benches/sweep.py
#     PYTHON=/opt/python3.12/bin/python3 ./run.sh
#
# Packages are unpacked into this folder; nothing is installed, and nothing outside of it is written. The tables are in
# output/ afterwards, without pictures, because matplotlib would be a third of the bundle. In a checkout that has run
# `make bench` these commands draw them and take the tables in:
#
#     target/bench-venv/bin/python benches/report.py --into docs/benchmarks output/cpu-*.json
#     python3 benches/index.py
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
python=${PYTHON:-python3}
wanted=$(cat "$here/python-version")
found=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
if [ "$found" != "$wanted" ]; then
    echo "$python is Python $found, and the packages here are for $wanted: name another with PYTHON=," \
        "or make the bundle with BUNDLE_PYTHON=$found" >&2
    exit 1
fi
if [ ! -e "$here/site/ready" ]; then
    # Wheels are zip files. Unpacking them needs no pip, which Debian's Python lacks.
    for wheel in "$here"/wheels/*.whl; do "$python" -m zipfile -e "$wheel" "$here/site"; done
    touch "$here/site/ready"
fi
export PYTHONPATH="$here/site" PYTHONDONTWRITEBYTECODE=1
script=run
if [ "${1:-}" = sweep ]; then script=sweep; shift; fi
exec "$python" "$here/benches/$script.py" --build "$here/target" --output "$here/output" "$@"
