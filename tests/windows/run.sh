#!/usr/bin/env bash
# Tests recon for Windows on Linux: builds with mingw-w64, and runs the suites under Wine. `make test-windows` installs
# what is needed, and calls this.
#
#     tests/windows/run.sh [SUITE ...]
#
# A suite is a test of cargo, such as `nufft`, or one of these:
#
#     lib          unit tests
#     program      tests of the program
#     c            programs in C that load and unload the library
#     install      the installed files, used by CMake and pkg-config
#     mex          the MEX file is built
#
# Default: all of ALL. After a failure the other suites run too. At the end a table gives the number of tests that
# passed in each suite.
#
# PROFILE: the profile of cargo, default `release`. WINEPREFIX: the folder of Wine's files, default in the target
# folder.
set -euo pipefail
cd "$(dirname "$0")/../.."

ACCURACY="nufft window exact toeplitz values levels off_resonance decay minimax"
SOLVER="cg coils density gridding discrepancy fbp partial_fourier propeller field_map phase_difference coil_matrices"
ALL="lib c_api c_guest cuda_drivers finite $ACCURACY $SOLVER set_trajectory simulated_scan header_trajectories plan"
ALL="$ALL scan_altered damaged program c install mex"

target=x86_64-pc-windows-gnu
mingw=x86_64-w64-mingw32
profile=${PROFILE:-release}
mkdir -p "${CARGO_TARGET_DIR:-target}/windows"
folder=$(cd "${CARGO_TARGET_DIR:-target}" && pwd)
built=$folder/$target/$profile
work=$folder/windows
cargo=${CARGO:-cargo}
export WINEPREFIX=${WINEPREFIX:-$folder/wine} WINEDEBUG=-all
export CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUNNER=wine

if [ ! -e "$WINEPREFIX/system.reg" ]; then
    wine wineboot -i >/dev/null 2>&1
    # Rust requires Windows 10.
    wine winecfg -v win10 >/dev/null 2>&1
fi
system=$WINEPREFIX/drive_c/windows/system32
if [ ! -e "$system/bcryptprimitives.dll" ]; then
    $mingw-gcc -Wall -Wextra -Werror -O1 -shared -static-libgcc tests/windows/bcryptprimitives.c -ladvapi32 \
        -o "$system/bcryptprimitives.dll"
fi

# Prints a line, and ends the tests if a command fails or runs longer than two minutes.
passes() {
    local expected=$1 name=$2 status=0
    shift 2
    timeout 120 "$@" || status=$?
    if [ "$status" != "$expected" ]; then
        echo "FAILED: $name: exit status $status instead of $expected (124: a deadlock)"
        exit 1
    fi
    echo "ok: $name"
}

# Libraries and program. All calls of cargo select the whole workspace and a test, because the features of windows-sys
# depend on the selection: otherwise cargo compiles the library again for each kind of call.
build() {
    $cargo build --locked --profile "$profile" --target $target --workspace --lib --bins --test c_guest
    packaging/windows.sh "$built"
}

# Names of the libraries that a file needs, all of which Windows must have.
check_needed() {
    local known="^(KERNEL32|ntdll|msvcrt|ucrtbase|bcryptprimitives|ADVAPI32|USERENV|WS2_32|SHELL32|api-ms-win-.*)\.dll$"
    for file in "$@"; do
        local needed other
        needed=$($mingw-objdump -p "$file" | sed -n 's/.*DLL Name: //p')
        other=$(grep -viE "$known" <<<"$needed" || true)
        if [ -n "$other" ]; then
            echo "FAILED: $file needs" $other
            exit 1
        fi
        echo "ok: $(basename "$file") needs only libraries of Windows:" $needed
    done
}

