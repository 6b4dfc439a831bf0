#!/usr/bin/env python3
"""Reads ALT v2 independently of Poise: written from the format's description alone, with Python's standard library.

    parse_alt.py MODEL.alt WEIGHTS.safetensors TOLERANCE

Parses the file to its last byte, field by field, and compares every element of every tensor with the safetensors file
it was made from: |x - y| <= TOLERANCE. Exits 1 with the first disagreement.
"""
import array
import json
import struct
import sys

ALIGNMENT = 32
DTYPES = {0: ("f", 4), 1: ("e", 2)}


class Cursor:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, form):
        values = struct.unpack_from("<" + form, self.data, self.at)
        self.at += struct.calcsize("<" + form)
        return values[0] if len(values) == 1 else values

    def text(self):
        length = self.take("i")
        value = self.data[self.at : self.at + length]
        assert len(value) == length
        self.at += length
        return value.decode("utf-8")

    def section(self, marker):
        """Starts a section and returns the offset of the next one."""
        start = self.at
        assert start % ALIGNMENT == 0, f"section at {start}"
        found, size = self.take("qq")
        assert found == marker, f"marker {found:#x} at {start}, expected {marker:#x}"
        assert size % ALIGNMENT == 0
        return start + size

    def finish(self, end):
        """Checks that the rest of a section is padding: zeros, fewer than the alignment."""
        assert 0 <= end - self.at < ALIGNMENT, f"section ends at {end}, its fields at {self.at}"
        assert not any(self.data[self.at : end])
        self.at = end


def general(cursor):
    end = cursor.section(0xCAFEBABE)
    card = {
        key: cursor.text()
        for key in ("model_type", "base_model", "author", "created_at", "last_modified", "license", "uuid")
    }
    cursor.finish(end)
    return card


def parameters(cursor):
    end = cursor.section(0xDEADBEEF)
    config = {"hidden_act": cursor.text(), "tie_word_embeddings": bool(cursor.take("B"))}
    for key in (
        "hidden_size",
        "intermediate_size",
        "max_position_embeddings",
        "num_attention_heads",
        "num_hidden_layers",
        "num_key_value_heads",
        "sliding_window",
    ):
        config[key] = cursor.take("i")
    for key in ("rope_theta", "rms_norm_eps", "initializer_range"):
        config[key] = cursor.take("f")
    config["head_dim"] = cursor.take("i")
    cursor.finish(end)
    return config


def tokenizer(cursor):
    end = cursor.section(0xBADDCAFE)
    size, *ids = cursor.take("6i")
    tokens = []
    for _ in range(size):
        tokens.append((cursor.text(), *cursor.take("fi")))
    cursor.finish(end)
    return ids, tokens


def tensors(cursor):
    end = cursor.section(0xFACEFEED)
    count, shape_count, blocks, unique = cursor.take("qqii")
    result, dims, layers, others = {}, 0, set(), 0
    for _ in range(count):
        component, block, layer, projection, rank = cursor.take("5i")
        shape = [cursor.take("i") for _ in range(rank)]
        name = cursor.text()
        dtype, delta, low, high, packed = cursor.take("ifffb")
        assert (delta, low, high, packed) == (0, 0, 0, 0), name
        elements = 1
        for size in shape:
            elements *= size
        code, width = DTYPES[dtype]
        values = struct.unpack_from(f"<{elements}{code}", cursor.data, cursor.at)
        cursor.at += elements * width
        result[name] = (shape, values)
        dims += rank
        layers |= {block} if block >= 0 else set()
        others += block < 0
        assert (component == 0) == name.startswith("model.layers."), name
        assert (projection != 0) == name.endswith("_proj.weight"), name
        assert layer == {"self_attn": 1, "mlp": 2, "input_layernorm": 3, "post_attention_layernorm": 4}.get(
            name.split(".")[3] if component == 0 else "", 0
        ), name
    assert (dims, len(layers), others) == (shape_count, blocks, unique)
    cursor.finish(end)
    return result


def parse(path):
    cursor = Cursor(open(path, "rb").read())
    assert cursor.take("qqii") == (0x616C7400, 32, 2, 32)
    cursor.finish(32)
    card, config, vocabulary, weights = general(cursor), parameters(cursor), tokenizer(cursor), tensors(cursor)
    assert cursor.take("q") == 0x0FFFFFFF
    assert cursor.at == len(cursor.data), "bytes after the end marker"
    return card, config, vocabulary, weights


def read_safetensors(path):
    """Yields (name, shape, values) of bfloat16 tensors."""
    data = open(path, "rb").read()
    size = struct.unpack_from("<Q", data)[0]
    for name, entry in json.loads(data[8 : 8 + size]).items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        assert entry["dtype"] == "BF16"
        halves = array.array("H", data[8 + size + begin : 8 + size + end])
        words = array.array("I", (half << 16 for half in halves))
        yield name, entry["shape"], array.array("f", words.tobytes())


def main():
    card, config, (ids, tokens), weights = parse(sys.argv[1])
    tolerance = float(sys.argv[3])
    count = 0
    for name, shape, expected in read_safetensors(sys.argv[2]):
        found_shape, found = weights.pop(name)
        assert found_shape == shape, name
        for x, y in zip(found, expected):
            assert abs(x - y) <= tolerance, f"{name}: {x}, expected {y}"
        count += 1
    assert not weights, f"tensors from nowhere: {list(weights)}"
    print(
        f"{card['model_type']}, {config['num_hidden_layers']} layers, {len(tokens)} tokens, bos {ids[0]}, "
        f"eos {ids[1]}, {count} tensors equal"
    )


if __name__ == "__main__":
    main()
