#!/usr/bin/env python3
"""Compares the data in pages of `poise report` with numbers that this script computes from the definitions.

page_data.py POISE ROOT
"""
import base64
import hashlib
import json
import math
import pathlib
import random
import re
import struct
import subprocess
import sys
import tempfile
import zlib

POISE, ROOT = sys.argv[1], pathlib.Path(sys.argv[2])
EXAMPLE = ROOT / "examples" / "nano-mistral"


def report(where, model, *options):
    """Returns the page's text and its data: the model's, the tensors', the maps, the vocabulary."""
    out = where / "page.html"
    subprocess.run([POISE, "report", str(model), "-o", str(out), "--force", "--quiet", *options], check=True)
    page = out.read_text("utf-8")
    blocks = dict(re.findall(r'<script type="[a-z/]+" id="([a-z]+)-data">(.*?)</script>', page, re.S))
    model_data = json.loads(blocks["model"])
    unpacked = [
        zlib.decompress(base64.b64decode(blocks[name]), -15) for name in ("tensor", "map", "vocabulary") if blocks[name]
    ]
    tensors = json.loads(unpacked[0])
    vocabulary = json.loads(unpacked[2]) if len(unpacked) > 2 else None
    return page, model_data, tensors, unpacked[1], vocabulary


def write_safetensors(path, tensors):
    """Writes float32 tensors: {name: (shape, numbers)}."""
    header, data = {}, b""
    for name, (shape, numbers) in tensors.items():
        begin = len(data)
        data += struct.pack(f"<{len(numbers)}f", *numbers)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [begin, len(data)]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def as_float(number):
    return struct.unpack("<f", struct.pack("<f", number))[0]


def expect(found, expected, what):
    if found != expected:
        sys.exit(f"{what}: expected {expected}, found {found}")


def expect_near(found, expected, what, tolerance=1e-4):
    if not math.isclose(found, expected, rel_tol=tolerance):
        sys.exit(f"{what}: expected {expected}, found {found}")


def root_mean_square(numbers):
    return math.sqrt(sum(number * number for number in numbers) / len(numbers))


def check_map(tensors, maps, i, rows, columns, numbers, side):
    """Checks each cell: column j of m is in cell floor(j * cells / m), rows alike; 20 codes are a factor of 2."""
    place, cell_rows, cell_columns = tensors["map"][i]
    expect([cell_rows, cell_columns], [min(side, rows), min(side, columns)], "cells of the map")
    unit = root_mean_square(numbers)
    cells = {}
    for at, number in enumerate(numbers):
        cell = (at // columns * cell_rows // rows) * cell_columns + at % columns * cell_columns // columns
        cells.setdefault(cell, []).append(number)
    for cell, inside in cells.items():
        size = root_mean_square(inside)
        code = 0 if size == 0 else max(1, min(254, round(128 + 20 * math.log2(size / unit))))
        if abs(maps[place + cell] - code) > (0 if code == 0 else 1):
            sys.exit(f"cell {cell}: expected code {code}, found {maps[place + cell]}")


def check_numbers(where):
    generator = random.Random(5)
    rows, columns = 100, 150
    numbers = [as_float(generator.gauss(0, 0.02)) for _ in range(rows * columns)]
    for j in range(columns):
        numbers[7 * columns + j] *= 16  # a loud row, exactly
        numbers[60 * columns + j] = 0
    vector = [as_float(generator.gauss(1, 0.1)) for _ in range(37)]
    write_safetensors(where / "a.safetensors", {"m": ([rows, columns], numbers), "v": ([37], vector)})
    _, model, tensors, maps, _ = report(where, where / "a.safetensors")
    expect(model["tensors"], 2, "tensors")
    expect(model["elements"], len(numbers) + 37, "elements")
    expect(model["verify"]["errors"], 0, "errors")
    expect(model["title"], "a.safetensors", "title")
    i = tensors["name"].index("m")
    expect_near(tensors["rms"][i], root_mean_square(numbers), "rms")
    expect_near(tensors["min"][i], min(numbers), "min")
    expect(tensors["zeros"][i], columns, "zeros")
    expect(tensors["channel"][i][0], 7, "loudest row")
    low, high, counts = tensors["histogram"][i]
    expect(sum(counts), len(numbers), "numbers of the histogram")
    expect(len(counts), 48, "parts of the histogram")
    mean = sum(numbers) / len(numbers)
    deviation = math.sqrt(sum((number - mean) ** 2 for number in numbers) / len(numbers))
    expect_near(high, min(max(numbers), mean + 4 * deviation), "end of the histogram")
    middle = sum(1 for number in numbers if low + (high - low) / 48 * 10 <= number < low + (high - low) / 48 * 38)
    expect_near(sum(counts[10:38]), middle, "middle of the histogram", 0.01)
    check_map(tensors, maps, i, rows, columns, numbers, 64)
    digest = hashlib.sha256(struct.pack(f"<{len(numbers)}f", *numbers)).hexdigest()
    expect(tensors["sha256"][i], [["data", digest]], "digest")
    lines = "".join(
        f"{hashlib.sha256(struct.pack(f'<{len(of)}f', *of)).hexdigest()}  {name}/data\n"
        for name, of in (("m", numbers), ("v", vector))
    )
    expect(model["digests"]["model"], hashlib.sha256(lines.encode()).hexdigest(), "digest of the model")
    check_cost(where, rows, columns, numbers, vector)


def check_cost(where, rows, columns, numbers, vector):
    """A copy whose numbers are all too large by 1/256, exactly, and one by 1/4."""
    changed = [as_float(number + number / 256) for number in numbers]
    changed[3 * columns + 5] = numbers[3 * columns + 5] + 0.25
    write_safetensors(where / "b.safetensors", {"m": ([rows, columns], changed), "v": ([37], vector)})
    _, model, tensors, _, _ = report(where, where / "b.safetensors", "--against", str(where / "a.safetensors"))
    expect(model["against"]["equal"], 1, "equal tensors")
    [(name, what, before, after, values)] = tensors["differences"]
    expect([name, what, before, after], ["m", "values", "f32 [100, 150]", "f32 [100, 150]"], "difference")
    errors = [b - a for a, b in zip(numbers, changed)]
    expect_near(values["rms"], root_mean_square(errors), "error")
    expect_near(values["max"], max(map(abs, errors)), "worst error")
    expect(values["place"], [3, 5], "place of the worst error")
    expect_near(values["snr"], 20 * math.log10(root_mean_square(numbers) / root_mean_square(errors)), "signal to noise")


def check_not_finite(where):
    numbers = [1.0] * 64
    numbers[9] = math.nan
    numbers[20] = math.inf
    write_safetensors(
        where / "nan.safetensors", {"m": ([8, 8], numbers), "none": ([0, 4], []), "zero": ([4, 4], [0.0] * 16)}
    )
    _, model, tensors, maps, _ = report(where, where / "nan.safetensors")
    expect(model["verify"]["warnings"], 1, "warnings")
    i = tensors["name"].index("m")
    expect([tensors["nan"][i], tensors["inf"][i]], [1, 1], "numbers that are not finite")
    cells = maps[tensors["map"][i][0] :][:64]
    expect([at for at, code in enumerate(cells) if code == 255], [9, 20], "cells that are not finite")
    zero = tensors["map"][tensors["name"].index("zero")]
    expect(maps[zero[0] : zero[0] + 16], bytes(16), "cells of zeros")
    expect(tensors["map"][tensors["name"].index("none")], None, "map of no numbers")


def check_policy(page):
    """The policy names the digests of the only script and style."""
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', page).group(1)
    for tag, directive in (("script", "script-src"), ("style", "style-src")):
        [text] = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.S)
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        expect(f"{directive} 'sha256-{digest}'" in policy, True, directive)
    expect(policy.startswith("default-src 'none';"), True, "policy")
    expect(re.findall(r'(?:src|href)="(?!#)', page), [], "links to other files")


