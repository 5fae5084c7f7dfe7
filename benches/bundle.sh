#!/usr/bin/env bash
# A folder, and a tar file of it, with which the benchmark of the CPU runs on another machine: without Rust, compiler,
# BART or network, with a Python of the version given here.
#
#     bundle.sh BUILT FOLDER PYTHON_VERSION
#
# BUILT is the folder with librecon.so and librecon.a. The latter is linked into the program of conjugate gradients,
# which takes its place in the bundle.
set -euo pipefail
built=$(realpath "$1") folder=$2 python=$3
root=$(realpath "$(dirname "$0")/..")

rm -rf "$folder"
mkdir -p "$folder/bin" "$folder/wheels" "$folder/target/release"
folder=$(realpath "$folder")
cp -r "$root/include" "$folder/include"
mkdir "$folder/benches"
cp "$root"/benches/*.py "$root"/benches/*.c "$root"/benches/requirements-run.txt "$folder/benches/"
cp "$root/benches/bundle_run.sh" "$folder/run.sh"
# Symbols that only debuggers want are left out.
cp "$built/librecon.so" "$folder/target/release/librecon.so"
strip --strip-unneeded "$folder/target/release/librecon.so"
gcc -O2 -s -I"$root/include" "$root/benches/solve.c" "$built/librecon.a" \
    -lgcc_s -lutil -lrt -lpthread -lm -ldl -lc -o "$folder/bin/solve"
echo "$python" > "$folder/python-version"
cat > "$folder/built_from.json" <<END
{"commit": "$(git -C "$root" describe --always --dirty --abbrev=12)", "rustc": "$(rustc --version | sed 's/^rustc //')"}
END
python3 -m pip download --quiet --disable-pip-version-check --python-version "$python" --only-binary=:all: \
    --dest "$folder/wheels" --requirement "$root/benches/requirements-run.txt"

tar -C "$(dirname "$folder")" -czf "$folder.tar.gz" "$(basename "$folder")"
du -sh --apparent-size "$folder" "$folder.tar.gz"
