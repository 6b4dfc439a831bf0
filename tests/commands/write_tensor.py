"""Writes a safetensors file that holds one tensor w.

    write_tensor.py FILE DTYPE SHAPE (HEX | struct's FORMAT and numbers)
"""
import json
import struct
import sys

path, dtype, shape, data, *numbers = sys.argv[1:]
bytes_ = (
    struct.pack("<" + data, *(float(n) if data[-1] in "efd" else int(n) for n in numbers))
    if numbers
    else bytes.fromhex(data)
)
header = json.dumps({"w": {"dtype": dtype, "shape": json.loads(shape), "data_offsets": [0, len(bytes_)]}}).encode()
with open(path, "wb") as file:
    file.write(struct.pack("<Q", len(header)) + header + bytes_)