# Programs in C, compiled by MinGW and, in the ABI of MSVC, by clang.
test_c() {
    build
    check_needed "$built/recon.dll" "$built/recon.exe"
    # The library exports what the header declares.
    diff <($mingw-objdump -p "$built/recon.dll" | sed -n '/Name Pointer. Table/,/^$/s/^[[:space:]]\[ *[0-9]*\] *//p' | sed 's/.* //' | sort -u) \
        <(sed -n -f packaging/functions.sed include/recon.h | sort -u)
    echo "ok: recon.dll exports exactly the functions of recon.h"
    cp "$built/recon.dll" "$work"
    local flags="-Wall -Wextra -Werror -O1 -Iinclude"
    $mingw-gcc -std=gnu11 $flags tests/windows/load.c -o "$work/load.exe" -lpsapi
    $mingw-gcc -std=c99 $flags -shared tests/windows/host.c "$built/librecon.dll.a" -o "$work/host.dll"
    passes 0 "recon.dll is loaded and unloaded four times" wine "$work/load.exe" unload
    passes 3 "ExitProcess while a plan exists" wine "$work/load.exe" exit
    passes 4 "main returns while a plan exists" wine "$work/load.exe" return
    passes 5 "a plan is destroyed at the end of the process" wine "$work/load.exe" destructor
    passes 6 "a library that uses recon.dll is unloaded" wine "$work/load.exe" host
    for language in c99:gcc:c/recon.c c++11:g++:cpp/recon.cpp; do
        IFS=: read -r standard compiler source <<<"$language"
        $mingw-$compiler -std=$standard -D__USE_MINGW_ANSI_STDIO=1 $flags "examples/$source" "$built/librecon.dll.a" \
            -o "$work/example.exe" -static
        passes 0 "examples/$source with recon.dll" wine "$work/example.exe"
    done
    # librecon.a, with the libraries that Rust's standard library needs.
    $mingw-gcc -std=c99 -D__USE_MINGW_ANSI_STDIO=1 $flags examples/c/recon.c "$built/librecon.a" $STATIC_LIBRARIES \
        -o "$work/static.exe" -static
    passes 0 "examples/c/recon.c with librecon.a" wine "$work/static.exe"
    check_needed "$work/static.exe"
    timeout 300 tests/windows/ctrl_c.py "$built/recon.exe"
    # Microsoft's ABI, without Microsoft's headers and libraries.
    printf 'LIBRARY kernel32.dll\nEXPORTS\nExitProcess\n' >"$work/kernel32.def"
    llvm-dlltool -m i386:x86-64 -d "$work/kernel32.def" -l "$work/kernel32.lib"
    local msvc="clang --target=x86_64-pc-windows-msvc -ffreestanding -fms-compatibility -Wall -Wextra -Werror"
    $msvc -O1 -Iinclude -c tests/windows/msvc.c -o "$work/msvc.obj"
    $msvc -x c++ -std=c++14 -fsyntax-only include/recon.h
    lld-link /nologo /subsystem:console /entry:start /nodefaultlib "/out:$work/msvc.exe" "$work/msvc.obj" \
        "$built/recon.lib" "$work/kernel32.lib"
    passes 0 "a program in Microsoft's ABI, linked with recon.lib" wine "$work/msvc.exe"
}

# The files that `make install` installs, as a release does: CMake and pkg-config build programs with them. Everything
# is removed again.
test_install() {
    build
    local stage=$work/stage
    rm -rf "$stage" "$work/cmake"
    mkdir -p "$work/cmake"
    # The program under Wine prints its manual pages and completions.
    printf '#!/bin/sh\nexec wine "%s" "$@"\n' "$built/recon.exe" >"$work/recon-printer"
    chmod +x "$work/recon-printer"
    local variables=(TARGET=$target "PROFILE=$profile" "CARGO_TARGET_DIR=$folder" "DESTDIR=$stage" PREFIX=)
    make --no-print-directory install "${variables[@]}" "PRINTER=$work/recon-printer" \
        'PC_PREFIX=$${pcfiledir}/../..' >/dev/null
    cat >"$work/cmake/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.10)
project(example C)
find_package(recon 0.1 REQUIRED)
foreach(kind recon static)
    add_executable(${kind} ${CMAKE_SOURCE_DIR}/recon.c)
    target_link_libraries(${kind} recon::${kind})
endforeach()
END
    cp examples/c/recon.c "$work/cmake"
    cmake -S "$work/cmake" -B "$work/cmake/build" -DCMAKE_SYSTEM_NAME=Windows -DCMAKE_C_COMPILER=$mingw-gcc \
        -DCMAKE_C_FLAGS=-D__USE_MINGW_ANSI_STDIO=1 "-DCMAKE_PREFIX_PATH=$stage" >/dev/null
    cmake --build "$work/cmake/build" >/dev/null
    cp "$stage/bin/recon.dll" "$work/cmake/build"
    passes 0 "CMake: a program with recon::recon" wine "$work/cmake/build/recon.exe"
    passes 0 "CMake: a program with recon::static" wine "$work/cmake/build/static.exe"
    cat >"$work/cmake/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.10)
project(example NONE)
set(MSVC TRUE)
find_package(recon 0.1 REQUIRED)
get_target_property(library recon::recon IMPORTED_IMPLIB)
if(NOT library MATCHES "/recon.lib$" OR NOT EXISTS ${library} OR TARGET recon::static)
    message(FATAL_ERROR "for Microsoft's linker: ${library}")
endif()
END
    cmake -S "$work/cmake" -B "$work/cmake/msvc" "-DCMAKE_PREFIX_PATH=$stage" >/dev/null
    echo "ok: CMake with Microsoft's compiler uses recon.lib"
    local flags
    flags=$(PKG_CONFIG_PATH=$stage/lib/pkgconfig pkg-config --cflags --libs recon)
    $mingw-gcc -D__USE_MINGW_ANSI_STDIO=1 examples/c/recon.c $flags -o "$work/cmake/build/pkg.exe"
    passes 0 "pkg-config: a program with recon.dll" wine "$work/cmake/build/pkg.exe"
    make --no-print-directory uninstall "${variables[@]}" >/dev/null
    local left
    left=$(find "$stage" -type f)
    if [ -n "$left" ]; then
        echo "FAILED: make uninstall leaves" $left
        exit 1
    fi
    echo "ok: make uninstall removes all files"
}

