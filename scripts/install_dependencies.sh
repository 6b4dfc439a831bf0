#!/bin/sh
# Installs the Debian packages that building and testing Poise needs and that are missing, and those that it is given the names of. As
# root, or with sudo.
set -eu

packages="g++ clang-14 clang-format-14 libclang-rt-14-dev llvm-14 cmake ninja-build pkg-config python3 python3-numpy git
  libcli11-dev libfmt-dev nlohmann-json3-dev libutf8proc-dev libzstd-dev libssl-dev libxxhash-dev libtbb-dev libhwy-dev
  libsentencepiece-dev libgtest-dev libgmock-dev libbenchmark-dev zstd openssl xxhash $*"

missing=""
for package in $packages; do
  dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing="$missing $package"
done
[ -z "$missing" ] && exit 0

if [ "$(id -u)" = 0 ]; then sudo=""; else sudo="sudo"; fi
echo "Installing:$missing"
export DEBIAN_FRONTEND=noninteractive
$sudo apt-get update -q
# shellcheck disable=SC2086
$sudo apt-get install -q -y --no-install-recommends $missing
