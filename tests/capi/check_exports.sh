#!/bin/sh
# Checks that a shared library exports exactly the C functions of exports.txt, and no C++ symbols but Poise's interface.
# Arguments: the library, exports.txt.
set -eu
library=$1 list=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

nm --dynamic --defined-only --extern-only "$library" | awk '{print $3}' | sed 's/@.*//' | sort -u >"$work/all"
grep -v '^_Z' "$work/all" >"$work/c" || true
diff "$list" "$work/c"

# Every C++ symbol is named in poise.map. A pattern there may match too much: a private class, or a function that no
# public header declares.
grep '^_Z' "$work/all" | c++filt >"$work/c++"
test -s "$work/c++"
if grep -Ev '^(typeinfo (name )?for |vtable for |VTT for )?poise::' "$work/c++" ||
  grep -E '::(State|Tables|Parts)::|poise::(capi|cli|alt|ztensor)::' "$work/c++"; then
  echo "these are not part of the interface" >&2
  exit 1
fi
