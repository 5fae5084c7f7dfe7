#!/usr/bin/env bash
# Builds recon for each platform, and packs what users install, to the folder target/dist.
#
#   release.sh archives [PLATFORM ...]     an archive and a wheel for each platform (default: all), checksums, SBOM
#   release.sh packages                    the Debian packages of this machine's architecture
#   release.sh wheel PLATFORM FOLDER       only the wheel, of a library that is built already
#
# Variables are passed by the Makefile: VERSION, ABI, MAINTAINER, CARGO_TARGET_DIR, SOURCE_DATE_EPOCH, GLIBC, PYTHON.
#
# The same commit gives the same bytes: paths are removed from compiled files, all times are SOURCE_DATE_EPOCH (the
# commit's), entries of archives are sorted and have no owner.
set -euo pipefail
cd "$(dirname "$0")/.."
project=$PWD
target=$(mkdir -p "$CARGO_TARGET_DIR" && cd "$CARGO_TARGET_DIR" && pwd)
dist=$target/dist
work=$target/dist-work
zig=$target/zig-venv
export SOURCE_DATE_EPOCH LC_ALL=C TZ=UTC
# A wheel of sources without git has the time that the build backend chooses.
if [ -z "$SOURCE_DATE_EPOCH" ]; then unset SOURCE_DATE_EPOCH; fi

