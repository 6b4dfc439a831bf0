"""The names of safetensors 0.8: TensorSpec, serialize, serialize_file, deserialize, backend."""

import json
import struct

import numpy as np
import pytest

import poise
import poise.numpy


def spec(array, dtype=None, shape=None):
    return poise.TensorSpec(
        dtype=dtype or array.dtype.name,
        shape=array.shape if shape is None else shape,
        data_ptr=array.ctypes.data,
        data_len=array.nbytes,
    )


def parse(data):
    (length,) = struct.unpack_from("<Q", data)
    return json.loads(data[8 : 8 + length]), data[8 + length :]


def test_serialize_writes_types_widest_first():
    a, b = np.arange(6, dtype=np.float32).reshape(2, 3), np.array([7, 8], np.int64)
    data = poise.serialize({"a": spec(a), "b": spec(b)}, {"k": "v"})
    header, body = parse(data)
    assert header == {
        "__metadata__": {"k": "v"},
        "b": {"dtype": "I64", "shape": [2], "data_offsets": [0, 16]},
        "a": {"dtype": "F32", "shape": [2, 3], "data_offsets": [16, 40]},
    }
    assert body == b.tobytes() + a.tobytes()


def test_serialize_file_equals_serialize_and_replaces(tmp_path):
    a = np.arange(4, dtype=np.uint8)
    path = tmp_path / "m.safetensors"
    path.write_bytes(b"old")
    for write in (poise.serialize_file, poise.serialize_file_threadable):
        write({"a": spec(a)}, path)
        assert path.read_bytes() == poise.serialize({"a": spec(a)})


def test_four_bits_have_two_elements_a_byte():
    codes = np.array([[0x21, 0x43]], np.uint8)
    packed = spec(codes, "float4_e2m1fn_x2")
    assert (packed.dtype, packed.shape, packed.data_len) == ("F4", [1, 4], 2)
    header, body = parse(poise.serialize({"a": packed}))
    assert header["a"] == {"dtype": "F4", "shape": [1, 4], "data_offsets": [0, 2]} and body == b"\x21\x43"


@pytest.mark.parametrize(
    "name, code", [("bfloat16", "BF16"), ("float8_e4m3fnuz", "F8_E4M3FNUZ"), ("float8_e5m2fnuz", "F8_E5M2FNUZ")]
)
def test_spec_has_safetensors_name(name, code):
    one = np.zeros(4, np.uint8)
    made = spec(one, name, [2] if name == "bfloat16" else [4])
    assert made.dtype == code and made.data_ptr == one.ctypes.data and f"dtype='{code}'" in repr(made)
    assert parse(poise.serialize({"a": made}))[0]["a"]["dtype"] == code


def test_deserialize_lists_tensors():
    a = np.arange(6, dtype=np.float16).reshape(3, 2)
    empty = np.empty((0, 2), np.float32)
    found = dict(poise.deserialize(poise.serialize({"a": spec(a), "e": spec(empty)})))
    assert found["a"] == {"shape": [3, 2], "dtype": "F16", "data": bytearray(a.tobytes())}
    assert found["e"] == {"shape": [0, 2], "dtype": "F32", "data": bytearray()}


def test_specs_that_contradict_themselves():
    a = np.zeros(4, np.float32)
    with pytest.raises(poise.BadArgumentError, match="float33"):
        spec(a, "float33")
    with pytest.raises(poise.BadArgumentError, match="negative"):
        spec(a, shape=[-4])
    with pytest.raises(poise.BadArgumentError, match="data_ptr is 0"):
        poise.TensorSpec(dtype="float32", shape=[1], data_ptr=0, data_len=4)
    with pytest.raises(poise.BadArgumentError, match=r"data_len is 16, expected 20 bytes for f32 of the shape \[5\]"):
        spec(a, shape=[5])
    with pytest.raises(TypeError):
        spec(a, shape=[1.5])
    with pytest.raises(TypeError):
        poise.serialize({"a": spec(a)}, {"k": 1})


def test_backends_give_equal_tensors(tmp_path):
    a = np.arange(6, dtype=np.float32).reshape(2, 3)
    path = tmp_path / "m.safetensors"
    poise.serialize_file({"a": spec(a)}, path)
    for backend in ("mmap", "pread"):
        np.testing.assert_array_equal(poise.numpy.load_file(path, backend=backend)["a"], a)
        with poise.safe_open(path, framework="np", backend=backend) as file:
            np.testing.assert_array_equal(file.get_slice("a")[1:], a[1:])
            for method in (file.get_tensor, file.get_slice):
                with pytest.raises(KeyError, match="there is no tensor 'b'") as missing:
                    method("b")
                assert isinstance(missing.value, poise.SafetensorError)
    with poise.safe_open(path, framework="np", device=None) as file:
        assert file.keys() == ["a"]
    with pytest.raises(ValueError, match="expected one of mmap, pread"):
        poise.safe_open(path, framework="np", backend="io_uring")
