#!/bin/sh
# Makes the HTML pages: the reference of both interfaces, and the pages in docs/. make_docs.sh DIRECTORY: the pages are
# in DIRECTORY/html. It fails where Doxygen warns, for example of a link that leads nowhere.
set -eu
cd "$(dirname "$0")/.."
output=$1
mkdir -p "$output"
version=$(sed -n 's/^project(poise VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
{
  cat docs/Doxyfile
  echo "PROJECT_NUMBER = $version"
  echo "OUTPUT_DIRECTORY = $output"
  echo "WARN_LOGFILE = $output/warnings"
} >"$output/Doxyfile"
doxygen "$output/Doxyfile"
if [ -s "$output/warnings" ]; then
  cat "$output/warnings" >&2
  exit 1
fi
echo "$output/html/index.html"
