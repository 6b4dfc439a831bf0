#!/bin/sh
# Runs one fuzz target of a build with libFuzzer:
#
#   fuzz/one.sh BUILD_DIRECTORY TARGET SECONDS keep|forget
#
# It begins with its seeds (made by fuzz_seeds), the kept corpus and the inputs that earlier runs have added to
# BUILD_DIRECTORY/corpus. New inputs go there, too, or are dropped with `forget`. Exits with 1 after a report: its input
# is then in BUILD_DIRECTORY/findings, the whole report in BUILD_DIRECTORY/TARGET.log.
set -eu

build=$1
target=$2
seconds=$3
here=$(dirname "$0")
seeds="$build/fuzz/seeds"
new="$build/corpus/$target"
mkdir -p "$build/findings"
if [ "$4" = forget ]; then
  new=$(mktemp -d)
  trap 'rm -rf "$new"' EXIT
fi
mkdir -p "$new"
set -- "$new" "$seeds/$target"
if [ -d "$here/corpus/$target" ]; then set -- "$@" "$here/corpus/$target"; fi
if [ -f "$seeds/$target.dict" ]; then set -- "$@" "-dict=$seeds/$target.dict"; fi

export ASAN_OPTIONS="detect_leaks=1:allocator_may_return_null=0:${ASAN_OPTIONS:-}"
# -malloc_limit_mb bounds the memory of C libraries: zstd takes a window of 128 MiB if a frame asks for it.
status=0
"$build/fuzz/fuzz_$target" "$@" -max_total_time="$seconds" -max_len=32768 -timeout=10 \
  -malloc_limit_mb=256 -rss_limit_mb=2048 -print_final_stats=1 \
  -artifact_prefix="$build/findings/$target-" > "$build/$target.log" 2>&1 || status=1
if [ $status = 1 ]; then grep -v "^#[0-9]\|NEW_FUNC" "$build/$target.log" | tail -n 60; fi
stat=stat::number_of_executed_units
sed -n "/^FINDING\|ERROR:\|^SUMMARY\|Test unit written\|^$stat\|DONE/s/^/$target: /p" "$build/$target.log"
exit $status
