#!/usr/bin/env bash
# Builds the last commit again, in a new folder, and compares archives, packages and wheel with those of this folder.
#
#   test-reproducible.sh PLATFORM ...     platforms of release.sh that `make release` has packed here
#
# CARGO_TARGET_DIR is passed by `make test-reproducible`.
set -euo pipefail
cd "$(dirname "$0")/.."
platforms=$*
first=$(cd "$CARGO_TARGET_DIR" && pwd)
if [ -n "$(git status --porcelain)" ]; then
    echo "test-reproducible.sh: commit all changes first, because the second build is of the last commit" >&2
    exit 1
fi
copy=$(mktemp -d "${TMPDIR:-/tmp}/a-longer-folder-for-recon.XXXXXX")
trap 'rm -rf "$copy"' EXIT
git clone --quiet --no-hardlinks . "$copy/recon"
mkdir "$copy/recon/target"
# Tools are not compiled again: their marks must be newer than the lists of the clone.
touch "$first/tools/ready" "$first/zig-venv/ready" "$first/python-venv/ready"
ln -s "$first/tools" "$first/zig-venv" "$first/python-venv" "$copy/recon/target/"
make -C "$copy/recon" --no-print-directory release PLATFORM="$platforms" CARGO_TARGET_DIR=target
different=0 same=0
for file in "$first"/dist/*; do
    name=$(basename "$file")
    [ "$name" != SHA256SUMS ] && [ -e "$copy/recon/target/dist/$name" ] || continue
    if cmp -s "$file" "$copy/recon/target/dist/$name"; then same=$((same + 1)); else echo "different: $name"; different=1; fi
done
if [ "$same" = 0 ] || [ "$different" != 0 ]; then
    echo "test-reproducible.sh: the second build is different, or nothing was packed in $first/dist" >&2
    exit 1
fi
echo "reproducible: $same files have the same bytes"
