#!/bin/sh
# Installs Poise into a new folder, then builds what its users would: a C++ program with find_package and with pkg-config, and C
# programs with pkg-config: the first one of docs/c-api.md and the executor of examples/.
# Arguments: the build folder, the source folder, the C++ compiler, the C compiler, their flags.
set -eu
build=$1 source=$2 compiler=$3 c_compiler=$4 flags=${5:-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cmake --install "$build" --prefix "$work/prefix" >/dev/null
libraries=$(dirname "$(find "$work/prefix" -name 'libpoise.*' | head -n 1)")
poise=$work/prefix/bin/poise
"$poise" --version | grep -q "^poise "
export PKG_CONFIG_PATH="$libraries/pkgconfig" LD_LIBRARY_PATH="$libraries"

cmake -S "$source/tests/consumer" -B "$work/build" -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_CXX_FLAGS="$flags" -DCMAKE_PREFIX_PATH="$work/prefix" >/dev/null
cmake --build "$work/build" >/dev/null
# shellcheck disable=SC2046,SC2086
"$compiler" -std=c++20 -Wall -Wextra -Werror $flags "$source/tests/consumer/main.cpp" -o "$work/with-pkg-config" $(pkg-config --cflags --libs poise)
for program in "$work/build/consumer" "$work/with-pkg-config"; do
  "$program" "$source/examples/nano-mistral" "$work" >"$work/listed"
  grep -q "^[1-9][0-9]* tensors$" "$work/listed"
  grep -q "^model.norm.weight \\[128\\] bf16$" "$work/listed"
  # The command prints the prompt, too.
  "$poise" run "$source/examples/nano-mistral" -p "Once upon a time" -n 20 | sed 's/^Once upon a time/continuation:/' >"$work/told"
  sed -n '/^continuation:/,$p' "$work/listed" | cmp - "$work/told"
done

# The program of README.md, whose includes come first.
sed -n '/^```cpp$/,/^```$/p' "$source/README.md" | sed '/^```$/q' | sed '/^```/d' >"$work/snippet"
{
  grep '^#include' "$work/snippet"
  echo 'int main() {'
  grep -v '^#include' "$work/snippet"
  echo '}'
} >"$work/readme.cpp"
# shellcheck disable=SC2046,SC2086
"$compiler" -std=c++20 -Wall -Wextra -Werror $flags "$work/readme.cpp" -o "$work/readme" $(pkg-config --cflags --libs poise)
"$poise" convert "$source/examples/nano-mistral" -o "$work/nano.gguf" >/dev/null 2>&1
(cd "$work" && ./readme && "$poise" verify nano.safetensors small.gguf >/dev/null)

c_program() {
  # shellcheck disable=SC2046,SC2086
  "$c_compiler" -std=c99 -pedantic -Wall -Wextra -Werror -O2 $flags "$1" -o "$2" $(pkg-config --cflags --libs poise) -lm
}
sed -n '/^```c$/,/^```$/p' "$source/docs/c-api.md" | sed '/^```$/q' | sed '/^```/d' >"$work/first.c"
c_program "$work/first.c" "$work/first"
"$work/first" "$source/examples/nano-mistral" | grep -q "^model.norm.weight: 128 elements of bf16 at "
"$work/first" "$work/absent" 2>&1 | grep -q "absent: cannot open"

c_program "$source/examples/c-executor/executor.c" "$work/executor"
"$poise" convert "$source/examples/nano-mistral" -o "$work/nano.alt" >/dev/null
"$poise" run "$work/nano.alt" -p "Once upon a time" -n 100 >"$work/expected"
"$work/executor" "$work/nano.alt" "Once upon a time" 100 | cmp - "$work/expected"
echo "find_package and pkg-config both work, from C++ and from C"