# The system libraries of librecon.a: rustc --print native-static-libs.
STATIC_LIBRARIES="-lkernel32 -lntdll -luserenv -lws2_32 -ldbghelp"

# The MEX file for Octave on Windows, of which only the names of functions are here: it is linked and not run.
test_mex() {
    local headers
    headers=$(mkoctfile -p INCFLAGS)
    build
    mkdir -p "$work/mex"
    for source in matlab/mex/*.c; do
        $mingw-gcc -c -O1 -std=c99 -Wall -Wextra -Werror -DRECON_OCTAVE -DMX_HAS_INTERLEAVED_COMPLEX=1 $headers -Iinclude \
            "$source" -o "$work/mex/$(basename "$source" .c).o"
    done
    $mingw-nm -u "$work"/mex/*.o | sed -n 's/^ *U \(mx[A-Z]\w*\|mex[A-Z]\w*\)$/\1/p' | sort -u >"$work/mex/names"
    { echo "LIBRARY liboctinterp.dll"; echo EXPORTS; cat "$work/mex/names"; } >"$work/mex/octinterp.def"
    $mingw-dlltool -d "$work/mex/octinterp.def" -l "$work/mex/liboctinterp.a"
    $mingw-gcc -shared -s -Wl,--exclude-libs,ALL "$work"/mex/*.o "$built/librecon_files.a" "$work/mex/liboctinterp.a" \
        $STATIC_LIBRARIES -o "$work/mex/recon_mex.mex"
    # Not grep -q, which ends the pipe early.
    $mingw-objdump -p "$work/mex/recon_mex.mex" | grep ' mexFunction$' >/dev/null
    echo "ok: recon_mex.mex is linked, and exports mexFunction"
}

# Compiles CUDA drivers without a GPU, in the versions that the test needs.
test_cuda_drivers() {
    local version
    mkdir -p "$work/drivers"
    for version in 11010 11040 11080 12000 13000; do
        $mingw-gcc -std=c11 -Wall -Wextra -Werror -shared -static-libgcc "-DVERSION=$version" tests/cuda_drivers/driver.c \
            -o "$work/drivers/driver-$version.dll"
    done
    RECON_TEST_CUDA_DRIVERS=$work/drivers "${run[@]}" --test cuda_drivers
}

run_suite() {
    local run=("$cargo" test --locked --profile "$profile" --target $target --workspace --no-fail-fast)
    case $1 in
    c) test_c ;;
    install) test_install ;;
    mex) test_mex ;;
    lib) "${run[@]}" --lib ;;
    cuda_drivers) test_cuda_drivers ;;
    *) "${run[@]}" --test "$1" ;;
    esac
}

# The numbers of tests in the output of a suite: cargo's lines of results, and the lines "ok: ..." of this script.
counts() {
    awk '/^test result: / { passed += $4; failed += $6; ignored += $8 } /^ok: / { passed++ } /^FAILED: / { failed++ }
        /^skipped: / { skipped++ }
        END { printf "%d passed, %d failed, %d ignored, %d lines \"skipped\"", passed, failed, ignored, skipped }' "$1"
}

suites=${*:-$ALL}
table="" failed=""
for suite in $suites; do
    log=$work/$suite.log
    start=$SECONDS
    # `set -e` has no effect in a condition, therefore the status is read afterwards.
    set +e
    (set -e && run_suite "$suite") 2>&1 | tee "$log"
    status=${PIPESTATUS[0]}
    set -e
    table+="$(printf '%-20s %s, %d s' "$suite" "$(counts "$log")" $((SECONDS - start)))"$'\n'
    if [ "$status" != 0 ]; then failed+=" $suite"; fi
done
printf '%s' "$table"
if [ -n "$failed" ]; then
    echo "Windows: FAILED:$failed"
    exit 1
fi
echo "Windows: all suites passed: $suites"
