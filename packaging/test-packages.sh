#!/usr/bin/env bash
# Installs, uses and removes the Debian packages in a bare Debian 12 (debootstrap, minbase), as root.
#
#   test-packages.sh FOLDER     FOLDER: with the .deb files of `make packages`
#
# The base system is kept in TMPDIR (default /tmp) for the next run; DEBIAN_MIRROR sets a different mirror.
set -euo pipefail
packages=$(cd "$1" && pwd)
project=$(cd "$(dirname "$0")/.." && pwd)
mirror=${DEBIAN_MIRROR:-http://deb.debian.org/debian}
base=${TMPDIR:-/tmp}/recon-bookworm.tar
root=$(mktemp -d "${TMPDIR:-/tmp}/recon-packages.XXXXXX")
if [ "$(id -u)" != 0 ]; then
    echo "test-packages.sh: debootstrap and chroot need root" >&2
    exit 1
fi
clean_up() {
    umount "$root/proc" 2>/dev/null || true
    rm -rf --one-file-system "$root"
}
trap clean_up EXIT

say() { echo "== $*"; }
inside() { chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive sh -ec "$*"; }
apt="apt-get -qq -y --no-install-recommends -o Dpkg::Use-Pty=0 -o APT::Sandbox::User=root"

say "lintian"
lintian --fail-on error --allow-root "$packages"/*.deb

say "a bare Debian"
if [ ! -e "$base" ]; then
    debootstrap --variant=minbase bookworm "$root" "$mirror" >/dev/null
    tar -C "$root" -cf "$base.new" . && mv "$base.new" "$base"
else
    tar -C "$root" -xf "$base"
fi
mount -t proc proc "$root/proc"
cp /etc/resolv.conf "$root/etc/resolv.conf"
mkdir "$root/packages" && cp "$packages"/*.deb "$root/packages/"
inside "apt-get -qq update"

say "the program"
inside "$apt install /packages/recon_*.deb >/dev/null; mkdir /work; cd /work
recon simulate --matrix 64,64 --trajectory golden-angle --coils 4 --snr 100 --truth truth.h5 -o scan.h5
recon cg scan.h5 --iterations 10 -o cg.nii
recon cg scan.h5 --iterations 10 -o cg.dcm
recon compare cg.nii truth.h5 --magnitude --scale best
test -s /usr/share/man/man1/recon-cg.1.gz; test -s /usr/share/bash-completion/completions/recon"

say "a C program by pkg-config, shared and static"
cp "$project/examples/c/recon.c" "$root/work/"
inside "$apt install /packages/librecon[0-9]*.deb /packages/librecon-dev_*.deb gcc libc6-dev pkg-config >/dev/null; cd /work
cc recon.c \$(pkg-config --cflags --libs recon) -o shared; ./shared | tail -n 2
ldd shared | grep librecon
cc -static recon.c \$(pkg-config --static --cflags --libs recon) -o static 2>/dev/null; ./static | tail -n 1"

say "Octave"
inside "$apt install /packages/octave-recon_*.deb >/dev/null; cd /work
octave-cli --eval 'disp(recon.version()); [k, d, info] = recon.read(\"scan.h5\"); x = recon.cg(k, d, [64 64], \"Maps\", \"data\", \"Iterations\", 10); assert(all(isfinite(x(:))) && norm(x(:)) > 0)'
octave-cli --eval 'pkg load recon; pkg list recon; disp(size(recon.trajectory.radial(8, 16)))'"

say "nothing is left after removal"
inside "dpkg --purge \$(dpkg-query -W -f '\${Package} ' recon octave-recon 'librecon*') >/dev/null"
left=$(chroot "$root" find / -xdev \( -path /proc -o -path /packages -o -path /work \) -prune \
    -o -regextype posix-extended -regex '.*/(lib|octave-|[+])?recon([._0-9-].*)?' -print)
if [ -n "$left" ]; then
    echo "left after removal:" $left >&2
    exit 1
fi
if inside "ldconfig -p" | grep librecon; then exit 1; fi
if grep '+recon\|recon-' "$root/usr/share/octave/octave_packages"; then exit 1; fi
say "packages: installed, run and removed"
