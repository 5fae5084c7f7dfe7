# Demonstrates, tests, builds and installs. In Rust, use the crate.
#
#   make demo                                   a 3D scan, simulated and reconstructed: errors, and demo/demo.png
#   make check                                  formatting, lints, documents, fast tests, without root
#   make test                                   everything that can be checked on this machine
#   make test-windows                           the library and the program for Windows, under Wine: an hour or more
#   make mutants                                one-line changes that a test must find: an hour or more
#   make bench                                  speed beside DUCC0, FINUFFT and BART: 20 minutes or more
#   make bench-bundle                           the build, packed to run `make bench` on another machine
#   make bench-gpu                              the same on an NVIDIA GPU, beside cuFINUFFT: 8 minutes
#   make bench-sweep                            random shapes beside the same peers: 15 minutes. DEVICE=gpu: on a GPU
#   make papers                                 the experiments of the five papers, to docs/papers: 12 minutes on a GPU
#   make matlab                                 recon_mex beside +recon in matlab/, for Octave and MATLAB
#   make && sudo make install                   the library to /usr/local
#   make program && sudo make install           the library, the program, its manual pages and completions
#   make install PREFIX=/usr DESTDIR=stage      for packagers
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
BUILT ?= $(CARGO_TARGET_DIR)/$(PROFILE)

VERSION := $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
ABI := $(firstword $(subst ., ,$(VERSION)))
# The libraries that librecon.a requires (rustc --print native-static-libs), except the unwinder: compilers add it
# themselves, as -lgcc_s, or with -static as -lgcc_eh.
PRIVATE_LIBS := -lutil -lrt -lpthread -lm -ldl -lc

lib := $(DESTDIR)$(LIBDIR)
include := $(DESTDIR)$(INCLUDEDIR)
bin := $(DESTDIR)$(BINDIR)
pages := $(DESTDIR)$(DATADIR)/man/man1
bash := $(DESTDIR)$(DATADIR)/bash-completion/completions
zsh := $(DESTDIR)$(DATADIR)/zsh/site-functions
fish := $(DESTDIR)$(DATADIR)/fish/vendor_completions.d
fill := sed -e 's|@PREFIX@|$(PREFIX)|g' -e 's|@LIBDIR@|$(LIBDIR)|g' -e 's|@INCLUDEDIR@|$(INCLUDEDIR)|g' \
	-e 's|@VERSION@|$(VERSION)|g' -e 's|@ABI@|$(ABI)|g' -e 's|@PRIVATE_LIBS@|$(PRIVATE_LIBS)|g'

.PHONY: build program header install install-program uninstall matlab deps check test test-windows mutants demo bench bench-bundle bench-gpu bench-sweep papers bench-matlab

# recon_files is librecon with the readers of files for the MEX file.
build:
	$(CARGO) build --lib $(CARGO_FLAGS) --package recon --package recon-files

program: build
	$(CARGO) build $(CARGO_FLAGS) --package recon-cli

header:
	RECON_UPDATE_HEADER=1 $(CARGO) test --locked --test header

# Built here only if it was not built before.
$(BUILT)/librecon.so:
	$(CARGO) build --lib $(CARGO_FLAGS)

install: $(BUILT)/librecon.so
	install -d "$(include)" "$(lib)/pkgconfig" "$(lib)/cmake/recon"
	install -m 644 include/recon.h "$(include)/recon.h"
	install -m 644 "$(BUILT)/librecon.a" "$(lib)/librecon.a"
	install -m 755 "$(BUILT)/librecon.so" "$(lib)/librecon.so.$(VERSION)"
	@if [ -e "$(BUILT)/librecon_files.a" ]; then set -x; install -m 644 "$(BUILT)/librecon_files.a" "$(lib)/librecon_files.a"; \
	else echo "not installed: librecon_files.a, which recon.build in MATLAB needs (make builds it)"; fi
	ln -sf librecon.so.$(VERSION) "$(lib)/librecon.so.$(ABI)"
	ln -sf librecon.so.$(ABI) "$(lib)/librecon.so"
	$(fill) packaging/recon.pc.in > "$(lib)/pkgconfig/recon.pc"
	$(fill) packaging/recon-config.cmake.in > "$(lib)/cmake/recon/recon-config.cmake"
	$(fill) packaging/recon-config-version.cmake.in > "$(lib)/cmake/recon/recon-config-version.cmake"
	@if [ -x "$(BUILT)/recon" ]; then $(MAKE) --no-print-directory install-program; \
	else echo "the program recon is not installed, because it was not built: make program"; fi

