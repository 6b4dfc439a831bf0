#!/bin/sh
# Installs Poise into a new folder, then builds what its users would: a C++ program with find_package and with
# pkg-config, and C programs with pkg-config: the first one of docs/c-api.md and the executor of examples/. They link
# the shared library; one C++ program links the static library as well, where both are installed. Arguments: the build
# folder, the source folder, the C++ compiler, the C compiler, their flags. The word "installed" in place of the build
# folder: Debian's packages are installed, without the libraries that the static library needs.
set -eu
build=$1 source=$2 compiler=$3 c_compiler=$4 flags=${5:-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

static=OFF
if [ "$build" = installed ]; then
  poise=/usr/bin/poise
else
  cmake --install "$build" --prefix "$work/prefix" >/dev/null
  libraries=$(dirname "$(find "$work/prefix" -name 'libpoise.so' | head -n 1)")
  poise=$work/prefix/bin/poise
  readelf -d "$libraries/libpoise.so" | grep -q 'SONAME.*\[libpoise\.so\.[0-9]*\]'
  if [ -e "$libraries/libpoise.a" ]; then
    static=ON
    if readelf -d "$poise" | grep -q 'NEEDED.*libpoise'; then
      echo "the command needs the shared library" >&2
      exit 1
    fi
  fi
  for file in man/man1/poise.1 man/man1/poise-convert.1 bash-completion/completions/poise zsh/site-functions/_poise \
    fish/vendor_completions.d/poise.fish; do
    test -s "$work/prefix/share/$file"
  done
  export PKG_CONFIG_PATH="$libraries/pkgconfig" LD_LIBRARY_PATH="$libraries"
fi
"$poise" --version | grep -q "^poise "

cmake -S "$source/tests/consumer" -B "$work/build" -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_CXX_FLAGS="$flags" \
  -DCMAKE_PREFIX_PATH="$work/prefix" -DLINK_STATIC=$static >/dev/null
cmake --build "$work/build" >/dev/null
programs="$work/build/consumer $work/with-pkg-config"
if [ $static = ON ]; then programs="$programs $work/build/consumer-static"; fi
readelf -d "$work/build/consumer" | grep -q 'NEEDED.*libpoise'
# shellcheck disable=SC2046,SC2086
"$compiler" -std=c++20 -Wall -Wextra -Werror $flags "$source/tests/consumer/main.cpp" -o "$work/with-pkg-config" \
  $(pkg-config --cflags --libs poise)
for program in $programs; do
  "$program" "$source/examples/nano-mistral" "$work" >"$work/listed"
  grep -q "^[1-9][0-9]* tensors$" "$work/listed"
  grep -q "^model.norm.weight \\[128\\] bf16$" "$work/listed"
  # The command prints the prompt, too.
  "$poise" run "$source/examples/nano-mistral" -p "Once upon a time" -n 20 |
    sed 's/^Once upon a time/continuation:/' >"$work/told"
  sed -n '/^continuation:/,$p' "$work/listed" | cmp - "$work/told"
done

# The C++ programs of docs/cpp-api.md, and that of README.md, whose includes come first.
block() {  # of a page: the number of the block, its language
  awk -v wanted="$2" -v fence="\`\`\`$3" \
    '$0 == fence { ++count; inside = count == wanted; next } /^```$/ { inside = 0 } inside' "$1"
}
cpp_program() {
  # shellcheck disable=SC2046,SC2086
  "$compiler" -std=c++20 -Wall -Wextra -Werror $flags "$1" -o "$2" $(pkg-config --cflags --libs poise)
}
"$poise" convert "$source/examples/nano-mistral" -o "$work/nano.alt" >/dev/null 2>&1
for number in 1 2 3 4 5; do
  block "$source/docs/cpp-api.md" $number cpp >"$work/page$number.cpp"
  cpp_program "$work/page$number.cpp" "$work/page$number"
  (cd "$work" && "./page$number" nano.alt >"page$number.out" 2>/dev/null)
done
test -z "$(block "$source/docs/cpp-api.md" 6 cpp)"
grep -q "^alt-v2, 39 tensors$" "$work/page1.out"
grep -q "^128 numbers up to " "$work/page2.out"
grep -q "^2 tensors saved$" "$work/page3.out"
grep -q "^lm_head.weight: f32 -> bf16$" "$work/page4.out"
grep -q "^39 tensors, " "$work/page4.out"
test "$(wc -c <"$work/page5.out")" -gt 20
"$poise" verify "$work/made.safetensors" "$work/nano.zt" >/dev/null

# The C++ program of docs/cookbook.md.
block "$source/docs/cookbook.md" 1 cpp >"$work/tell.cpp"
cpp_program "$work/tell.cpp" "$work/tell"
test "$("$work/tell" "$work/nano.alt" | wc -c)" -gt 40

block "$source/README.md" 1 cpp >"$work/snippet"
{
  grep '^#include' "$work/snippet"
  echo 'int main() {'
  grep -v '^#include' "$work/snippet"
  echo '}'
} >"$work/readme.cpp"
cpp_program "$work/readme.cpp" "$work/readme"
rm -f "$work/nano.zt" "$work/nano.alt"
"$poise" convert "$source/examples/nano-mistral" -o "$work/nano.gguf" >/dev/null 2>&1
(cd "$work" && ./readme && "$poise" verify nano.safetensors small.gguf >/dev/null)

c_program() {
  # shellcheck disable=SC2046,SC2086
  "$c_compiler" -std=c99 -pedantic -Wall -Wextra -Werror -O2 $flags "$1" -o "$2" $(pkg-config --cflags --libs poise) -lm
}
block "$source/docs/c-api.md" 1 c >"$work/first.c"
c_program "$work/first.c" "$work/first"
"$work/first" "$source/examples/nano-mistral" | grep -q "^model.norm.weight: 128 elements of bf16 at "
"$work/first" "$work/absent" 2>&1 | grep -q "absent: cannot open"
block "$source/README.md" 1 c >"$work/readme.c"
c_program "$work/readme.c" "$work/readme-c"
(cd "$work" && ./readme-c) | grep -q "^512 bytes, borrowed from the file$"

c_program "$source/examples/c-executor/executor.c" "$work/executor"
"$poise" convert "$source/examples/nano-mistral" -o "$work/nano.alt" >/dev/null
"$poise" run "$work/nano.alt" -p "Once upon a time" -n 100 >"$work/expected"
"$work/executor" "$work/nano.alt" "Once upon a time" 100 | cmp - "$work/expected"
echo "find_package and pkg-config both work, from C++ and from C"
