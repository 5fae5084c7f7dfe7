# Demonstrates, tests, builds and installs. In Rust, use the crate.
#
#   make demo                                   a 3D scan, simulated and reconstructed: errors, and demo/demo.png
#   make check                                  formatting, lints, documents, fast tests, without root
#   make test                                   everything that can be checked on this machine
#   make test-aarch64                           the suites on 64-bit ARM (NEON) in an emulator: hours
#   make test-musl                              the suites of the static build with musl
#   make test-gadgets GADGETRON_HOME=folder     the tests of the gadgets with one Gadgetron, or ISMRMRD_HOME=folder
#   make test-windows                           the library and the program for Windows, under Wine: an hour or more
#   make mutants                                one-line changes that a test must find: an hour or more
#   make bench                                  speed beside DUCC0, FINUFFT and BART: 20 minutes or more
#   make bench-bundle                           the build, packed to run `make bench` on another machine
#   make bench-gpu                              the same on an NVIDIA GPU, beside cuFINUFFT: 8 minutes
#   make bench-sweep                            random shapes beside the same peers: 15 minutes. DEVICE=gpu: on a GPU
#   make papers                                 the experiments of the five papers, to docs/papers: 12 minutes on a GPU
#   make matlab                                 recon_mex beside +recon in matlab/, for Octave and MATLAB
#   make portable                               the library for glibc 2.28 and newer, in target/portable
#   make wheel                                  the Python package, with that library, in target/wheel
#   make test-python                            its tests in an empty environment, with PyTorch: 5 GB
#   make && sudo make install                   the library to /usr/local
#   make program && sudo make install           the library, the program, its manual pages and completions
#   make install PREFIX=/usr DESTDIR=stage      for packagers
#   make release                                archives and wheels for all platforms, Debian packages, in target/dist
#   make packages                               the Debian packages alone
#   make test-packages                          installs, runs and removes the packages in a bare Debian: as root
#   make test-reproducible                      builds a release again in a new folder: the same bytes
PREFIX ?= /usr/local
DESTDIR ?=
LIBDIR ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
BINDIR ?= $(PREFIX)/bin
DATADIR ?= $(PREFIX)/share

CARGO ?= cargo
CARGO_FLAGS ?= --release --locked
# Folder in which cargo leaves the library; every profile has its own.
PROFILE ?= release
CARGO_TARGET_DIR ?= target
# A target of rustc, for another system than this one; BUILT is then that target's folder.
TARGET ?=
for_target := $(if $(TARGET),--target $(TARGET))
BUILT ?= $(CARGO_TARGET_DIR)/$(if $(TARGET),$(TARGET)/)$(PROFILE)

VERSION := $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
MAJOR := $(firstword $(subst ., ,$(VERSION)))
# The number in the soname and in the version node.
ABI := $(shell sed -n 's/^abi = //p' Cargo.toml)
# The libraries that librecon.a requires (rustc --print native-static-libs), except the unwinder: compilers add it
# themselves, as -lgcc_s, or with -static as -lgcc_eh.
PRIVATE_LIBS := -lutil -lrt -lpthread -lm -ldl -lc
# The library's files have other names on each system. For musl, rustc makes no shared library and no loader is present.
SYSTEM := $(if $(findstring windows,$(TARGET)),windows,$(if $(findstring musl,$(TARGET)),musl,unix))
exe := $(if $(filter windows,$(SYSTEM)),.exe)
ifeq ($(SYSTEM),windows)
PRIVATE_LIBS := -lkernel32 -lntdll -luserenv -lws2_32 -ldbghelp
endif
# The prefix in the pkg-config file: an archive, which is unpacked anywhere, has one relative to that file.
PC_PREFIX ?= $(PREFIX)
below_prefix = $(patsubst $(PREFIX)/%,$${prefix}/%,$(1))
# A program that runs here prints its manual pages and completions.
PRINTER ?= $(BUILT)/recon$(exe)

lib := $(DESTDIR)$(LIBDIR)
include := $(DESTDIR)$(INCLUDEDIR)
bin := $(DESTDIR)$(BINDIR)
pages := $(DESTDIR)$(DATADIR)/man/man1
bash := $(DESTDIR)$(DATADIR)/bash-completion/completions
zsh := $(DESTDIR)$(DATADIR)/zsh/site-functions
fish := $(DESTDIR)$(DATADIR)/fish/vendor_completions.d
fill := sed -e 's|@PREFIX@|$(PC_PREFIX)|g' -e 's|@INCLUDEDIR@|$(INCLUDEDIR)|g' \
	-e 's|@PC_LIBDIR@|$(call below_prefix,$(LIBDIR))|g' -e 's|@PC_INCLUDEDIR@|$(call below_prefix,$(INCLUDEDIR))|g' \
	-e 's|@VERSION@|$(VERSION)|g' -e 's|@MAJOR@|$(MAJOR)|g' -e 's|@ABI@|$(ABI)|g' -e 's|@PRIVATE_LIBS@|$(PRIVATE_LIBS)|g'

