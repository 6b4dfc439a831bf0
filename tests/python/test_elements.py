"""Elements of tensors in numpy, torch, DLPack and buffers."""

import os
import subprocess
import sys
import types

import numpy as np
import pytest

import poise


def bf16(values):
    """Returns the upper 16 bits of float32 values, their bfloat16 codes.
    They are exact for numbers with few digits."""
    return (np.asarray(values, np.float32).view(np.uint32) >> 16).astype(np.uint16)


def test_mapped_arrays_are_views_of_the_file(arrays, saved):
    model = poise.open(saved)
    for name, expected in arrays.items():
        found = model[name].numpy()
        assert found.dtype == expected.dtype and found.shape == expected.shape
        np.testing.assert_array_equal(found, expected)
        assert not found.flags.writeable and not found.flags.owndata
        with pytest.raises(ValueError, match="read-only"):
            found[...] = 0
        with pytest.raises(ValueError):
            found.flags.writeable = True


def test_arrays_keep_the_mapping(arrays, saved):
    model = poise.open(saved)
    found = {name: model[name].numpy() for name in arrays}
    view = memoryview(model["f"])
    model.close()
    del model
    os.remove(saved)
    for name, expected in arrays.items():
        np.testing.assert_array_equal(found[name], expected)
    np.testing.assert_array_equal(np.asarray(view), arrays["f"])


def test_read_instead_of_mapped(arrays, saved):
    model = poise.open(saved, io="read")
    for name, expected in arrays.items():
        found = model[name].numpy()
        np.testing.assert_array_equal(found, expected)
        assert found.flags.writeable
    with pytest.raises(BufferError):
        memoryview(model["f"])
    with pytest.raises(ValueError, match="map"):
        poise.open(saved, io="write")


def test_compressed_parts_are_decoded(arrays, tmp_path):
    poise.save(arrays, tmp_path / "a.zt", compress="zstd")
    model = poise.open(tmp_path / "a.zt")
    for name, expected in arrays.items():
        np.testing.assert_array_equal(model[name].numpy(), expected)
        if expected.ndim == 3:
            np.testing.assert_array_equal(model[name][1:3, :, 0].numpy(), expected[1:3, :, 0])


SLICES = [
    np.s_[:],
    np.s_[2:5],
    np.s_[-3:],
    np.s_[3],
    np.s_[-1],
    np.s_[::2],
    np.s_[1:6:3],
    np.s_[5:2],
    np.s_[:, 1:4],
    np.s_[:, 2],
    np.s_[1:5, ::3],
    np.s_[::2, ::2, ::2],
    np.s_[..., 1],
    np.s_[2, ..., 1:],
    np.s_[2, 1, 3],
    np.s_[100:200],
    np.s_[:, :, 1:2],
    np.s_[1:2, 0:1],
    (),
]


@pytest.mark.parametrize("key", SLICES, ids=str)
@pytest.mark.parametrize(
    "kind", ["mapped", "read", "compressed", "bf16", "quantized", "sparse", "blocks", "blocks of 256"]
)
def test_slices_are_numpys(key, kind, tmp_path):
    whole = np.random.default_rng(3).integers(-8, 8, (7, 5, 256 if kind == "blocks of 256" else 64)).astype(np.float32)
    options = {
        "compressed": {"compress": "zstd"},
        "bf16": {"dtype": "bf16"},
        "quantized": {"quantize": "qint8"},
        "blocks": {"quantize": "q8_0"},
        "blocks of 256": {"quantize": "q4_k"},
        "sparse": {"sparse": "coo", "min_sparsity": 0},
    }
    path = tmp_path / "a.zt"
    poise.save({"a": whole}, path, **options.get(kind, {}))
    tensor = poise.open(path, io="read" if kind == "read" else "map")["a"]
    assert tensor.stored == options.get(kind, {}).get("quantize", tensor.stored)
    whole = tensor.numpy("f32")
    part = tensor[key]
    assert part.shape == whole[key].shape and part.size == whole[key].size
    np.testing.assert_array_equal(part.numpy("f32"), whole[key])
    np.testing.assert_array_equal(part.numpy("f64"), whole[key])
    if part.ndim:
        np.testing.assert_array_equal(part[:1].numpy("f32"), whole[key][:1])


