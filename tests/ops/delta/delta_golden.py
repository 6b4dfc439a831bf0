#!/usr/bin/env python3
"""Compares the bytes of `poise delta` with those that docs/deltas.md defines, made here from the same models.

    delta_golden.py POISE PARSE_ZTENSOR

Uses the standard library; PARSE_ZTENSOR is tests/commands/parse_ztensor.py, which decodes CBOR.
"""
import hashlib
import importlib.util
import json
import pathlib
import random
import struct
import subprocess
import sys
import tempfile

BLOCK, GROUP = 1 << 16, 1 << 22
BYTES = {"F64": 8, "F32": 4, "BF16": 2, "F16": 2, "I8": 1, "U8": 1}
RANDOM = random.Random(20261129)


def write(path, tensors):
    header, data = {}, b""
    for name, (kind, content) in tensors.items():
        shape = [len(content) // BYTES[kind]]
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def xor(a, b):
    return (int.from_bytes(a, "little") ^ int.from_bytes(b, "little")).to_bytes(len(a), "little")


def encode_xor(change, word, shuffled):
    if not shuffled:
        return change
    groups = [change[at : at + GROUP * word] for at in range(0, len(change), GROUP * word)]
    return b"".join(group[plane::word] for group in groups for plane in range(word))


def encode_sparse(change, word):
    counts, groups = b"", b""
    for begin in range(0, len(change), GROUP * word):
        low, high, planes = bytearray(), bytearray(), [bytearray() for _ in range(word)]
        for at in range(begin, min(len(change), begin + GROUP * word), BLOCK * word):
            block = change[at : at + BLOCK * word]
            count, following = 0, 0
            if any(block):
                for index in range(len(block) // word):
                    element = block[index * word : (index + 1) * word]
                    if not any(element):
                        continue
                    gap, following, count = index - following, index + 1, count + 1
                    low.append(gap & 255)
                    high.append(gap >> 8)
                    for plane, byte in zip(planes, element):
                        plane.append(byte)
            counts += struct.pack("<I", count)
        groups += bytes(low + high + b"".join(planes))
    return counts + groups


def touch(content, word, places, masks):
    content = bytearray(content)
    for place in places:
        content[place * word : (place + 1) * word] = xor(
            content[place * word : (place + 1) * word], RANDOM.choice(masks)
        )
    return bytes(content)


def read_ztensor(path, parse):
    data = path.read_bytes()
    offset, length = struct.unpack("<QQ", data[-40:-24])
    manifest = parse.Cbor(data[offset : offset + length], True).value()
    parts = {}
    for name, item in manifest["objects"].items():
        for role, part in item["parts"].items():
            assert "encoding" not in part, part
            at, size = part["blob"]
            parts[name, role] = data[at : at + size]
    return manifest, parts


def main():
    poise, parser = sys.argv[1:]
    spec = importlib.util.spec_from_file_location("parse_ztensor", parser)
    parse = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(parse)
    noise = RANDOM.randbytes
    base = {
        "z.equal": ("F32", noise(4000)),
        "few": ("BF16", noise(2 * (GROUP + BLOCK + 77))),
        "gaps": ("F64", noise(8 * (BLOCK + 1))),
        "all": ("BF16", noise(2 * (GROUP + 1000))),
        "codes": ("U8", noise(100_001)),
        "floats": ("F32", noise(4 * 70_001)),
        "reshaped": ("F32", noise(40)),
        "removed": ("I8", noise(3)),
        "empty": ("F16", b""),
    }
    ulps = [b"\1\0", b"\3\0", b"\7\0"]
    count = len(base["few"][1]) // 2
    tuned = dict(base)
    del tuned["removed"]
    tuned["few"] = ("BF16", touch(base["few"][1], 2, RANDOM.sample(range(count), 3000) + [0, count - 1], ulps))
    tuned["gaps"] = ("F64", touch(base["gaps"][1], 8, [0, BLOCK - 1, BLOCK], [b"\0\0\0\0\0\0\1\2"]))
    tuned["all"] = ("BF16", touch(base["all"][1], 2, range(len(base["all"][1]) // 2), ulps))
    tuned["codes"] = ("U8", noise(100_001))
    masks = [bytes([i, j, 0, 0]) for i in range(256) for j in (1, 2)]
    tuned["floats"] = ("F32", touch(base["floats"][1], 4, range(70_001), masks))
    tuned["reshaped"] = ("F32", noise(44))
    tuned["new"] = ("F16", noise(10))
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        write(folder / "base.safetensors", base)
        write(folder / "tuned.safetensors", tuned)

        def run(*arguments):
            return subprocess.run([poise, *arguments], cwd=folder, check=True, capture_output=True)

        run("delta", "base.safetensors", "tuned.safetensors", "-o", "d.zt", "--quiet")
        subprocess.run([sys.executable, parser, folder / "d.zt"], check=True, capture_output=True)
        run("convert", "d.zt", "-o", "raw.zt", "--quiet")
        manifest, parts = read_ztensor(folder / "raw.zt", parse)
        header = manifest["attributes"]["poise.delta"]
        lines = sorted((key, hashlib.sha256(content).hexdigest()) for key, (_, content) in base.items())
        text = "".join(f"{digest}  {key}/data\n" for key, digest in lines)
        assert header["base"] == hashlib.sha256(text.encode()).hexdigest(), header
        assert header["removed"] == ["removed"]
        assert set(manifest["objects"]) == {"few", "gaps", "all", "codes", "floats", "reshaped", "new"}, manifest
        forms = {}
        for key, item in manifest["objects"].items():
            kind, content = tuned[key]
            if item["layout"] != "poise.delta/1":
                assert item["layout"] == "dense" and parts[key, "data"] == content, key
                forms[key] = "whole"
                continue
            change = xor(base[key][1], content)
            form = item["attributes"]["parts"]["data"]
            word = BYTES[kind]
            assert form["word"] == word and item["shape"] == [len(content) // word], item
            if form["form"] == "sparse":
                expected = encode_sparse(change, word)
            else:
                expected = encode_xor(change, word, form["shuffled"])
            assert parts[key, "data"] == expected, key
            forms[key] = form["form"]
        assert forms == {
            "few": "sparse",
            "gaps": "sparse",
            "all": "xor",
            "codes": "xor",
            "floats": "xor",
            "reshaped": "whole",
            "new": "whole",
        }, forms
        assert manifest["objects"]["all"]["attributes"]["parts"]["data"]["shuffled"]
        order = [sorted(tuned)[index] for index in header["order"]]
        hashes = []
        for source in ("tuned.safetensors", "again.safetensors", "again.zt"):
            if source != "tuned.safetensors":
                run("convert", "base.safetensors", "--delta", "d.zt", "-o", source, "--quiet")
            hashes.append(run("hash", source).stdout.split(b"  model")[0])
        assert hashes[0] == hashes[1] == hashes[2]
        listed = json.loads(run("inspect", "tuned.safetensors", "--json").stdout)["tensors"]
        assert order == [tensor["name"] for tensor in listed], order
    print(f"{len(forms)} tensors of a delta are as the page defines them")


main()