.PHONY: build program header install install-shared-unix install-shared-windows install-shared-musl install-program uninstall matlab portable wheel release packages test-packages test-reproducible need_epoch deps check test test-aarch64 test-musl test-python test-python-quick test-gadgets test-windows mutants demo bench bench-bundle bench-gpu bench-sweep papers bench-matlab

# recon_files is librecon with the readers of files for the MEX file.
build:
	$(CARGO) build --lib $(CARGO_FLAGS) $(for_target) --package recon --package recon-files
	@$(if $(filter unix,$(SYSTEM)),if [ "$$(uname -s)" = Linux ]; then $(MAKE) --no-print-directory $(shared); fi)

program: build
	$(CARGO) build $(CARGO_FLAGS) $(for_target) --package recon-program

header:
	RECON_UPDATE_HEADER=1 $(CARGO) test --locked --test header

# Built here only if it was not built before.
$(BUILT)/librecon.so $(BUILT)/librecon.a $(BUILT)/recon.dll:
	$(CARGO) build --lib $(CARGO_FLAGS) $(for_target)

# The shared library that is installed is linked here, from the code in librecon.a. For its own librecon.so, rustc
# passes a version script without a node. GNU ld refuses a second script, and LLD gives its node to no symbol.
# (--default-symver is known to GNU ld only.) Functions and script follow from the header. CC and LDFLAGS select the
# linker.
shared := $(BUILT)/librecon.so.$(VERSION)
functions = $(shell sed -n -f packaging/functions.sed include/recon.h)
LINK := -Wl,--gc-sections,--no-undefined,--as-needed,--strip-debug,-z,relro,-z,now,-z,noexecstack

$(BUILT)/recon.map: include/recon.h packaging/functions.sed Cargo.toml
	@{ echo "RECON_$(ABI) {"; echo "    global:"; sed -n -f packaging/functions.sed include/recon.h | sed 's/.*/        &;/'; \
		echo "    local:"; echo "        *;"; echo "};"; } > $@

$(shared): $(BUILT)/librecon.a $(BUILT)/recon.map
	$(CC) -shared -o $@ $(functions:%=-Wl,-u,%) $(BUILT)/librecon.a -Wl,--version-script=$(BUILT)/recon.map \
		-Wl,-soname,librecon.so.$(ABI) $(LINK) $(LDFLAGS) $(PRIVATE_LIBS)

install: $(BUILT)/librecon.a install-shared-$(SYSTEM)
	install -d "$(include)" "$(lib)/pkgconfig" "$(lib)/cmake/recon"
	install -m 644 include/recon.h "$(include)/recon.h"
	install -m 644 "$(BUILT)/librecon.a" "$(lib)/librecon.a"
	@if [ -e "$(BUILT)/librecon_files.a" ]; then set -x; install -m 644 "$(BUILT)/librecon_files.a" "$(lib)/librecon_files.a"; \
	else echo "not installed: librecon_files.a, which recon.build in MATLAB needs (make builds it)"; fi
	$(fill) packaging/recon.pc.in > "$(lib)/pkgconfig/recon.pc"
	$(fill) packaging/recon-config.cmake.in > "$(lib)/cmake/recon/recon-config.cmake"
	$(fill) packaging/recon-config-version.cmake.in > "$(lib)/cmake/recon/recon-config-version.cmake"
	@if [ -x "$(BUILT)/recon$(exe)" ]; then $(MAKE) --no-print-directory install-program; \
	else echo "the program recon is not installed, because it was not built: make program"; fi

install-shared-unix: $(shared)
	install -d "$(lib)"
	install -m 755 "$(shared)" "$(lib)/librecon.so.$(VERSION)"
	ln -sf librecon.so.$(VERSION) "$(lib)/librecon.so.$(ABI)"
	ln -sf librecon.so.$(ABI) "$(lib)/librecon.so"