def test_large_slices_are_numpys(tmp_path):
    whole = np.arange(3_000_000, dtype=np.float32).reshape(300, 10000) % 1000
    poise.save({"a": whole}, tmp_path / "a.safetensors", dtype="f16")
    tensor = poise.open(tmp_path / "a.safetensors")["a"]
    for key in (np.s_[:], np.s_[:, ::7], np.s_[::3, 17:9000], np.s_[:, 5], np.s_[10:290:9, ::1000]):
        np.testing.assert_array_equal(tensor[key].numpy("f32"), whole[key])
        np.testing.assert_array_equal(tensor[key].numpy(), whole[key])


def test_wrong_indices_raise(saved):
    tensor = poise.open(saved)["float32"]
    for wrong, raised in (
        ((0, 0, 0, 0), IndexError),
        (4, IndexError),
        (-5, IndexError),
        ((..., ...), IndexError),
        ("a", TypeError),
        (None, TypeError),
        (True, TypeError),
        ([0, 1], TypeError),
        (1.0, TypeError),
        (slice(None, None, -1), ValueError),
        (slice(None, None, 0), ValueError),
        (2**70, IndexError),
    ):
        with pytest.raises(raised):
            tensor[wrong]


def test_rows_are_read_alone(tmp_path):
    """Decoding ten rows of a tensor of 400 MB, which is a hole in its file, takes far less memory than the tensor."""
    with open(tmp_path / "a.safetensors", "wb") as file:
        header = b'{"a":{"dtype":"BF16","shape":[100000,2000],"data_offsets":[0,400000000]}}'
        file.write(len(header).to_bytes(8, "little") + header)
        file.truncate(8 + len(header) + 400_000_000)
    code = """if True:
        import resource, sys, poise
        tensor = poise.open(sys.argv[1])["a"]
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        assert tensor[50000:50010].numpy(dtype="f32").shape == (10, 2000)
        assert tensor[::1000, ::100].numpy(dtype="f32").shape == (100, 20)
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        assert grown < 30_000, grown
    """
    subprocess.run([sys.executable, "-c", code, tmp_path / "a.safetensors"], check=True)


def test_types_change_as_convert_changes_them(nano, tmp_path):
    tensor = nano["lm_head.weight"]
    bits = np.frombuffer(tensor.part_bytes(), np.uint16).reshape(tensor.shape)
    expected = (bits.astype(np.uint32) << 16).view(np.float32)
    np.testing.assert_array_equal(tensor.numpy(dtype="f32"), expected)
    np.testing.assert_array_equal(tensor.numpy(dtype=np.float32), expected)
    np.testing.assert_array_equal(tensor.numpy(dtype="float16"), expected.astype(np.float16))
    np.testing.assert_array_equal(tensor.numpy(dtype="f64"), expected)
    with pytest.raises(TypeError):
        tensor.numpy(dtype="i32")  # numbers would be cut
    with pytest.raises(TypeError):
        tensor.numpy(dtype="float9")
    large = poise.Model({"a": np.array([1e6], np.float32)})
    with pytest.raises(poise.UnsupportedError, match="a"):
        large["a"].numpy(dtype="f16")
    counts = poise.Model({"a": np.array([1, 2], np.int32)})["a"]
    assert counts.numpy("f32").dtype == np.float32 and counts.numpy("i64").tolist() == [1, 2]


def test_bf16_without_ml_dtypes_names_what_helps(nano, monkeypatch):
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    monkeypatch.setattr("poise._dtypes._numpy_dtypes", {})
    with pytest.raises(poise.UnsupportedError, match=r'\.numpy\(dtype="f32"\)'):
        nano["lm_head.weight"].numpy()
    with pytest.raises(poise.UnsupportedError, match=r'\.numpy\(dtype="f32"\)'):
        np.asarray(nano["lm_head.weight"])


