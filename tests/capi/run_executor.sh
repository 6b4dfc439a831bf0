#!/bin/sh
# Checks that the executor in plain C prints the story that `poise run` prints,
# for every type of weights that it supports.
# Arguments: poise, the executor, the folder of examples.
set -eu
poise=$1 executor=$2 examples=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

tells_the_same() {
  for prompt in "Once upon a time" "" " Two  spaces, a caf\303\251 and a \342\230\203"; do
    prompt=$(printf "$prompt.")  # the dot keeps spaces at the end
    prompt=${prompt%.}
    "$poise" run "$1" -p "$prompt" -n 60 >"$work/expected"
    "$executor" "$1" "$prompt" 60 >"$work/found"
    cmp "$work/expected" "$work/found"
  done
}

"$poise" convert "$examples/nano-mistral" -o "$work/f32.alt" --dtype f32 >/dev/null
"$poise" convert "$examples/nano-mistral" -o "$work/f16.alt" --dtype f16 >/dev/null
"$poise" convert "$examples/nano-mistral" -o "$work/qint8.alt" --quantize qint8 >/dev/null
"$poise" convert "$examples/nano-mistral" -o "$work/range.alt" --quantize qint8:range >/dev/null
for type in f32 f16 qint8 range; do tells_the_same "$work/$type.alt"; done

# It reports unknown models itself, and Poise's errors for other files.
for bad in "$examples/nano-mistral" "$work/absent.alt" "$examples/nano-mistral/model.safetensors"; do
  if "$executor" "$bad" "Once" 5 2>"$work/message"; then exit 1; fi
  grep -q "^executor: " "$work/message"
done
