#!/usr/bin/env bash
# Adds to a folder with recon.dll, built for x86_64-pc-windows-gnu, what other linkers need:
#
#     recon.def    the names of the functions
#     recon.lib    an import library in Microsoft's format, also for MATLAB's mex
#
#     packaging/windows.sh FOLDER     writes both, for the functions of include/recon.h
set -euo pipefail
cd "$(dirname "$0")/.."

folder=$1
if ! command -v llvm-dlltool >/dev/null; then
    echo "windows.sh: llvm-dlltool was not found: install LLVM (Debian's package llvm)" >&2
    exit 1
fi
{
    echo "LIBRARY recon.dll"
    echo "EXPORTS"
    sed -n -f packaging/functions.sed include/recon.h | sort
} >"$folder/recon.def"
# GNU's dlltool writes a different format, which Microsoft's linker does not accept in all cases.
llvm-dlltool -m i386:x86-64 -d "$folder/recon.def" -D recon.dll -l "$folder/recon.lib"