# Only a program that was built before is installed: root may not have cargo.
install-program:
	install -d "$(bin)" "$(pages)" "$(bash)" "$(zsh)" "$(fish)"
	install -m 755 "$(BUILT)/recon" "$(bin)/recon"
	"$(BUILT)/recon" manual -o "$(pages)"
	"$(BUILT)/recon" completions bash > "$(bash)/recon"
	"$(BUILT)/recon" completions zsh > "$(zsh)/_recon"
	"$(BUILT)/recon" completions fish > "$(fish)/recon.fish"

# Pages of other programs may begin with recon- too: those of this one have its name in the head.
uninstall:
	rm -f "$(bin)/recon" "$(bash)/recon" "$(zsh)/_recon" "$(fish)/recon.fish"
	@for page in "$(pages)"/recon.1 "$(pages)"/recon-*.1; do \
		if grep -q '^\.TH .*"recon manual"' "$$page" 2>/dev/null; then echo "rm -f $$page"; rm -f "$$page"; fi; done
	rm -f "$(include)/recon.h" "$(lib)/librecon.a" "$(lib)/librecon_files.a" "$(lib)/pkgconfig/recon.pc"
	rm -f "$(lib)/librecon.so" "$(lib)/librecon.so.$(ABI)" "$(lib)/librecon.so.$(VERSION)"
	rm -rf "$(lib)/cmake/recon"

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
WORDS := reson,iteratons,te
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
	$(CARGO) test --locked --lib --test layers --test header

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
OTHER_SYSTEMS := x86_64-pc-windows-gnu aarch64-apple-darwin aarch64-unknown-linux-gnu

# The tests of the transforms and of the solver run again at each lower level of the vector unit, and print so. The
# gadgets' tests need the ISMRMRD library. If Gadgetron is installed (GADGETRON_HOME, or on the PATH), the gadgets also
# run in it. The MATLAB functions are tested in Octave, whose pictures need gnuplot (any), Ghostscript and a font. Pages
# of `recon view` are tested in Chromium: 123 MB to load, 410 MB on the disk, half a minute.
test: PACKAGES += bart python3-venv libismrmrd-dev octave octave-dev ghostscript fonts-freefont-otf
# DICOM files are checked by dciodvfy and converted by dcm2niix.
test: PACKAGES += dicom3tools dcm2niix
# The program's manual pages are checked by man and mandoc.
test: PACKAGES += man-db mandoc
test: PACKAGES += $(shell command -v gnuplot >/dev/null || echo gnuplot-nox)
test: PACKAGES += $(shell { command -v chromium || command -v google-chrome; } >/dev/null || echo chromium)
test: deps
	python3 tests/mutants/run.py --check
	@if [ -z "$$RECON_NVRTC" ]; then $(MAKE) --no-print-directory $(nvrtc)/ready; fi
	@if [ -z "$$RECON_TEST_PYTHON" ]; then $(MAKE) --no-print-directory $(mrd)/ready; fi
	@found=$$(ls $(abspath $(nvrtc))/lib/python3*/site-packages/nvidia/*/lib/libnvrtc.so.[0-9]* 2>/dev/null | head -n 1); \
	RECON_NVRTC=$${RECON_NVRTC:-$$found} RECON_TEST_PYTHON=$${RECON_TEST_PYTHON:-$(abspath $(mrd))/bin/python} \
		$(CARGO) test --locked --workspace --no-fail-fast
	@for target in $(OTHER_SYSTEMS); do \
		if rustup target add $$target >/dev/null 2>&1; then \
			echo "checking the library for $$target"; $(CARGO) check --locked --lib --target $$target || exit 1; \
		else echo "skipped: checking the library for $$target (no rustup, or no network)"; fi; \
	done

# By hand only. For example: make test-windows SUITES="c nufft program". tests/windows/run.sh lists the suites.
test-windows: PACKAGES := gcc-mingw-w64-x86-64 g++-mingw-w64-x86-64 wine wine64 clang lld llvm octave-dev
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
	$(CARGO) build --release --locked --package recon-cli
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