def test_ml_dtypes_has_the_types_that_numpy_lacks(monkeypatch, tmp_path):
    """Uses a stand-in for ml_dtypes, whose types are integers of the same width, to check that its types get the file's
    bytes."""
    stand_in = types.ModuleType("ml_dtypes")
    stand_in.bfloat16, stand_in.float8_e4m3fn, stand_in.float4_e2m1fn = np.uint16, np.int8, np.uint8
    monkeypatch.setitem(sys.modules, "ml_dtypes", stand_in)
    monkeypatch.setattr("poise._dtypes._numpy_dtypes", {})
    header = b'{"b":{"dtype":"BF16","shape":[2],"data_offsets":[0,4]},'
    header += b'"e":{"dtype":"F8_E4M3","shape":[3],"data_offsets":[4,7]},'
    header += b'"h":{"dtype":"F4","shape":[2,4],"data_offsets":[7,11]}}'
    data = bytes.fromhex("803f 00c0 38 40 c0 1032 5476".replace(" ", ""))
    model = poise.open_bytes(len(header).to_bytes(8, "little") + header + data, "a.safetensors")
    assert model["b"].numpy().tolist() == [0x3F80, 0xC000] and model["b"].tolist() == [1, -2]
    assert model["e"].numpy().view(np.uint8).tolist() == [0x38, 0x40, 0xC0] and model["e"].tolist() == [1, 2, -2]
    assert model["h"].numpy().tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert model["h"][1, 1:3].numpy().tolist() == [5, 6]
    assert model["h"].tolist() == [[0, 0.5, 1, 1.5], [2, 3, 4, 6]]  # E2M1's values, OCP MX specification
    assert model["h"][:, 1].tolist() == [0.5, 3]


def test_quantized_tensors_are_decoded(tmp_path):
    whole = np.random.default_rng(4).normal(size=(8, 128)).astype(np.float32)
    for kind, worst in (("qint8", 0.02), ("qint4:range", 0.3), ("group8", 0.02), ("group4", 0.3)):
        poise.save({"a": whole}, tmp_path / "a.zt", quantize=kind, overwrite=True)
        tensor = poise.open(tmp_path / "a.zt")["a"]
        assert tensor.dtype == "f32" and tensor.layout != "dense"
        decoded = tensor.numpy()
        assert decoded.dtype == np.float32 and np.abs(decoded - whole).max() < worst
        np.testing.assert_array_equal(tensor[3:5].numpy(), decoded[3:5])
        assert tensor.numpy("f16").dtype == np.float16


def test_buffers(arrays, saved):
    model = poise.open(saved)
    for name, expected in arrays.items():
        view = memoryview(model[name])
        assert (
            view.readonly
            and view.shape == expected.shape
            and view.nbytes == expected.nbytes
            and view.itemsize == expected.itemsize
        )
        assert view.tobytes() == expected.tobytes()
        if expected.dtype != np.float16:
            assert view.tolist() == expected.tolist()
    assert bytes(memoryview(model["float32"][1:3, ::2])) == arrays["float32"][1:3, ::2].tobytes()
    assert np.asarray(model["f"]).base is not None


def test_scalars(saved):
    model = poise.open(saved)
    assert model["scalar"].item() == 2.5 and model["scalar"].numpy().shape == () and model["scalar"].tolist() == 2.5
    assert model["int32"][1, 2, 0].item() == model["int32"].numpy()[1, 2, 0]
    with pytest.raises(ValueError):
        model["int32"].item()
    with pytest.raises(TypeError):
        len(model["scalar"])
    with pytest.raises(TypeError):
        bool(model["int32"])
    assert len(model["int32"]) == 4 and [row.shape for row in model["int32"]] == [(3, 2)] * 4


def test_dlpack_goes_out_as_a_copy(arrays, saved):
    before = saved.read_bytes()
    model = poise.open(saved)
    for name, expected in arrays.items():
        if name == "bool":
            continue  # numpy 1.24 takes none
        assert model[name].__dlpack_device__() == (1, 0)
        np.testing.assert_array_equal(np.from_dlpack(model[name]), expected)
    np.testing.assert_array_equal(np.from_dlpack(model["float32"][1:3, :, 1]), arrays["float32"][1:3, :, 1])
    capsule = model["f"].__dlpack__()
    del capsule  # that nobody has used
    with pytest.raises(BufferError):
        model["f"].__dlpack__(dl_device=(2, 0))
    assert saved.read_bytes() == before


