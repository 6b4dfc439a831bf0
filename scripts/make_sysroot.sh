#!/bin/sh
# Unpacks Debian's packages of another processor, with the libraries that Poise and its tests link, into a directory for
# a cross compiler: make_sysroot.sh ARCHITECTURE DIRECTORY. No package is installed, and none of their programs runs.
# MIRROR, SUITE: as in tests/packages/clean_root.sh. For root.
set -eu
architecture=$1 directory=$2
. "$(dirname "$0")/../tests/packages/clean_root.sh"
libraries="libc6-dev libstdc++-12-dev libfmt-dev libsimdjson-dev libutf8proc-dev libpcre2-dev libzstd-dev zlib1g-dev
  libdeflate-dev libssl-dev libxxhash-dev libtbb-dev libhwy-dev libedit-dev libyaml-cpp-dev libcurl4-openssl-dev libcli11-dev libgtest-dev
  libgmock-dev libeigen3-dev libsentencepiece-dev"
[ ! -e "$directory/complete" ] || exit 0
rm -rf --one-file-system "$directory"
mkdir -p "$directory"
# The first stage of debootstrap downloads what it lists, and unpacks a part.
# shellcheck disable=SC2086
debootstrap --foreign --arch="$architecture" --variant=minbase --include="$(echo $libraries | tr ' ' ',')" \
  "$SUITE" "$directory" "$MIRROR" >"$directory.log" 2>&1 || {
  tail -n 20 "$directory.log" >&2
  exit 1
}
for package in "$directory"/var/cache/apt/archives/*.deb; do
  dpkg-deb -x "$package" "$directory"
done
# Links that begin with / would lead out of the directory.
find "$directory/usr/lib" "$directory/lib" -type l -lname '/*' | while read -r link; do
  ln -sfn "$(realpath --relative-to="$(dirname "$link")" -m "$directory$(readlink "$link")")" "$link"
done
# QEMU would show these empty folders to programs in place of the machine's.
rmdir "$directory/proc" "$directory/sys"
touch "$directory/complete"
