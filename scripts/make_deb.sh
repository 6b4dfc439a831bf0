#!/bin/sh
# Builds Debian's packages and their source package from the last commit, and has lintian check them: make_deb.sh
# DIRECTORY. The packages appear in DIRECTORY, and the build takes place in DIRECTORY/source. JOBS: processors.
# LINTIAN=no: leaves lintian out.
set -eu
mkdir -p "$1"
output=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."
find "$output" -maxdepth 1 -type f -name '*poise*' -delete
rm -rf "$output/source"
mkdir "$output/source"
archive=$(scripts/make_dist.sh "$output/source")
tar -C "$output/source" -xf "$archive"
rm "$archive"
cd "$output/source"/poise-*
dpkg-buildpackage -us -uc -j"${JOBS:-$(nproc)}" >"$output/build.log" 2>&1 || {
  tail -n 30 "$output/build.log" >&2
  echo "the whole log is $output/build.log" >&2
  exit 1
}
cd ..
find . -maxdepth 1 -type f -exec mv {} "$output" \;
[ "${LINTIAN:-yes}" = no ] || lintian --allow-root --fail-on error "$output"/poise_*.changes
ls "$output"/*.deb
