#!/usr/bin/env bash
# Makes the Debian packages from files that are built already.
#
#   packages.sh OUTPUT      OUTPUT: the folder of the new .deb files
#
# BUILT (cargo's folder of the build), OCTAVE_PACKAGE, RECON_MEX and LICENCES are absolute paths. `make packages` passes
# them, and VERSION, ABI, MAINTAINER and SOURCE_DATE_EPOCH.
set -euo pipefail
output=$(mkdir -p "$1" && cd "$1" && pwd)
project=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
stage=$work/recon-$VERSION
mkdir -p "$stage/debian/source"
host=$(octave-config -p CANONICAL_HOST_TYPE)
for file in "$project"/packaging/debian/*.in; do
    name=$(basename "$file" .in)
    sed -e "s|@ABI@|$ABI|g" -e "s|@VERSION@|$VERSION|g" -e "s|@MAINTAINER@|$MAINTAINER|g" -e "s|@PROJECT@|$project|g" \
        -e "s|@OCTAVE_HOST@|$host|g" "$file" > "$stage/debian/${name/#librecon.install/librecon$ABI.install}"
done
# The text of the MIT licence, in the form of a field: indented, empty lines are a point.
sed -e 's/^$/./' -e 's/^/ /' "$project/LICENSE-MIT" > "$work/mit"
sed -i -e "/@MIT@/{r $work/mit" -e 'd}' "$stage/debian/copyright"
chmod +x "$stage/debian/rules"
echo '3.0 (native)' > "$stage/debian/source/format"
cp "$project/CHANGELOG.md" "$stage/"
{
    printf 'recon (%s) unstable; urgency=medium\n\n  * Version %s: CHANGELOG.md lists the changes.\n\n' "$VERSION" "$VERSION"
    printf ' -- %s  %s\n' "$MAINTAINER" "$(date --utc --rfc-email --date="@$SOURCE_DATE_EPOCH")"
} > "$stage/debian/changelog"
cd "$stage"
env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL dpkg-buildpackage --build=binary --no-sign --no-check-builddeps
mv "$work"/*.deb "$output/"
