#!/bin/sh
# The main job on the small model in examples/: a Hugging Face directory becomes an .alt file, and the file tells a story.
# Requires: the built command as the first argument.
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
