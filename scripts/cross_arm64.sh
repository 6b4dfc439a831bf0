#!/bin/sh
# Builds the command for arm64 with Debian's cross compiler, and compares under QEMU what it does with what a command of
# this machine does: cross_arm64.sh DIRECTORY POISE. JOBS: processors. For root.
set -eu
mkdir -p "$1"
output=$(cd "$1" && pwd) native=$(realpath "$2")
cd "$(dirname "$0")/.."
scripts/make_sysroot.sh arm64 "$output/sysroot"
cmake -S . -B "$output/build" -G Ninja -DCMAKE_TOOLCHAIN_FILE="$PWD/cmake/arm64.cmake" \
  -DPOISE_SYSROOT="$output/sysroot" -DCMAKE_BUILD_TYPE=Release -DBUILD_TESTING=OFF -DPOISE_PYTHON_PACKAGE=OFF \
  -DCMAKE_DISABLE_FIND_PACKAGE_MPI=ON >"$output/configure.log"
ninja -C "$output/build" -j"${JOBS:-$(nproc)}" poise >"$output/build.log" || {
  tail -n 20 "$output/build.log" >&2
  exit 1
}
examples=$PWD/examples
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/native" "$work/arm64"

# A conversion writes the same bytes on every processor, and a verification finds the same.
for place in native arm64; do
  cd "$work/$place"
  poise=$native
  [ $place = native ] || poise="qemu-aarch64-static -L $output/sysroot $output/build/poise"
  $poise --version
  for type in q8_0 q4_0 q5_1 q4_k q6_k iq4_nl mxfp4; do
    $poise convert "$examples/nano-mistral" -o "$type.gguf" --quantize $type --quiet
  done
  $poise convert "$examples/nano-mistral" -o group4.zt --quantize group4 --compress zstd --quiet
  $poise convert q4_k.gguf -o back.safetensors --dtype f16 --quiet
  $poise hash "$examples/nano-mistral" >hash
  $poise verify ./*.gguf ./*.zt ./*.safetensors >verify
  $poise run "$examples/nano-mistral" -p "One day, a mouse" -n 60 --exact >text
  $poise run q8_0.gguf -p "One day, a mouse" -n 30 >text-q8_0
done
cd "$work"
diff -r native arm64
count=$(find arm64 -type f | wc -l)
echo "arm64: $count results equal those of this machine, to the byte"
