#!/bin/sh
# Builds everything that a release ships, twice, and tests it in systems of its own: release_check.sh DIRECTORY. For
# root, with Debian's mirror; takes about as long as six builds. Prints a line for each step that ends well. STEPS:
# some of "dist wheel deb arm64", by default all. JOBS: processors.
set -eu
mkdir -p "$1"
output=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."
JOBS=${JOBS:-$(nproc)}
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export JOBS SOURCE_DATE_EPOCH
cache=$output/empty-debian.tar
version=$(sed -n 's/^project(poise VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)

has_step() {
  case " ${STEPS:-dist wheel deb arm64} " in *" $1 "*) return 0 ;; esac
  return 1
}

# Both builds of each package take place in directories of different names and depths, which must leave no trace.
is_same() {
  cmp "$1" "$2"
  echo "same bytes twice: $(basename "$1") ($(sha256sum "$1" | cut -c1-16)..., $(stat -c %s "$1") bytes)"
}

unpack_into() {
  rm -rf "$1"
  mkdir -p "$1"
  tar -C "$1" --strip-components=1 -xf "$output/one/poise-$version.tar.xz"
}

scripts/make_dist.sh "$output/one" >/dev/null
scripts/make_dist.sh "$output/two" >/dev/null
is_same "$output/one/poise-$version.tar.xz" "$output/two/poise-$version.tar.xz"

if has_step dist; then
  unpack_into "$output/unpacked"
  make -C "$output/unpacked" JOBS="$JOBS" build >"$output/dist.log" 2>&1
  make -C "$output/unpacked" JOBS="$JOBS" install PREFIX="$output/installed" >>"$output/dist.log" 2>&1
  "$output/installed/bin/poise" verify examples/nano-mistral >/dev/null
  sh tests/consumer/run.sh "$output/unpacked/build/release" "$output/unpacked" c++ cc \
    >>"$output/dist.log" 2>&1
  echo "the source archive builds, installs, and serves other projects"
fi

if has_step wheel; then
  for place in unpacked another/place; do
    [ -d "$output/$place" ] || unpack_into "$output/$place"
    make -C "$output/$place" JOBS="$JOBS" wheel >"$output/wheel.log" 2>&1
  done
  wheel=$(basename "$output"/unpacked/build/wheels/*.whl)
  is_same "$output/unpacked/build/wheels/$wheel" "$output/another/place/build/wheels/$wheel"
  tests/packages/test_wheel.sh "$output/unpacked/build/wheels/$wheel" "$cache"
fi

if has_step deb; then
  scripts/make_deb.sh "$output/debs" >"$output/lintian.log"
  LINTIAN=no scripts/make_deb.sh "$output/more/debs" >/dev/null
  for package in "$output"/debs/*.deb; do
    is_same "$package" "$output/more/debs/$(basename "$package")"
  done
  echo "lintian: no error, $(grep -c '^W:' "$output/lintian.log" || true) warnings"
  tests/packages/test_debs.sh "$output/debs" "$cache"
fi

if has_step arm64; then
  [ -d "$output/unpacked" ] || unpack_into "$output/unpacked"
  make -C "$output/unpacked" JOBS="$JOBS" build >"$output/arm64.log" 2>&1
  scripts/cross_arm64.sh "$output/arm64" "$output/unpacked/build/release/poise"
fi
echo "release-check: passed"