# Windows searches the program's folder for libraries. librecon.dll.a is the import library for GNU's linker, recon.lib
# for Microsoft's.
install-shared-windows: $(BUILT)/recon.dll $(BUILT)/recon.lib
	install -d "$(bin)" "$(lib)"
	install -m 755 "$(BUILT)/recon.dll" "$(bin)/recon.dll"
	install -m 644 "$(BUILT)/librecon.dll.a" "$(lib)/librecon.dll.a"
	install -m 644 "$(BUILT)/recon.lib" "$(lib)/recon.lib"

$(BUILT)/recon.lib: $(BUILT)/recon.dll include/recon.h packaging/functions.sed packaging/windows.sh
	packaging/windows.sh "$(BUILT)"

install-shared-musl:
	@echo "not installed: a shared library, which rustc does not make for $(TARGET)"

# Only a program that was built before is installed: root may not have cargo.
install-program:
	install -d "$(bin)" "$(pages)" "$(bash)" "$(zsh)" "$(fish)"
	install -m 755 "$(BUILT)/recon$(exe)" "$(bin)/recon$(exe)"
	"$(PRINTER)" manual -o "$(pages)"
	"$(PRINTER)" completions bash > "$(bash)/recon"
	"$(PRINTER)" completions zsh > "$(zsh)/_recon"
	"$(PRINTER)" completions fish > "$(fish)/recon.fish"

# Pages of other programs may begin with recon- too: those of this one have its name in the head.
uninstall:
	rm -f "$(bin)/recon$(exe)" "$(bash)/recon" "$(zsh)/_recon" "$(fish)/recon.fish"
	@for page in "$(pages)"/recon.1 "$(pages)"/recon-*.1; do \
		if grep -q '^\.TH .*"recon manual"' "$$page" 2>/dev/null; then echo "rm -f $$page"; rm -f "$$page"; fi; done
	rm -f "$(include)/recon.h" "$(lib)/librecon.a" "$(lib)/librecon_files.a" "$(lib)/pkgconfig/recon.pc"
	rm -f "$(lib)/librecon.so" "$(lib)/librecon.so.$(ABI)" "$(lib)/librecon.so.$(VERSION)"
	rm -f "$(bin)/recon.dll" "$(lib)/librecon.dll.a" "$(lib)/recon.lib"
	rm -rf "$(lib)/cmake/recon"

# The oldest glibc that archives and the Python wheel run on, as in RHEL 8. A plain build requires the glibc of the
# machine that compiles. Zig's linker has the symbol versions of all of them.
GLIBC := 2.28
PORTABLE_TARGET := x86_64-unknown-linux-gnu
# Packages that cargo builds. For example make portable PORTABLE_PACKAGES="--package recon --package recon-program"
PORTABLE_PACKAGES ?= --package recon --lib
portable := $(CARGO_TARGET_DIR)/portable/$(PORTABLE_TARGET)/$(PROFILE)
zig := $(CARGO_TARGET_DIR)/zig-venv

$(zig)/ready: packaging/requirements-zig.txt
	python3 -m venv $(zig)
	$(zig)/bin/python -m pip install --quiet --requirement $<
	touch $@

# The compiler that links for an older glibc.
zig_cc = $(abspath $(zig)/bin/python) -m ziglang cc -target $(subst -unknown,,$(PORTABLE_TARGET)).$(GLIBC)

# A folder of its own: cargo does not distinguish a build for an older glibc from one for this machine's. Paths of
# this machine and debug symbols are removed. Zig's unwinder takes the place of libgcc_s in the library that is linked
# here, as in the files that cargo-zigbuild links.
portable: export CARGO_PROFILE_RELEASE_STRIP := symbols
portable: export RUSTFLAGS := --remap-path-prefix=$(CURDIR)=/recon \
	--remap-path-prefix=$(or $(CARGO_HOME),$(HOME)/.cargo)=/cargo
portable: $(zig)/ready
	PATH="$(abspath $(zig)/bin):$$PATH" CARGO_TARGET_DIR=$(CARGO_TARGET_DIR)/portable \
		$(CARGO) zigbuild $(CARGO_FLAGS) $(PORTABLE_PACKAGES) --target $(PORTABLE_TARGET).$(GLIBC)
	$(MAKE) --no-print-directory $(portable)/librecon.so.$(VERSION) TARGET=$(PORTABLE_TARGET) BUILT=$(portable) \
		CC="$(zig_cc)" LDFLAGS="-s -lunwind"

# The Python package. It is tested with the library that LIBRECON names, or in its wheel.
python_venv := $(CARGO_TARGET_DIR)/python-venv
wheels := $(CARGO_TARGET_DIR)/wheel