def test_nothing_is_imported_before_it_is_asked_for(saved):
    code = """if True:
        import sys, poise
        model = poise.open(sys.argv[1])
        model["f"].shape, list(model), memoryview(model["f"]).tolist(), bytes(model["f"].part_bytes())
        poise.save({"a": memoryview(b"abc")}, sys.argv[1] + ".zt")
        assert "numpy" not in sys.modules and "torch" not in sys.modules
        sys.modules["numpy"] = None
        try:
            model["f"].numpy()
        except ImportError:
            sys.exit(0)
        sys.exit("no ImportError")
    """
    subprocess.run([sys.executable, "-c", code, str(saved)], check=True)


EMPTY = [np.s_[1], np.s_[:, 1:], np.s_[-1], np.s_[1:], np.s_[..., 2], np.s_[2, 0:], np.s_[::2, :, 1:3], np.s_[1, :, 3]]


@pytest.mark.parametrize("key", EMPTY, ids=str)
@pytest.mark.parametrize("io", ["map", "read", "memory"])
def test_slices_of_no_elements_are_numpys(key, io, tmp_path):
    whole = np.zeros((3, 0, 4), np.float32)
    poise.save({"a": whole, "b": np.ones(5)}, tmp_path / "a.safetensors")
    model = poise.Model({"a": whole}) if io == "memory" else poise.open(tmp_path / "a.safetensors", io=io)
    part = model["a"][key]
    assert part.shape == part.numpy().shape == part.numpy("f16").shape == np.from_dlpack(part).shape == whole[key].shape
    assert part.tolist() == whole[key].tolist()
    turned = poise.Model({"a": whole.reshape(0, 3, 4)})["a"]
    assert turned[:, 1].numpy().shape == (0, 4) and turned[:, 1, 2:].numpy().shape == (0, 2) and turned.tolist() == []


def test_one_element_is_a_number():
    model = poise.Model(
        {
            "u8": np.array([53, 200], np.uint8),
            "f": np.array([[1.5]], np.float32),
            "i": np.array([3, 1]),
            "yes": np.array([True, False]),
            "c": np.array([1 + 2j], np.complex64),
            "none": np.zeros(0, np.float32),
        }
    )
    assert int(model["u8"][0]) == 53 and float(model["u8"][0]) == 53.0  # the number, not the text of a buffer
    assert (
        int(model["f"]) == 1
        and float(model["f"][0]) == 1.5
        and float(model["f"]) == 1.5
        and complex(model["c"][0]) == 1 + 2j
    )
    assert bool(model["yes"][0]) and not model["yes"][1] and model["f"] and model["c"].item() == 1 + 2j
    assert (
        [10, 20, 30, 40][model["i"][0]] == 40
        and list(range(model["i"][1])) == [0]
        and model["u8"][model["i"][1]].item() == 200
    )
    for wrong in (
        lambda: int(model["i"]),
        lambda: float(model["none"]),
        lambda: float(model["c"]),
        lambda: bool(model["i"]),
        lambda: bool(model["none"]),
        lambda: [1, 2][model["f"]],
        lambda: [1, 2][model["i"]],
        lambda: [1, 2][model["yes"][0]],
        lambda: 1.5 in model["f"],
        lambda: model["i"][np.True_],
        lambda: model["i"][np.bool_(False)],
    ):
        with pytest.raises(TypeError):
            wrong()


def test_numbers_without_numpy(arrays, tmp_path):
    """item() and tolist() give numpy's results without numpy."""
    del arrays["f"]  # some of whose last digits JSON may not keep
    arrays["c"] = np.array([[1 + 2j, 3 - 1j]], np.complex64)
    poise.save(arrays, tmp_path / "a.safetensors")
    poise.save({"q": np.ones((2, 64), np.float32)}, tmp_path / "q.zt", quantize="qint8")
    code = """if True:
        import sys, poise
        sys.modules["numpy"] = None
        model = poise.open(sys.argv[1])
        assert poise.open(sys.argv[2])["q"][1, 3].item() == 1.0
        print({name: tensor.tolist() for name, tensor in model.items()})
        print(model["scalar"].item(), model["int8"][1, 2, 0].item(), model["int32"]._repr_html_()[:3])
    """
    run = [sys.executable, "-c", code, tmp_path / "a.safetensors", tmp_path / "q.zt"]
    lines = subprocess.run(run, check=True, capture_output=True, text=True).stdout.splitlines()
    assert eval(lines[0]) == {name: array.tolist() for name, array in arrays.items()}
    assert lines[1] == f"2.5 {arrays['int8'][1, 2, 0]} <p>"


