#!/bin/sh
# Replaces fuzz/corpus by inputs of BUILD_DIRECTORY/corpus that reach code which no seed reaches: the smallest ones, up
# to KIB (16) KiB for each target.
#
#   fuzz/minimise.sh BUILD_DIRECTORY [TARGET ...]
set -eu

build=$1
shift
here=$(dirname "$0")
most=$((${KIB:-16} * 1024))
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$build/fuzz/fuzz_seeds" "$build/fuzz/seeds" "$here/findings"
targets=${*:-$(cd "$build/fuzz" && find . -maxdepth 1 -type f -name 'fuzz_*' -perm -u+x ! -name fuzz_seeds |
  sed 's|^./fuzz_||' | sort)}
for target in $targets; do
  cp -r "$build/fuzz/seeds/$target" "$work/merged"
  mkdir -p "$build/corpus/$target" "$here/corpus/$target"
  "$build/fuzz/fuzz_$target" -set_cover_merge=1 -max_len=4096 -timeout=10 \
    "$work/merged" "$build/corpus/$target" "$here/corpus/$target" \
    > "$build/$target.merge.log" 2>&1 || { tail -n 20 "$build/$target.merge.log"; exit 1; }
  (cd "$build/fuzz/seeds/$target" && ls) | while read -r seed; do rm -f "$work/merged/$seed"; done
  rm -rf "$here/corpus/$target"
  mkdir -p "$here/corpus/$target"
  sum=0
  for file in $(ls -Sr "$work/merged"); do
    sum=$((sum + $(stat -c %s "$work/merged/$file")))
    if [ $sum -gt $most ]; then break; fi
    cp "$work/merged/$file" "$here/corpus/$target/"
  done
  rm -rf "$work/merged"
  echo "$target: $(ls "$here/corpus/$target" | wc -l) inputs"
  rmdir --ignore-fail-on-non-empty "$here/corpus/$target"
done
