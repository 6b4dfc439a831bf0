#!/bin/sh
# Makes a source archive of the last commit: make_dist.sh DIRECTORY. The same commit makes the same bytes.
set -eu
mkdir -p "$1"
output=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."
version=$(sed -n 's/^project(poise VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
[ -z "$(git status --porcelain)" ] || echo "make_dist: changes that are not committed are left out" >&2
archive=$output/poise-$version.tar.xz
git archive --format=tar --prefix="poise-$version/" HEAD >"$output/archive.tar"
xz -T1 -6 <"$output/archive.tar" >"$archive"  # the number of threads would change the bytes
rm "$output/archive.tar"
echo "$archive"