def check_example(where):
    page, model, tensors, maps, vocabulary = report(where, EXAMPLE)
    check_policy(page)
    config = json.loads((EXAMPLE / "config.json").read_text())
    expect(dict(model["config"])["hidden_size"], str(config["hidden_size"]), "hidden_size")
    expect(len(vocabulary["texts"]), config["vocab_size"], "tokens")
    # Keys and values of 64 positions of a layer: two arrays of heads of float16 numbers.
    head = config["hidden_size"] // config["num_attention_heads"]
    f16 = next(kind for kind in model["memory"]["types"] if kind["type"] == "f16")
    expect(f16["block_bytes"], 2 * 64 * config["num_key_value_heads"] * head * 2, "bytes of the cache")
    expect(sum(group["layers"] for group in model["memory"]["groups"]), config["num_hidden_layers"], "layers")
    expect(model["memory"]["weights"], sum(tensors["bytes"]), "bytes of the weights")
    matrices = sum(1 for shape in tensors["shape"] if len(shape) == 2)
    expect(sum(1 for place in tensors["map"] if place), matrices, "maps")
    # The same page for the same model.
    expect(report(where, EXAMPLE)[0], page, "the page made again")


def check_names(where):
    """Names that would end the data, or be markup, are escaped."""
    names = [
        "<script>alert(1)</script>",
        '"><img src=x onerror=alert(1)>',
        "</script><!--",
        "a\u2028b",
        "@SCRIPT@",
        "&lt;",
    ]
    write_safetensors(where / "names.safetensors", {name: ([1], [1.0]) for name in names})
    page, _, tensors, _, _ = report(where, where / "names.safetensors")
    expect(sorted(tensors["name"]), sorted(names), "names")
    expect(len(re.findall(r"<script", page)), 5, "script elements")
    hostile = where / "<img src=x onerror=alert(1)>.safetensors"
    write_safetensors(hostile, {"a": ([1], [1.0])})
    page = report(where, hostile)[0]
    expect("<img" in page, False, "markup of the file's name")


def check_many(where):
    """100,000 tensors: the page lists the largest, and stays small."""
    sizes = {f"model.layers.{i // 10}.mlp.experts.{i % 10}.w": ([1, 2], [1.0, float(i)]) for i in range(99_990)}
    for i in range(10):
        sizes[f"large.{i}"] = ([20, 20], [0.5] * 400)
    write_safetensors(where / "many.safetensors", sizes)
    page, model, tensors, maps, _ = report(where, where / "many.safetensors")
    expect(model["tensors"], 100_000, "tensors")
    expect(len(tensors["name"]), 20_000, "listed tensors")
    expect(sum(name.startswith("large") for name in tensors["name"]), 10, "large tensors")
    expect(len(maps) <= 1_000_000, True, "bytes of maps")
    if len(page) > 4_000_000:
        sys.exit(f"the page of 100,000 tensors has {len(page)} bytes")


with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    for check in (check_numbers, check_not_finite, check_example, check_names, check_many):
        check(folder)
