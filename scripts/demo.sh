#!/bin/sh
# Shows the main workflow on the small models in examples/: converts a Hugging Face directory to an .alt file and runs
# it; runs a Tiny Llama weight file. The first argument is the built command.
set -eu
poise=$1

run() {
  printf '\n$ poise %s\n' "$*"
  "$poise" "$@"
}

run convert examples/nano-mistral -o build/nano.alt --dtype f16 --force
run verify build/nano.alt
run inspect build/nano.alt
run run build/nano.alt -p "Once upon a time" -n 120
tiny=examples/nano-tiny-llama
run run $tiny/weights.tllm --vocab $tiny/vocab.txt --merges $tiny/merges.txt -p "Once upon a time, a young bee" -n 120
