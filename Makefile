# Builds and installs the library for C and C++. In Rust, use the crate.
#
#   make && sudo make install                   to /usr/local
#   make install PREFIX=/usr DESTDIR=stage      for packagers
PREFIX ?= /usr/local
DESTDIR ?=
LIBDIR ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include

CARGO ?= cargo
CARGO_FLAGS ?= --release --locked
# Where cargo leaves the library; another profile has another folder.
PROFILE ?= release
CARGO_TARGET_DIR ?= target
BUILT ?= $(CARGO_TARGET_DIR)/$(PROFILE)

VERSION := $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
ABI := $(firstword $(subst ., ,$(VERSION)))
# What the static library needs of the system (rustc --print native-static-libs).
PRIVATE_LIBS := -lgcc_s -lutil -lrt -lpthread -lm -ldl -lc

lib := $(DESTDIR)$(LIBDIR)
include := $(DESTDIR)$(INCLUDEDIR)
fill := sed -e 's|@PREFIX@|$(PREFIX)|g' -e 's|@LIBDIR@|$(LIBDIR)|g' -e 's|@INCLUDEDIR@|$(INCLUDEDIR)|g' \
	-e 's|@VERSION@|$(VERSION)|g' -e 's|@ABI@|$(ABI)|g' -e 's|@PRIVATE_LIBS@|$(PRIVATE_LIBS)|g'

.PHONY: build header install uninstall

build:
	$(CARGO) build --lib $(CARGO_FLAGS)

header:
	RECON_UPDATE_HEADER=1 $(CARGO) test --locked --test header

# Built here only where it was not built before.
$(BUILT)/librecon.so:
	$(CARGO) build --lib $(CARGO_FLAGS)

install: $(BUILT)/librecon.so
	install -d "$(include)" "$(lib)/pkgconfig" "$(lib)/cmake/recon"
	install -m 644 include/recon.h "$(include)/recon.h"
	install -m 644 "$(BUILT)/librecon.a" "$(lib)/librecon.a"
	install -m 755 "$(BUILT)/librecon.so" "$(lib)/librecon.so.$(VERSION)"
	ln -sf librecon.so.$(VERSION) "$(lib)/librecon.so.$(ABI)"
	ln -sf librecon.so.$(ABI) "$(lib)/librecon.so"
	$(fill) packaging/recon.pc.in > "$(lib)/pkgconfig/recon.pc"
	$(fill) packaging/recon-config.cmake.in > "$(lib)/cmake/recon/recon-config.cmake"
	$(fill) packaging/recon-config-version.cmake.in > "$(lib)/cmake/recon/recon-config-version.cmake"

uninstall:
	rm -f "$(include)/recon.h" "$(lib)/librecon.a" "$(lib)/pkgconfig/recon.pc"
	rm -f "$(lib)/librecon.so" "$(lib)/librecon.so.$(ABI)" "$(lib)/librecon.so.$(VERSION)"
	rm -rf "$(lib)/cmake/recon"
