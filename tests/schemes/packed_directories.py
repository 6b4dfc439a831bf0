"""Compares small random directories of BitNet and Quark, and files of ComfyUI, with NumPy's numbers.

    packed_directories.py POISE

The codes are packed and decoded here, from the descriptions of the projects, and checked as
quantized_directories.py checks other schemes.
"""
import json
import sys
import tempfile
from functools import partial
from pathlib import Path

import quantized_directories as directories
from mx_directories import ct_mxfp4
from quantized_directories import (
    F8,
    Tester,
    Typed,
    VICTIM,
    attempt,
    bf16,
    codes_of,
    f8_codes,
    grouped,
    np,
    require,
    rng,
    scales_of,
)


def bitnet(kind=None):
    """Packs as pack_weights(): a byte has codes of four rows, which are a quarter of all rows apart."""

    def parts(name, shape):
        numbers = rng.integers(-1, 2, shape)
        quarter = shape[0] // 4
        packed = np.zeros((quarter, shape[1]), np.uint8)
        for i in range(4):
            packed |= ((numbers[i * quarter : (i + 1) * quarter] + 1) << 2 * i).astype(np.uint8)
        stored, scale = bf16(np.array([1.2188 if kind == "autobitlinear" else 37.25], np.float32))
        factor = scale[0] if kind == "autobitlinear" else np.float32(1) / scale[0]
        return {".weight": packed, ".weight_scale": stored}, numbers.astype(np.float32) * factor

    config = {"quant_method": "bitnet", "quantization_mode": "offline", "modules_to_not_convert": None}
    return {**config, **({"linear_class": kind} if kind else {})}, parts


def quark_config(**weight):
    layer = {"weight": weight, "input_tensors": None, "output_tensors": None, "bias": None}
    return {
        "quant_method": "quark",
        "global_quant_config": layer,
        "layer_quant_config": {},
        "exclude": ["lm_head"],
        "export": {"pack_method": "reorder", "weight_format": "real_quantized"},
    }


def quark_fp8(each_row):
    def parts(name, shape):
        codes, scales = f8_codes(shape), scales_of((shape[0],) if each_row else (1,), np.float32)
        stored = {".weight": Typed("F8_E4M3", codes), ".weight_scale": scales if each_row else scales.reshape(())}
        return {**stored, ".input_scale": np.ones(1, np.float32)}, F8[codes] * scales.reshape(-1, 1)

    return quark_config(dtype="fp8_e4m3", qscheme="per_channel" if each_row else "per_tensor"), parts


def quark_fp4():
    def parts(name, shape):
        stored, numbers = ct_mxfp4()[1](name, shape)
        return {".weight": stored[".weight_packed"], ".weight_scale": stored[".weight_scale"]}, numbers

    return quark_config(dtype="fp4", qscheme="per_group", group_size=32, scale_format="e8m0"), parts


