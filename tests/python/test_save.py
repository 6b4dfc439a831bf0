"""Saving: arrays of every kind, and whole models."""

import array
import collections.abc
import errno
import io
import json
import os
import pathlib
import pickle
import weakref

import numpy as np
import pytest

import poise
import poise.numpy


def test_the_file_is_what_the_format_says(tmp_path):
    poise.save({"a": np.array([[1, 2], [3, 4]], np.int32)}, tmp_path / "a.safetensors", metadata={"k": "v"})
    data = (tmp_path / "a.safetensors").read_bytes()
    size = int.from_bytes(data[:8], "little")
    assert json.loads(data[8 : 8 + size]) == {
        "__metadata__": {"k": "v"},
        "a": {"dtype": "I32", "shape": [2, 2], "data_offsets": [0, 16]},
    }
    assert data[8 + size :] == bytes.fromhex("01000000 02000000 03000000 04000000")


@pytest.mark.parametrize("extension", ["safetensors", "zt"])
def test_arrays_come_back(extension, arrays, tmp_path):
    report = poise.save(arrays, tmp_path / f"a.{extension}")
    assert report.tensors == len(arrays) and report.losses == []
    model = poise.open(tmp_path / f"a.{extension}")
    for name, expected in arrays.items():
        found = model[name].numpy()
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)


def test_arrays_in_any_order_of_bytes_and_elements(tmp_path):
    plain = np.arange(24, dtype=np.float32).reshape(4, 6)
    given = {
        "big": plain.astype(">f4"),
        "transposed": np.asfortranarray(plain),
        "strided": np.repeat(plain, 2, axis=1)[:, ::2],
        "backward": plain[::-1][::-1],
        "numpy scalar": np.float32(3),
        "buffer": memoryview(array.array("f", range(24))).cast("B").cast("f", (4, 6)),
    }
    poise.save(given, tmp_path / "a.safetensors")
    model = poise.open(tmp_path / "a.safetensors")
    for name in given:
        np.testing.assert_array_equal(
            model[name].numpy(), np.float32(3) if name == "numpy scalar" else plain, err_msg=name
        )


def test_buffers_are_saved(tmp_path):
    poise.save({"a": b"abc", "b": array.array("d", [1.5, 2]), "c": array.array("i", [-1])}, tmp_path / "a.safetensors")
    model = poise.open(tmp_path / "a.safetensors")
    found = {name: (tensor.dtype, tensor.tolist()) for name, tensor in model.items()}
    assert found == {"a": ("u8", [97, 98, 99]), "b": ("f64", [1.5, 2]), "c": ("i32", [-1])}


class Exporter:
    """Is an array of another library."""

    def __init__(self, whole):
        self._whole = whole

    def __dlpack__(self, **_):
        return self._whole.__dlpack__()

    def __dlpack_device__(self):
        return (1, 0)


def test_dlpack_comes_in(tmp_path):
    plain = np.arange(24, dtype=np.int16).reshape(4, 6)
    given = {
        "plain": plain,
        "transposed": plain.T,
        "part": plain[1:3, ::2],
        "empty": plain[:0],
        "scalar": np.array(7.0),
    }
    poise.save({name: Exporter(whole) for name, whole in given.items()}, tmp_path / "a.zt")
    for name, tensor in poise.open(tmp_path / "a.zt").items():
        np.testing.assert_array_equal(tensor.numpy(), given[name])
    capsule = plain.__dlpack__()
    poise._poise.from_dlpack(capsule)
    with pytest.raises(BufferError, match="used"):
        poise._poise.from_dlpack(capsule)


def test_what_is_no_plain_array_is_refused(tmp_path):
    class Own(np.ndarray):
        pass

    for wrong, told in (
        (np.ma.array([1.0], mask=[True]), "MaskedArray"),
        (np.array([1.0]).view(Own), "Own"),
        (np.array(["a"]), "type"),
        (np.array([object()]), "type"),
        (np.zeros(2, "datetime64[s]"), "type"),
        (np.zeros(2, [("x", "f4")]), "type"),
        ([1.0, 2.0], "list"),
        (None, "NoneType"),
        ("text", "str"),
    ):
        with pytest.raises(TypeError, match=told) as error:
            poise.save({"wrong": wrong}, tmp_path / "a.safetensors")
        assert "wrong" in str(error.value)
    for wrong in ({1: np.zeros(1)}, [np.zeros(1)], None):
        with pytest.raises(TypeError):
            poise.save(wrong, tmp_path / "a.safetensors")
    assert not list(tmp_path.iterdir())
    np.memmap(tmp_path / "raw", np.float32, "w+", shape=(2,))[:] = 4
    poise.save({"a": np.memmap(tmp_path / "raw", np.float32, "r")}, tmp_path / "a.safetensors")


