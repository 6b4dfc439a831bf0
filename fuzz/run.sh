#!/bin/sh
# Runs fuzz targets one after the other, each for a number of seconds:
#
#   fuzz/run.sh BUILD_DIRECTORY SECONDS [TARGET ...]
#
# Each begins with its seeds and what earlier runs found worth keeping in BUILD_DIRECTORY/corpus. What a target reports stays
# in BUILD_DIRECTORY/findings. Ends with 1 when there was a report.
set -eu

build=$1
seconds=$2
shift 2
here=$(dirname "$0")
targets=${*:-$(cd "$build/fuzz" && find . -maxdepth 1 -type f -name 'fuzz_*' -perm -u+x ! -name fuzz_seeds | sed 's|^./fuzz_||' | sort)}

mkdir -p "$build/findings"
"$build/fuzz/fuzz_seeds" "$build/seeds" "$here/findings"
# The allocator's limit is that of what C libraries ask for: zstd takes a window of 128 MiB when a frame says so.
export ASAN_OPTIONS="detect_leaks=1:allocator_may_return_null=0:${ASAN_OPTIONS:-}"
status=0
for target in $targets; do
  mkdir -p "$build/corpus/$target"
  echo "== $target"
  "$build/fuzz/fuzz_$target" "$build/corpus/$target" "$build/seeds/$target" -dict="$build/seeds/$target.dict" -max_total_time="$seconds" \
    -max_len=32768 -timeout=10 -malloc_limit_mb=256 -rss_limit_mb=2048 -print_final_stats=1 -artifact_prefix="$build/findings/$target-" \
    > "$build/$target.log" 2>&1 || {
    status=1
    tail -n 3 "$build/$target.log"
  }
  grep -E 'FINDING|ERROR|SUMMARY|DONE|stat::number_of_executed_units' "$build/$target.log" || true
done
exit $status
