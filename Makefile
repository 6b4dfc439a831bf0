# make         builds the command and the library; installs no packages
# make demo    installs missing packages, builds the command, and converts, verifies, inspects and runs the small models
#              in examples/
# make test    installs missing packages, builds and runs all tests
# make python  installs missing packages, builds the Python package and its wheel in build/python
# make dependencies   installs the missing packages for building and testing
# make install DESTDIR=... PREFIX=/usr/local   builds and installs
# make dist    writes a source archive of the last commit to build/dist
# make deb     builds Debian's packages of the last commit in build/deb; docs/packages.md describes this and the next
#              targets
# make wheel   builds a wheel that needs no other package in build/wheels
# make docs    writes the pages and the reference of both interfaces as HTML to build/docs
# make release-check   builds all packages twice, and tests them in empty systems
# make cross-arm64   builds the command and the tests for arm64, and runs both under QEMU (docs/packages.md)
# make asan    runs the tests with AddressSanitizer and UndefinedBehaviorSanitizer, and each fuzz target for 20 seconds.
#              This and the next four targets install clang, and build with it
# make fuzz SECONDS=60   runs each fuzz target for 60 seconds with both sanitizers; FUZZ_TARGETS="alt zt" chooses some
# make fuzz-long   runs all fuzz targets for an hour on all processors (SECONDS=3600); adds new inputs to fuzz/corpus
# make tsan    runs the concurrency tests with ThreadSanitizer
# make coverage  prints the line coverage of the tests by file; fails below 92 % without the command's own code
# make format, make format-check   formats C++ and Python files, or fails if one is not formatted
# make check-words   refuses words that CONTRIBUTING.md rules out, in the last commit and in uncommitted changes.
#              SINCE=REVISION checks all lines added since then; SINCE=--all counts the words in the whole tree
# make bench   compares Poise with the limits of this machine (BENCH_OPTIONS="--rounds 5 --jobs convert,run"); needs
#              20 GB of disk
# make tidy    runs clang-tidy over src/, fuzz/ and tests/capi/, about an hour on one processor.
#              FILES="src/io src/views/cast.cpp" chooses some

PREFIX ?= /usr/local
PYTHON ?= $(firstword $(wildcard /usr/bin/python3) python3)
JOBS ?= $(shell nproc)
# One more than processors, because some tests wait for a disk, a server or a time.
TEST_JOBS := $(shell expr $(JOBS) + 1)
SECONDS ?= 60
FILES ?= src/ fuzz/ tests/capi/
BUILD := build/release
POISE := $(BUILD)/poise
SOURCES := $(shell git ls-files '*.cpp' '*.hpp' '*.h' '*.c' 2>/dev/null)
SCRIPTS := $(shell git ls-files '*.py' '*.pyi' 2>/dev/null)

# Installs the missing packages for a purpose: $(call need,test)
need = @scripts/install_dependencies.sh $(1)

.PHONY: all build python dependencies demo test asan tsan fuzz fuzz-long coverage bench tidy install dist \
        deb wheel docs release-check cross-arm64 format format-check check-words clean
all: build

dependencies:
	$(call need,test)

# Builds with the installed packages, without tests.
build:
	@cmake --preset release -DBUILD_TESTING=OFF -DPOISE_BENCH=OFF || \
	 { echo "\`make dependencies\` installs the missing packages"; exit 1; }
	@cmake --build --preset release -j $(JOBS)

python:
	$(call need,python)
	@cmake --preset release -DBUILD_TESTING=OFF -DPOISE_BENCH=OFF -DPOISE_PYTHON_PACKAGE=ON -DPython3_EXECUTABLE=$(PYTHON)
	@POISE_BUILD=$(BUILD) $(PYTHON) python/build_backend.py build/python

demo:
	$(call need,build)
	@cmake --preset release -DBUILD_TESTING=OFF -DPOISE_BENCH=OFF
	@cmake --build --preset release -j $(JOBS) --target poise
	@scripts/demo.sh $(POISE)