def test_existing_files_are_kept_unless_told(arrays, saved):
    before = saved.read_bytes()
    with pytest.raises(poise.BadArgumentError, match="overwrite=True"):
        poise.save({"a": b"1"}, saved)
    assert saved.read_bytes() == before
    model = poise.open(saved)
    poise.save({"a": b"1"}, saved, overwrite=True)
    np.testing.assert_array_equal(model["f"].numpy(), arrays["f"])  # what is open stays
    assert list(poise.open(saved)) == ["a"]


def test_a_model_is_saved_whole(nano, tmp_path):
    poise.save(nano, tmp_path / "a.zt", metadata={"note": "mine"})
    found = poise.open(tmp_path / "a.zt")
    assert found.config == nano.config and len(found.vocabulary) == 960 and found.attributes["note"] == "mine"
    assert poise.hash(found).model == poise.hash(nano).model
    changed = poise.Model({**nano, "model.norm.weight": np.ones(128, np.float32)}, like=nano)
    poise.save(changed, tmp_path / "b.zt")
    report = poise.diff(nano, tmp_path / "b.zt")
    assert [tensor.name for tensor in report.tensors] == ["model.norm.weight"] and report.equal_tensors == 38


def test_options(nano, tmp_path):
    report = poise.save(
        nano,
        tmp_path / "a.zt",
        quantize="group4",
        keep={"lm_head.*": "f16"},
        skip="*.norm.weight",
        digest="sha256",
        card={"author": "me"},
    )
    assert report.format == "zt" and report.skipped == 1 and len(report.outputs) == 1
    found = poise.open(tmp_path / "a.zt")
    assert found["lm_head.weight"].stored == "f16" and found.card["author"] == "me"
    assert found["lm_head.weight"].parts[0].digest.startswith("sha256:")
    plan = poise.plan(nano, tmp_path / "b.zt", quantize="group4")
    assert {tensor.name: tensor.target for tensor in plan.tensors}[
        "lm_head.weight"
    ] == "group4:128" and plan.losses == []
    poise.save(nano, tmp_path / "b.zt", compress="zstd:9", dtype=np.float16, only=["lm_head.*"])
    assert [part.encoding for part in poise.open(tmp_path / "b.zt")["lm_head.weight"].parts] != ["raw"]
    for wrong, raised in (
        ({"colour": 1}, TypeError),
        ({"compress": "lz4"}, ValueError),
        ({"quantize": "q9"}, ValueError),
        ({"digest": "md5"}, ValueError),
        ({"card": {"colour": "red"}}, ValueError),
        ({"skip": 3}, TypeError),
        ({"only": "nothing*"}, ValueError),
        ({"format": "x"}, ValueError),
        ({"sparse": "dense"}, ValueError),
        ({"align": -1}, ValueError),
    ):
        with pytest.raises(raised):
            poise.save(nano, tmp_path / "c.zt", **wrong)
    with pytest.raises(poise.Error, match="format="):
        poise.save(nano, tmp_path / "c.unknown")
    assert not (tmp_path / "c.zt").exists()


