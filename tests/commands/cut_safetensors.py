"""Cuts a Hugging Face directory without Poise: keeps some layers, and rows of the embedding and the output matrix.

    cut_safetensors.py IN OUT LAYER,LAYER,... ROWS

Reads and writes model.safetensors by its definition: the length of the header in 8 bytes, the header in JSON, the
bytes.
"""
import json
import pathlib
import re
import struct
import sys


def main():
    source, target = map(pathlib.Path, sys.argv[1:3])
    layers, rows = [int(layer) for layer in sys.argv[3].split(",")], int(sys.argv[4])
    whole = (source / "model.safetensors").read_bytes()
    (length,) = struct.unpack("<Q", whole[:8])
    header, data = json.loads(whole[8 : 8 + length]), whole[8 + length :]
    cut, body = {}, b""
    for name, tensor in header.items():
        if name == "__metadata__":
            continue
        begin, end = tensor["data_offsets"]
        shape, content = tensor["shape"], data[begin:end]
        if found := re.fullmatch(r"model\.layers\.(\d+)\.(.*)", name):
            if int(found[1]) not in layers:
                continue
            name = f"model.layers.{layers.index(int(found[1]))}.{found[2]}"
        elif name in ("model.embed_tokens.weight", "lm_head.weight"):
            content = content[: len(content) // shape[0] * rows]
            shape = [rows, *shape[1:]]
        offsets = [len(body), len(body) + len(content)]
        cut[name] = {"dtype": tensor["dtype"], "shape": shape, "data_offsets": offsets}
        body += content
    text = json.dumps(cut).encode()
    target.mkdir()
    (target / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + body)
    config = json.loads((source / "config.json").read_text())
    (target / "config.json").write_text(json.dumps({**config, "num_hidden_layers": len(layers), "vocab_size": rows}))


if __name__ == "__main__":
    main()
