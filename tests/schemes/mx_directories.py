"""Compares small random directories of MX numbers, and of the same numbers with other scales, with NumPy's numbers.

    mx_directories.py POISE

compressed-tensors stores them as bytes, MLX as words of 32 bits. The codes are packed and decoded here, from the
descriptions of both projects, and checked as quantized_directories.py checks other schemes.
"""
import json
import sys
import tempfile
from functools import partial
from pathlib import Path

import quantized_directories as directories
from quantized_directories import (
    F4,
    F8,
    Tester,
    Typed,
    VICTIM,
    attempt,
    codes_of,
    ct,
    f8_codes,
    np,
    require,
    rng,
    stream,
)


def exponents_of(shape):
    """Returns exponents (E8M0) and the powers of two that they mean."""
    exponents = rng.integers(115, 124, shape).astype(np.uint8)
    return exponents, np.ldexp(np.float32(1), exponents.astype(np.int32) - 127).astype(np.float32)


def nibbles(codes):
    """Packs two codes in a byte, the even one in the low half."""
    return (codes[..., ::2] | codes[..., 1::2] << 4).astype(np.uint8)


def in_words(codes):
    """Packs codes of four bits as MLX does: eight in a word of 32 bits, from its low bits on."""
    return stream(codes.reshape(-1, codes.shape[-1]), 4).reshape(*codes.shape[:-1], -1)


