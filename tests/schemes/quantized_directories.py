"""Compares small random directories of every quantization scheme with numbers that NumPy makes of the same codes.

    quantized_directories.py POISE

Each case packs codes by the description of its project, with loops over single codes, and returns the numbers
that they mean. The command must give the same numbers through safetensors and through both versions of zTensor, the
same logits as from dense numbers, and an error that names matrix and part where one is missing.
"""
import json
import re
import shutil
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

try:
    import numpy as np
except ImportError:
    print("skipped: this Python has no NumPy")
    sys.exit(77)

HIDDEN, INNER, HEADS, TOKENS, LAYERS = 64, 128, 4, 48, 1
CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_act": "silu",
    "hidden_size": HIDDEN,
    "intermediate_size": INNER,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "num_key_value_heads": HEADS,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "vocab_size": TOKENS,
    "tie_word_embeddings": False,
    "max_position_embeddings": 64,
}
MATRICES = {
    f"model.layers.{layer}.{name}": shape
    for layer in range(LAYERS)
    for name, shape in (
        ("self_attn.q_proj", (HIDDEN, HIDDEN)),
        ("self_attn.k_proj", (HIDDEN, HIDDEN)),
        ("self_attn.v_proj", (HIDDEN, HIDDEN)),
        ("self_attn.o_proj", (HIDDEN, HIDDEN)),
        ("mlp.gate_proj", (INNER, HIDDEN)),
        ("mlp.up_proj", (INNER, HIDDEN)),
        ("mlp.down_proj", (HIDDEN, INNER)),
    )
}
OTHERS = {
    "model.embed_tokens.weight": (TOKENS, HIDDEN),
    "lm_head.weight": (TOKENS, HIDDEN),
    "model.norm.weight": (HIDDEN,),
    **{
        f"model.layers.{layer}.{norm}.weight": (HIDDEN,)
        for layer in range(LAYERS)
        for norm in ("input_layernorm", "post_attention_layernorm")
    },
}
NAMES = {
    "float32": "F32",
    "float16": "F16",
    "int32": "I32",
    "uint32": "U32",
    "uint8": "U8",
    "int8": "I8",
    "int64": "I64",
}
VICTIM = "model.layers.0.mlp.up_proj"
rng = np.random.default_rng(20261125)


class Typed:
    """Holds an array whose elements have a type that NumPy lacks."""

    def __init__(self, name, bits):
        self.name, self.bits = name, bits


def save(path, tensors):
    header, blobs, offset = {}, [], 0
    for name, array in tensors.items():
        kind, data = (array.name, array.bits) if isinstance(array, Typed) else (NAMES[array.dtype.name], array)
        data = np.ascontiguousarray(data)
        header[name] = {"dtype": kind, "shape": list(data.shape), "data_offsets": [offset, offset + data.nbytes]}
        offset += data.nbytes
        blobs.append(data.tobytes())
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + b"".join(blobs))


def load(path):
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    header.pop("__metadata__", None)
    arrays = {}
    for name, row in header.items():
        begin, end = (8 + length + offset for offset in row["data_offsets"])
        kind = {"F32": np.float32, "F16": np.float16, "I32": np.int32, "I64": np.int64}[row["dtype"]]
        arrays[name] = np.frombuffer(data[begin:end], kind).reshape(row["shape"])
    return arrays


