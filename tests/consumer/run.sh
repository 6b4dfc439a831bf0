#!/bin/sh
# Installs Poise into a new folder, then builds a consumer against it twice: with find_package and with pkg-config.
# Arguments: the build folder, the source folder, the C++ compiler, its flags.
set -eu
build=$1 source=$2 compiler=$3 flags=${4:-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cmake --install "$build" --prefix "$work/prefix" >/dev/null
cmake -S "$source/tests/consumer" -B "$work/build" -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_CXX_FLAGS="$flags" -DCMAKE_PREFIX_PATH="$work/prefix" >/dev/null
cmake --build "$work/build" >/dev/null
pc=$(dirname "$(find "$work/prefix" -name poise.pc)")
# shellcheck disable=SC2046,SC2086
"$compiler" -std=c++20 $flags "$source/tests/consumer/main.cpp" -o "$work/with-pkg-config" \
  $(PKG_CONFIG_PATH="$pc" pkg-config --cflags --libs poise)

for program in "$work/build/consumer" "$work/with-pkg-config"; do
  "$program" "$source/examples/nano-mistral" | grep -q "^[1-9][0-9]* tensors$"
done
"$work/prefix/bin/poise" --version | grep -q "^poise "
echo "find_package and pkg-config both work"