def ct_mxfp4(scale_type="U8"):
    def parts(name, shape):
        codes, (exponents, scales) = codes_of(shape, 4), exponents_of((shape[0], shape[1] // 32))
        stored = exponents if scale_type == "U8" else Typed(scale_type, exponents)
        return {".weight_packed": nibbles(codes), ".weight_scale": stored}, F4[codes] * np.repeat(scales, 32, 1)

    weights = {"strategy": "group", "group_size": 32, "symmetric": True, "scale_dtype": "torch.uint8"}
    return {**ct("mxfp4-pack-quantized", 4), "config_groups": groups_of(4, **weights)}, parts


def groups_of(bits, **weights):
    return {"group_0": {"targets": ["Linear"], "weights": {"num_bits": bits, "type": "float", **weights}}}


def ct_mxfp8():
    def parts(name, shape):
        codes, (exponents, scales) = f8_codes(shape), exponents_of((shape[0], shape[1] // 32))
        return {".weight": Typed("F8_E4M3", codes), ".weight_scale": exponents}, F8[codes] * np.repeat(scales, 32, 1)

    weights = {"strategy": "group", "group_size": 32, "symmetric": True, "scale_dtype": "torch.uint8"}
    return {**ct("mxfp8-quantized", 8), "config_groups": groups_of(8, **weights)}, parts


def mlx(mode, **settings):
    group = 16 if mode == "nvfp4" else 32

    def parts(name, shape):
        groups = (*shape[:-1], shape[-1] // group)
        if mode == "nvfp4":
            bytes_ = rng.integers(40, 100, groups).astype(np.uint8)
            scales = F8[bytes_] / np.float32(1)
        else:
            bytes_, scales = exponents_of(groups)
        if mode == "mxfp8":
            codes = f8_codes(shape)
            words, numbers = codes.view("<u4"), F8[codes]
        else:
            codes = codes_of(shape, 4)
            words, numbers = in_words(codes), F4[codes]
        return {".weight": words, ".scales": bytes_}, numbers * np.repeat(scales, group, -1)

    return {"mode": mode, **settings}, parts


CASES = {  # name: (quantization_config, parts of a matrix), the part that is taken away, exact
    "ct-mxfp4": (ct_mxfp4(), ".weight_scale", True),
    "ct-mxfp4-e8m0": (ct_mxfp4("F8_E8M0"), ".weight_scale", True),
    "ct-mxfp8": (ct_mxfp8(), ".weight", True),
    "mlx-mxfp4": (mlx("mxfp4", bits=4, group_size=32), ".scales", True),
    "mlx-mxfp8": (mlx("mxfp8", bits=8, group_size=32), ".weight", True),
    "mlx-nvfp4": (mlx("nvfp4"), ".scales", True),
}
directories.CUT |= set(CASES)


def check_refusals(tester):
    """Checks parts that contradict the mode or the format, and shapes that are not whole groups."""

    def refusal(case, change, **keys):
        quantization, parts_of = CASES[case][0]
        tensors, _ = tester.stored(parts_of)
        change(tensors)
        return tester.poise("inspect", tester.make("refusals", {**quantization, **keys}, tensors), fails=True)

    def keep(tensors):
        pass

    for mode, key, number, expected in (
        ("mxfp4", "bits", 8, 4),
        ("mxfp8", "group_size", 64, 32),
        ("nvfp4", "bits", 3, 4),
    ):
        message = refusal(f"mlx-{mode}", keep, **{key: number})
        require(f"quantization states {key} {number}, expected {expected} for the mode {mode}" in message, message)
    message = refusal("mlx-mxfp4", keep, mode="mxfp6")
    require("mode is mxfp6, only affine, mxfp4, mxfp8, nvfp4 are supported" in message, message)
    message = refusal("mlx-nvfp4", keep, mode="mxfp4")
    require(f"the shape of {VICTIM}.scales is" in message, message)
    message = refusal("mlx-mxfp8", lambda tensors: tensors.update({VICTIM + ".biases": np.zeros((128, 2), np.float16)}))
    require(f"there is {VICTIM}.biases, but the mode mxfp8 has no biases" in message, message)

    def narrow(tensors):
        tensors[VICTIM + ".weight_packed"] = tensors[VICTIM + ".weight_packed"][:, :24]

    message = refusal("ct-mxfp4", narrow)
    require(
        f"matrix {VICTIM}: compressed-tensors mxfp4-pack-quantized: groups of 32 do not divide its 48" in message,
        message,
    )

    def empty(tensors):
        tensors[VICTIM + ".weight_packed"] = np.zeros((0, 32), np.uint8)
        tensors[VICTIM + ".weight_scale"] = np.zeros((0, 2), np.uint8)

    require("it has no elements" in refusal("ct-mxfp4", empty), "no rows")
    for case, stated in (("ct-mxfp4", "nvfp4-pack-quantized"), ("ct-mxfp8", "float-quantized")):
        kind = CASES[case][0][0]["format"]
        message = refusal(case, keep, format=stated)
        require(f"it is stored as {kind}, but quantization_config states {stated}" in message, message)

    def words(tensors):
        tensors[VICTIM + ".weight"] = tensors[VICTIM + ".weight"].view("<i4")

    require("is stored as i32, expected u32" in refusal("mlx-mxfp4", words), "signed words")


def check_scales(tester):
    """Checks the largest, the smallest and the invalid exponent: 2^127, 2^-127 and NaN."""
    for case, weight, scales in (("ct-mxfp4", ".weight_packed", ".weight_scale"), ("mlx-mxfp8", ".weight", ".scales")):
        quantization, parts_of = CASES[case][0]
        tensors, expected = tester.stored(parts_of)
        one = 0x22 if case == "ct-mxfp4" else 0x38  # codes of 1
        bytes_ = np.full_like(tensors[VICTIM + weight].view(np.uint8), one)
        tensors[VICTIM + weight] = bytes_.view(tensors[VICTIM + weight].dtype)
        exponents = np.zeros_like(tensors[VICTIM + scales])
        exponents[:, 0] = 254
        tensors[VICTIM + scales] = exponents
        powers = np.where(exponents == 254, np.float32(2.0**127), np.float32(2.0**-127))
        expected[VICTIM + ".weight"] = np.repeat(powers, 32, 1)
        tester.compare(tester.converted(tester.make("scales", quantization, tensors)), expected, True)
        exponents[3, 1] = 255
        path = tester.make("scales", quantization, tensors)
        require(np.isnan(tester.converted(path)[VICTIM + ".weight"][3, 32:64]).all(), "NaN")
        printed = tester.poise("verify", path, fails=None)
        require(f"{VICTIM}.weight" in printed and "finite" in printed, printed)


def check_experts(tester):
    """Checks MLX's stacks of experts, of three dimensions, and settings of single matrices."""
    for mode in ("mxfp4", "mxfp8", "nvfp4"):
        quantization, parts_of = mlx(mode)
        tensors, expected = tester.stored(parts_of)
        name = "model.layers.0.mlp.switch_mlp.up_proj"
        its, expected[name + ".weight"] = parts_of(name, (3, 8, 64))
        tensors.update({name + ending: array for ending, array in its.items()})
        affine, affine_parts = directories.mlx(8, 64)
        its, expected[VICTIM + ".weight"] = affine_parts(VICTIM, directories.MATRICES[VICTIM])
        tensors.update({VICTIM + ending: array for ending, array in its.items()})
        # Settings of a matrix replace all others: without a mode, they are affine.
        path = tester.make("experts", {**quantization, VICTIM: affine}, tensors)
        found = tester.converted(path)
        require(np.allclose(found[VICTIM + ".weight"], expected[VICTIM + ".weight"], rtol=2e-6, atol=1e-6), "affine")
        found.pop(VICTIM + ".weight"), expected.pop(VICTIM + ".weight")
        tester.compare(found, expected, True)


def check_gguf(tester):
    """Checks that MXFP4 keeps its bits in GGUF, whose type mxfp4 has the same numbers."""
    for case in ("ct-mxfp4", "mlx-mxfp4"):
        quantization, parts_of = CASES[case][0]
        tensors, expected = tester.stored(parts_of)
        path = tester.make("gguf", quantization, tensors)
        target = tester.directory / "mx.gguf"
        tester.poise("convert", path, "-o", target, "--force", "--quiet")
        rows = json.loads(tester.poise("inspect", target, "--json"))["tensors"]
        kinds = {row["name"]: json.dumps(row) for row in rows}
        require("mxfp4" in kinds[VICTIM + ".weight"], kinds[VICTIM + ".weight"])
        found = tester.converted(target)
        require(np.array_equal(found[VICTIM + ".weight"], expected[VICTIM + ".weight"]), "other numbers")


def main():
    failed = []
    with tempfile.TemporaryDirectory() as directory:
        tester = Tester(sys.argv[1], Path(directory))
        for name, ((quantization, parts_of), missing, exact) in CASES.items():
            failed += attempt(name, partial(tester.check, name, quantization, parts_of, missing, exact))
        for name, step in (
            ("refusals", check_refusals),
            ("scales", check_scales),
            ("experts", check_experts),
            ("gguf", check_gguf),
        ):
            failed += attempt(name, partial(step, tester))
    sys.exit(f"failed: {' '.join(failed)}" if failed else 0)


if __name__ == "__main__":
    main()
