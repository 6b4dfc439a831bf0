"""ggml's block types: tensors of GGUF files and of converted files in numpy."""

import hashlib
import importlib.util
import os
import pathlib
import re
import struct
import subprocess

import numpy as np
import pytest

import poise

CODEC = pathlib.Path(os.environ["POISE_SOURCE"]) / "tests/codec"
# What libggml-base.so of llama.cpp v0.5.0 makes of 256 blocks of random bytes: name, number, elements, bytes, SHA-256
# of the float32 numbers.
GOLDEN = re.findall(r'\{"(\w+)", (\d+), (\d+), (\d+),\s+"(\w{64})"', (CODEC / "golden_blocks.inc").read_text())
TEXT, U32, F32 = 8, 4, 6


def random_bytes(seed, count):
    spec = importlib.util.spec_from_file_location("make_golden_blocks", CODEC / "make_golden_blocks.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.random_bytes(seed, count)


def gguf(entries, tensors):
    """Writes a GGUF file by its specification, from {key: (type, value)} and {name: (shape, type, bytes)}."""

    def text(value):
        return struct.pack("<Q", len(value.encode())) + value.encode()

    def entry(kind, value):
        return struct.pack("<I", kind) + (
            text(value) if kind == TEXT else struct.pack("<I" if kind == U32 else "<f", value)
        )

    header = struct.pack("<4sIQQ", b"GGUF", 3, len(tensors), len(entries)) + b"".join(
        text(key) + entry(*value) for key, value in entries.items()
    )
    data = b""
    for name, (shape, kind, blocks) in tensors.items():
        data += b"\0" * (-len(data) % 32)
        header += (
            text(name)
            + struct.pack("<I", len(shape))
            + struct.pack(f"<{len(shape)}Q", *reversed(shape))
            + struct.pack("<IQ", kind, len(data))
        )
        data += blocks
    return header + b"\0" * (-len(header) % 32) + data


def test_there_are_golden_types():
    assert len(GOLDEN) >= 24 and {"q4_0", "q8_0", "q4_k", "q6_k", "iq4_nl", "mxfp4"} <= {golden[0] for golden in GOLDEN}


@pytest.mark.parametrize("name, number, elements, size, digest", GOLDEN, ids=[golden[0] for golden in GOLDEN])
def test_numbers_are_ggmls(name, number, elements, size, digest):
    number, elements, size = int(number), int(elements), int(size)
    blocks = random_bytes(number, 256 * size)
    model = poise.open_bytes(gguf({}, {"a": ((16, 16 * elements), number, blocks)}), "a.gguf")
    tensor = model["a"]
    assert (tensor.shape, tensor.dtype, tensor.stored, tensor.layout) == (
        (16, 16 * elements),
        "f32",
        name,
        f"gguf.{name}/1",
    )
    assert tensor.nbytes == len(blocks) and bytes(tensor.part_bytes()) == blocks
    decoded = tensor.numpy()
    assert decoded.dtype == np.float32 and decoded.shape == tensor.shape
    bits = np.where(np.isnan(decoded), np.uint32(0x7FC00000), decoded.view(np.uint32))
    assert hashlib.sha256(bits.tobytes()).hexdigest() == digest
    np.testing.assert_array_equal(tensor[3:5, 7:-2].numpy(), decoded[3:5, 7:-2])


@pytest.mark.parametrize("extension", ["zt", "gguf"])
@pytest.mark.parametrize("kind", ["q8_0", "q4_0", "q5_1", "q4_k", "q6_k", "iq4_nl", "mxfp4"])
def test_converted_tensors_are_decoded(kind, extension, command, tmp_path):
    whole = np.random.default_rng(5).normal(size=(6, 512)).astype(np.float32)
    path = tmp_path / f"a.{extension}"
    poise.save({"a": whole}, path, quantize=kind)
    tensor = poise.open(path)["a"]
    assert (tensor.shape, tensor.dtype, tensor.stored) == ((6, 512), "f32", kind)
    subprocess.run(
        [command, "convert", path, "-o", tmp_path / "f32.safetensors", "--dtype", "f32"],
        check=True,
        capture_output=True,
    )
    data = (tmp_path / "f32.safetensors").read_bytes()[-whole.nbytes :]
    np.testing.assert_array_equal(tensor.numpy(), np.frombuffer(data, np.float32).reshape(6, 512))
    assert np.abs(tensor.numpy() - whole).max() < 0.5 and (tensor.numpy() != whole).any()
    assert tensor.numpy("f16").dtype == np.float16
    again = tmp_path / f"again.{extension}"
    poise.save(poise.Model({"a": tensor}), again)  # unchanged: not decoded and quantized again
    assert bytes(poise.open(again)["a"].part_bytes()) == bytes(tensor.part_bytes())


def test_metadata_of_gguf_are_config_and_attributes():
    entries = {
        "general.architecture": (TEXT, "llama"),
        "general.name": (TEXT, "Ada"),
        "general.author": (TEXT, "Charles"),
        "my.count": (U32, 7),
        "llama.context_length": (U32, 128),
        "llama.embedding_length": (U32, 64),
        "llama.block_count": (U32, 1),
        "llama.feed_forward_length": (U32, 96),
        "llama.attention.head_count": (U32, 4),
        "llama.attention.head_count_kv": (U32, 2),
        "llama.attention.layer_norm_rms_epsilon": (F32, 0.5),
        "llama.rope.freq_base": (F32, 500000.0),
    }
    model = poise.open_bytes(
        gguf(entries, {"output_norm.weight": ((64,), 0, np.arange(64, dtype="<f4").tobytes())}), "a.gguf"
    )
    assert model.format.startswith("gguf")
    assert model.card["model_type"] == "llama" and model.card["author"] == "Charles"
    expected = {
        "max_position_embeddings": 128,
        "hidden_size": 64,
        "num_hidden_layers": 1,
        "intermediate_size": 96,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "rms_norm_eps": 0.5,
        "rope_theta": 500000.0,
    }
    assert {key: model.config[key] for key in expected} == expected
    assert model.attributes["general.name"] == "Ada" and model.attributes["my.count"] == 7
    assert model["model.norm.weight"].tolist() == list(range(64))


def test_cut_blocks_raise():
    whole = gguf({}, {"a": ((2, 64), 8, bytes(2 * 2 * 34))})
    assert poise.open_bytes(whole, "a.gguf")["a"].tolist() == [[0.0] * 64] * 2
    for wrong in (whole[:-1], gguf({}, {"a": ((2, 63), 8, bytes(2 * 2 * 34))})):
        with pytest.raises(poise.InvalidFileError, match="a"):
            poise.open_bytes(wrong, "a.gguf")


@pytest.mark.parametrize("kind", ["q4_k", "Q8_0", "iq4_nl", "mxfp4", "qint8", "qint4:range", "group4", "group8:64"])
def test_numbers_become_codes_without_a_file(kind, tmp_path):
    """quantize() gives the codes of a conversion."""
    whole = np.random.default_rng(5).normal(size=(6, 512)).astype(np.float32)
    made = poise.quantize(whole, kind, name="a")
    assert (made.name, made.shape, made.dtype) == ("a", (6, 512), "f32") and made.stored.startswith(kind.lower())
    poise.save({"a": whole}, tmp_path / "a.zt", quantize=kind)
    tensor = poise.open(tmp_path / "a.zt")["a"]
    assert made.stored == tensor.stored and [part.role for part in made.parts] == [part.role for part in tensor.parts]
    for part in tensor.parts:
        assert bytes(made.part_bytes(part.role)) == bytes(tensor.part_bytes(part.role)), part.role
    np.testing.assert_array_equal(made.numpy(), tensor.numpy())
    np.testing.assert_array_equal(poise.dequantize(made), tensor.numpy())
    assert poise.dequantize(made, dtype="f16").dtype == np.float16
    poise.save({"a": made}, tmp_path / "b.zt")
    assert poise.diff(tmp_path / "a.zt", tmp_path / "b.zt").same


@pytest.mark.parametrize("name, number, elements, size, digest", GOLDEN[:4], ids=[golden[0] for golden in GOLDEN[:4]])
def test_blocks_in_a_buffer_become_numbers(name, number, elements, size, digest):
    blocks = random_bytes(int(number), 256 * int(size))
    decoded = poise.dequantize(blocks, name.upper(), (16, 16 * int(elements)))
    bits = np.where(np.isnan(decoded), np.uint32(0x7FC00000), decoded.view(np.uint32))
    assert hashlib.sha256(bits.tobytes()).hexdigest() == digest


def test_codes_of_other_arrays(nano):
    tensor = nano["lm_head.weight"]
    expected = poise.quantize(tensor.numpy("f32"), "q8_0").part_bytes()
    assert poise.quantize(tensor, "q8_0").part_bytes() == expected
    assert poise.quantize(tensor[3:5], "q8_0").part_bytes() == expected[3 * 4 * 34 : 5 * 4 * 34]
    assert poise.quantize(np.ones(32), "group4", group_size=16).stored == "group4:16"
    for wrong, raised, told in (
        (("q9",), poise.BadArgumentError, "q4_k"),
        (("q4_k_m",), poise.BadArgumentError, "q4_k"),
        (("f16",), poise.BadArgumentError, "qint8"),
        (("q4_k",), poise.UnsupportedError, "not whole blocks of 256"),
    ):
        with pytest.raises(raised, match=told):
            poise.quantize(np.ones((2, 32), np.float32), *wrong)
    with pytest.raises(poise.BadArgumentError, match="group_size"):
        poise.quantize(np.ones(32), "q8_0", group_size=16)
    with pytest.raises(poise.UnsupportedError, match="finite"):
        poise.quantize(np.full(32, np.inf), "q8_0")
    with pytest.raises(poise.UnsupportedError, match="i64"):
        poise.quantize(np.ones(32, int), "q8_0")
    for wrong in (
        lambda **o: poise.quantize(np.ones((2, 33), np.float32), "q4_k", **o),
        lambda **o: poise.quantize(np.full(32, np.inf), "q8_0", **o),
    ):
        for options, name in (({}, "the array: "), ({"name": "w"}, "tensor w: ")):
            with pytest.raises(poise.UnsupportedError) as error:
                wrong(**options)
            assert str(error.value).startswith(name) and "keep=" not in str(error.value) and error.value.remedies == []
    with pytest.raises(poise.Error) as error:
        poise.dequantize(b"x" * 33, "q8_0", (32,))
    assert "tensor :" not in str(error.value) and "keep=" not in str(error.value)
    for arguments in ((b"x",), (b"x", "q8_0"), (tensor, "q8_0")):
        with pytest.raises(TypeError):
            poise.dequantize(*arguments)
    with pytest.raises(poise.BadArgumentError, match="33 bytes are the wrong size for q8_0"):
        poise.dequantize(bytes(33), "q8_0", [32])
