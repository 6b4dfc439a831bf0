"""Writes a Hugging Face directory of small float32 tensors: write_names.py OUT CONFIG NAME:ROWS,COLUMNS...

CONFIG is JSON. "{0..5}" in a name stands for these numbers. The elements of the k-th tensor are k.
"""
import json
import pathlib
import re
import struct
import sys


def main():
    target, config, *tensors = sys.argv[1:]
    header, body = {}, b""
    for tensor in tensors:
        name, shape = tensor.rsplit(":", 1)
        shape = [int(length) for length in shape.split(",")]
        found = re.search(r"\{(\d+)\.\.(\d+)\}", name)
        numbers = range(int(found[1]), int(found[2]) + 1) if found else [0]
        for number in numbers:
            count = 1
            for length in shape:
                count *= length
            content = struct.pack("<f", len(header)) * count
            each = re.sub(r"\{.*\}", str(number), name)
            header[each] = {"dtype": "F32", "shape": shape, "data_offsets": [len(body), len(body) + len(content)]}
            body += content
    text = json.dumps(header).encode()
    pathlib.Path(target).mkdir()
    (pathlib.Path(target) / "config.json").write_text(config)
    (pathlib.Path(target) / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + body)


if __name__ == "__main__":
    main()