$(python_venv)/ready: python/requirements.txt
	@python3 -m venv $(python_venv) && $(python_venv)/bin/python -m pip install --quiet --requirement $< && touch $@ || true

# With make wheel PORTABLE_TARGET=aarch64-unknown-linux-gnu for that platform.
wheel: $(python_venv)/ready portable
	rm -rf $(wheels)
	$(for_release) packaging/release.sh wheel $(subst -unknown,,$(PORTABLE_TARGET)) $(wheels)

# The wheel in an empty environment. MRI_NUFFT is a folder with mri-nufft's repository, whose own tests then run too.
MRI_NUFFT ?=
wheel_venv := $(CARGO_TARGET_DIR)/wheel-venv

test-python: wheel
	rm -rf $(wheel_venv)
	python3 -m venv $(wheel_venv)
	$(wheel_venv)/bin/python -m pip install --quiet $(wheels)/*.whl
	cd $(wheels) && $(abspath $(wheel_venv))/bin/python $(abspath python)/tests/first_example.py
	$(wheel_venv)/bin/python -m pip install --quiet --requirement python/tests/requirements.txt
	$(wheel_venv)/bin/python -m pytest -rs python
	$(wheel_venv)/bin/python python/tests/overhead.py
	@if [ -n "$(MRI_NUFFT)" ]; then $(wheel_venv)/bin/python python/tests/mri_nufft_suite.py $(MRI_NUFFT); \
	else echo "skipped: mri-nufft's own tests (set MRI_NUFFT to a folder with its repository)"; fi

# The quick part, with the library that `cargo test` built. PyTorch and others are not installed for it.
test-python-quick: $(python_venv)/ready
	@if [ -e $(python_venv)/ready ]; then \
		$(python_venv)/bin/python python/bindings.py include/recon.h python/librecon >/dev/null && \
		LIBRECON=$(abspath $(CARGO_TARGET_DIR))/debug/deps/librecon.so PYTHONPATH=$(abspath python) \
			$(python_venv)/bin/python -m pytest -q -rs python; \
	else echo "skipped: the Python package (no python3-venv, or no network)"; fi

# Tools of releases. Compiled without optimisation: they run for a second, and are compiled for minutes.
tools := $(CARGO_TARGET_DIR)/tools

$(tools)/ready: packaging/tools.txt
	while read -r tool features; do \
		$(CARGO) install --quiet --debug --locked --root $(tools) $$tool $${features:+--features $$features} </dev/null || exit 1; \
	done < $<
	touch $@

# The time of all files in archives and packages: the commit's.
SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null)
# The address in packages. Set it before packages are published.
MAINTAINER ?= The recon authors <recon@example.org>
# One or more of the names in packaging/release.sh. Empty: all that can be built here.
PLATFORM ?=
for_release := VERSION=$(VERSION) ABI=$(ABI) MAINTAINER="$(MAINTAINER)" CARGO_TARGET_DIR=$(CARGO_TARGET_DIR) GLIBC=$(GLIBC) \
	SOURCE_DATE_EPOCH=$(SOURCE_DATE_EPOCH) PYTHON=$(abspath $(python_venv))/bin/python

need_epoch:
	@if [ -z "$(SOURCE_DATE_EPOCH)" ]; then echo "no git here: set SOURCE_DATE_EPOCH to the time of the release, in seconds"; exit 1; fi

# Archives and wheels for all platforms, the Debian packages, SBOM and checksums, in target/dist.
release: PACKAGES := gcc libc6-dev binutils python3-venv gcc-mingw-w64-x86-64 llvm octave octave-dev dpkg-dev debhelper
release: deps need_epoch $(zig)/ready $(python_venv)/ready $(tools)/ready
	rm -rf $(CARGO_TARGET_DIR)/dist
	$(for_release) packaging/release.sh archives $(PLATFORM)
	$(for_release) packaging/release.sh packages

packages: PACKAGES := gcc libc6-dev binutils python3-venv octave octave-dev dpkg-dev debhelper
packages: deps need_epoch $(zig)/ready $(tools)/ready
	$(for_release) packaging/release.sh packages

# Installs, runs and removes the packages in a bare Debian. As root, by hand only; 1.5 GB of the disk.
test-packages: deps packages
	$(MAKE) --no-print-directory deps PACKAGES="debootstrap lintian"
	packaging/test-packages.sh $(CARGO_TARGET_DIR)/dist

# Builds the last commit again in a new folder, and compares the files. By hand only.
test-reproducible:
	$(MAKE) --no-print-directory release PLATFORM="$(or $(PLATFORM),x86_64-linux-gnu)"
	CARGO_TARGET_DIR=$(CARGO_TARGET_DIR) packaging/test-reproducible.sh $(or $(PLATFORM),x86_64-linux-gnu)

# Where neither is found, recon.build from within MATLAB or Octave does the same.
matlab: build
	@found=; library="$(abspath $(BUILT))/librecon_files.a"; code="addpath('$(abspath matlab)'); recon.build('Library', '$$library')"; \
	if command -v mkoctfile >/dev/null; then found=1; octave-cli --norc --eval "$$code" || exit 1; fi; \
	if command -v matlab >/dev/null; then found=1; matlab -batch "$$code" || exit 1; fi; \
	if [ -z "$$found" ]; then echo "neither mkoctfile (Debian's octave-dev) nor matlab is on PATH"; exit 1; fi

# Debian packages for the tests of the installed copy; `make test` adds more. Nothing is done if they are installed.
PACKAGES := gcc g++ libc6-dev binutils pkg-config cmake

deps:
	@missing=$$(for p in $(PACKAGES); do dpkg -s $$p >/dev/null 2>&1 || echo $$p; done); \
	if [ -n "$$missing" ]; then \
		command -v apt-get >/dev/null || { echo "please install:" $$missing; exit 1; }; \
		echo "installing:" $$missing; \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends $$missing; \
	fi

# Words that are right as they are: names in the literature, and what a test misspells.
WORDS := reson,iteratons,te,tolerence
spelling := $(CARGO_TARGET_DIR)/spelling

$(spelling)/ready: Makefile
	@python3 -m venv $(spelling) >/dev/null 2>&1 && $(spelling)/bin/python -m pip install --quiet codespell==2.4.1 && touch $@ || true

check:
	@if cargo fmt --version >/dev/null 2>&1; then $(CARGO) fmt --check; else echo "skipped: formatting (no rustfmt)"; fi
	@if cargo clippy --version >/dev/null 2>&1; then $(CARGO) clippy --locked --all-targets --workspace -- -D warnings; \
	else echo "skipped: lints (no clippy)"; fi
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --locked --no-deps
	@$(MAKE) --no-print-directory $(spelling)/ready; if [ -e $(spelling)/ready ]; then \
		git ls-files | grep -vE '\.(npy|png|svg|h5|lock)$$' | xargs $(spelling)/bin/codespell --ignore-words-list $(WORDS); \
	else echo "skipped: spelling (no python3-venv, or no network)"; fi
	python3 tests/prose/test_check.py --quiet
	python3 tests/prose/check.py
	python3 benches/test_benches.py --quiet
	python3 benches/index.py --check
	python3 tests/mutants/run.py --check
	python3 packaging/test_packaging.py --quiet
	CARGO="$(CARGO)" python3 packaging/licences.py
# --workspace: with the features that `make test` compiles, so that nothing is compiled twice.
	$(CARGO) test --locked --workspace --lib --test layers --test header

# The GPU's kernels are compiled by the tests, which needs no GPU but NVRTC: the one that RECON_NVRTC names, or PyPI's.
nvrtc := $(CARGO_TARGET_DIR)/nvrtc

$(nvrtc)/ready: tests/requirements.txt
	python3 -m venv $(nvrtc)
	$(nvrtc)/bin/python -m pip install --quiet --requirement $< && touch $@ || echo "no NVRTC from PyPI"

# Files of ISMRMRD, NIfTI and DICOM are written and read by other packages than recon: by the Python that
# RECON_TEST_PYTHON names, or by this one.
mrd := $(CARGO_TARGET_DIR)/mrd-venv

$(mrd)/ready: tests/requirements-mrd.txt
	python3 -m venv $(mrd)
	$(mrd)/bin/python -m pip install --quiet --requirement $< && touch $@ || echo "no ismrmrd, nibabel and pydicom from PyPI"

# Systems that the library is compiled for, though not run on.
OTHER_SYSTEMS := x86_64-pc-windows-gnu aarch64-apple-darwin x86_64-apple-darwin aarch64-unknown-linux-gnu \
	x86_64-unknown-linux-musl

# Examples are left out, which `make check` checks: optimised, they are compiled for minutes.
# The tests of the transforms and of the solver run again at each lower level of the vector unit, and print so. The
# gadgets' tests need the ISMRMRD library. If Gadgetron is installed (GADGETRON_HOME, or on the PATH), the gadgets also
# run in it. The MATLAB functions are tested in Octave, whose pictures need gnuplot (any), Ghostscript and a font. Pages
# of `recon view` are tested in Chromium: 123 MB to load, 410 MB on the disk, half a minute.
test: PACKAGES += bart python3-venv libismrmrd-dev locales octave octave-dev ghostscript fonts-freefont-otf
# DICOM files are checked by dciodvfy and converted by dcm2niix.
test: PACKAGES += dicom3tools dcm2niix
# The header is compiled by clang as well as by gcc, and compared with earlier ones by libabigail.
test: PACKAGES += clang abigail-tools
# The program's manual pages are checked by man and mandoc.
test: PACKAGES += man-db mandoc
test: PACKAGES += $(shell command -v gnuplot >/dev/null || echo gnuplot-nox)
test: PACKAGES += $(shell { command -v chromium || command -v google-chrome; } >/dev/null || echo chromium)
test: deps
	python3 tests/mutants/run.py --check
	@if [ -z "$$RECON_NVRTC" ]; then $(MAKE) --no-print-directory $(nvrtc)/ready; fi
	@if [ -z "$$RECON_TEST_PYTHON" ]; then $(MAKE) --no-print-directory $(mrd)/ready; fi
	@found=$$(ls $(abspath $(nvrtc))/lib/python3*/site-packages/nvidia/*/lib/libnvrtc.so.[0-9]* 2>/dev/null | head -n 1); \
	export RECON_NVRTC=$${RECON_NVRTC:-$$found} RECON_TEST_PYTHON=$${RECON_TEST_PYTHON:-$(abspath $(mrd))/bin/python}; \
	$(CARGO) test --locked --workspace --no-fail-fast --lib --bins --tests; tests=$$?; \
	$(CARGO) test --locked --workspace --no-fail-fast --doc && exit $$tests
	@$(MAKE) --no-print-directory test-python-quick
	@targets=; for target in $(OTHER_SYSTEMS); do \
		if rustup target add $$target >/dev/null 2>&1; then targets="$$targets --target $$target"; \
		else echo "skipped: checking the library for $$target (no rustup, or no network)"; fi; \
	done; \
	if [ -n "$$targets" ]; then \
		echo "checking the library for other systems"; $(CARGO) check --locked --lib $$targets; fi

# Test files that are left out for other platforms: tests of GPUs, of the header and the installed copy with this
# machine's C compiler, of the sources' layers, of speed, and of page faults.
HERE_ONLY := cuda cuda_checks cuda_choice cuda_contexts cuda_direct kernels header install layers cpu_direct page_faults
# Too slow in an emulator: arrays of 12 GiB (large), a process for each allocation (allocation_failures), and the memory
# of large scans (memory). The memory and the forks of a host (host_process) would be those of the emulator.
NOT_IN_EMULATOR := large allocation_failures memory host_process
# Without the test harness of Rust, and therefore without its options.
OWN_HARNESS := allocations allocation_failures host_process
suites = $(patsubst %,--test %,$(filter-out $(1),$(basename $(notdir $(wildcard tests/*.rs))) c_api plan scan_altered))
# Optimised, because an emulator is 10 to 30 times slower than the processor, and 100 times slower in vector arithmetic.
TEST_FLAGS ?= --locked --no-fail-fast --profile quick
# Tests in which other programs start `recon` by its name: shells, make, Python, a C compiler.
PROGRAM_HERE_ONLY := bar_on_a_terminal documents:: manual:: scan_example:: view::

# In qemu, a program cannot start a program for ARM by its name: RECON_TEST_EMULATOR starts programs for tests.
arm := aarch64-unknown-linux-gnu
emulator := qemu-aarch64 -L /usr/aarch64-linux-gnu
on_arm := CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc CC=aarch64-linux-gnu-gcc \
	RECON_TEST_EMULATOR="$(emulator)" CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="$(emulator)" \
	$(CARGO) test $(TEST_FLAGS) --target $(arm)

# For example: make test-aarch64 ARM_SUITES="--test nufft --test levels"
ARM_SUITES ?= --lib $(call suites,$(HERE_ONLY) $(NOT_IN_EMULATOR) $(OWN_HARNESS))

test-aarch64: PACKAGES += gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user
test-aarch64: deps
	rustup target add $(arm)
	@echo "left out in the emulator: $(NOT_IN_EMULATOR)"
	$(on_arm) --package recon $(ARM_SUITES)
	$(on_arm) --package recon $(patsubst %,--test %,$(filter-out $(NOT_IN_EMULATOR),$(OWN_HARNESS)))
	$(on_arm) --package recon-files --lib --tests
	$(on_arm) --package recon-program --test program -- $(foreach name,$(PROGRAM_HERE_ONLY),--skip $(name))

musl := x86_64-unknown-linux-musl
# Without the tests of the shared library, which rustc does not make for musl.
MUSL_SUITES ?= --lib $(call suites,$(HERE_ONLY) large abi)

# For example: make test-musl MUSL_SUITES="--test nufft --test levels"
test-musl: deps
	rustup target add $(musl)
	$(CARGO) test $(TEST_FLAGS) --target $(musl) --package recon $(MUSL_SUITES)
	$(CARGO) test $(TEST_FLAGS) --target $(musl) --package recon-files --lib --tests
	$(CARGO) test $(TEST_FLAGS) --target $(musl) --package recon-program --test program -- --skip scan_example::
	$(CARGO) run $(filter-out --no-fail-fast,$(TEST_FLAGS)) --target $(musl) --package recon-program -- info \
		| grep "cannot load the NVIDIA driver"

# Builds the gadgets against one Gadgetron and runs their tests in it. Without GADGETRON_HOME, the tests that do not
# require Gadgetron run with the ISMRMRD library in ISMRMRD_HOME. Default: Gadgetron's own, else Debian's.
GADGETRON_HOME ?=
ISMRMRD_HOME ?= $(GADGETRON_HOME)

test-gadgets: PACKAGES += $(if $(ISMRMRD_HOME),,libismrmrd-dev) locales
test-gadgets: deps
	@if [ -n "$(GADGETRON_HOME)" ] && [ ! -x "$(GADGETRON_HOME)/bin/gadgetron" ]; then \
		echo "GADGETRON_HOME is $(GADGETRON_HOME), but bin/gadgetron is not there: set it to the prefix of an installed Gadgetron"; \
		exit 1; fi
	$(if $(GADGETRON_HOME),GADGETRON_HOME="$(abspath $(GADGETRON_HOME))") \
	$(if $(ISMRMRD_HOME),CMAKE_PREFIX_PATH="$(abspath $(ISMRMRD_HOME))") \
		$(CARGO) test --locked --package recon-program --test gadgetron -- --nocapture

# By hand only. For example: make test-windows SUITES="c nufft program". tests/windows/run.sh lists the suites.
test-windows: PACKAGES := gcc-mingw-w64-x86-64 g++-mingw-w64-x86-64 wine wine64 clang lld llvm octave-dev cmake pkg-config
test-windows: deps
	rustup target add x86_64-pc-windows-gnu
	CARGO="$(CARGO)" tests/windows/run.sh $(SUITES)

# By hand only. For example: make mutants MUTANTS="--switched", which builds once for all changes.
mutants: deps
	CARGO="$(CARGO)" python3 tests/mutants/run.py $(MUTANTS)

program := $(CARGO_TARGET_DIR)/release/recon
# The demo's scan is as large as that of Stone et al. 2008: 284,592 samples on 1,176 spokes, an image of 128^3.
DEMO_SCAN := --matrix 128,128,128 --trajectory kooshball --shots 1176 --samples 242 --snr 600

demo:
	$(CARGO) build --release --locked --package recon-program
	@mkdir -p demo
	$(program) simulate $(DEMO_SCAN) --truth demo/truth.h5 -o demo/scan.h5
	$(program) grid demo/scan.h5 --density ramp -o demo/gridding.h5
	$(program) cg demo/scan.h5 --iterations 60 -o demo/cg.h5
	@echo
	$(program) compare demo/gridding.h5 demo/cg.h5 demo/truth.h5 --complex --scale best --picture demo/demo.png
	@echo; echo "truth, gridding and conjugate gradients side by side: demo/demo.png"

bench_python := $(CARGO_TARGET_DIR)/bench-venv/bin/python
# For example: make bench BENCH_FLAGS="--quick --only stone"
BENCH_FLAGS ?=

$(CARGO_TARGET_DIR)/bench-venv/ready: benches/requirements.txt benches/requirements-run.txt
	python3 -m venv $(CARGO_TARGET_DIR)/bench-venv
	$(bench_python) -m pip install --quiet --requirement $<
	touch $@

bench: PACKAGES := gcc libc6-dev bart python3-venv
bench: deps
	$(CARGO) build --lib $(CARGO_FLAGS)
	$(MAKE) $(CARGO_TARGET_DIR)/bench-venv/ready
	$(bench_python) benches/run.py --build $(CARGO_TARGET_DIR) $(BENCH_FLAGS)

# For another machine, with that version of Python, and neither Rust, compiler nor network: unpack, and ./run.sh there.
BUNDLE_PYTHON ?= $(shell python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')

bench-bundle: $(BUILT)/librecon.so
	benches/bundle.sh $(BUILT) $(CARGO_TARGET_DIR)/bench-bundle $(BUNDLE_PYTHON)

gpu_python := $(CARGO_TARGET_DIR)/bench-gpu-venv/bin/python

$(CARGO_TARGET_DIR)/bench-gpu-venv/ready: benches/requirements-gpu.txt
	python3 -m venv $(CARGO_TARGET_DIR)/bench-gpu-venv
	$(gpu_python) -m pip install --quiet --requirement $<
	touch $@

# For example: make bench-gpu BENCH_FLAGS="--quick --only stone"
bench-gpu: PACKAGES := python3-venv
bench-gpu: deps
	$(CARGO) build --lib $(CARGO_FLAGS)
	$(MAKE) $(CARGO_TARGET_DIR)/bench-gpu-venv/ready
	libraries=$$(ls -d $(abspath $(CARGO_TARGET_DIR))/bench-gpu-venv/lib/python3*/site-packages/nvidia/*/lib | paste -s -d :); \
	LD_LIBRARY_PATH=$$libraries:$$LD_LIBRARY_PATH $(gpu_python) benches/gpu.py --build $(CARGO_TARGET_DIR) $(BENCH_FLAGS)

# Where is recon slower than its peers? For example: make bench-sweep BENCH_FLAGS="--seed 7 --cases 50"
DEVICE ?= cpu

ifeq ($(DEVICE),gpu)
sweep_venv := $(CARGO_TARGET_DIR)/bench-gpu-venv
else
sweep_venv := $(CARGO_TARGET_DIR)/bench-venv
endif

bench-sweep: PACKAGES := python3-venv
bench-sweep: deps
	$(CARGO) build --lib $(CARGO_FLAGS)
	$(MAKE) $(sweep_venv)/ready
	libraries=$$(ls -d $(abspath $(sweep_venv))/lib/python3*/site-packages/nvidia/*/lib 2>/dev/null | paste -s -d :); \
	LD_LIBRARY_PATH=$$libraries:$$LD_LIBRARY_PATH \
		$(sweep_venv)/bin/python benches/sweep.py --device $(DEVICE) --build $(CARGO_TARGET_DIR) $(BENCH_FLAGS)

# One paper: make papers PAPER=stone. Without a GPU, the parts that need one are left out, each with a line.
PAPERS := stone book_chapter cuda_gridding schiwietz propeller
PAPER ?= $(PAPERS)
PAPERS_FLAGS ?=
PAPERS_PYTHON ?= $(CARGO_TARGET_DIR)/papers-venv/bin/python

# CuPy needs a driver and 2 GB of CUDA's libraries. Without a driver it is not installed.
$(CARGO_TARGET_DIR)/papers-venv/ready: benches/requirements-gpu.txt benches/papers/requirements.txt
	python3 -m venv $(CARGO_TARGET_DIR)/papers-venv
	$(CARGO_TARGET_DIR)/papers-venv/bin/python -m pip install --quiet --requirement benches/papers/requirements.txt
	if command -v nvidia-smi >/dev/null; then \
		$(CARGO_TARGET_DIR)/papers-venv/bin/python -m pip install --quiet --requirement benches/requirements-gpu.txt; fi
	touch $@

papers: PACKAGES := gcc libc6-dev python3-venv
papers: deps
	$(CARGO) build --lib $(CARGO_FLAGS)
	$(CARGO) build $(CARGO_FLAGS) --example paper_ffts
	$(MAKE) $(CARGO_TARGET_DIR)/papers-venv/ready
	@for paper in $(PAPER); do \
		$(PAPERS_PYTHON) benches/papers/$$paper.py --build $(CARGO_TARGET_DIR) $(PAPERS_FLAGS) || exit 1; done

# Time that the MATLAB functions add to a C call, in Octave.
bench-matlab: matlab
	octave-cli --norc --eval "addpath('matlab'); addpath('benches'); matlab_overhead('$(BUILT)/librecon.a', 400)"