def quark_words(dtype, method="reorder", group=32):
    """Packs as Pack_4_bits: the matrix is transposed, and eight neighbours share a word."""
    order = (0, 2, 4, 6, 1, 3, 5, 7) if method == "reorder" else range(8)
    least = -8 if dtype == "int4" else 0

    def packed(matrix):
        words = np.zeros((matrix.shape[0], matrix.shape[1] // 8), np.uint32)
        for place, which in enumerate(order):
            words |= (matrix[:, which::8] & 15).astype(np.uint32) << np.uint32(4 * place)
        return words.view(np.int32)

    def parts(name, shape):
        groups = shape[1] // group
        codes, zeros = (codes_of(its, 4) + least for its in (shape, (shape[0], groups)))
        scales = scales_of((shape[0], groups))
        stored = {".weight": packed(codes.T), ".weight_zero_point": packed(zeros.T), ".weight_scale": scales.T}
        return stored, grouped(codes, zeros, scales, np.arange(shape[1]) // group)

    config = quark_config(dtype=dtype, qscheme="per_group", group_size=group)
    return {**config, "export": {"pack_method": method}}, parts


CASES = {  # name: (quantization_config, parts of a matrix), the part that is taken away, exact
    "bitnet": (bitnet(), ".weight", True),
    "bitnet-auto": (bitnet("autobitlinear"), ".weight_scale", True),
    "quark-fp8": (quark_fp8(False), ".weight_scale", True),
    "quark-fp8-rows": (quark_fp8(True), ".weight", True),
    "quark-mxfp4": (quark_fp4(), ".weight_scale", True),
    "quark-int4": (quark_words("int4"), ".weight_zero_point", True),
    "quark-uint4": (quark_words("uint4"), ".weight_scale", True),
    "quark-int4-order": (quark_words("int4", "order", 64), ".weight", True),
}
directories.CUT |= {"bitnet", "quark-fp8-rows", "quark-mxfp4", "quark-int4"}


def check_refusals(tester):
    """Checks parts and descriptions that contradict each other."""

    def refusal(case, change=lambda tensors: None, **keys):
        tensors, _ = tester.stored(CASES[case][0][1])
        change(tensors)
        return tester.poise("inspect", tester.make("refusals", {**CASES[case][0][0], **keys}, tensors), fails=True)

    def put(ending, array):
        return lambda tensors: tensors.update({VICTIM + ending: array})

    message = refusal("bitnet", linear_class="lut")
    require("linear_class is lut, only bitlinear and autobitlinear are supported" in message, message)
    for scale, text in ((0, "is 0, which is not a scale"), (np.nan, "is nan, which"), (1e-42, "which is not a scale")):
        message = refusal("bitnet", put(".weight_scale", np.array([scale], np.float32)))
        require(f"matrix {VICTIM}: BitNet: {VICTIM}.weight_scale " in message and text in message, message)
    message = refusal("bitnet", put(".weight_scale", np.ones(2, np.float32)))
    require("expected one number" in message, message)
    message = refusal("bitnet", put(".weight", np.zeros((32, 62), np.uint8)))
    require("has 62 columns, expected a multiple of 4" in message, message)
    message = refusal("bitnet", put(".weight", np.zeros((0, 64), np.uint8)))
    require("has no elements" in message, message)

    message = refusal("quark-int4", global_quant_config={})
    require("quantization_config describes no int4 or uint4 in groups" in message, message)
    other = {"re:.*up": {"weight": {"dtype": "uint4", "group_size": 32}}}
    message = refusal("quark-int4", layer_quant_config=other)
    require("quantization_config has 2 descriptions of integers" in message, message)
    message = refusal("quark-int4", export={"pack_method": "tiled"})
    require("pack_method is tiled, only reorder and order are supported" in message, message)
    message = refusal("quark-fp8", put(".weight_scale_2", np.ones(1, np.float32)))
    require("NVFP4 of Quark is not supported" in message, message)
    message = refusal("quark-fp8", put(".weight", np.zeros((128, 64), np.int8)))
    require(f"{VICTIM}.weight is stored as i8, expected f8_e4m3" in message, message)
    message = refusal("quark-fp8", put(".weight_zero_point", np.zeros(1, np.int32)))
    require("which only codes of four bits in words of i32 may have" in message, message)


def check_descriptions(tester):
    """Checks descriptions of single matrices, and those that exclude a quantized matrix."""
    signed, unsigned = quark_words("int4"), quark_words("uint4", group=64)
    down = "model.layers.0.mlp.down_proj"
    tensors, expected = tester.stored(lambda name, shape: (unsigned if name == down else signed)[1](name, shape))
    layers = {name: signed[0]["global_quant_config"] for name in directories.MATRICES if name != down}
    config = {**signed[0], "layer_quant_config": {**layers, down: unsigned[0]["global_quant_config"]}}
    tester.compare(tester.converted(tester.make("descriptions", config, tensors)), expected, True)
    tensors, _ = tester.stored(signed[1])
    texts = tester.warnings_of(tester.make("descriptions", {**signed[0], "exclude": ["*up_proj", "lm_head"]}, tensors))
    text = f"exclude lists matrix {VICTIM} as not quantized, but there are scales next to its codes"
    require(len(texts) == 1 and text in texts[0], f"{texts}")


def add_metadata(path, metadata):
    """Adds a __metadata__ to a safetensors file."""
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.dumps({"__metadata__": metadata, **json.loads(data[8 : 8 + length])}).encode()
    header += b" " * (-len(header) % 8)
    path.write_bytes(len(header).to_bytes(8, "little") + header + data[8 + length :])


def comfy_modules():
    """Returns tensors, descriptions of modules, and the numbers that they mean."""
    tensors, layers, expected = {}, {}, {}
    for name, kind, scale_shape in (
        ("blocks.0.attn.q", "float8_e4m3fn", ()),
        ("blocks.0.attn.k", "float8_e4m3fn", (32, 1)),
        ("blocks.0.mlp", "int8_tensorwise", (1,)),
        ("blocks.1.mlp", "int8_tensorwise", (32,)),
    ):
        scale = scales_of(scale_shape or (1,), np.float32).reshape(scale_shape)
        codes = f8_codes((32, 48)) if "float" in kind else rng.integers(-128, 128, (32, 48)).astype(np.int8)
        tensors[name + ".weight"] = Typed("F8_E4M3", codes) if "float" in kind else codes
        tensors[name + ".weight_scale"] = scale
        layers[name] = {"format": kind, "full_precision_matrix_mult": True}
        numbers = F8[codes] if "float" in kind else codes.astype(np.float32)
        expected[name + ".weight"] = numbers * scale.reshape(-1, 1)
    return {**tensors, "blocks.0.attn.q.input_scale": np.ones(1, np.float32)}, layers, expected


def as_tensors(layers):
    return {name + ".comfy_quant": np.frombuffer(json.dumps(its).encode(), np.uint8) for name, its in layers.items()}


def check_comfy(tester):
    """Checks descriptions of modules in tensors and in the metadata of the file."""
    path, target = tester.directory / "comfy.safetensors", tester.directory / "comfy-out.safetensors"
    tensors, layers, expected = comfy_modules()
    directories.save(path, {**tensors, **as_tensors(layers)})
    tester.compare(tester.converted(path), expected, True)
    tester.poise("convert", path, "-o", target, "--force", "--quiet")
    tester.poise("diff", path, target)
    directories.save(path, tensors)
    add_metadata(path, {"_quantization_metadata": json.dumps({"format_version": "1.0", "layers": layers})})
    tester.compare(tester.converted(path), expected, True)
    stated = json.loads(tester.poise("inspect", tester.directory / "numbers.safetensors", "--json"))
    require("_quantization_metadata" not in json.dumps(stated), "the numbers are described as codes")

    def refusal(**changed):
        directories.save(path, {**tensors, **as_tensors({**layers, **changed})})
        return tester.poise("convert", path, "-o", target, "--dtype", "f32", "--force", fails=True)

    message = refusal(**{"blocks.0.mlp": {"format": "nvfp4"}})
    require("matrix blocks.0.mlp: ComfyUI: its format is nvfp4, only float8_e4m3fn" in message, message)
    message = refusal(**{"blocks.0.mlp": {"format": "int8_tensorwise", "convrot": True}})
    require("matrix blocks.0.mlp: ComfyUI: its numbers are rotated (convrot)" in message, message)
    message = refusal(**{"blocks.0.mlp": {"format": "float8_e5m2"}})
    require("blocks.0.mlp.weight is stored as i8, expected f8_e5m2" in message, message)
    message = refusal(**{"blocks.0.mlp": [1]})
    require("blocks.0.mlp.comfy_quant: expected a JSON object" in message, message)
    message = refusal(**{"blocks.2.mlp": {"format": "float8_e4m3fn"}})
    require("the part blocks.2.mlp.weight is missing" in message, message)


def main():
    failed = []
    with tempfile.TemporaryDirectory() as directory:
        tester = Tester(sys.argv[1], Path(directory))
        for name, ((quantization, parts_of), missing, exact) in CASES.items():
            failed += attempt(name, partial(tester.check, name, quantization, parts_of, missing, exact))
        for name, step in (("refusals", check_refusals), ("descriptions", check_descriptions), ("comfy", check_comfy)):
            failed += attempt(name, partial(step, tester))
    sys.exit(f"failed: {' '.join(failed)}" if failed else 0)


if __name__ == "__main__":
    main()
