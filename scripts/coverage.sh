#!/bin/sh
# Runs the tests of a coverage build and prints the line coverage of src/ without src/cli.
#
#     scripts/coverage.sh BUILD_DIRECTORY LEAST_PERCENT
set -eu
build=$1
least=$2

rm -rf "$build/profiles"
LLVM_PROFILE_FILE="$PWD/$build/profiles/%4m.profraw" \
  ctest --test-dir "$build" -j "$(nproc)" -E '^(consumer|faults)$' --output-on-failure
llvm-profdata-14 merge -sparse -o "$build/poise.profdata" "$build"/profiles/*.profraw
report="llvm-cov-14 report $build/poise -object $build/tests/poise_tests"
report="$report -instr-profile $build/poise.profdata --ignore-filename-regex=(tests|src/cli|fuzz|/usr)/"
# The report has three columns each for regions, functions, lines and branches.
table=$($report 2> "$build/report.log" | awk '$10 ~ /%$/ { print $1, $10 }')
echo "$table" | column -t
percent=$(echo "$table" | awk '$1 == "TOTAL" { print $2 + 0 }')
echo "lines: $percent % (at least $least %)"
awk "BEGIN { exit !($percent >= $least) }"
