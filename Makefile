# The two commands: `make demo` and `make test`. Everything else is here too; `make help` lists it.
# This file only names jobs: CMake builds, CTest tests, tools/ holds the scripts.

BUILD    ?= build
PREFIX   ?= /usr/local
DESTDIR  ?=
JOBS     ?= $(shell nproc 2>/dev/null || echo 2)
# Given once, kept by the build folder: make CMAKE_OPTIONS=-DCMAKE_C_COMPILER=clang BUILD=build-clang
CMAKE_OPTIONS ?=
export NO_INSTALL MAINTAINER

ifneq ($(words $(BUILD)),1)
$(error BUILD="$(BUILD)": the name of the build folder may have no blanks)
endif

configure = cmake -S . -B $(BUILD) -G Ninja $(CMAKE_OPTIONS) --log-level=WARNING

.PHONY: all configure test test-quick demo demo-rollout demo-clouds demo-encode demo-hybrid demo-deploy demo-chat bench soak fuzz environments install uninstall clean deb dist format size help
.DEFAULT_GOAL := all

all: ## Install what is missing, build: the command is build/plimsoll
	@tools/install-dependencies.sh build
	@$(configure)
	@cmake --build $(BUILD) -j $(JOBS)

test: ## The same and the whole suite, with a sanitizer and a valgrind pass
	@BUILD=$(BUILD) JOBS=$(JOBS) CMAKE_OPTIONS="$(CMAKE_OPTIONS)" tools/run-tests.sh

test-quick: ## Unit and structure tests only, half a minute
	@BUILD=$(BUILD) JOBS=$(JOBS) CMAKE_OPTIONS="$(CMAKE_OPTIONS)" tools/run-tests.sh --quick

demo: ## Train on real English: plan, progress, samples, planned = measured
	@tools/install-dependencies.sh build
	@$(configure)
	@cmake --build $(BUILD) -j $(JOBS) --target plimsoll bigram
	@tools/demo-text.sh $(BUILD)/demo/text.txt
	@BUILD=$(BUILD) tools/demo.sh $(BUILD)/demo/text.txt

demo-rollout: ## Random operators iterated from random fields: streamed, killed, resumed, checked
	@tools/install-dependencies.sh build
	@$(configure)
	@cmake --build $(BUILD) -j $(JOBS) --target plimsoll npy_difference
	@BUILD=$(BUILD) tools/demo-rollout.sh

demo-clouds: ## Cloud heights from image sequences: synthetic flights, one left out after the other
	@tools/install-dependencies.sh build
	@$(configure)
	@cmake --build $(BUILD) -j $(JOBS) --target plimsoll
	@BUILD=$(BUILD) tools/demo-clouds.sh

demo-encode: ## Texts drawn as pages and encoded to capsules: planned, killed, resumed, checked
	@tools/install-dependencies.sh build
	@$(configure)
	@cmake --build $(BUILD) -j $(JOBS) --target plimsoll npy_nearest
	@BUILD=$(BUILD) tools/demo-encode.sh

demo-hybrid: ## The words of drawn pages, read by the tiny hybrid model: killed, resumed, planned = measured
	@tools/install-dependencies.sh build
	@$(configure)
	@cmake --build $(BUILD) -j $(JOBS) --target plimsoll
	@BUILD=$(BUILD) tools/demo-hybrid.sh

demo-deploy: ## The documented encoder in 32 and in 8 bits: exported, calibrated, run inside 100 and 45 MB
	@tools/install-dependencies.sh build
	@$(configure)
	@cmake --build $(BUILD) -j $(JOBS) --target plimsoll
	@BUILD=$(BUILD) tools/demo-deploy.sh

demo-chat: ## A language model of other people's, in 4 bits: planned, refused where it does not fit, chatted with
	@tools/install-dependencies.sh build
	@$(configure)
	@cmake --build $(BUILD) -j $(JOBS) --target plimsoll
	@BUILD=$(BUILD) tools/demo-chat.sh

bench: ## Benchmarks: ratios against ceilings measured in the same run
	@tools/install-dependencies.sh build bench
	@$(configure) -DPL_BUILD_BENCHES=ON
	@BUILD=$(BUILD) JOBS=$(JOBS) tools/run-benchmarks.sh

soak: ## Property, budget and fuzz tests with many more random cases (SOAK_MINUTES=30)
	@BUILD=$(BUILD) JOBS=$(JOBS) CMAKE_OPTIONS="$(CMAKE_OPTIONS)" tools/run-soak.sh

fuzz: ## Search for inputs that break a reader, FUZZ_SECONDS=60 for each target; needs clang
	@BUILD=$(BUILD) JOBS=$(JOBS) CMAKE_OPTIONS="$(CMAKE_OPTIONS)" tools/run-fuzz.sh

environments: ## The important tests under odd circumstances, with gcc and clang, -O0 to -O3; an hour
	@BUILD=$(BUILD) JOBS=$(JOBS) CMAKE_OPTIONS="$(CMAKE_OPTIONS)" tools/run-environments.sh

install: all ## Command, libraries, headers, pkg-config, CMake package, man page (PREFIX=, DESTDIR=)
	@DESTDIR=$(DESTDIR) cmake --install $(BUILD) --prefix $(PREFIX)
	@if [ -z "$(DESTDIR)" ] && [ "$$(id -u)" = 0 ]; then ldconfig; fi

uninstall: ## Remove what `make install` with the same PREFIX and DESTDIR wrote
	@tools/uninstall.sh $(BUILD) $(PREFIX) $(DESTDIR)

deb: ## A Debian package: install it with apt-get install ./FILE.deb (MAINTAINER="Name <address>")
	@BUILD=$(BUILD) JOBS=$(JOBS) CMAKE_OPTIONS="$(CMAKE_OPTIONS)" tools/make-packages.sh deb

dist: ## An archive of the sources, and one of what is built that runs from any folder
	@BUILD=$(BUILD) JOBS=$(JOBS) CMAKE_OPTIONS="$(CMAKE_OPTIONS)" tools/make-packages.sh dist

format: ## Lay all C sources out as .clang-format says
	@tools/install-dependencies.sh format
	@git ls-files '*.c' '*.h' | xargs clang-format -i

size: ## The ten longest functions and files, median and 90th percentile
	@python3 tools/size.py

clean: ## Remove the build folders
	@rm -rf $(BUILD) $(BUILD)-san $(BUILD)-fuzz $(BUILD)-matrix $(BUILD)-package

help: ## This list
	@sed -n 's/^\([a-z-]*\):[^#]*## /\1|/p' Makefile | awk -F'|' '{ printf "  make %-12s %s\n", $$1, $$2 }'
	@echo
	@echo "  NO_INSTALL=1 installs nothing; BUILD=FOLDER, JOBS=N, PREFIX=FOLDER, DESTDIR=FOLDER, CMAKE_OPTIONS=…"
