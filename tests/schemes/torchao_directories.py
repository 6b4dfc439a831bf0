"""Compares small random directories of torchao with NumPy's numbers.

    torchao_directories.py POISE

The metadata of a safetensors file describes each matrix, as flatten_tensor_state_dict() of torchao.prototype.safetensors
writes it. The codes are packed and decoded here, and checked as quantized_directories.py checks other schemes.
"""
import json
import sys
import tempfile
import zipfile
from functools import partial
from pathlib import Path

import quantized_directories as directories
from quantized_directories import F8, Tester, Typed, VICTIM, attempt, bf16, f8_codes, np, require, rng, scales_of

CONFIG = {"quant_method": "torchao", "quant_type": {"default": {"_type": "Int8WeightOnlyConfig", "_data": {}}}}
CODES, SCALE, ZERO = "._weight_qdata", "._weight_scale", "._weight_zero_point"
described = {}  # the description of each matrix of the directory that is made


def describe(name, kind, block, names, **data):
    dtype = {"_type": "torch.dtype", "_data": "bfloat16"}
    described[name + ".weight"] = {
        "_type": kind,
        "_data": {"block_size": block, "dtype": dtype, **data},
        "_tensor_data_names": names,
    }


def blocks_of(shape, block):
    block = [size if side is None else side for side, size in zip(block, shape)]
    return block, tuple(size // side for side, size in zip(block, shape))


def repeat(numbers, block):
    return np.repeat(np.repeat(numbers.astype(np.float32), block[0], 0), block[1], 1)


def int8(kind, wanted, zeros=None, scale_type=np.float32, bits=8):
    """wanted: rows and columns that share a scale; None: all. zeros: the type of zero points."""

    def parts(name, shape):
        block, grid = blocks_of(shape, wanted)
        codes = rng.integers(-(2 ** (bits - 1)), 2 ** (bits - 1), shape).astype(np.int8)
        scales = scales_of(grid, scale_type)
        stored = {CODES: codes, SCALE: scales}
        numbers = codes.astype(np.float32)
        if zeros is not None:
            stored[ZERO] = rng.integers(-8, 8, grid).astype(zeros)
            numbers = numbers - repeat(stored[ZERO], block)
        target = {"target_dtype": {"_type": "torch.dtype", "_data": f"int{bits}"}} if kind.startswith("Intx") else {}
        describe(name, kind, block, [ending.removeprefix("._weight_") for ending in stored], **target)
        return stored, numbers * repeat(scales, block)

    return CONFIG, parts


def float8(wanted, name_of_type="F8_E4M3", no_block=False):
    def parts(name, shape):
        block, grid = blocks_of(shape, wanted)
        codes, scales = f8_codes(shape), scales_of(() if no_block else grid, np.float32)
        describe(name, "Float8Tensor", [] if no_block else block, ["qdata", "scale"], mm_config=None)
        return {CODES: Typed(name_of_type, codes), SCALE: scales}, F8[codes] * repeat(scales.reshape(grid), block)

    return CONFIG, parts


def int4(group, narrow=True, zeros=True):
    def parts(name, shape):
        out, inside = shape
        codes = rng.integers(-8, 8, shape)
        packed = np.zeros((out, inside // 2), np.uint8)
        for column in range(inside):
            packed[:, column // 2] |= ((codes[:, column] & 15) << (column % 2 * 4)).astype(np.uint8)
        scales, offsets = (scales_of((inside // group, out), np.float32) for _ in range(2))
        offsets = offsets * rng.choice([-1, 1], offsets.shape).astype(np.float32) * zeros
        stored = {CODES: packed.view(np.int8), SCALE: scales, ZERO: offsets}
        if narrow:
            for ending in (SCALE, ZERO):
                stored[ending], numbers = bf16(stored[ending])
                scales, offsets = (numbers, offsets) if ending == SCALE else (scales, numbers)
        describe(name, "Int4Tensor", [1, group], ["qdata", "scale", "zero_point"], shape=list(shape))
        return stored, codes.astype(np.float32) * np.repeat(scales.T, group, 1) + np.repeat(offsets.T, group, 1)

    return CONFIG, parts


CASES = {  # name: (quantization_config, parts of a matrix), the part that is taken away, exact
    "torchao-int8-rows": (int8("Int8Tensor", (1, None)), SCALE, True),
    "torchao-int8-one": (int8("Int8Tensor", (None, None), np.int8), SCALE, True),
    "torchao-int8-blocks": (int8("Int8Tensor", (16, 32), np.int8, np.float16), SCALE, True),
    "torchao-intx4": (int8("IntxUnpackedToInt8Tensor", (1, 32), np.int8, bits=4), ZERO, True),
    "torchao-intx2-f16": (int8("IntxUnpackedToInt8Tensor", (1, 16), np.float16, np.float16, 2), ZERO, True),
    "torchao-intx8-rows": (int8("IntxUnpackedToInt8Tensor", (1, None), np.float32), SCALE, True),
    "torchao-float8-rows": (float8((1, None)), SCALE, True),
    "torchao-float8-one": (float8((None, None), no_block=True), SCALE, True),
    "torchao-float8-blocks": (float8((32, 16)), SCALE, True),
    "torchao-int4": (int4(32), ZERO, False),
    "torchao-int4-f32": (int4(64, narrow=False), SCALE, False),
    "torchao-int4-symmetric": (int4(16, zeros=False), ZERO, True),
}
directories.CUT |= {"torchao-int8-blocks", "torchao-intx4", "torchao-float8-rows", "torchao-int4"}


class TorchaoTester(Tester):
    """Writes the descriptions into the file's metadata. `change` changes them first."""

    change = staticmethod(lambda metadata: metadata)

    def make(self, name, quantization, tensors):
        path = super().make(name, quantization, tensors)
        if any(tensor.endswith(CODES) for tensor in tensors):
            others = {other: {"_type": "Tensor"} for other in directories.OTHERS}
            metadata = {key: json.dumps(value) for key, value in {**others, **described}.items()}
            metadata["tensor_names"] = json.dumps(list(metadata))
            metadata["format"] = "pt"
            add_metadata(path / "model.safetensors", self.change(metadata))
        return path


def add_metadata(path, metadata):
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = {"__metadata__": metadata, **json.loads(data[8 : 8 + length])}
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data[8 + length :])


def check_metadata(tester):
    """Checks that folded models keep no descriptions, and that wrong ones are refused."""
    tensors, _ = tester.stored(int8("Int8Tensor", (1, 32), np.int8)[1])
    folded = tester.directory / "plain.zt"
    tester.poise("convert", tester.make("plain", CONFIG, tensors), "-o", folded, "--quiet")
    shown = tester.poise("inspect", folded, "--keys")
    require("Int8Tensor" not in shown and "tensor_names" not in shown, shown)
    key = VICTIM + ".weight"

    def refuse(change, *expected):
        tester.change = lambda metadata: {k: v for k, v in {**metadata, **change}.items() if v is not None}
        message = tester.poise("inspect", tester.make("wrong", CONFIG, tensors), fails=True)
        require(all(text in message for text in expected), f"{change}: {message}")

    def with_data(**data):
        return {key: json.dumps({**described[key], "_data": {**described[key]["_data"], **data}})}

    refuse({key: None}, f'matrix {VICTIM}: torchao: the metadata of its file lacks "{key}"')
    for text in ("", "[", '{"_type"', '{"_type": "Int8Tensor", "_type": 1}'):
        refuse({key: text}, f'matrix {VICTIM}: torchao: "{key}" in the metadata of its file: ')
    for value in ([], 1, None, {}, {"_type": 7, "_data": {}}, {"_type": "Int8Tensor"}, {"_type": "X", "_data": []}):
        refuse(
            {key: json.dumps(value)}, f'"{key}" in the metadata of its file: expected an object with _type and _data'
        )
    for kind in ("Int4TilePackedTo4dTensor", "NVFP4Tensor", "AffineQuantizedTensor", "x" * 100):
        refuse(
            {key: json.dumps({**described[key], "_type": kind})},
            f"matrix {VICTIM}: torchao: its class is {kind[:40]}",
            "only Float8Tensor, Int4Tensor, Int8Tensor, IntxUnpackedToInt8Tensor are supported; save the model",
        )
    for block in ([0, 1], [1], [1, 2, 3], [-1, 4], "x", [1.5, 2], [2**64, 1], {}, [[1], 1]):
        refuse(with_data(block_size=block), f"matrix {VICTIM}: torchao: block_size is ")
    for block in ([3, 32], [1, 48], [2**62, 2**62]):
        refuse(with_data(block_size=block), f"matrix {VICTIM}: torchao: block_size [", "does not divide its shape")
    refuse(with_data(block_size=[1, 16]), f"the shape of {VICTIM}._weight_scale is")
    refuse(with_data(block_size=None), f"matrix {VICTIM}: torchao: block_size is missing")
    refuse({key: json.dumps({**described[key], "_type": "Int4Tensor"})}, f"matrix {VICTIM}: torchao: the shape of")
    refuse({key: json.dumps({**described[key], "_type": "Float8Tensor"})}, f"{VICTIM}._weight_qdata is stored as i8")
    tester.change = lambda metadata: metadata

    for ending, array, expected in (
        (CODES, tensors[VICTIM + CODES].astype(np.int32), "is stored as i32, expected i8"),
        (CODES, tensors[VICTIM + CODES].reshape(-1), "expected 2 dimensions"),
        (SCALE, tensors[VICTIM + SCALE].astype(np.int32), "is stored as i32, expected f16 or bf16 or f32"),
        (ZERO, tensors[VICTIM + ZERO].astype(np.int32), "is stored as i32, expected i8"),
        (ZERO, tensors[VICTIM + ZERO].T, "the shape of"),
        (CODES, tensors[VICTIM + CODES][:0], "it has no elements"),
    ):
        message = tester.poise("inspect", tester.make("wrong", CONFIG, {**tensors, VICTIM + ending: array}), fails=True)
        require(f"matrix {VICTIM}: torchao: " in message and expected in message, f"{ending}: {message}")
    more = {**tensors, VICTIM + "._weight_act_pre_scale": np.ones(directories.HIDDEN, np.float32)}
    message = tester.poise("inspect", tester.make("wrong", CONFIG, more), fails=True)
    require("act_pre_scale, which is not supported" in message, message)
    more = {**tensors, VICTIM + "._weight_act_quant_scale": np.ones(1, np.float32)}
    warnings = json.loads(tester.poise("inspect", tester.make("inputs", CONFIG, more), "--json"))["warnings"]
    require(any("act_quant_scale" in text and "left out" in text for text in warnings), warnings)
    message = tester.poise("inspect", tester.make("undescribed", None, tensors), fails=True)
    require("holds codes (i8) that" in message and "in the parts of torchao" in message, message)

    # A scale of 0 with a zero point.
    tensors, _ = tester.stored(int4(32, narrow=False)[1])
    scales = tensors[VICTIM + SCALE].copy()
    scales[0, 5] = 0
    tensors[VICTIM + SCALE] = scales
    path = tester.make("zero", CONFIG, tensors)
    message = tester.poise("convert", path, "-o", tester.directory / "no.zt", "--dtype", "f32", fails=True)
    require("has the scale 0 and the zero point" in message, message)


def check_pickle(tester):
    """Checks that a checkpoint of torchao's classes is refused with advice."""
    path = tester.make("pickled", CONFIG, {"x": np.ones(1, np.float32)})
    (path / "model.safetensors").unlink()
    function = b"ctorch._tensor\n_rebuild_from_type_v2\n"
    arguments = (
        b"(ctorch._utils\n_rebuild_tensor_v2\nctorchao.dtypes.affine_quantized_tensor\nAffineQuantizedTensor\n)Nt"
    )
    with zipfile.ZipFile(path / "pytorch_model.bin", "w") as archive:
        name = b"X\x08\x00\x00\x00x.weight"
        archive.writestr("archive/data.pkl", b"\x80\x02}" + name + function + arguments + b"Rs.")
        archive.writestr("archive/version", "3\n")
    message = tester.poise("inspect", path, fails=True)
    expected = (
        "tensors of the class torchao.dtypes.affine_quantized_tensor.AffineQuantizedTensor are not read: save the"
    )
    require(expected in message, message)


def main():
    failed = []
    with tempfile.TemporaryDirectory() as directory:
        tester = TorchaoTester(sys.argv[1], Path(directory))
        for name, ((quantization, parts_of), missing, exact) in CASES.items():
            failed += attempt(name, partial(tester.check, name, quantization, parts_of, missing, exact))
        for name, step in (("metadata", check_metadata), ("pickle", check_pickle)):
            failed += attempt(name, partial(step, tester))
    sys.exit(f"failed: {' '.join(failed)}" if failed else 0)


if __name__ == "__main__":
    main()
