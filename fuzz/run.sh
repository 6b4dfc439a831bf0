#!/bin/sh
# Runs fuzz targets, each for a number of seconds, JOBS of them (1) at a time:
#
#   fuzz/run.sh BUILD_DIRECTORY SECONDS [TARGET ...]
#
# Useful inputs stay in BUILD_DIRECTORY/corpus, reports in BUILD_DIRECTORY/findings. Exits with 1 after a report.
set -eu

build=$1
seconds=$2
shift 2
here=$(dirname "$0")
targets=${*:-$(cd "$build/fuzz" && find . -maxdepth 1 -type f -name 'fuzz_*' -perm -u+x ! -name fuzz_seeds |
  sed 's|^./fuzz_||' | sort)}
"$build/fuzz/fuzz_seeds" "$build/fuzz/seeds" "$here/findings"
status=0
for target in $targets; do echo "$target"; done |
  xargs -P "${JOBS:-1}" -I '{}' "$here/one.sh" "$build" '{}' "$seconds" keep || status=1
exit $status
