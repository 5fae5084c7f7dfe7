#!/usr/bin/env bash
# Makes the folder of an Octave package.
#
#   package.sh FOLDER LIBRARY TEXTS
#
# FOLDER is the new folder, LIBRARY is librecon_files.a for the users' system, and TEXTS the folder with its licences.
#
# VERSION, MAINTAINER and SOURCE_DATE_EPOCH are passed by `make release`.
set -euo pipefail
folder=$1 library=$2 texts=$3
project=$(cd "$(dirname "$0")/../.." && pwd)
rm -rf "$folder"
mkdir -p "$folder/inst" "$folder/src" "$folder/lib" "$folder/include"
cp -r "$project/matlab/+recon" "$folder/inst/"
cp "$project"/matlab/mex/*.[ch] "$project/packaging/octave/Makefile" "$folder/src/"
cp "$library" "$folder/lib/librecon_files.a"
cp "$project/include/recon.h" "$folder/include/"
cp "$project/CHANGELOG.md" "$folder/NEWS"
cp "$texts"/* "$folder/"
{ cat "$project/LICENSE-MIT"; printf '\nor, at your option:\n\n'; cat "$project/LICENSE-APACHE"; } > "$folder/COPYING"
sed -e "s|@VERSION@|$VERSION|" -e "s|@MAINTAINER@|$MAINTAINER|" \
    -e "s|@DATE@|$(date --utc --date="@$SOURCE_DATE_EPOCH" +%Y-%m-%d)|" \
    "$project/packaging/octave/DESCRIPTION.in" > "$folder/DESCRIPTION"
# The index of functions follows from Contents.m of the three packages: each group has a line, then its functions.
{
    echo "recon >> MR image reconstruction"
    sed -n -e 's/^% \([A-Z][A-Za-z -]*\)$/\1/p' -e 's/^%   \(recon\.[A-Za-z]*\) *- .*/ \1/p' "$project/matlab/+recon/Contents.m"
    for part in trajectory phantom; do
        echo "recon.$part"
        sed -n "s/^%   \([a-z0-9]*\) *- .*/ recon.$part.\1/p" "$project/matlab/+recon/+$part/Contents.m"
    done
} > "$folder/INDEX"
