#!/usr/bin/env bash
# Adds to a folder with recon.dll, built for x86_64-pc-windows-gnu, what other linkers need:
#
#     recon.def    the names of the functions
#     recon.lib    an import library in Microsoft's format, also for MATLAB's mex
#
#     packaging/windows.sh FOLDER     writes both
#     packaging/windows.sh --names    prints the functions that include/recon.h declares
set -euo pipefail
cd "$(dirname "$0")/.."

# A declaration begins its line with the type, and the name is before the first bracket.
names() {
    grep -E '^[a-z][A-Za-z0-9_ *]*\brecon_[a-z0-9_]+\(' include/recon.h | grep -v '^typedef' |
        sed -E 's/^[^(]*[ *](recon_[a-z0-9_]+)\(.*/\1/'
}

if [ "$1" = --names ]; then
    names
    exit
fi
folder=$1
{
    echo "LIBRARY recon.dll"
    echo "EXPORTS"
    names | sort
} >"$folder/recon.def"
# GNU's dlltool writes a different format, which Microsoft's linker does not accept in all cases.
llvm-dlltool -m i386:x86-64 -d "$folder/recon.def" -D recon.dll -l "$folder/recon.lib"