test:
	$(call need,test)
	@cmake --preset release -DBUILD_TESTING=ON -DPOISE_BENCH=OFF
	@cmake --build --preset release -j $(JOBS)
	@ctest --preset release -j $(TEST_JOBS)

asan:
	$(call need,clang)
	@cmake --preset asan
	@cmake --build --preset asan -j $(JOBS)
	@ctest --preset asan -j $(TEST_JOBS)

# Fuzz targets use the build with sanitizers.
define build_fuzz_targets
	$(call need,clang)
	@cmake --preset asan
	@cmake --build --preset asan -j $(JOBS) --target fuzz_targets
endef

fuzz:
	$(build_fuzz_targets)
	@JOBS=$(JOBS) fuzz/run.sh build/asan $(SECONDS) $(FUZZ_TARGETS)

fuzz-long: SECONDS = 3600
fuzz-long:
	$(build_fuzz_targets)
	@targets=$(if $(FUZZ_TARGETS),$(words $(FUZZ_TARGETS)),\
	   $$(ls build/asan/fuzz | grep '^fuzz_[a-z0-9_]*$$' | grep -vc seeds)); \
	 JOBS=$(JOBS) fuzz/run.sh build/asan $$(($(SECONDS) * $(JOBS) / $$targets)) $(FUZZ_TARGETS)
	@fuzz/minimise.sh build/asan $(FUZZ_TARGETS)

tsan:
	$(call need,clang)
	@cmake --preset tsan
	@cmake --build --preset tsan -j $(JOBS)
	@build/tsan/tests/poise_concurrency_tests

coverage:
	$(call need,clang)
	@cmake --preset coverage
	@cmake --build --preset coverage -j $(JOBS)
	@scripts/coverage.sh build/coverage 92

bench:
	$(call need,bench)
	@cmake --preset release -DPOISE_BENCH=ON -DBUILD_TESTING=OFF
	@cmake --build --preset release -j $(JOBS) --target poise poise_limits poise_kernels
	@python3 bench/bench.py --poise $(POISE) --limits $(BUILD)/bench/poise_limits $(BENCH_OPTIONS)
	@$(BUILD)/bench/poise_kernels

tidy:
	$(call need,tidy)
	@cmake --preset clang -B build/tidy -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON -DPOISE_UNITY=OFF
	@run-clang-tidy-14 -quiet -j $(JOBS) -p build/tidy $(addprefix $(CURDIR)/,$(FILES))

install: build
	@cmake --install $(BUILD) --prefix $(PREFIX)

dist:
	@scripts/make_dist.sh build/dist

deb:
	$(call need,package)
	@JOBS=$(JOBS) scripts/make_deb.sh build/deb

wheel:
	$(call need,package)
	@cmake --preset release -DBUILD_TESTING=OFF -DPOISE_BENCH=OFF -DPOISE_PYTHON_PACKAGE=ON -DPython3_EXECUTABLE=$(PYTHON)
	@POISE_BUILD=$(BUILD) $(PYTHON) python/make_portable_wheel.py build/wheels

docs:
	$(call need,docs)
	@scripts/make_docs.sh build/docs

release-check:
	$(call need,package)
	$(call need,cross)
	@JOBS=$(JOBS) scripts/release_check.sh build/release-check

cross-arm64: build
	$(call need,cross)
	@JOBS=$(JOBS) scripts/cross_arm64.sh build/cross-arm64 $(POISE)

format:
	@clang-format-14 -i $(SOURCES)
	@black -q $(SCRIPTS)

format-check:
	$(call need,clang)
	@echo $(SOURCES) | xargs -n 20 -P $(JOBS) clang-format-14 --dry-run -Werror
	@black -q --check $(SCRIPTS) || { echo "\`make format\` formats the Python files"; exit 1; }

check-words:
	@scripts/check_words.sh $(SINCE)

clean:
	@rm -rf build