def test_the_names_of_safetensors_for_numpy(arrays, tmp_path):
    for name in ("a.safetensors", "a.zt", "a", "a.bin"):
        poise.numpy.save_file(arrays, tmp_path / name, metadata={"k": "v"})
        poise.numpy.save_file(arrays, str(tmp_path / name), metadata={"k": "v"})
        loaded = poise.numpy.load_file(tmp_path / name)
        assert loaded.keys() == arrays.keys()
        for key, expected in arrays.items():
            np.testing.assert_array_equal(loaded[key], expected)
            assert loaded[key].dtype == expected.dtype and not loaded[key].flags.writeable
        with poise.safe_open(tmp_path / name, framework="numpy") as file:
            assert file.keys() == sorted(arrays) and set(file.offset_keys()) == set(arrays)
            assert file.metadata() == {"k": "v"}
            np.testing.assert_array_equal(file.get_tensor("f"), arrays["f"])
            part = file.get_slice("f")
            assert part.get_shape() == [7, 5] and part.get_dtype() == "F64"
            np.testing.assert_array_equal(part[1:3, ::2], arrays["f"][1:3, ::2])
            assert file.get_tensors().keys() == arrays.keys()
        with pytest.raises(ValueError):
            file.keys()
    data = poise.numpy.save(arrays, metadata={"k": "v"})
    assert isinstance(data, bytes)
    np.testing.assert_array_equal(poise.numpy.load(data)["f"], arrays["f"])
    poise.numpy.save_file({}, tmp_path / "none.safetensors")
    with poise.safe_open(tmp_path / "none.safetensors", "np") as file:
        assert file.metadata() is None and file.keys() == []
    with pytest.raises(ValueError, match="framework"):
        poise.safe_open(tmp_path / "a", framework="fortran")
    with pytest.raises(FileNotFoundError):
        poise.safe_open(pathlib.Path("nowhere"), framework="np")


def test_arrays_of_load_file_stand_alone(arrays, tmp_path):
    poise.numpy.save_file(arrays, tmp_path / "a.zt")
    loaded = poise.numpy.load_file(tmp_path / "a.zt")
    (tmp_path / "a.zt").unlink()
    for key, expected in arrays.items():
        np.testing.assert_array_equal(loaded[key], expected)


@pytest.mark.parametrize("kind", ["c8", "c16", "f2", "f8", "i2", "u4"])
def test_big_endian_buffers_are_turned(kind):
    plain = np.array([[1, 2], [3, 4]], kind) * (1 + 2j if kind[0] == "c" else 1)
    found = poise.Model({"a": memoryview(plain.astype(f">{kind}"))})["a"]
    np.testing.assert_array_equal(found.numpy(), plain)
    np.testing.assert_array_equal(poise.Model({"a": plain.astype(f">{kind}")})["a"].numpy(), plain)


def test_slices_of_half_bytes_are_saved(tmp_path):
    header = b'{"h":{"dtype":"F4","shape":[3,4],"data_offsets":[0,6]}}'
    model = poise.open_bytes(
        len(header).to_bytes(8, "little") + header + bytes.fromhex("103254761032"), "a.safetensors"
    )
    for key in (np.s_[1:], np.s_[:, 1:3], np.s_[0], np.s_[::2, 1:3], np.s_[2:2]):
        poise.save({"x": model["h"][key]}, tmp_path / "a.safetensors", overwrite=True)
        found = poise.open(tmp_path / "a.safetensors")["x"]
        assert (
            found.dtype == "f4_e2m1"
            and found.shape == model["h"][key].shape
            and found.tolist() == model["h"][key].tolist()
        )
    assert poise.Model({"x": model["h"][0, 1:]})["x"].tolist() == [0.5, 1, 1.5]  # an odd number of them


def test_names_of_types_are_numpys_too(nano, tmp_path):
    poise.save(nano, tmp_path / "a.zt", dtype="float32", keep={"lm_head.*": "float16", "*.norm.weight": np.float16})
    found = poise.open(tmp_path / "a.zt")
    assert {found[name].dtype for name in ("lm_head.weight", "model.norm.weight")} == {"f16"} and found[
        "model.embed_tokens.weight"
    ].dtype == "f32"
    with pytest.raises(poise.BadArgumentError, match="float9"):
        poise.save(nano, tmp_path / "b.zt", dtype="float9")


def test_save_of_safetensors_is_ordered_as_theirs():
    """Tensors are ordered by type, the widest first, then by name: safetensors 0.4 writes the same bytes."""
    integers, halves = np.zeros((2, 2), np.int32), np.zeros((2, 2), np.float16)
    header = b'{"test1":{"dtype":"I32","shape":[2,2],"data_offsets":[0,16]},'
    header += b'"test2":{"dtype":"F16","shape":[2,2],"data_offsets":[16,24]}}      '
    assert poise.numpy.save({"test2": halves, "test1": integers}) == len(header).to_bytes(8, "little") + header + bytes(
        24
    )
    kinds = "u8 i8 f8 f4 u4 i4 f2 u2 i2 i1 u1 ?".split()
    arrays = {f"{name}{kind}": np.ones(3, kind) for name in "ba" for kind in kinds}
    expected = [f"{name}{kind}" for kind in kinds for name in "ab"]
    shuffled = {name: arrays[name] for name in sorted(arrays, reverse=True)}
    assert poise.numpy.save(arrays) == poise.numpy.save(shuffled)
    assert list(poise.open_bytes(poise.numpy.save(arrays), "a.safetensors")) == expected
    assert poise.numpy.save(arrays, format="zt") == poise.numpy.save(shuffled, format="zt")


