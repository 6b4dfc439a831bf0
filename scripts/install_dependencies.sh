#!/bin/sh
# Installs the missing Debian packages for a purpose, as root or with sudo. Does nothing, silently, if none is missing.
#
#     scripts/install_dependencies.sh build|mpi|python|test|browser|clang|bench|tidy|docs|package|cross ...
set -eu

# Packages for building the command and the library.
build="g++ cmake ninja-build pkg-config libcli11-dev libfmt-dev libsimdjson-dev libutf8proc-dev libpcre2-dev libzstd-dev
  zlib1g-dev libdeflate-dev libssl-dev libxxhash-dev libtbb-dev libhwy-dev libedit-dev libyaml-cpp-dev
  libcurl4-openssl-dev libeigen3-dev"
# Packages for the command for several machines (poise-mpi).
mpi="$build libopenmpi-dev openmpi-bin openssh-client"
# Packages for building the Python package; only its tests need numpy, torch and pytest.
python="$build python3 python3-dev python3-pybind11 python3-pip python3-venv"
test="$python git python3-pytest python3-torch python3-numpy python3-onnx python3-msgpack python3-jinja2 mypy
  libsentencepiece-dev libgtest-dev libgmock-dev locales zstd openssl xxhash libopenmpi-dev openmpi-bin openssh-client"
# The browser that tests of pages use; they are skipped without it.
browser="chromium"
clang="$test clang-14 lld-14 clang-format-14 black libclang-rt-14-dev llvm-14"
bench="$build python3 python3-numpy libbenchmark-dev zstd openssl xxhash"
tidy="$clang clang-tidy-14"
docs="doxygen python3"
# Debian's packages and wheels, and a system to test them in.
package="$python $mpi $docs git xz-utils debhelper dh-python lintian patchelf debootstrap"
# A command for arm64, whose libraries scripts/make_sysroot.sh unpacks.
cross="$build g++-aarch64-linux-gnu qemu-user-static debootstrap"

missing=""
for purpose in "$@"; do
  case $purpose in
    build) packages=$build ;;
    mpi) packages=$mpi ;;
    python) packages=$python ;;
    test) packages=$test ;;
    browser) packages=$browser ;;
    clang) packages=$clang ;;
    bench) packages=$bench ;;
    tidy) packages=$tidy ;;
    docs) packages=$docs ;;
    package) packages=$package ;;
    cross) packages=$cross ;;
    *) echo "$0: unknown purpose \"$purpose\", expected build, mpi, python, test, browser, clang, bench, tidy, docs, package or cross" >&2; exit 2 ;;
  esac
  for package in $packages; do
    case " $missing " in *" $package "*) continue ;; esac
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing="$missing $package"
  done
done
[ -z "$missing" ] && exit 0

if [ "$(id -u)" = 0 ]; then sudo=""; else sudo="sudo"; fi
echo "Installing:$missing"
export DEBIAN_FRONTEND=noninteractive
$sudo apt-get update -q
# shellcheck disable=SC2086
$sudo apt-get install -q -y --no-install-recommends $missing