LOST = [
    ([1, 70000], "int64", "f16", "element 1 is 70000"),
    ([-70000], "int32", "f16", "element 0 is -70000"),
    ([[1, 2], [-129, 3]], "int64", "i8", "element 2 is -129"),
    ([127, 128], "uint8", "i8", "element 1 is 128"),
    ([2**63], "uint64", "i64", "element 0 is 9223372036854775808"),
    ([256], "uint16", "u8", "element 0 is 256"),
    ([65535], "uint16", "f16", "element 0 is 65535"),
    ([1.0, -1e300], "float64", "complex64", "element 1 is -1e"),
    ([1e300j], "complex128", "complex64", "element 0 is 1e"),
    ([1e300], "float64", "f32", "element 0"),
    ([1e6], "float32", "f16", "element 0"),
]


@pytest.mark.parametrize("numbers, kind, dtype, message", LOST, ids=str)
def test_numbers_that_do_not_fit_are_reported(numbers, kind, dtype, message):
    tensor = poise.Model({"name": np.array(numbers, kind)})["name"]
    with pytest.raises(poise.UnsupportedError, match=f"tensor name: {message}"):
        tensor.numpy(dtype)


def test_numbers_that_fit_are_cast():
    model = poise.Model(
        {
            "i": np.array([-128, 127, 0]),
            "u": np.array([0, 2**63 - 1], np.uint64),
            "f": np.array([1e300, np.inf, -np.nan, 1e38]),
            "yes": np.array([True, False]),
            "h": np.array([65504, 65519], np.int32),
        }
    )
    for dtype in ("i8", "i16", "f16", "f32", "f64", "complex64", "complex128"):
        assert model["i"].numpy(dtype).tolist() == [-128, 127, 0]
    assert model["u"].numpy("i64").tolist() == [0, 2**63 - 1] and model["u"].numpy("f32").tolist() == [0, 2.0**63]
    assert model["h"].numpy("f16").tolist() == [65504, 65504]
    assert model["yes"].numpy("i8").tolist() == [1, 0] and model["yes"].numpy("f32").tolist() == [1, 0]
    found = model["f"][1:].numpy("complex64")
    assert (
        np.isinf(found[0])
        and np.isnan(found[1])
        and found[2] == np.float32(1e38)
        and np.isinf(model["f"].numpy("complex128")[1])
    )
    for name, dtype in (("f", "i64"), ("i", "u8"), ("i", "bool"), ("f", "bool"), ("u", "bool")):
        with pytest.raises(TypeError, match="does not fit"):
            model[name].numpy(dtype)
    with pytest.raises(TypeError, match="does not fit"):
        poise.Model({"a": np.array([1 + 5j])})["a"].numpy("f64")


def test_casts_to_types_of_ml_dtypes_that_cannot_tell_are_checked(monkeypatch):
    """f4_e2m1 is the only type without infinity: its greatest number is 6."""
    monkeypatch.setitem(sys.modules, "ml_dtypes", types.SimpleNamespace(float4_e2m1fn=np.int8))
    monkeypatch.setattr("poise._dtypes._numpy_dtypes", {})
    assert poise.Model({"a": np.array([6, -6, 0], np.float32)})["a"].numpy("f4_e2m1").tolist() == [6, -6, 0]
    for wrong in (
        np.array([6, -7], np.float32),
        np.array([0, np.nan]),
        np.array([0, -128], np.int8),
        np.array([0, 7], np.uint8),
    ):
        with pytest.raises(poise.UnsupportedError, match="element 1 is"):
            poise.Model({"a": wrong})["a"].numpy("f4_e2m1")