def test_metadata_of_safetensors_are_text(tmp_path):
    arrays = {"a": np.zeros(2)}
    path = tmp_path / "a.safetensors"
    for wrong in ({"a": 1}, {"a": None}, {1: "a"}, {"a": True}, {"a": ["b"]}, {"a": b"b"}):
        for call in (
            lambda: poise.numpy.save(arrays, wrong),
            lambda: poise.numpy.save_file(arrays, path, wrong),
            lambda: poise.save(arrays, path, metadata=wrong),
            lambda: poise.save(arrays, tmp_path / "b", metadata=wrong, format="safetensors"),
        ):
            with pytest.raises(TypeError, match="metadata"):
                call()
    for wrong in ({1: np.zeros(2)}, [np.zeros(2)], None):
        with pytest.raises(TypeError, match="1|dict"):
            poise.numpy.save(wrong)
    assert not list(tmp_path.iterdir())
    poise.save(arrays, tmp_path / "a.zt", metadata={"a": 1})  # which holds numbers, too
    assert poise.open(tmp_path / "a.zt").attributes == {"a": 1}


def test_slices_of_safe_open_outlive_it(arrays, saved):
    with poise.safe_open(saved, framework="np") as file:
        part = file.get_slice("f")
        assert part[[]].shape == (0, 5)
        for wrong in ([0, 1], None, "a"):
            with pytest.raises(TypeError):
                part[wrong]
    for use in (file.keys, file.metadata, lambda: file.get_tensor("f"), lambda: file.get_slice("f")):
        with pytest.raises(poise.BadArgumentError, match="closed"):
            use()
    saved.unlink()
    np.testing.assert_array_equal(part[2:4, ::2], arrays["f"][2:4, ::2])
    assert part.get_shape() == [7, 5] and part.get_dtype() == "F64"


def test_a_raw_file_may_take_a_part_of_what_it_is_given(tmp_path):
    class Reluctant(io.RawIOBase):
        def __init__(self):
            self.taken = bytearray()

        def writable(self):
            return True

        def write(self, piece):
            part = bytes(piece[:4096])
            self.taken += part
            return len(part)

    class Full(Reluctant):
        def write(self, piece):
            return None

    arrays = {"a": np.arange(5000, dtype=np.float32)}
    file = Reluctant()
    poise.save(arrays, file, format="safetensors")
    assert np.array_equal(poise.open_bytes(bytes(file.taken))["a"].numpy(), arrays["a"])
    with pytest.raises(BlockingIOError):
        poise.save(arrays, Full(), format="safetensors")

    class Lying(Reluctant):
        def write(self, piece):
            return -1

    with pytest.raises(poise.BadArgumentError, match="returned -1"):
        poise.save(arrays, Lying(), format="safetensors")


def test_diff_tells_what_is_equal_as_numbers_alone():
    report = poise.diff({"a": np.float32([0.0])}, {"a": np.float32([-0.0])})
    assert report.same and report.equal_tensors == 1 and report.equal_as_numbers == 1
    assert "1 as numbers alone" in repr(report)


class Lazy(collections.abc.Mapping):
    """Is a mapping that makes arrays on each access, and counts those that exist."""

    def __init__(self, count, size):
        self.count, self.size, self.alive, self.most = count, size, 0, 0

    def __iter__(self):
        return (f"t{i:02}" for i in range(self.count))

    def __len__(self):
        return self.count

    def __getitem__(self, name):
        array = np.full(self.size, int(name[1:]), np.float32)
        self.alive += 1
        self.most = max(self.most, self.alive)
        weakref.finalize(array, self.release)
        return array

    def release(self):
        self.alive -= 1


@pytest.mark.parametrize("options", [{}, {"dtype": "f16"}, {"quantize": "q8_0"}])
def test_a_mapping_that_loads_is_saved_tensor_by_tensor(tmp_path, options):
    lazy = Lazy(40, (64, 256))
    poise.save(lazy, tmp_path / "a.zt", **options)
    assert lazy.most <= 2 + 2 * os.cpu_count() and lazy.most < 20
    model = poise.open(tmp_path / "a.zt")
    assert all(np.allclose(model[name].numpy(dtype="f32"), int(name[1:]), rtol=0.01, atol=0) for name in lazy)
    poise.numpy.save_file(lazy, tmp_path / "a.safetensors")
    assert (poise.open(tmp_path / "a.safetensors")["t07"].numpy() == 7).all() and lazy.most < 20


