#!/bin/sh
# Builds the command and the unit tests for arm64 with Debian's cross compiler, and runs both under QEMU:
# cross_arm64.sh DIRECTORY POISE. POISE: a command of the same version for this machine. For root. Prints a line for
# each step that ends well. ARM64_STEPS: some of "results units vectors commands", by default all. JOBS: processors.
set -eu
mkdir -p "$1"
output=$(cd "$1" && pwd) native=$(realpath "$2")
cd "$(dirname "$0")/.."
root=$PWD
JOBS=${JOBS:-$(nproc)}

has_step() {
  case " ${ARM64_STEPS:-results units vectors commands} " in *" $1 "*) return 0 ;; esac
  return 1
}

# build TARGET: prints the end of the log if it fails.
build() {
  ninja -C "$output/build" -j"$JOBS" "$1" >"$output/build-$1.log" || {
    tail -n 20 "$output/build-$1.log" >&2
    exit 1
  }
}

scripts/make_sysroot.sh arm64 "$output/sysroot"
cmake -S . -B "$output/build" -G Ninja -DCMAKE_TOOLCHAIN_FILE="$PWD/cmake/arm64.cmake" \
  -DPOISE_SYSROOT="$output/sysroot" -DCMAKE_BUILD_TYPE=Release -DBUILD_TESTING=ON -DPOISE_PYTHON_PACKAGE=OFF \
  -DCMAKE_DISABLE_FIND_PACKAGE_MPI=ON >"$output/configure.log"
build poise

# make_runner PATH PROGRAM: the tests expect a program, so a script stands in for one for arm64. QEMU_CPU names the
# processor: "max" has SVE.
make_runner() {
  printf '#!/bin/sh\nexec qemu-aarch64-static -L "%s" "%s" "$@"\n' "$output/sysroot" "$2" >"$1"
  chmod +x "$1"
}
make_runner "$output/poise" "$output/build/poise"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# A conversion writes the same bytes on every processor, and a verification finds the same.
write_results() {
  mkdir "$work/$1"
  cd "$work/$1"
  $2 --version
  for type in q8_0 q4_0 q5_1 q4_k q6_k iq4_nl mxfp4; do
    $2 convert "$root/examples/nano-mistral" -o "$type.gguf" --quantize $type --quiet
  done
  $2 convert "$root/examples/nano-mistral" -o group4.zt --quantize group4 --compress zstd --quiet
  $2 convert q4_k.gguf -o back.safetensors --dtype f16 --quiet
  $2 hash "$root/examples/nano-mistral" >hash
  $2 verify ./*.gguf ./*.zt ./*.safetensors >verify
  $2 run "$root/examples/nano-mistral" -p "One day, a mouse" -n 60 --exact >text
  $2 run q8_0.gguf -p "One day, a mouse" -n 30 >text-q8_0
  cd "$root"
}

if has_step results; then
  write_results native "$native"
  QEMU_CPU=max,sve=off write_results neon "$output/poise"
  QEMU_CPU=max write_results sve "$output/poise"
  diff -r "$work/native" "$work/neon"
  diff -r "$work/native" "$work/sve"
  echo "arm64: $(find "$work/sve" -type f | wc -l) results with NEON and with SVE equal those of this machine, to the byte"
fi

# run_units NAME FILTER CPU: runs unit tests in parallel shards, and prints how many passed. A shard takes up to 20
# minutes, and several times as long next to other programs; the limit ends one that QEMU does not wake up again.
run_units() {
  shards=$((JOBS * 4))
  seq 0 $((shards - 1)) | QEMU_CPU=$3 GTEST_TOTAL_SHARDS=$shards xargs -P "$JOBS" -I "{}" sh -c \
    'GTEST_SHARD_INDEX={} timeout -k 60 5400 "$0" --gtest_filter="$1" >"$2-{}.log" 2>&1 || {
       tail -n 3 "$2-{}.log"; exit 1; }' "$output/build/tests/run" "$2" "$output/$1" >&2 || {
    grep -h "FAILED\|Failure" -A 4 "$output/$1"-*.log >&2 || true
    exit 1
  }
  passed=$(cat "$output/$1"-*.log | sed -n 's/^\[  PASSED  \] \([0-9]*\) tests*\.$/\1/p' | paste -sd+ | bc)
  echo "arm64: $passed unit tests passed ($1)"
}

if has_step units || has_step vectors; then
  build poise_tests
  make_runner "$output/build/tests/run" "$output/build/tests/poise_tests"
fi
# Vectors of 64 bytes. Tests of kernels and codecs choose NEON and SVE themselves. Left out: a test whose thousands of
# expressions reach a limit on processor time under QEMU.
if has_step units; then run_units units '*:-Schemes.ReadsAtMost4096ExpressionsOfModules' max; fi
# The same vector code without SVE, and with the shortest and longest vectors.
if has_step vectors; then
  for cpu in max,sve=off max,sve-max-vq=1 max,sve-max-vq=16,sve-default-vector-length=-1; do
    run_units "vectors-$cpu" 'Targets/*:*Kernels*:Cast.*:*Codec*:*Statistics*' "$cpu"
  done
fi

# A command takes up to half an hour under QEMU. Exit code 77: the group needs ../shared, which is absent.
if has_step commands; then
  printf '%s\n' tests/commands/*.txt | COMMAND_TIMEOUT=7200 xargs -P "$JOBS" -I "{}" sh -c '
    name=$(basename "$1" .txt)
    rc=0
    python3 tests/commands/run_commands.py "$1" "$2/poise" "$3" >"$2/commands-$name.log" 2>&1 || rc=$?
    echo "$rc $name"' sh "{}" "$output" "$root" >"$work/commands"
  failed=$(sed -n '/^0 /d; /^77 /d; s/^[0-9]* //p' "$work/commands" | sort | tr '\n' ' ')
  [ -z "$failed" ] || { echo "arm64: failed: $failed" >&2; exit 1; }
  echo "arm64: $(grep -c '^0 ' "$work/commands") groups of command tests passed," \
    "$(grep -c '^77 ' "$work/commands" || true) skipped"
fi