# Name of the platform, target of rustc, how it is built (with Zig for an old glibc, or by cargo alone), and the name
# that wheels have for it. Python cannot load the static library.
old_glibc=manylinux_${GLIBC//./_}
PLATFORMS="
x86_64-linux-gnu    x86_64-unknown-linux-gnu    portable  ${old_glibc}_x86_64
x86_64-linux-musl   x86_64-unknown-linux-musl   cargo     -
aarch64-linux-gnu   aarch64-unknown-linux-gnu   portable  ${old_glibc}_aarch64
x86_64-windows-gnu  x86_64-pc-windows-gnu       cargo     win_amd64
"
here=$(uname -m)-linux-gnu

say() { echo "release: $*"; }

row() { awk -v name="$1" '$1 == name' <<< "$PLATFORMS"; }

has_wheel() { [ "$(row "$1" | awk '{ print $4 }')" != - ]; }

# Ends with an error if a name is not in the list.
must_be_platform() {
    if [ -z "$(row "$1")" ]; then
        say "$1 is not a platform: these are" $(awk 'NF { print $1 }' <<< "$PLATFORMS") >&2
        exit 2
    fi
}

# Returns the folder in which cargo leaves the files of a platform.
built() {
    local name triple how tag
    read -r name triple how tag <<< "$(row "$1")"
    if [ "$how" = portable ]; then echo "$target/portable/$triple/release"; else echo "$target/$how-dist/$triple/release"; fi
}

# Writes a compiler for the old glibc, and returns its path.
zig_cc() {
    local bin=$work/zig-bin
    mkdir -p "$bin"
    # Zig's linker does not have --exclude-libs, with which recon.build keeps the library's symbols inside the MEX file.
    echo "{ global: mexFunction; __mx_has_interleaved_complex__; local: *; };" > "$bin/mex.map"
    cat > "$bin/$1-cc" << END
#!/bin/sh
for word; do
    shift
    [ "\$word" = -Wl,--exclude-libs,ALL ] && word=-Wl,--version-script=$bin/mex.map
    set -- "\$@" "\$word"
done
exec "$zig/bin/python" -m ziglang cc -target $1.$GLIBC "\$@"
END
    chmod +x "$bin/$1-cc"
    echo "$bin/$1-cc"
}

# Returns whether this machine has what a platform needs, or says in one line what is missing.
can_build() {
    local name triple how tag
    read -r name triple how tag <<< "$(row "$1")"
    if ! rustup target list --installed 2>/dev/null | grep -qx "$triple" && ! rustup target add "$triple" >/dev/null 2>&1; then
        say "skipped: $name (rustup cannot add the target $triple)"
        return 1
    fi
    if [ "$name" = x86_64-windows-gnu ] && ! command -v x86_64-w64-mingw32-gcc >/dev/null; then
        say "skipped: $name (no x86_64-w64-mingw32-gcc: Debian's package gcc-mingw-w64-x86-64)"
        return 1
    fi
}

# Builds libraries and program.
build() {
    local name triple how tag
    read -r name triple how tag <<< "$(row "$1")"
    say "building $name"
    local packages="--package recon --package recon-files --package recon-program"
    export CARGO_INCREMENTAL=0
    if [ "$how" = portable ]; then
        make --no-print-directory portable PORTABLE_TARGET="$triple" PORTABLE_PACKAGES="$packages" CARGO_TARGET_DIR="$target"
    else
        # As in `make portable`, files contain neither paths of this machine nor symbols. Files of Windows would contain
        # the time of linking.
        local flags="--remap-path-prefix=$project=/recon --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo"
        if [ "$name" = x86_64-windows-gnu ]; then flags="$flags -C link-arg=-Wl,--no-insert-timestamp"; fi
        PATH="$project/packaging/dlltool:$PATH" RUSTFLAGS=$flags CARGO_PROFILE_RELEASE_STRIP=symbols \
            CARGO_TARGET_DIR=$target/$how-dist cargo build --release --locked $packages --target "$triple"
    fi
}

# Fails if a file of this folder requires a newer glibc than promised.
check_glibc() {
    local file newest
    for file in "$@"; do
        [ -e "$file" ] || continue
        newest=$(readelf --dyn-syms --wide "$file" | grep -o 'GLIBC_[0-9.]*' | sort -Vu | tail -n 1)
        if [ "$(printf '%s\n' "GLIBC_$GLIBC" "$newest" | sort -V | tail -n 1)" != "GLIBC_$GLIBC" ]; then
            say "$file requires $newest, but releases promise glibc $GLIBC" >&2
            exit 1
        fi
        say "$(basename "$file"): $newest or newer"
    done
}

# Writes the licences of all that a platform's program, or another package, is linked with, and returns their folder.
licences() {
    local name triple how tag
    read -r name triple how tag <<< "$(row "$1")"
    local texts=$work/licences/${2:-recon-program}/$name
    "$zig/bin/python" packaging/licence_texts.py "${2:-recon-program}" "$triple" "$texts" && echo "$texts"
}

# The SBOM of the program, which is linked with all three packages. Paths of this machine are removed. Cargo leaves out
# the name of a package in a folder of the same name.
sbom() {
    local triple=$1 output=$2
    # cargo-cyclonedx writes next to each Cargo.toml.
    "$target/tools/bin/cargo-cyclonedx" cyclonedx --quiet --format json --spec-version 1.5 --no-build-deps \
        --target "$triple" --manifest-path src/cli/Cargo.toml
    sed -e "s|file://$project#\([0-9]\)|file:///recon#recon@\1|g" -e "s|file://$project|file:///recon|g" \
        src/cli/recon-program.cdx.json > "$output"
    rm -f ./*.cdx.json src/*/*.cdx.json
}

# The MEX file for Octave, linked like the library: it runs with Octave 7 and newer, and an older glibc than this one's.
mex() {
    local output=$1 library=$2
    if ! command -v mkoctfile >/dev/null; then
        say "not packed: a MEX file that is built already (no mkoctfile: Debian's package octave-dev)"
        return
    fi
    local cc
    cc=$(zig_cc "$(uname -m)-linux-gnu")
    mkdir -p "$output"
    CC=$cc CXX=$cc DL_LD=$cc LD_CXX=$cc CFLAGS="-O2" CXXFLAGS="-O2" XTRA_CFLAGS=-pthread XTRA_CXXFLAGS=-pthread \
        DL_LDFLAGS="-shared" LDFLAGS="" \
        octave-cli --norc --eval "addpath('matlab'); recon.build('Library', '$library', 'Output', '$output')"
    check_glibc "$output/recon_mex.mex"
}

# Packs the library of a platform into a wheel for every Python.
wheel() {
    local name triple how tag
    read -r name triple how tag <<< "$(row "$1")"
    local folder=$2 from library texts file audit
    from=$(built "$name")
    library=$from/librecon.so.$VERSION
    if [ "$tag" = win_amd64 ]; then library=$from/recon.dll; fi
    texts=$(licences "$name" recon)
    mkdir -p "$folder"
    rm -f "$folder"/*"$tag.whl"
    LIBRECON=$library LIBRECON_LICENCES=$texts LIBRECON_PLATFORM=$tag \
        "$PYTHON" -m build --wheel --no-isolation --outdir "$folder" python >/dev/null
    file=$(echo "$folder"/*"$tag.whl")
    if [ "$how" = portable ]; then
        audit=$("$PYTHON" -m auditwheel show "$file")
        if [ "${audit#*"\"$tag\""}" = "$audit" ]; then
            say "$file does not run on all systems of its name: $audit" >&2
            exit 1
        fi
    fi
    if [ -z "$(find "$file" -size -10M)" ]; then
        say "$file is larger than the 10 MB that are promised: $(stat -c %s "$file") bytes" >&2
        exit 1
    fi
    say "$(basename "$file")"
}

# Fills and packs the folder of one platform.
archive() {
    local name triple how tag
    read -r name triple how tag <<< "$(row "$1")"
    local base=recon-$VERSION-$name
    local stage=$work/$base from texts
    from=$(built "$name")
    rm -rf "$stage"
    mkdir -p "$stage"
    make --no-print-directory install TARGET="$triple" BUILT="$from" DESTDIR="$stage" PREFIX= \
        PC_PREFIX='$${pcfiledir}/../..' LIBDIR=/lib INCLUDEDIR=/include PRINTER="$(built "$here")/recon" >/dev/null
    if [ "$how" = portable ]; then check_glibc "$from/librecon.so.$VERSION" "$from/recon"; fi
    texts=$(licences "$name")
    cp README.md CHANGELOG.md CONTRIBUTING.md LICENSE-MIT LICENSE-APACHE "$texts"/* "$stage/"
    mkdir -p "$stage/matlab" "$stage/octave" "$stage/gadgetron"
    cp -r docs "$stage/"
    # The data of the tables in docs/benchmarks.
    find "$stage/docs" -name '*.json' -delete
    cp -r matlab/+recon matlab/mex matlab/examples "$stage/matlab/"
    cp -r gadgetron/CMakeLists.txt gadgetron/config gadgetron/src gadgetron/tests "$stage/gadgetron/"
    cp -r examples/c examples/cpp "$stage/" && mkdir -p "$stage/examples" && mv "$stage/c" "$stage/cpp" "$stage/examples/"
    packaging/octave/package.sh "$work/octave/recon-$VERSION" "$from/librecon_files.a" "$texts"
    packaging/archive.py "$work/octave/recon-$VERSION" "$stage/octave/recon-$VERSION.tar.gz"
    if [ "$name" = "$here" ]; then mex "$stage/matlab" "$from/librecon_files.a"; fi
    sbom "$triple" "$stage/recon.cdx.json"
    cp "$stage/recon.cdx.json" "$dist/$base.cdx.json"
    if [ "$how" != portable ] && [ "${name#*windows}" != "$name" ]; then
        packaging/archive.py "$stage" "$dist/$base.zip"
    else
        packaging/archive.py "$stage" "$dist/$base.tar.xz"
    fi
    rm -rf "$stage"
}

checksums() {
    (cd "$dist" && find . -type f ! -name SHA256SUMS -printf '%P\n' | sort | xargs sha256sum > SHA256SUMS)
    say "$dist:"
    (cd "$dist" && ls -l --block-size=K)
}

mkdir -p "$dist" "$work"
case ${1:-} in
archives)
    shift
    names=${*:-$(awk 'NF { print $1 }' <<< "$PLATFORMS")}
    for name in $names; do
        must_be_platform "$name"
    done
    # The program of this machine prints the manual pages of all platforms.
    build "$here"
    for name in $names; do
        if ! can_build "$name"; then continue; fi
        if [ "$name" != "$here" ]; then build "$name"; fi
        archive "$name"
        if has_wheel "$name"; then wheel "$name" "$dist"; fi
    done
    checksums
    ;;
wheel)
    must_be_platform "${2:-}"
    if ! has_wheel "$2"; then
        say "$2 has no shared library, which a wheel needs" >&2
        exit 2
    fi
    wheel "$2" "$3"
    ;;
packages)
    if [ -z "${MAINTAINER##*@example.org*}" ]; then
        say "the packages have no real maintainer ($MAINTAINER): set MAINTAINER before you publish them"
    fi
    build "$here"
    from=$(built "$here")
    texts=$(licences "$here")
    packaging/octave/package.sh "$work/octave/recon-$VERSION" "$from/librecon_files.a" "$texts"
    mex "$work/mex" "$from/librecon_files.a"
    BUILT=$from OCTAVE_PACKAGE=$work/octave/recon-$VERSION RECON_MEX=$work/mex/recon_mex.mex \
        LICENCES="$texts/THIRD-PARTY-LICENCES.txt $texts/COPYRIGHT-library.html" \
        packaging/debian/packages.sh "$dist"
    checksums
    ;;
*)
    sed -n '2,9s/^# \{0,1\}//p' "$0" >&2
    exit 2
    ;;
esac
