# make demo    build, and take the small model in examples/ the whole way: convert, verify, inspect, tell a story
# make test    build and run all tests
# make install DESTDIR=... PREFIX=/usr/local
# make asan    the tests with AddressSanitizer and UndefinedBehaviorSanitizer, built with clang
# make fuzz SECONDS=60   each fuzz target for that long, with both sanitizers; FUZZ_TARGETS="alt zt" chooses some
# make tsan    the concurrency tests with ThreadSanitizer
# make coverage  the line coverage of the tests, by file; at least 92 % without the command's own code
# make bench   Poise beside the limits of this machine (BENCH_OPTIONS="--rounds 5 --jobs convert,run"); takes 20 GB of disk
# make tidy    clang-tidy over src/, fuzz/ and tests/capi/, about an hour on one processor; FILES="src/io src/tensor/cast.cpp" chooses some
# make format  / make format-check

PREFIX ?= /usr/local
JOBS ?= $(shell nproc)
SECONDS ?= 60
FILES ?= src/ fuzz/ tests/capi/
BUILD := build/release
POISE := $(BUILD)/poise
SOURCES := $(shell git ls-files '*.cpp' '*.hpp' '*.h' '*.c' 2>/dev/null)

.PHONY: all build dependencies demo test asan tsan fuzz coverage bench tidy install format format-check clean
all: build

dependencies:
	@scripts/install_dependencies.sh

build: dependencies
	@cmake --preset release
	@cmake --build --preset release -j $(JOBS)

demo: build
	@scripts/demo.sh $(POISE)

test: build
	@ctest --preset release -j $(JOBS)

asan: dependencies
	@cmake --preset asan
	@cmake --build --preset asan -j $(JOBS)
	@ctest --preset asan -j $(JOBS)

fuzz: dependencies
	@cmake --preset fuzz
	@cmake --build --preset fuzz -j $(JOBS)
	@fuzz/run.sh build/fuzz $(SECONDS) $(FUZZ_TARGETS)

tsan: dependencies
	@cmake --preset tsan
	@cmake --build --preset tsan -j $(JOBS)
	@build/tsan/tests/poise_concurrency_tests

coverage: dependencies
	@cmake --preset coverage
	@cmake --build --preset coverage -j $(JOBS)
	@scripts/coverage.sh build/coverage 92

bench: dependencies
	@cmake --preset release -DPOISE_BENCH=ON
	@cmake --build --preset release -j $(JOBS) --target poise poise_limits poise_kernels
	@python3 bench/bench.py --poise $(POISE) --limits $(BUILD)/bench/poise_limits $(BENCH_OPTIONS)
	@$(BUILD)/bench/poise_kernels

tidy:
	@scripts/install_dependencies.sh clang-tidy-14
	@cmake --preset clang -B build/tidy -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON
	@run-clang-tidy-14 -quiet -j $(JOBS) -p build/tidy $(addprefix $(CURDIR)/,$(FILES))

install: build
	@cmake --install $(BUILD) --prefix $(PREFIX)

format:
	@clang-format-14 -i $(SOURCES)

format-check: dependencies
	@clang-format-14 --dry-run -Werror $(SOURCES)

clean:
	@rm -rf build