def test_a_mapping_that_changes_its_mind_is_refused(tmp_path):
    class Changing(Lazy):
        asked = 0

        def __getitem__(self, name):
            self.asked += 1
            return np.zeros(3 + self.asked // 3, np.float32)

    with pytest.raises(ValueError, match="another array than before"):
        poise.save(Changing(2, 3), tmp_path / "a.zt")

    class Failing(Lazy):
        asked = 0

        def __getitem__(self, name):
            self.asked += 1
            if self.asked > 2:
                raise KeyError("gone")
            return np.zeros(3, np.float32)

    with pytest.raises(KeyError, match="gone"):
        poise.save(Failing(2, 3), tmp_path / "a.zt")
    assert list(tmp_path.iterdir()) == []


def test_an_output_that_exists_is_a_file_exists_error(tmp_path):
    poise.save({"a": np.zeros(1)}, tmp_path / "a.zt")
    for again in (
        lambda: poise.save({"a": np.zeros(1)}, tmp_path / "a.zt"),
        lambda: poise.convert(tmp_path / "a.zt", tmp_path / "a.zt"),
    ):
        with pytest.raises(poise.BadArgumentError):
            again()
    with pytest.raises(FileExistsError) as raised:
        poise.save({"a": np.zeros(1)}, tmp_path / "a.zt")
    assert raised.value.errno == errno.EEXIST and "overwrite=True" in str(raised.value)
    assert isinstance(pickle.loads(pickle.dumps(raised.value)), poise.OutputExistsError)
    with pytest.raises(poise.SafetensorError):
        poise.save({"a": np.zeros(1)}, tmp_path / "a.zt")


def test_numpy_files_load_as_one_type(tmp_path):
    arrays = {"a": np.arange(6, dtype=np.float16).reshape(2, 3), "b": np.arange(3), "c": np.ones(2, np.float64)}
    poise.numpy.save_file(arrays, tmp_path / "a.safetensors")
    loaded = poise.numpy.load_file(tmp_path / "a.safetensors", dtype="f32")
    assert {name: array.dtype for name, array in loaded.items()} == {"a": np.float32, "b": np.int64, "c": np.float32}
    assert (loaded["a"] == arrays["a"]).all() and (loaded["b"] == arrays["b"]).all()
    data = (tmp_path / "a.safetensors").read_bytes()
    assert poise.numpy.load(data, dtype=np.float32)["a"].dtype == np.float32
    assert poise.numpy.load_file(tmp_path / "a.safetensors")["a"].dtype == np.float16
    with pytest.raises(poise.BadArgumentError, match="dtype"):
        poise.numpy.load_file(tmp_path / "a.safetensors", dtype="i8")


def test_a_report_of_a_faulty_file_is_false(tmp_path):
    poise.save({"a": np.ones(64, np.float32)}, tmp_path / "a.zt")
    good = poise.verify(tmp_path / "a.zt")
    assert good and good.ok
    data = bytearray((tmp_path / "a.zt").read_bytes())
    where = data.find(np.ones(64, np.float32).tobytes())
    data[where] ^= 1
    (tmp_path / "a.zt").write_bytes(data)
    bad = poise.verify(tmp_path / "a.zt")
    assert not bad and not bad.ok and bad.errors
    np.savez(tmp_path / "a.npz", a=np.ones(3), b=np.ones(2))
    report = poise.verify(tmp_path / "a.npz")
    assert report.checksums == 2 and "2 checksums" in repr(report) and "no digests" not in repr(report)


def test_attributes_that_readers_would_reject_are_refused(tmp_path):
    for metadata in ({"poise.vocabulary": "[]"}, {"poise.card": "x"}, {"poise.config": "{"}):
        for name in ("a.safetensors", "a.zt", "a.gguf"):
            with pytest.raises(poise.UnsupportedError, match=next(iter(metadata))):
                poise.save({"a": np.ones(3, np.float32)}, tmp_path / name, metadata=metadata)
            assert not (tmp_path / name).exists()