def stream(codes, bits):
    """Packs the codes of each row one after the other into words of 32 bits, from the low bits on."""
    rows, count = codes.shape
    words = np.zeros((rows, count * bits // 32), np.uint32)
    for i in range(count):
        for bit in range(bits):
            at = i * bits + bit
            words[:, at // 32] |= ((codes[:, i].astype(np.uint32) >> bit & 1) << (at % 32)).astype(np.uint32)
    return words


def codes_of(shape, bits):
    return rng.integers(0, 2**bits, shape)


def scales_of(shape, dtype=np.float16):
    return (rng.random(shape) * 0.02 + 0.001).astype(dtype)


def grouped(codes, zeros, scales, index):
    """Returns (code - zero) * scale. The index has the group of each column."""
    return (codes.astype(np.float32) - zeros[:, index].astype(np.float32)) * scales[:, index].astype(np.float32)


def gptq(bits=4, group=32, version="gptq", order=False, scale_type=np.float16, index_type=np.int32, less=None):
    """less: the number that is subtracted from the zero points of a symmetric matrix, for any version."""

    def parts(name, shape):
        out, inside = shape
        size = inside if group == -1 else group
        groups = -(-inside // size)  # the last one may be shorter
        index = np.arange(inside) // size
        if order:
            index = rng.permutation(index)
        codes, zeros, scales = (
            codes_of(shape, bits),
            codes_of((out, groups), bits),
            scales_of((out, groups), scale_type),
        )
        if less is not None:
            zeros[:] = 2 ** (bits - 1)
        stored = zeros.T - ((version == "gptq") if less is None else less)
        return {
            ".qweight": stream(codes, bits).T.view(np.int32),
            ".qzeros": stream(stored % 2**bits, bits).view(np.int32),
            ".scales": scales.T,
            ".g_idx": index.astype(index_type),
        }, grouped(codes, zeros, scales, index)

    config = {"quant_method": "gptq", "bits": bits, "group_size": group, "desc_act": order, "sym": less is not None}
    if version != "gptq":
        config["checkpoint_format"] = version
    return config, parts


def gptq_dynamic():
    """Makes matrices with different bits or groups, by GPTQModel's `dynamic`."""
    (config, usual), (_, wide), (_, coarse) = gptq(), gptq(8, 32), gptq(4, -1)

    def parts(name, shape):
        return (wide if "down" in name else coarse if "q_proj" in name else usual)(name, shape)

    return {
        **config,
        "dynamic": {"+:.*down.*": {"bits": 8}, r".*\.q_proj": {"group_size": -1, "desc_act": False}, "-:.*embed.*": {}},
    }, parts


def awq(group=32):
    def parts(name, shape):
        out, inside = shape
        groups = inside // group
        codes, zeros, scales = codes_of(shape, 4), codes_of((out, groups), 4), scales_of((out, groups))

        def packed(matrix):  # [rows, out]: eight neighbours a word, in AWQ's order
            words = np.zeros((matrix.shape[0], out // 8), np.uint32)
            for column in range(out // 8):
                for place, which in enumerate((0, 2, 4, 6, 1, 3, 5, 7)):
                    words[:, column] |= matrix[:, column * 8 + which].astype(np.uint32) << (4 * place)
            return words.view(np.int32)

        return {".qweight": packed(codes.T), ".qzeros": packed(zeros.T), ".scales": scales.T}, grouped(
            codes, zeros, scales, np.arange(inside) // group
        )

    return {"quant_method": "awq", "bits": 4, "group_size": group, "version": "gemm", "zero_point": True}, parts


def float_of(code, exponent_bits, mantissa_bits, bias):
    sign = -1.0 if code >> (exponent_bits + mantissa_bits) else 1.0
    exponent, mantissa = code >> mantissa_bits & (1 << exponent_bits) - 1, code & (1 << mantissa_bits) - 1
    if exponent == 0:
        return sign * mantissa * 2.0 ** (1 - bias - mantissa_bits)
    return sign * (1 + mantissa / 2**mantissa_bits) * 2.0 ** (exponent - bias)


F8 = np.array([float_of(code, 4, 3, 7) if code & 127 != 127 else 0 for code in range(256)], np.float32)  # E4M3
E4M3FNUZ = np.array([float_of(code, 4, 3, 8) if code != 128 else 0 for code in range(256)], np.float32)
F4 = np.array([float_of(code, 2, 1, 1) for code in range(16)], np.float32)  # E2M1


def f8_codes(shape):
    codes = rng.integers(0, 256, shape).astype(np.uint8)
    codes[codes & 127 == 127] = 0  # NaN
    return codes


def bf16(numbers):
    bits = numbers.astype(np.float32).view(np.uint32) >> 16
    return Typed("BF16", bits.astype(np.uint16)), (bits << 16).astype(np.uint32).view(np.float32)


def powers_of_two(shape):
    exponents = rng.integers(117, 124, shape).astype(np.uint8)
    return Typed("F8_E8M0", exponents), np.exp2(exponents.astype(np.float32) - 127)


def fp8_blocks(block=(48, 40), narrow=False, powers=False):
    def parts(name, shape):
        codes, scales = (
            f8_codes(shape),
            scales_of((-(-shape[0] // block[0]), -(-shape[1] // block[1])), np.float32) / 20,
        )
        stored = scales
        if narrow:
            stored, scales = bf16(scales)
        if powers:
            stored, scales = powers_of_two(scales.shape)
        each = np.repeat(np.repeat(scales, block[0], 0), block[1], 1)[: shape[0], : shape[1]]
        return {".weight": Typed("F8_E4M3", codes), ".weight_scale_inv": stored}, F8[codes] * each

    return {"quant_method": "fp8", "activation_scheme": "dynamic", "weight_block_size": list(block)}, parts


def blocks_of(numbers, block, shape):
    return np.repeat(np.repeat(numbers, block[0], 0), block[1], 1)[: shape[0], : shape[1]]


def ct_blocks(kind, block, spelled=None, zeros=False):
    """Makes llm-compressor's FP8_BLOCK, and the same for integers: a scale for each block of block_structure."""

    def parts(name, shape):
        grid = (-(-shape[0] // block[0]), -(-shape[1] // block[1]))
        scales = scales_of(grid, np.float32) / 20
        if kind == "float-quantized":
            codes = f8_codes(shape)
            return {".weight": Typed("F8_E4M3", codes), ".weight_scale": scales}, F8[codes] * blocks_of(
                scales, block, shape
            )
        codes, result = rng.integers(-128, 128, shape).astype(np.int8), {}
        points = rng.integers(-9, 9, grid).astype(np.int8) if zeros else np.zeros(grid, np.int8)
        if zeros:
            result[".weight_zero_point"] = points
        return {".weight": codes, ".weight_scale": scales, **result}, (
            codes.astype(np.float32) - blocks_of(points, block, shape)
        ) * blocks_of(scales, block, shape)

    return ct(kind, 8, strategy="block", block_structure=spelled or list(block), symmetric=not zeros), parts


def fp8_modelopt_blocks():
    """Makes ModelOpt's FP8_PB_WO: a scale for each block of 128 rows and columns, in four dimensions."""
    block = (128, 128)

    def parts(name, shape):
        scales, codes = scales_of((-(-shape[0] // 128), -(-shape[1] // 128)), np.float32) / 20, f8_codes(shape)
        return {".weight": Typed("F8_E4M3", codes), ".weight_scale": scales[:, None, :, None]}, F8[codes] * blocks_of(
            scales, block, shape
        )

    return {"quant_method": "modelopt", "quant_algo": "FP8_PB_WO"}, parts


def fp8_inverse(block=None, **config):
    """Makes weight_scale_inv without weight_block_size (null or missing): one number, or blocks of 128 x 128."""

    def parts(name, shape):
        result, numbers = fp8_blocks(block or shape)[1](name, shape)
        if block is None:
            result[".weight_scale_inv"] = result[".weight_scale_inv"].reshape(())
            result[".activation_scale"] = np.array(1.5, np.float32)
        return result, numbers

    return {"quant_method": "fp8", "activation_scheme": "static", **config}, parts


def fp8_scaled(config, each_row=False, shape_of_one=()):
    def parts(name, shape):
        codes = f8_codes(shape)
        scales = (
            scales_of((shape[0], 1) if each_row else shape_of_one, np.float32)
            if each_row or shape_of_one
            else np.array(0.0007, np.float32)
        )
        result = {".weight": Typed("F8_E4M3", codes), ".weight_scale": scales}
        if config["quant_method"] != "compressed-tensors":
            result[".input_scale"] = np.array(1.5, np.float32)
        return result, F8[codes] * scales

    return config, parts


def fp8_fnuz():
    """Makes AMD's numbers: each is half of E4M3's, and 0x80 is NaN."""

    def parts(name, shape):
        codes, scale = rng.integers(0, 256, shape).astype(np.uint8), np.array(0.0007, np.float32)
        codes[codes == 128] = 0
        return {".weight": Typed("F8_E4M3FNUZ", codes), ".weight_scale": scale}, E4M3FNUZ[codes] * scale

    return {"quant_method": "fp8", "activation_scheme": "static"}, parts


def ct(kind, num_bits, **weights):
    return {
        "quant_method": "compressed-tensors",
        "format": kind,
        "quantization_status": "compressed",
        "config_groups": {
            "group_0": {
                "targets": ["Linear"],
                "weights": {"num_bits": num_bits, "type": "float" if "float" in kind else "int", **weights},
            }
        },
    }


def words_with_gaps(codes, bits):
    """Packs as pack_to_int32() of compressed-tensors: 32 // bits codes in a word, from its low bits on."""
    per_word = 32 // bits
    rows, count = codes.shape
    padded = np.zeros((rows, -(-count // per_word) * per_word), np.uint32)
    padded[:, :count] = codes
    return sum(padded[:, i::per_word] << np.uint32(bits * i) for i in range(per_word)).astype(np.uint32)


def stream_of_words(codes, bits):
    """Packs as pack_to_int32() since 2026: codes continue in the next word; zeros fill the last word of a row."""
    rows, count = codes.shape
    padded = np.zeros((rows, -(-count // 32) * 32), np.uint32)
    padded[:, :count] = codes
    return stream(padded, bits)[:, : -(-count * bits // 32)]


def packed_integers(bits=4, group=32, zeros=None, order=False, one=False, dense=False, unset=None):
    """zeros: None for symmetric ones, "packed", or the type of those that are not packed. one: a scale for the matrix,
    zero points for each row. dense: packed without gaps, as from 2026 on. unset: the type of a weight_g_idx of -1."""
    pack = stream_of_words if dense else words_with_gaps

    def parts(name, shape):
        out, inside = shape
        size = inside if group is None else group
        groups, middle = -(-inside // size), 2 ** (bits - 1)
        index = np.arange(inside) // size
        if order:
            index = rng.permutation(index)
        codes, points, scales = codes_of(shape, bits), np.full((out, groups), middle), scales_of((out, groups))
        if one:
            scales = np.full_like(scales, scales[0, 0])
        result = {
            ".weight_packed": pack(codes, bits).view(np.int32),
            ".weight_scale": scales[0] if one else scales,
            ".weight_shape": np.array(shape, np.int64),
        }
        if zeros:
            points = codes_of((out, groups), bits)
            result[".weight_zero_point"] = (
                pack(points.T, bits).T.view(np.int32) if zeros == "packed" else (points - middle).astype(zeros)
            )
        if order:
            result[".weight_g_idx"] = index.astype(np.int32)
        if unset:
            result[".weight_g_idx"] = np.full(inside, -1, unset)
        return result, grouped(codes, points, scales, index)

    strategy = "channel" if group is None else "group"
    weights = {"strategy": strategy, "group_size": group, "symmetric": zeros is None}
    return ct("pack-quantized", bits, actorder="group" if order or unset else None, **weights), parts


def int8(one=False):
    def parts(name, shape):
        codes, scales = (
            rng.integers(-128, 128, shape).astype(np.int8),
            scales_of((1,) if one else (shape[0], 1), np.float32) / 20,
        )
        return {".weight": codes, ".weight_scale": scales}, codes.astype(np.float32) * scales

    return ct("int-quantized", 8), parts


def nvfp4(spelling):
    def parts(name, shape):
        codes, scales = codes_of(shape, 4), rng.integers(40, 100, (shape[0], shape[1] // 16)).astype(np.uint8)
        factor = np.array([0.0031], np.float32)
        packed = (codes[:, ::2] | codes[:, 1::2] << 4).astype(np.uint8)
        if spelling == "modelopt":
            each = F8[scales] * factor
            result = {
                ".weight": packed,
                ".weight_scale": Typed("F8_E4M3", scales),
                ".weight_scale_2": factor[0].reshape(()),
                ".input_scale": factor,
            }
        else:
            factor = np.array([300.5], np.float32)
            each = F8[scales] / factor
            result = {
                ".weight_packed": packed,
                ".weight_scale": Typed("F8_E4M3", scales),
                ".weight_global_scale": factor,
                ".input_global_scale": factor,
            }
        return result, F4[codes] * np.repeat(each, 16, 1)

    return (
        {"quant_method": "modelopt", "quant_algo": "NVFP4"} if spelling == "modelopt" else ct("nvfp4-pack-quantized", 4)
    ), parts


# get_4bit_type() of bitsandbytes.
NF4 = np.array(
    [-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334]
    + [-0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224]
    + [0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0],
    np.float32,
)
FP4 = np.array([0, 0.0625, 8, 12, 4, 6, 2, 3, 0, -0.0625, -8, -12, -4, -6, -2, -3], np.float32) / np.float32(12)


def bitsandbytes4(kind="nf4", nested=False, block=64, storage=None, book=None):
    """storage: the type and bytes of the numbers that hold the codes (bnb_4bit_quant_storage)."""
    book = np.sort(rng.normal(0, 0.4, 16)).astype(np.float32) if book is None else book

    def parts(name, shape):
        count = shape[0] * shape[1]
        codes = codes_of((count,), 4)
        state = {"quant_type": kind, "blocksize": block, "dtype": "bfloat16", "shape": list(shape)}
        result = {".weight": (codes[::2] << 4 | codes[1::2]).astype(np.uint8).reshape(-1, 1), ".weight.quant_map": book}
        if nested:
            inner, outer = codes_of((count // block,), 8), scales_of((-(-(count // block) // 32),), np.float32)
            table = np.sort(rng.random(256)).astype(np.float32)
            offset = np.float32(0.0625)
            scales = table[inner] * np.repeat(outer, 32)[: len(inner)] + offset
            state.update(nested_blocksize=32, nested_dtype="float32", nested_offset=float(offset))
            result.update(
                {
                    ".weight.absmax": inner.astype(np.uint8),
                    ".weight.nested_absmax": outer,
                    ".weight.nested_quant_map": table,
                }
            )
        else:
            scales = scales_of((count // block,), np.float32)
            result[".weight.absmax"] = scales
        if storage:
            result[".weight"] = Typed(storage[0], result[".weight"].reshape(-1, storage[1]))
            result[".weight"].bits = result[".weight"].bits.view(f"u{storage[1]}")
        result[f".weight.quant_state.bitsandbytes__{kind}"] = np.frombuffer(json.dumps(state).encode(), np.uint8)
        return result, (book[codes] * np.repeat(scales, block)).reshape(shape)

    return {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": kind}, parts


def bitsandbytes8():
    def parts(name, shape):
        codes, largest = rng.integers(-127, 128, shape).astype(np.int8), (rng.random(shape[0]) * 2).astype(np.float32)
        return {".weight": codes, ".SCB": largest, ".weight_format": np.array(0, np.uint8)}, codes.astype(
            np.float32
        ) * (largest / np.float32(127))[:, None]

    return {"quant_method": "bitsandbytes", "load_in_8bit": True}, parts


def mlx(bits=4, group=32):
    def parts(name, shape):
        codes, scales = codes_of(shape, bits), scales_of((shape[0], shape[1] // group))
        biases = (scales_of(scales.shape, np.float32) * -3).astype(np.float16)
        numbers = codes * np.repeat(scales.astype(np.float32), group, 1) + np.repeat(
            biases.astype(np.float32), group, 1
        )
        return {".weight": stream(codes, bits), ".scales": scales, ".biases": biases}, numbers

    return {"group_size": group, "bits": bits}, parts


def hqq(bits=4, group=32, dtype=np.float16, skip=(), axis=1):
    """BitPack's packing, and the settings as encode_safetensor_type() makes tensors of them. Groups are the rows of the
    matrix, reshaped to [-1, group]; with axis 0 the columns of [group, -1]."""

    def parts(name, shape):
        count = shape[0] * shape[1] // group
        codes = codes_of((count, group) if axis == 1 else (group, count), bits)
        each = (count, 1) if axis == 1 else (1, count)
        scales, zeros = scales_of(each, dtype), (rng.random(each) * 2**bits).astype(dtype)
        per_word, word = (10, np.int32) if bits == 3 else (8 // bits, np.uint8)
        step = -(-len(codes) // per_word)
        padded = np.zeros((step * per_word, codes.shape[1]), np.int64)
        padded[: len(codes)] = codes
        words = sum(padded[i * step : (i + 1) * step] << (bits * (per_word - 1 - i)) for i in range(per_word)).astype(
            word
        )
        numbers = (codes.astype(np.float32) - zeros.astype(np.float32)) * scales.astype(np.float32)
        text = lambda value: np.frombuffer(value.encode(), np.uint8)
        flag = lambda value: np.array(value, np.uint8)
        result = {
            ".W_q": words,
            ".scale": scales,
            ".zero": zeros,
            ".shape": np.array(shape, np.int64),
            ".nbits": np.array(bits, np.int32),
            ".group_size": np.array(group, np.int32),
            ".axis": np.array(axis, np.int32),
            ".packing": text("3bit_32" if bits == 3 else f"{bits}bit_u8"),
            ".quant_scale": flag(0),
            ".quant_zero": flag(0),
            ".view_as_float": flag(0),
            ".channel_wise": flag(1),
            ".optimize": flag(1),
            ".round_zero": flag(0),
            ".offload_meta": flag(0),
            ".encoded_state_dict": flag(1),
            ".stores_quant_config": flag(1),
            ".compute_dtype": text("torch.float16"),
            ".unpack_view_dtype": text("torch.uint8"),
        }
        return {key: value for key, value in result.items() if key not in skip}, numbers.reshape(shape)

    return {
        "quant_method": "hqq",
        "quant_config": {"weight_quant_params": {"nbits": bits, "group_size": group, "axis": axis}},
        "skip_modules": ["lm_head"],
    }, parts


CASES = {  # name: (quantization_config, parts of a matrix), the part that is taken away, exact
    **{
        f"gptq{bits}-{version}": (gptq(bits, 32, version), ".scales", True)
        for bits in (2, 3, 4, 8)
        for version in ("gptq", "gptq_v2")
    },
    **{
        f"gptq{bits}-{version}-sym{less}": (gptq(bits, 32, version, less=less), ".qzeros", True)
        for bits in (2, 3, 4, 8)
        for version in ("gptq", "gptq_v2")
        for less in (0, 1)
    },
    "gptq4-order": (gptq(order=True), ".qzeros", True),
    "gptq3-order": (gptq(bits=3, order=True), ".g_idx", True),
    "gptq8-order": (gptq(bits=8, order=True), ".scales", True),
    "gptq2-order-i64": (gptq(bits=2, order=True, index_type=np.int64), ".qweight", True),
    "gptq4-i64": (gptq(index_type=np.int64), ".scales", True),
    "gptq4-rows-f32": (gptq(group=-1, scale_type=np.float32), ".qzeros", True),
    "gptq-dynamic": (gptq_dynamic(), ".scales", True),
    "gptq4-ragged": (gptq(group=48), ".scales", True),
    "gptq8-ragged-v2": (gptq(8, 56, "gptq_v2"), ".qzeros", True),
    "gptq3-ragged-order": (gptq(3, 96, order=True), ".qweight", True),
    "awq": (awq(), ".qzeros", True),
    "awq-16": (awq(16), ".qweight", True),
    "fp8-blocks": (fp8_blocks(), ".weight", True),
    "fp8-blocks-bf16": (fp8_blocks((64, 64), True), ".weight_scale_inv", True),
    "fp8-blocks-e8m0": (fp8_blocks((64, 64), powers=True), ".weight_scale_inv", True),
    "fp8-inverse-one": (fp8_inverse(weight_block_size=None), ".weight", True),
    "fp8-inverse-one-unsaid": (fp8_inverse(), ".weight", True),
    "fp8-blocks-unsaid": (fp8_inverse((128, 128)), ".weight", True),
    "fp8-tensor": (fp8_scaled({"quant_method": "fp8", "activation_scheme": "static"}), ".weight_scale", True),
    "fp8-fnuz": (fp8_fnuz(), ".weight_scale", True),
    "fp8-modelopt": (fp8_scaled({"quant_method": "modelopt", "quant_algo": "FP8"}), ".weight", True),
    "fp8-fbgemm": (fp8_scaled({"quant_method": "fbgemm_fp8", "activation_scale_ub": 1200.0}, True), ".weight", True),
    "fp8-modelopt-blocks": (fp8_modelopt_blocks(), ".weight_scale", True),
    "ct-float-rows": (fp8_scaled(ct("float-quantized", 8), True), ".weight_scale", True),
    "ct-float-tensor": (fp8_scaled(ct("float-quantized", 8), False, (1,)), ".weight", True),
    "ct-float-blocks": (ct_blocks("float-quantized", (48, 40)), ".weight", True),
    "ct-float-blocks-text": (ct_blocks("float-quantized", (128, 128), "128x128"), ".weight_scale", True),
    "ct-int8-blocks": (ct_blocks("int-quantized", (32, 32)), ".weight_scale", True),
    "ct-int8-blocks-ragged": (ct_blocks("int-quantized", (48, 40), zeros=True), ".weight_zero_point", True),
    "ct-int4": (packed_integers(), ".weight_shape", True),
    "ct-int4-rows": (packed_integers(group=None), ".weight_scale", True),
    "ct-int4-one": (packed_integers(group=None, zeros="packed", one=True), ".weight_shape", True),
    "ct-int8-one-plain-zeros": (packed_integers(8, None, np.int8, one=True), ".weight_scale", True),
    "ct-int4-zeros": (packed_integers(zeros="packed"), ".weight_packed", True),
    "ct-int8-plain-zeros": (packed_integers(8, zeros=np.int8), ".weight_scale", True),
    "ct-int2": (packed_integers(2, zeros="packed"), ".weight_shape", True),
    "ct-int3": (packed_integers(3), ".weight_packed", True),
    "ct-int3-zeros": (packed_integers(3, zeros="packed"), ".weight_zero_point", True),
    "ct-int5-zeros": (packed_integers(5, zeros="packed"), ".weight_scale", True),
    "ct-int6-plain-zeros": (packed_integers(6, zeros=np.int8), ".weight_shape", True),
    "ct-int7-rows": (packed_integers(7, None, "packed"), ".weight_scale", True),
    "ct-int4-order": (packed_integers(order=True), ".weight_scale", True),
    "ct-int4-ragged": (packed_integers(group=48), ".weight_scale", True),
    "ct-int4-ragged-zeros": (packed_integers(group=48, zeros="packed"), ".weight_zero_point", True),
    "ct-int8-ragged-order": (packed_integers(8, 56, np.int8, order=True), ".weight_packed", True),
    "ct-int4-zeros-f16": (packed_integers(zeros=np.float16), ".weight_zero_point", True),
    "ct-int4-zeros-i32": (packed_integers(zeros=np.int32), ".weight_zero_point", True),
    "ct-int8-zeros-i64": (packed_integers(8, None, np.int64), ".weight_scale", True),
    "ct-int4-unset": (packed_integers(unset=np.int32), ".weight_scale", True),
    "ct-int8-unset-i64": (packed_integers(8, zeros="packed", unset=np.int64), ".weight_scale", True),
    "ct-int3-dense": (packed_integers(3, dense=True), ".weight_packed", True),
    "ct-int5-dense-zeros": (packed_integers(5, zeros="packed", dense=True), ".weight_zero_point", True),
    "ct-int6-dense-rows": (packed_integers(6, None, "packed", dense=True), ".weight_scale", True),
    "ct-int7-dense-ragged": (packed_integers(7, 56, "packed", dense=True), ".weight_shape", True),
    "ct-int8": (int8(), ".weight_scale", True),
    "ct-int8-one": (int8(True), ".weight", True),
    "ct-nvfp4": (nvfp4("compressed"), ".weight_scale", True),
    "modelopt-nvfp4": (nvfp4("modelopt"), ".weight_scale_2", True),
    "nf4": (bitsandbytes4(), ".weight.absmax", True),
    "nf4-nested": (bitsandbytes4(nested=True), ".weight.nested_quant_map", True),
    "fp4-nested": (bitsandbytes4("fp4", True, 128), ".weight.quant_map", True),
    "nf4-bf16": (bitsandbytes4(nested=True, storage=("BF16", 2)), ".weight.quant_map", True),
    "nf4-f16": (bitsandbytes4(storage=("F16", 2)), ".weight.absmax", True),
    "fp4-f32": (bitsandbytes4("fp4", storage=("F32", 4)), ".weight", True),
    "bitsandbytes8": (bitsandbytes8(), ".SCB", True),
    **{f"hqq{bits}": (hqq(bits), ".scale", True) for bits in (2, 3, 4, 8)},
    "hqq4-f32": (hqq(4, 64, np.float32), ".zero", True),
    "hqq3-rows": (hqq(3, 64, skip=(".optimize", ".stores_quant_config")), ".W_q", True),
    **{f"hqq{bits}-columns": (hqq(bits, 16, axis=0), ".zero", True) for bits in (2, 3, 4, 8)},
    **{f"mlx{bits}": (mlx(bits), ".biases", False) for bits in (2, 3, 4, 6, 8)},
}


# Scales of attention and of the cache of keys and values, which are left out.
LEFT_OUT = [f"{of}_{what}" for of in "qkv" for what in ("scale", "zero_point", "global_scale")]
LEFT_OUT += ["kv_scale", "prob_scale", "prob_output_scale", "attn.prob_scale"] + [
    f"k_proj.output_{what}" for what in ("scale", "zero_point", "global_scale")
]


# The schemes whose parts are also cut.
CUT = {
    "gptq4-order",
    "gptq-dynamic",
    "gptq3-ragged-order",
    "awq",
    "ct-float-blocks",
    "ct-int8-blocks-ragged",
    "fp8-blocks",
    "fp8-tensor",
    "ct-int4-zeros",
    "ct-int8",
    "ct-nvfp4",
    "modelopt-nvfp4",
    "nf4-nested",
    "bitsandbytes8",
    "mlx4",
    "hqq3",
    "hqq4",
    "hqq3-columns",
    "ct-int3-zeros",
}


# Directories whose description is in a file next to config.json: the file, its content, and a contradiction of it.
FILES = {
    "fp8-modelopt": (
        "hf_quant_config.json",
        {
            "producer": {"name": "modelopt", "version": "0.23"},
            "quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8", "exclude_modules": ["lm_head"]},
        },
        {"quantization": {"quant_algo": "NVFP4"}},
    ),
    "modelopt-nvfp4": (
        "hf_quant_config.json",
        {"quantization": {"quant_algo": "NVFP4", "kv_cache_quant_algo": None, "group_size": 16}},
        {"quantization": {"quant_algo": "FP8"}},
    ),
    "gptq4-gptq": (
        "quantize_config.json",
        {"bits": 4, "group_size": 32, "desc_act": False, "sym": False, "damp_percent": 0.01, "true_sequential": True},
        {"bits": 4, "group_size": 32, "sym": True},
    ),
    "gptq8-gptq_v2": (
        "quantize_config.json",
        {"quant_method": "gptq", "bits": 8, "group_size": 32, "checkpoint_format": "gptq_v2"},
        {"bits": 8, "group_size": 64, "checkpoint_format": "gptq"},
    ),
    "awq": (
        "quant_config.json",
        {"zero_point": True, "q_group_size": 32, "w_bit": 4, "version": "GEMM"},
        {"w_bit": 4, "q_group_size": 128},
    ),
}


class Failure(Exception):
    pass


def require(condition, text):
    if not condition:
        raise Failure(text)


class Tester:
    def __init__(self, program, directory):
        self.program, self.directory = program, directory

    def poise(self, *arguments, fails=False):
        done = subprocess.run([self.program, *map(str, arguments)], capture_output=True, text=True)
        require(
            fails is None or (done.returncode != 0) == fails,
            f"poise {' '.join(map(str, arguments))}: exit {done.returncode}\n{done.stderr}",
        )
        return done.stderr if fails else done.stdout

    def converted(self, source, *options):
        target = self.directory / "numbers.safetensors"
        self.poise("convert", source, "-o", target, "--dtype", "f32", "--force", "--quiet", *options)
        return load(target)

    def make(self, name, quantization, tensors):
        path = self.directory / name
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir()
        config = dict(CONFIG)
        if quantization is not None:
            config["quantization" if "quant_method" not in quantization else "quantization_config"] = quantization
        (path / "config.json").write_text(json.dumps(config))
        save(path / "model.safetensors", tensors)
        return path

    def check(self, name, quantization, parts_of, missing, exact):
        others = {other: (rng.normal(0, 0.5, shape)).astype(np.float16) for other, shape in OTHERS.items()}
        parts, expected = dict(others), {other: array.astype(np.float32) for other, array in others.items()}
        for matrix, shape in MATRICES.items():
            its, expected[matrix + ".weight"] = parts_of(matrix, shape)
            parts.update({matrix + ending: array for ending, array in its.items()})
        if quantization.get("quant_method") in ("fp8", "fbgemm_fp8", "modelopt", "compressed-tensors"):
            parts.update({f"model.layers.0.self_attn.{ending}": np.ones(1, np.float32) for ending in LEFT_OUT})
        path = self.make(name, quantization, parts)
        inspected = json.loads(self.poise("inspect", path, "--json"))
        require(
            len(inspected["tensors"]) == len(expected), f"{len(inspected['tensors'])} tensors, expected {len(expected)}"
        )
        raw = json.loads(self.poise("inspect", path, "--json", "--raw"))
        require({row["name"] for row in raw["tensors"]} == set(parts), "--raw shows other tensors than the file has")
        self.poise("verify", path)
        dense = self.make(name + "-dense", None, {key: array.astype(np.float32) for key, array in expected.items()})
        for form in ("", "zt", "zt1"):
            source = path
            lacks_type = form == "zt1" and re.search(
                "nvfp4|fnuz|mxfp4", name
            )  # numbers that this version does not have
            if form and not lacks_type:
                source = self.directory / f"{name}.{form}"
                self.poise("convert", path, "-o", source, "--to", form, "--quiet")
                self.poise("verify", source)
            self.compare(self.converted(source), expected, exact)
        if re.match("gptq[48]-gptq|awq|ct-int4$|ct-int4-zeros|ct-int8-plain", name):
            self.check_written(name, path, expected)
        equal = json.loads(self.poise("run", path, "--tokens", "1,7,3,9", "--logits", "--exact"))["logits"]
        logits = json.loads(self.poise("run", dense, "--tokens", "1,7,3,9", "--logits", "--exact"))["logits"]
        worst = np.abs(np.array(equal) - np.array(logits)).max() / np.abs(logits).max()
        require(worst < 1e-4, f"logits are off by {worst}")
        message = self.poise(
            "inspect",
            self.make(name, quantization, {key: array for key, array in parts.items() if key != VICTIM + missing}),
            fails=True,
        )
        require(VICTIM in message and VICTIM + missing in message, f"without {missing}: {message}")
        if name not in CUT:
            return
        for ending in its:  # parts of other shapes are refused or mean the same
            array = parts[VICTIM + ending]
            bits = array.bits if isinstance(array, Typed) else array
            if bits.size < 2 or ending in (
                ".input_scale",
                ".input_global_scale",
                ".compute_dtype",
                ".unpack_view_dtype",
            ):
                continue
            cut = bits.reshape(-1)[:-1]
            changed = {**parts, VICTIM + ending: Typed(array.name, cut) if isinstance(array, Typed) else cut}
            message = self.poise("inspect", self.make(name, quantization, changed), fails=True)
            require(VICTIM in message, f"with a cut {ending}: {message}")

    def stored(self, parts_of, **more):
        """Returns the tensors of a directory, and their numbers. `more`: further tensors of each matrix, by ending."""
        tensors = {other: (rng.normal(0, 0.5, shape)).astype(np.float16) for other, shape in OTHERS.items()}
        expected = {other: array.astype(np.float32) for other, array in tensors.items()}
        for matrix, shape in MATRICES.items():
            parts, expected[matrix + ".weight"] = parts_of(matrix, shape)
            tensors.update({matrix + ending: array for ending, array in parts.items()})
            tensors.update({f"{matrix}.{ending}": make(shape) for ending, make in more.items()})
        return tensors, expected

    def check_file(self, name, quantization, parts_of, missing, exact):
        """Checks the same directory with its description in a file next to config.json."""
        file, content, other = FILES[name]
        tensors, expected = self.stored(parts_of)
        path = self.make(name + "-file", None, tensors)
        (path / file).write_text(json.dumps(content))
        self.compare(self.converted(path), expected, exact)
        self.poise("run", path, "--tokens", "1,7", "-n", "1")
        raw = self.directory / f"{name}-raw"
        self.poise("convert", path, "--raw", "-o", f"{raw}/", "--force", "--quiet")
        self.compare(self.converted(raw), expected, exact)  # it describes itself
        warnings = lambda: json.loads(self.poise("inspect", path, "--json"))["warnings"]
        require(not any("differ" in text or "counts" in text for text in warnings()), f"{warnings()}")

        # config.json counts, with a warning about a contradiction
        path = self.make(name + "-file", quantization, tensors)
        (path / file).write_text(json.dumps(content))
        require(not any("differ" in text for text in warnings()), f"{warnings()}")
        (path / file).write_text(json.dumps(other))
        require(any(f"config.json and {file} differ" in text for text in warnings()), f"{warnings()}")
        self.compare(self.converted(path), expected, exact)
        (path / file).write_text("[1]")
        require(any(f"{file} is not read" in text for text in warnings()), f"{warnings()}")

        # matrices of numbers with a file that describes codes
        numbers = {key: array.astype(np.float32) for key, array in expected.items()}
        path = self.make(name + "-file", None, numbers)
        (path / file).write_text(json.dumps(content))
        require(any("the directory has none" in text for text in warnings()), f"{warnings()}")
        self.compare(self.converted(path), expected, exact)
        self.poise("run", path, "--tokens", "1,7", "-n", "1")

    def warnings_of(self, path):
        texts = json.loads(self.poise("inspect", path, "--json"))["warnings"]
        return [text for text in texts if "the model has no vocabulary" not in text]

    def check_symmetric(self):
        """Lets GPTQ's sym contradict the name of the format: with sym, the zero point is 2^(bits - 1)."""
        for bits in (2, 3, 4, 8):
            for version in ("gptq", "gptq_v2"):
                for less in (0, 1):
                    quantization, parts_of = gptq(bits, 32, version, less=less)
                    tensors, _ = self.stored(parts_of)
                    texts = self.warnings_of(self.make("symmetric", quantization, tensors))
                    middle, other = 2 ** (bits - 1), 2 ** (bits - 1) + (1 if version == "gptq" else -1)
                    text = (
                        f"checkpoint_format is {version}, so the zero points of matrix "
                        f"model.layers.0.self_attn.q_proj and 6 more would be {other}, but sym is true, so they are "
                        f"{middle}: sym is used"
                    )
                    agrees = less == (version == "gptq")
                    require(agrees != any(text in found for found in texts), f"{bits} {version} {less}: {texts}")
        # Later versions have another key for the format.
        quantization, parts_of = gptq(version="gptq_v2")
        quantization["format"] = quantization.pop("checkpoint_format")
        tensors, expected = self.stored(parts_of)
        path = self.make("symmetric", quantization, tensors)
        self.compare(self.converted(path), expected, True)
        require(not self.warnings_of(path), f"{self.warnings_of(path)}")
        path = self.make("symmetric", {**quantization, "checkpoint_format": "gptq"}, tensors)
        self.compare(self.converted(path), expected, True)
        texts = self.warnings_of(path)
        require(
            any("format is gptq_v2 and checkpoint_format gptq: format is used" in text for text in texts), f"{texts}"
        )
        # Other zero points are used as they are stored.
        quantization, parts_of = gptq()
        tensors, expected = self.stored(parts_of)
        path = self.make("symmetric", {**quantization, "sym": True}, tensors)
        self.compare(self.converted(path), expected, True)
        texts = self.warnings_of(path)
        text = (
            "sym is true, but the zero points of matrix model.layers.0.self_attn.q_proj and 6 more differ: "
            "they are used"
        )
        require(any(text in found for found in texts), f"{texts}")
        # `dynamic` may turn sym off for some matrices, whose zero points are used as they are stored.
        dynamic = {"+:.*up_proj": {"sym": False}}
        path = self.make("symmetric", {**quantization, "sym": True, "dynamic": dynamic}, tensors)
        self.compare(self.converted(path), expected, True)
        require(not self.warnings_of(path), f"{self.warnings_of(path)}")

    def check_denials(self):
        """Checks that parts which contradict their description are used, with a warning."""

        def list_warnings(quantization, tensors, expected, exact=True, **more):
            path = self.make("denials", quantization, tensors)
            if more:
                config = json.loads((path / "config.json").read_text())
                (path / "config.json").write_text(json.dumps({**config, **more}))
            self.compare(self.converted(path), expected, exact)
            return self.warnings_of(path)

        def require_warning(text, quantization, parts_of, exact=True, **more):
            texts = list_warnings(quantization, *self.stored(parts_of), exact, **more)
            require(len(texts) == 1 and text in texts[0], f"expected {text}: {texts}")

        first = "model.layers.0.self_attn.q_proj and 6 more"
        quantization, parts_of = awq()
        text = f"zero_point is false, but matrix {first} has other zero points than 8: they are used"
        require_warning(text, {**quantization, "zero_point": False}, parts_of)

        def eights(name, shape):
            parts, _ = parts_of(name, shape)
            parts[".qzeros"] = np.full_like(parts[".qzeros"].view(np.uint32), 0x88888888).view(np.int32)
            return parts, None

        path = self.make("denials", {**quantization, "zero_point": False}, self.stored(eights)[0])
        require(not self.warnings_of(path), f"{self.warnings_of(path)}")

        def with_weights(case, **keys):
            config = json.loads(json.dumps(case[0]))
            config["config_groups"]["group_0"]["weights"].update(keys)
            return config, case[1]

        text = f"symmetric is true, but matrix {first} has other zero points than 0: they are used"
        for case in (packed_integers(zeros="packed"), packed_integers(8, zeros=np.int8)):
            require_warning(text, *with_weights(case, symmetric=True))
        text = f"actorder is not group, but weight_g_idx of matrix {first} orders columns: it is used"
        require_warning(text, *with_weights(packed_integers(order=True), actorder="weight"))
        text = f"actorder is group, but matrix {first} has no weight_g_idx: its groups are read as neighbouring columns"
        require_warning(text, *with_weights(packed_integers(), actorder="group"))
        require(
            not list_warnings(packed_integers(unset=np.int32)[0], *self.stored(packed_integers(unset=np.int32)[1])),
            "unset",
        )

        quantization, parts_of = mlx()
        text = "quantization and quantization_config differ: quantization is used"
        require_warning(text, quantization, parts_of, False, quantization_config={"group_size": 64, "bits": 8})
        require(
            not list_warnings(quantization, *self.stored(parts_of), False, quantization_config=quantization), "a copy"
        )
        text = f"quantization is false for matrix {VICTIM}, but there are scales next to its codes: its parts are used"
        require_warning(text, {**quantization, VICTIM: False}, parts_of, False)
        path = self.make("denials", {**quantization, VICTIM: {"mode": "nf4"}}, self.stored(parts_of)[0])
        message = self.poise("inspect", path, fails=True)
        require(
            f"quantization: {VICTIM}: mode is nf4, only affine, mxfp4, mxfp8, nvfp4 are supported" in message, message
        )

        text = f"quant_map of matrix {first} has other numbers than nf4, which its state names: quant_map is used"
        require_warning(text, *bitsandbytes4())
        for kind, book in (("nf4", NF4), ("fp4", FP4)):
            quantization, parts_of = bitsandbytes4(kind, book=book)
            require(not list_warnings(quantization, *self.stored(parts_of)), kind)

        quantization, parts_of = nvfp4("compressed")
        path = self.make("denials", {**quantization, "format": "pack-quantized"}, self.stored(parts_of)[0])
        message = self.poise("inspect", path, fails=True)
        require(
            "it is stored as nvfp4-pack-quantized, but quantization_config states pack-quantized" in message, message
        )

    def check_zeros_out_of_range(self):
        """Checks that unpacked zero points of compressed-tensors must be whole numbers."""
        quantization, parts_of = packed_integers(zeros=np.float16)
        tensors, expected = self.stored(parts_of)
        tensors[VICTIM + ".weight_zero_point"][3, 1] = 0.5
        path, target = self.make("range", quantization, tensors), self.directory / "range.safetensors"
        message = self.poise("convert", path, "-o", target, "--dtype", "f32", "--force", fails=True)
        require(f"{VICTIM}.weight_zero_point: element 7 is 0.5, expected a whole number" in message, message)
        # A zero point that no code can have must not be reduced modulo 256.
        quantization, parts_of = packed_integers(zeros=np.int8)
        tensors, expected = self.stored(parts_of)
        points = tensors[VICTIM + ".weight_zero_point"]
        scales = tensors[VICTIM + ".weight_scale"].astype(np.float32)
        expected[VICTIM + ".weight"][:, :32] += ((points[:, :1] + 100).astype(np.float32)) * scales[:, :1]
        points[:, 0] = -100
        found = self.converted(self.make("range", quantization, tensors))
        self.compare(found, expected, False)
        tensors[VICTIM + ".weight_g_idx"] = np.where(np.arange(HIDDEN) < 5, -1, 0).astype(np.int32)
        message = self.poise("inspect", self.make("range", quantization, tensors), fails=True)
        require("weight_g_idx: element 0 is -1, expected less than 2, the number of groups" in message, message)

    def check_overflow(self):
        """Checks numbers, scales and zero points that do not fit float32 although their inputs are finite."""
        huge = np.float32(3e38)
        for case, change in (
            ("gptq4-rows-f32", {".scales": huge}),
            ("ct-int4", {".weight_scale": huge}),
            ("ct-int8", {".weight_scale": huge}),
            ("ct-float-rows", {".weight_scale": huge}),
            ("hqq4-f32", {".scale": huge}),
            ("mlx4", {".scales": np.float32(1e-38), ".biases": np.float32(1e5)}),
            ("mlx8", {".scales": huge, ".biases": np.float32(1)}),
            ("nf4", {".weight.absmax": huge, ".weight.quant_map": np.float32(2)}),
            ("nf4-nested", {".weight.nested_absmax": huge, ".weight.nested_quant_map": np.float32(2)}),
            ("ct-nvfp4", {".weight_global_scale": np.float32(1e-38)}),
            ("modelopt-nvfp4", {".weight_scale_2": huge}),
            ("fp8-tensor", {".weight_scale": huge}),
            ("fp8-blocks", {".weight_scale_inv": huge}),
            ("fp8-modelopt", {".weight_scale": huge}),
            ("fp8-modelopt-blocks", {".weight_scale": huge}),
        ):
            quantization, parts_of = CASES[case][0]
            tensors, _ = self.stored(parts_of)
            for ending, number in change.items():
                tensors[VICTIM + ending] = np.full(tensors[VICTIM + ending].shape, number, np.float32)
            path, target = self.make("overflow", quantization, tensors), self.directory / "overflow.safetensors"
            message = self.poise("convert", path, "-o", target, "--dtype", "f32", "--force", fails=True)
            require(VICTIM in message and "too large for f32" in message, f"{case}: {message}")
            printed = subprocess.run([self.program, "verify", path], capture_output=True, text=True)
            require(
                printed.returncode == 1 and "element" in printed.stdout and VICTIM in printed.stdout,
                f"{case}: {printed.stdout}",
            )
            self.poise("run", path, "--tokens", "1,7", fails=True)
            # An infinity in the file stays an infinity.
            for ending, number in change.items():
                tensors[VICTIM + ending] = np.full(tensors[VICTIM + ending].shape, np.inf, np.float32)
            if not any(ending in change for ending in (".weight_global_scale", ".weight_scale_2", ".biases")):
                numbers = self.converted(self.make("overflow", quantization, tensors))[VICTIM + ".weight"]
                require(np.isinf(numbers).any(), f"{case}: no infinity")

    def check_scalars(self):
        """Checks scales of attention, which run ignores, in directories of other schemes and of plain numbers."""
        for case in ("gptq4-gptq", "awq", "mlx4", None):
            quantization, parts_of = CASES[case][0] if case else (None, lambda name, shape: ({}, None))
            tensors, _ = self.stored(parts_of)
            if case is None:
                tensors.update({f"{name}.weight": scales_of(shape) for name, shape in MATRICES.items()})
            tensors.update({f"model.layers.0.self_attn.{ending}": np.ones(1, np.float32) for ending in LEFT_OUT})
            path = self.make("scalars", quantization, tensors)
            texts = self.warnings_of(path)
            text = f"model.layers.0.self_attn.q_scale and {len(LEFT_OUT) - 1} more"
            require(any(text in found and "left out" in found for found in texts), f"{texts}")
            self.poise("run", path, "--tokens", "1,7", "-n", "1")
            # verify reports all that run refuses.
            tensors["model.layers.0.self_attn.q_proj.strange"] = np.ones(1, np.float32)
            path = self.make("scalars", quantization, tensors)
            message = self.poise("run", path, "--tokens", "1", fails=True)
            text = "a Mistral or Llama model has no model.layers.0.self_attn.q_proj.strange"
            require(text in message, message)
            printed = self.poise("verify", path)
            require(f"Poise cannot run the model: {text}" in printed, printed)
        path = self.make("scalars", {"quant_method": "vptq"}, tensors)
        printed = self.poise("verify", path)
        require("Poise cannot run the model: quantization_config is" in printed, printed)

    def check_scaled_fp8(self):
        """Checks ComfyUI's files: numbers for a chosen type, else the parts; and scales without description."""
        weights, expected = {}, {}
        for name, shape in (("blocks.0.attn.q", (32, 48)), ("blocks.0.mlp", (16, 32))):
            codes, scale = f8_codes(shape), np.array(rng.random() / 100, np.float32)
            weights[name + ".weight"] = Typed("F8_E4M3", codes)
            weights[name + ".scale_weight"] = scale if "attn" in name else scale.reshape(1)
            weights[name + ".scale_input"] = np.array(1.5, np.float32)
            weights[name + ".bias"] = scales_of((shape[0],))
            expected[name + ".weight"] = F8[codes] * scale
            expected[name + ".bias"] = weights[name + ".bias"].astype(np.float32)
        path, target = self.directory / "scaled.safetensors", self.directory / "scaled-out.safetensors"
        for prefix in ("", "model.diffusion_model."):
            tensors = {prefix + name: array for name, array in weights.items()}
            marker = {prefix + "scaled_fp8": Typed("F8_E4M3", np.zeros(2, np.uint8))}
            save(path, {**tensors, **marker})
            self.compare(self.converted(path), {prefix + name: array for name, array in expected.items()}, True)
            self.poise("convert", path, "-o", target, "--force", "--quiet")
            self.poise("diff", path, target)
            # Without the marker, the meaning of the scales is unknown.
            for scale in ("scale_weight", "weight_scales", "input_Scale", "weight.scale"):
                save(path, {name.replace("scale_weight", scale): array for name, array in tensors.items()})
                message = self.poise("convert", path, "-o", target, "--dtype", "f32", "--force", fails=True)
                text = f"holds codes (f8_e4m3) that {prefix}blocks.0.attn.q."
                require(text in message and "copied as they are" in message, f"{scale}: {message}")
                self.poise("convert", path, "-o", target, "--force", "--quiet")
                self.poise("diff", path, target)
            save(path, {name: array for name, array in tensors.items() if "scale" not in name})
            numbers = self.converted(path)[prefix + "blocks.0.mlp.weight"]
            require(np.array_equal(numbers, F8[weights["blocks.0.mlp.weight"].bits]), "numbers without scales")
        tensors = {**weights, **{"scaled_fp8": Typed("F8_E4M3", np.zeros(0, np.uint8))}}
        tensors["blocks.0.mlp.weight"] = scales_of((16, 32))
        save(path, tensors)
        message = self.poise("convert", path, "-o", target, "--dtype", "f32", "--force", fails=True)
        require("matrix blocks.0.mlp: ComfyUI scaled fp8: " in message and "expected f8_e4m3" in message, message)

    def check_undescribed(self):
        """Checks that codes with scales are not read as numbers."""
        tensors, _ = self.stored(CASES["fp8-modelopt"][0][1])
        path = self.make("undescribed", None, tensors)
        message = self.poise("inspect", path, fails=True)
        require("q_proj.weight_scale scales" in message and "hf_quant_config.json" in message, message)
        target = self.directory / "undescribed.safetensors"
        for source in ((path, "--raw"), (path / "model.safetensors",)):
            message = self.poise("convert", *source, "-o", target, "--dtype", "f32", "--force", fails=True)
            text = "q_proj.weight holds codes (f8_e4m3) that model.layers.0.self_attn.q_proj.weight_scale scales"
            require(text in message and "copied as they are" in message, message)
            self.poise("convert", *source, "-o", target, "--force", "--quiet")
            rows = json.loads(self.poise("inspect", target, "--json"))["tensors"]
            kinds = {row["name"]: json.dumps(row) for row in rows}
            require("f8_e4m3" in kinds[VICTIM + ".weight"], kinds[VICTIM + ".weight"])
        # Codes stored as the bytes of numbers.
        tensors, _ = self.stored(CASES["nf4-bf16"][0][1])
        path = self.make("undescribed", None, tensors)
        message = self.poise("inspect", path, fails=True)
        require("holds codes (bf16) that" in message and "weight.absmax scales" in message, message)
        message = self.poise("convert", path, "--raw", "-o", target, "--dtype", "f32", "--force", fails=True)
        require("holds codes (bf16) that" in message, message)
        self.poise("convert", path, "--raw", "-o", target, "--force", "--quiet")
        rows = json.loads(self.poise("inspect", target, "--json"))["tensors"]
        require([json.dumps(row) for row in rows if row["name"] == VICTIM + ".weight"][0].count("bf16"), f"{rows}")
        tensors, _ = self.stored(CASES["fp8-modelopt"][0][1])
        for algorithm, text in (("W4A16_AWQ", "quant_algo is W4A16_AWQ, only"), ("INT8_SQ", "quant_algo is INT8_SQ")):
            codes = {
                ".weight": np.zeros((INNER // 2, HIDDEN), np.uint8),
                ".weight_scale": np.ones((INNER, 1), np.float32),
            }
            path = self.make("undescribed", None, {**tensors, **{VICTIM + end: array for end, array in codes.items()}})
            (path / "hf_quant_config.json").write_text(json.dumps({"quantization": {"quant_algo": algorithm}}))
            message = self.poise("inspect", path, fails=True)
            require(text in message and "hf_quant_config.json" in message, message)

    def check_parts_of_nothing(self):
        """Checks parts of every scheme without a description, and with a description of another scheme."""
        for case, program in (
            ("gptq4-gptq", "GPTQ and AWQ"),
            ("awq", "GPTQ and AWQ"),
            ("ct-int4", "compressed-tensors"),
            ("hqq4", "HQQ"),
            ("nf4", "bitsandbytes"),
            ("bitsandbytes8", "bitsandbytes"),
            ("mlx4", "MLX"),
        ):
            tensors, _ = self.stored(CASES[case][0][1])
            path = self.make("parts-of-nothing", None, tensors)
            message = self.poise("inspect", path, fails=True)
            require(f"in the parts of {program}, but no configuration describes how" in message, f"{case}: {message}")
            require("q_proj" in message and "expected quantization_config" in message, f"{case}: {message}")
            self.poise("inspect", path, "--raw")
            other = {"quant_method": "fbgemm_fp8"}
            message = self.poise("inspect", self.make("parts-of-nothing", other, tensors), fails=True)
            require("q_proj" in message, f"{case}: {message}")

    def check_contradictions(self):
        """Checks parts that contradict ModelOpt's description."""

        def list_warnings(case, **keys):
            quantization, parts_of = CASES[case][0]
            tensors, expected = self.stored(parts_of)
            path = self.make("contradictions", {**quantization, **keys}, tensors)
            self.compare(self.converted(path), expected, True)
            return json.loads(self.poise("inspect", path, "--json"))["warnings"]

        for case, stored, other in (("fp8-modelopt", "FP8", "NVFP4"), ("modelopt-nvfp4", "NVFP4", "FP8")):
            for algorithm in (stored, "MIXED_PRECISION"):
                texts = list_warnings(case, quant_algo=algorithm, exclude_modules=["lm_head", "*embed*", 3])
                require(not any("parts are used" in text for text in texts), f"{texts}")
            texts = list_warnings(case, quant_algo=other)
            text = (
                f"quant_algo is {other}, but matrix model.layers.0.self_attn.q_proj, with 6 more, is stored as {stored}"
            )
            require(any(text in found for found in texts), f"{texts}")
            for key in ("exclude_modules", "ignore"):
                texts = list_warnings(case, quant_algo=stored, **{key: ["lm_head", "model.layers.*.mlp.*"]})
                text = f"{key} lists matrix model.layers.0.mlp.gate_proj and 2 more as not quantized"
                require(any(text in found for found in texts), f"{texts}")

    def check_columns(self):
        """Checks HQQ's groups along columns in .zt: codes, scales and the group of each row."""
        tensors, expected = self.stored(CASES["hqq4-columns"][0][1])
        path = self.make("columns", CASES["hqq4-columns"][0][0], tensors)
        zt = self.directory / "columns.zt"
        self.poise("convert", path, "-o", zt, "--force", "--quiet")
        rows = json.loads(self.poise("inspect", zt, "--json"))["tensors"]
        row = next(row for row in rows if row["name"] == VICTIM + ".weight")
        require(row["layout"] == "poise.quant_group_indexed/1" and row["attributes"]["axis"] == 0, f"{row}")
        tensors[VICTIM + ".group_size"] = np.array(56, np.int32)
        message = self.poise("inspect", self.make("columns", CASES["hqq4-columns"][0][0], tensors), fails=True)
        require("groups of 56 do not divide its" in message and "numbers" in message, message)
        tensors[VICTIM + ".group_size"] = np.array(2 * MATRICES[VICTIM][0], np.int32)
        message = self.poise("inspect", self.make("columns", CASES["hqq4-columns"][0][0], tensors), fails=True)
        require("rows are not a multiple of the group size" in message, message)
        tensors[VICTIM + ".axis"] = np.array(2, np.int32)
        message = self.poise("inspect", self.make("columns", CASES["hqq4-columns"][0][0], tensors), fails=True)
        require("axis is 2, expected 0 or 1" in message, message)

    def check_widths(self):
        """Checks codes of 7 and 8 bits, four in a word in both cases: the targets of config_groups distinguish them."""
        sevens, eights = packed_integers(7, zeros="packed"), packed_integers(8, zeros="packed")
        names = [name for name in MATRICES if "mlp" in name]
        tensors, expected = self.stored(lambda name, shape: (sevens if name in names else eights)[1](name, shape))

        def config(seven, eight):
            groups = {}
            for bits, targets in ((7, seven), (8, eight)):
                weights = {"num_bits": bits, "type": "int", "strategy": "group", "group_size": 32}
                groups[f"group_{bits}"] = {"targets": targets, "weights": weights}
            return {**sevens[0], "config_groups": groups}

        others = [name for name in MATRICES if name not in names]
        for targets in (
            (names, others),
            (names, ["Linear"]),
            (names, ["re:.*attn.*"]),
            (["Linear", *names], others),
            (["re:.*mlp.*"], ["Linear"]),
            (names, ["re:.*"]),  # a name has precedence over an expression
            ([r"re:.*\.mlp\..*"], ["re:model"]),  # both match: the first in the order of characters counts
            (["Linear"], [r"re:model\.layers\.\d+\.self_attn\.[qkvo]_proj$"]),
            (["Linear"], ["re:mlp", "re:.*attn"]),  # an expression must match at the beginning of a name
        ):
            self.compare(self.converted(self.make("widths", config(*targets), tensors)), expected, True)
        for targets in ((["Linear"], ["Linear"]), ([], []), (["re:.*"], ["re:.*"])):
            message = self.poise("inspect", self.make("widths", config(*targets), tensors), fails=True)
            require("its codes may have 7 or 8 bits" in message and "matrix model." in message, message)
        # Without num_bits, codes have the usual width.
        tensors, expected = self.stored(eights[1])
        unsaid = {key: value for key, value in eights[0].items() if key != "config_groups"}
        self.compare(self.converted(self.make("widths", unsaid, tensors)), expected, True)

    def check_zero_points_of_widths(self):
        """Checks that the width of the codes, not that of the first group, determines which zero points are 0."""
        quantization, parts_of = packed_integers(4, zeros="packed")

        def eights(name, shape):
            parts, _ = parts_of(name, shape)
            parts[".weight_zero_point"] = np.full_like(
                parts[".weight_zero_point"], np.uint32(0x88888888).view(np.int32)
            )
            return parts, None

        groups = {}
        for bits in (8, 4):
            weights = {"num_bits": bits, "type": "int", "strategy": "group", "group_size": 32, "symmetric": True}
            groups[f"group_{8 - bits}"] = {"targets": ["Linear"], "weights": weights}
        path = self.make("symmetric", {**quantization, "config_groups": groups}, self.stored(eights)[0])
        require(not self.warnings_of(path), f"{self.warnings_of(path)}")

    def check_names(self):
        """Checks the effect of compressed-tensors' ignore and targets, by names and expressions."""
        quantization, parts_of = packed_integers()
        tensors, expected = self.stored(parts_of)

        def list_warnings(ignore, *targets):
            groups = {
                f"group_{i}": {**quantization["config_groups"]["group_0"], "targets": some}
                for i, some in enumerate(targets)
            }
            path = self.make("names", {**quantization, "ignore": ignore, "config_groups": groups}, tensors)
            self.compare(self.converted(path), expected, True)
            texts = json.loads(self.poise("inspect", path, "--json"))["warnings"]
            return [text for text in texts if "parts are used" in text]

        require(not list_warnings(["lm_head", "re:.*embed.*", "mlp", "re:mlp"], ["Linear"]), "nothing is in doubt")
        require(
            not list_warnings([], ["re:.*attn"], [f"re:.*{name}_proj$" for name in ("up", "down", "gate")]),
            "all are named",
        )
        require(not list_warnings([], ["LlamaAttention"]), "a class that files do not name")
        for ignore, text in (
            (["lm_head", "re:.*mlp"], "ignore lists matrix model.layers.0.mlp.gate_proj and 2 more as not quantized"),
            ([VICTIM], f"ignore lists matrix {VICTIM} as not quantized"),
            (["Linear"], "ignore lists matrix model.layers.0.self_attn.q_proj and 6 more"),
        ):
            texts = list_warnings(ignore, ["Linear"])
            require(len(texts) == 1 and text in texts[0], f"{texts}")
        texts = list_warnings([], ["re:.*attn", "mlp.up_proj"])
        text = "no target of config_groups names matrix model.layers.0.mlp.gate_proj and 2 more"
        require(len(texts) == 1 and text in texts[0], f"{texts}")
        groups = {"group_0": {**quantization["config_groups"]["group_0"]}}
        for expression, text in (("(", "missing closing"), ("(.*)*(.*)*(.*)*(.*)*(.*)*(.*)*[!?]", "cannot be matched")):
            groups["group_0"]["targets"] = [f"re:{expression}"]
            path = self.make("names", {**quantization, "config_groups": groups}, tensors)
            message = self.poise("inspect", path, fails=True)
            require(text in message and "quantization_config: the regular expression" in message, message)
            require("faults" not in message, message)

    def check_order(self):
        """Checks where GPTQ's g_idx may be missing: with one group, and if no module of that form has another order."""
        rows, usual = gptq(group=-1), gptq()
        for quantization, parts_of in (
            ({**rows[0], "desc_act": True}, rows[1]),
            ({**usual[0], "desc_act": True, "dynamic": {"+:.*": {"desc_act": False}}}, usual[1]),
        ):
            tensors, expected = self.stored(parts_of)
            tensors.pop(VICTIM + ".g_idx")
            self.compare(self.converted(self.make("order", quantization, tensors)), expected, True)

    def check_group_sizes(self):
        """Checks scales of compressed-tensors that do not fit the configured groups, or fit one of several."""
        quantization, parts_of = packed_integers(group=32)
        tensors, expected = self.stored(parts_of)

        def config(**sizes):
            weights = {"num_bits": 4, "type": "int", "strategy": "group"}
            groups = {
                name: {"targets": ["re:.*"], "weights": {**weights, "group_size": size}} for name, size in sizes.items()
            }
            return {**quantization, "config_groups": groups}

        message = self.poise("inspect", self.make("sizes", config(a=48, b=16), tensors), fails=True)
        require("mlp.down_proj: compressed-tensors pack-quantized: the shape of model" in message, message)
        require("groups of 16 or 48 columns" in message, message)
        self.compare(self.converted(self.make("sizes", config(a=128, b=32), tensors)), expected, True)
        message = self.poise("inspect", self.make("sizes", config(a=40, b=32), tensors), fails=True)
        require("its groups may have 32 or 40 columns" in message and "matrix model." in message, message)

    def check_transforms(self):
        """Checks compressed-tensors' rotations: those of weights are accepted, those of inputs refused."""
        quantization, parts_of = packed_integers()
        tensors, expected = self.stored(parts_of)

        def config(*locations):
            apply = [{"targets": ["re:.*down_proj$"], "location": place, "inverse": False} for place in locations]
            return {**quantization, "transform_config": {"config_groups": {"R4": {"type": "hadamard", "apply": apply}}}}

        path = self.make("transforms", config("weight_input", "weight_output"), tensors)
        self.compare(self.converted(path), expected, True)
        for place in ("input", "output", "k_cache", "q_attn"):
            path = self.make("transforms", config("weight_input", place), tensors)
            message = self.poise("inspect", path, fails=True)
            require(f"transform_config: R4: location is {place}, only weight_input" in message, message)
        # Plain numbers with such a rotation: formats keep it, refuse it, or warn that other programs ignore it.
        path = self.make("transforms", {**config("input"), "format": "dense"}, expected)
        message = self.poise("run", path, "--tokens", "1", fails=True)
        require("quantization_config is" in message, message)
        message = self.poise("convert", path, "-o", self.directory / "rotated.alt", fails=True)
        require("that change the computation: quantization_config is" in message, message)
        for ending, tells in (("gguf", True), ("zt", False), ("safetensors", False)):
            target = self.directory / f"rotated.{ending}"
            done = subprocess.run([self.program, "convert", path, "-o", target], capture_output=True, text=True)
            found = 'llama.cpp ignores quantization_config, whose quant_method is "comp' in done.stderr
            require(done.returncode == 0 and found == tells, done.stderr)
            kept = json.loads(self.poise("inspect", target, "--json"))["config"]
            require("transform_config" in kept["quantization_config"], f"{ending}: {kept}")

    def check_formats(self):
        """Checks formats of compressed-tensors that no scheme reads, for all matrices or for a group."""
        kind = "marlin-24"
        tensors, _ = self.stored(
            lambda name, shape: (
                {
                    ".weight_packed": codes_of((shape[0], shape[1] // 2), 8).astype(np.uint8),
                    ".weight_scale": codes_of((shape[0], shape[1] // 32), 8).astype(np.uint8),
                },
                None,
            )
        )
        mixed = ct("mixed-precision", 4)
        mixed["config_groups"]["group_0"]["format"] = kind
        for quantization in (ct(kind, 4), mixed):
            message = self.poise("inspect", self.make("formats", quantization, tensors), fails=True)
            require(f"quantization_config: format is {kind}, only pack-quantized, int-" in message, message)
            require("faults" not in message, message)

    def check_biases(self):
        """Checks AutoGPTQ's biases: those of zeros are left out, others are kept."""
        quantization, parts_of = gptq()
        tensors, expected = self.stored(parts_of, bias=lambda shape: np.zeros(shape[0], np.float16))
        path = self.make("biases", quantization, tensors)
        self.compare(self.converted(path), expected, True)
        printed = json.loads(self.poise("inspect", path, "--json"))["warnings"]
        require(any("and 6 more are left out: they hold zeros" in text for text in printed), f"{printed}")
        zt = self.directory / "biases.zt"
        self.poise("convert", path, "-o", zt, "--force", "--quiet")
        for source in (path, zt):
            self.poise("run", source, "--tokens", "1,7", "-n", "1")
        tensors[VICTIM + ".bias"][-1] = -0.25
        path = self.make("biases", quantization, tensors)
        require(set(self.converted(path)) - set(expected) == {VICTIM + ".bias"}, "another bias than the one of numbers")
        message = self.poise("run", path, "--tokens", "1,7", fails=True)
        require(f"has no {VICTIM}.bias" in message and "q_proj" not in message, message)
        tensors[VICTIM + ".bias"] = np.zeros(INNER + 1, np.float16)
        message = self.poise("run", self.make("biases", quantization, tensors), "--tokens", "1,7", fails=True)
        require(f"has no {VICTIM}.bias" in message, message)

    def check_written(self, name, path, expected):
        """Checks the pack-quantized output of --to huggingface: reads it with NumPy and with the command."""
        target = self.directory / (name + "-written")
        self.poise("convert", path, "-o", f"{target}/", "--force", "--quiet")
        config = json.loads((target / "config.json").read_text())["quantization_config"]
        weights = config["config_groups"]["group_0"]["weights"]
        require(
            config["format"] == "pack-quantized" and config["ignore"] == ["lm_head"], f"quantization_config is {config}"
        )
        stored = load(target / "model.safetensors")
        bits = weights["num_bits"]
        unpacked = lambda words: np.stack(
            [words.view(np.uint32) >> bits * i & 2**bits - 1 for i in range(32 // bits)], -1
        )
        for matrix, shape in MATRICES.items():
            require(list(stored[matrix + ".weight_shape"]) == list(shape), "weight_shape")
            codes = unpacked(stored[matrix + ".weight_packed"]).reshape(shape)
            zeros = unpacked(stored[matrix + ".weight_zero_point"]).swapaxes(1, 2).reshape(shape[0], -1)
            index = np.arange(shape[1]) // weights["group_size"]
            require(
                np.array_equal(
                    grouped(codes, zeros, stored[matrix + ".weight_scale"], index), expected[matrix + ".weight"]
                ),
                f"{matrix} as it is written",
            )
        self.compare(self.converted(target), expected, True)

    def check_zero_points(self):
        """Checks that HQQ's zero points that are codes stay, and that the report lists others, which become numbers."""
        for bits in (4, 8):
            quantization, parts_of = hqq(bits)

            def parts(name, shape):
                stored, numbers = parts_of(name, shape)
                if name == VICTIM:
                    return stored, numbers
                zeros = np.minimum(np.floor(stored[".zero"]), 2**bits - 1)
                codes = np.round(numbers.reshape(len(zeros), -1) / stored[".scale"] + stored[".zero"])
                stored[".zero"] = zeros
                return stored, ((codes - zeros) * stored[".scale"].astype(np.float32)).reshape(shape)

            tensors, expected = self.stored(parts)
            path, target = self.make("zeros", quantization, tensors), self.directory / "zeros-written"
            done = subprocess.run(
                [self.program, "convert", path, "-o", f"{target}/", "--force"], capture_output=True, text=True
            )
            printed = done.stderr
            require(done.returncode == 0, printed)
            require(f"tensor {VICTIM}.weight becomes float32: zero points are not codes" in printed, printed)
            require(printed.count("becomes float32") == 1, printed)
            config = json.loads((target / "config.json").read_text())["quantization_config"]
            require(sorted(config["ignore"]) == ["lm_head", VICTIM], f"{config}")
            self.compare(self.converted(target), expected, True)

    def check_tied(self):
        """Checks a model without lm_head: programs use the embedding instead, which has no codes."""
        tensors, expected = self.stored(CASES["ct-int4-zeros"][0][1])
        for numbers in (tensors, expected):
            numbers.pop("lm_head.weight")
        path, target = self.make("tied", CASES["ct-int4-zeros"][0][0], tensors), self.directory / "tied-written"
        config = json.loads((path / "config.json").read_text())
        (path / "config.json").write_text(json.dumps({**config, "tie_word_embeddings": True}))
        self.poise("convert", path, "-o", f"{target}/", "--force", "--quiet")
        config = json.loads((target / "config.json").read_text())["quantization_config"]
        require(config["ignore"] == ["lm_head"], f"{config}")
        self.compare(self.converted(target), expected, True)

    @staticmethod
    def compare(found, expected, exact):
        require(set(found) == set(expected), f"other tensors: {set(found) ^ set(expected)}")
        for key, array in expected.items():
            same = np.array_equal(found[key], array) if exact else np.allclose(found[key], array, rtol=2e-6, atol=1e-6)
            has_shape = found[key].shape == array.shape
            require(same, f"{key} is off by {np.abs(found[key] - array).max() if has_shape else found[key].shape}")


def attempt(name, *steps):
    """Returns the name if a step fails."""
    try:
        for step in steps:
            step()
    except Failure as failure:
        print(f"{name}: {failure}")
        return [name]
    print(f"{name}: ok")
    return []


def main():
    only = sys.argv[2:]
    failed = []
    with tempfile.TemporaryDirectory() as directory:
        tester = Tester(sys.argv[1], Path(directory))
        for name, ((quantization, parts_of), missing, exact) in CASES.items():
            if only and name not in only:
                continue
            steps = [tester.check] + [tester.check_file] * (name in FILES)
            failed += attempt(name, *(partial(step, name, quantization, parts_of, missing, exact) for step in steps))
        for name, step in (
            ("symmetric", tester.check_symmetric),
            ("denials", tester.check_denials),
            ("zeros-out-of-range", tester.check_zeros_out_of_range),
            ("overflow", tester.check_overflow),
            ("scalars", tester.check_scalars),
            ("scaled-fp8", tester.check_scaled_fp8),
            ("undescribed", tester.check_undescribed),
            ("parts-of-nothing", tester.check_parts_of_nothing),
            ("contradictions", tester.check_contradictions),
            ("columns", tester.check_columns),
            ("widths", tester.check_widths),
            ("zero points of widths", tester.check_zero_points_of_widths),
            ("names", tester.check_names),
            ("order", tester.check_order),
            ("group-sizes", tester.check_group_sizes),
            ("transforms", tester.check_transforms),
            ("formats", tester.check_formats),
            ("zero-points", tester.check_zero_points),
            ("tied", tester.check_tied),
            ("biases", tester.check_biases),
        ):
            if not only or name in only:
                failed += attempt(name, step)
    sys.exit(f"failed: {' '.join(failed)}" if failed else 0)


if __name__ == "__main__":
    main()
