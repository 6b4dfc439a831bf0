"""Tensors of torch, private and in every type that torch has, and the functions of safetensors.torch."""

import copy
import io
import re

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import poise  # noqa: E402
import poise.torch  # noqa: E402


def test_every_type_that_torch_has(arrays, saved):
    model = poise.open(saved)
    for name, expected in arrays.items():
        if expected.dtype in (np.uint16, np.uint32, np.uint64) and not hasattr(torch, str(expected.dtype)):
            with pytest.raises(poise.UnsupportedError, match="numpy"):
                model[name].torch()
            continue
        found = model[name].torch()
        assert tuple(found.shape) == expected.shape
        np.testing.assert_array_equal(found.numpy(), expected)


def test_bf16(nano):
    tensor = nano["lm_head.weight"]
    found = tensor.torch()
    assert found.dtype == torch.bfloat16
    np.testing.assert_array_equal(found.float().numpy(), tensor.numpy("f32"))
    assert torch.equal(tensor[3:7, ::2].torch(), found[3:7, ::2])
    assert torch.equal(tensor.torch(dtype=torch.float32), found.float())
    assert torch.equal(tensor.torch(dtype="f16"), found.half())
    assert torch.equal(tensor.torch(dtype="f64"), found.double())
    assert torch.equal(torch.from_dlpack(tensor), found)


@pytest.mark.skipif(hasattr(torch, "float8_e4m3fn"), reason="this torch knows float8")
def test_a_type_that_torch_lacks_names_what_helps():
    header = b'{"e":{"dtype":"F8_E4M3","shape":[3],"data_offsets":[0,3]}}'
    model = poise.open_bytes(len(header).to_bytes(8, "little") + header + bytes.fromhex("3840c0"), "a.safetensors")
    with pytest.raises(poise.UnsupportedError, match='dtype="f32"'):
        model["e"].torch()
    assert model["e"].torch(dtype="f32").tolist() == [1, 2, -2]


@pytest.mark.parametrize("rows", [3, 100_000])  # copied, and mapped
def test_writing_leaves_the_file_as_it_is(rows, tmp_path):
    path = tmp_path / "a.safetensors"
    numbers = np.arange(4 * rows, dtype=np.float32).reshape(rows, 4)
    poise.save({"a": numbers}, path)
    before = path.read_bytes()
    model = poise.open(path)
    one, another, part = model["a"].torch(), model["a"].torch(), model["a"][1:, ::2].torch()
    one += 1
    part.zero_()
    assert torch.equal(another, torch.from_numpy(numbers))
    np.testing.assert_array_equal(one.numpy(), numbers + 1)
    np.testing.assert_array_equal(model["a"].numpy(), numbers)
    loaded = poise.torch.load_file(path)["a"]
    loaded.zero_()
    model.close()
    del model
    assert float(one.sum()) > 0 and float(loaded.sum()) == 0
    assert path.read_bytes() == before


def test_load_file_and_save_file(tmp_path):
    tensors = {
        "a": torch.zeros((2, 2)),
        "b": torch.arange(6, dtype=torch.uint8).reshape(2, 3),
        "c": torch.ones(5, dtype=torch.bfloat16),
        "d": torch.tensor(3.5),
        "e": torch.zeros(0, 4),
        "z": torch.ones(3, dtype=torch.complex64) * 1j,
        "x": torch.tensor([True, False]),
    }
    for name in ("out.safetensors", "out.zt", "out"):
        poise.torch.save_file(tensors, tmp_path / name, metadata={"k": "v"})
        poise.torch.save_file(tensors, tmp_path / name, metadata={"k": "v"})  # replaces
        loaded = poise.torch.load_file(tmp_path / name)
        assert loaded.keys() == tensors.keys()
        for key, tensor in tensors.items():
            assert loaded[key].dtype == tensor.dtype and torch.equal(loaded[key], tensor), key
        with poise.safe_open(tmp_path / name, framework="pt") as file:
            assert file.metadata() == {"k": "v"}
            assert torch.equal(file.get_tensor("b"), tensors["b"])
            assert torch.equal(file.get_slice("b")[:, 1:], tensors["b"][:, 1:])
    assert poise.open(tmp_path / "out").format == "safetensors"
    data = poise.torch.save(tensors)
    assert torch.equal(poise.torch.load(data)["c"], tensors["c"])


def test_misaligned_tensors_load(tmp_path):
    header = (
        b'{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"F32","shape":[2],"data_offsets":[1,9]}}'
    )
    data = len(header).to_bytes(8, "little") + header + b"\1" + np.array([1.5, -2], np.float32).tobytes()
    (tmp_path / "a.safetensors").write_bytes(data)
    assert poise.torch.load_file(tmp_path / "a.safetensors")["b"].tolist() == [1.5, -2]
    assert poise.open(tmp_path / "a.safetensors")["b"].torch().tolist() == [1.5, -2]
    assert poise.open(tmp_path / "a.safetensors")["b"].numpy().tolist() == [1.5, -2]


def test_what_save_file_refuses(tmp_path):
    shared = torch.zeros(4)
    path = tmp_path / "a.safetensors"
    for tensors, raised, message in (
        ({"a": shared, "b": shared[:2]}, RuntimeError, "share memory"),
        ({"a": torch.zeros(3, 4).t()}, ValueError, "contiguous"),
        ({"a": torch.eye(3).to_sparse()}, ValueError, "to_dense"),
        ([torch.zeros(2)], ValueError, "dict"),
        ({"a": np.zeros(2)}, ValueError, "torch.Tensor"),
    ):
        with pytest.raises(raised, match=message):
            poise.torch.save_file(tensors, path)
    assert not path.exists()
    halves = {"a": shared[:2], "b": shared[2:]}  # of one storage, and apart
    poise.torch.save_file(halves, path)


class Tied(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a = torch.nn.Linear(10, 10)
        self.b = self.a


class Apart(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a = torch.nn.Linear(10, 10)
        self.b = torch.nn.Linear(10, 10)


def test_models_with_shared_tensors(tmp_path):
    model, other = Tied(), Tied()
    path = tmp_path / "tied.safetensors"
    with pytest.raises(RuntimeError):
        poise.torch.save_file(model.state_dict(), path)
    poise.torch.save_model(model, path)
    with poise.safe_open(path, framework="pt") as file:
        assert file.metadata() == {"b.bias": "a.bias", "b.weight": "a.weight"}
        assert file.keys() == ["a.bias", "a.weight"]
    assert poise.torch.load_model(other, path) == ([], [])
    for name, tensor in model.state_dict().items():
        assert torch.equal(other.state_dict()[name], tensor)
    with pytest.raises(RuntimeError, match=r'Missing key\(s\) in state_dict: "b.bias", "b.weight"'):
        poise.torch.load_model(Apart(), path)
    poise.torch.save_model(Apart(), path)
    with pytest.raises(RuntimeError, match=r'Unexpected key\(s\) in state_dict: "b.bias", "b.weight"'):
        poise.torch.load_model(other, path)
    assert poise.torch.load_model(other, path, strict=False)[1] == ["b.bias", "b.weight"]
    renamed = {name: tensor for name, tensor in model.state_dict().items() if name.startswith("b.")}
    poise.torch.save_file(renamed, path)
    poise.torch.load_model(other, path)


def test_models_that_are_not_contiguous(tmp_path):
    model = torch.nn.Linear(4, 4)
    model.weight = torch.nn.Parameter(torch.arange(16.0).reshape(4, 4).t())
    with pytest.raises(ValueError, match="force_contiguous=True"):
        poise.torch.save_model(model, tmp_path / "a.safetensors", force_contiguous=False)
    poise.torch.save_model(model, tmp_path / "a.safetensors")
    other = torch.nn.Linear(4, 4)
    poise.torch.load_model(other, tmp_path / "a.safetensors")
    assert torch.equal(other.weight, model.weight)


def test_part_of_a_storage_that_is_shared_is_refused(tmp_path):
    whole = torch.zeros(10)
    with pytest.raises(RuntimeError, match="clone"):
        model = torch.nn.Module()
        model.a, model.b = torch.nn.Parameter(whole[:6]), torch.nn.Parameter(whole[2:8])
        poise.torch.save_model(model, tmp_path / "a.safetensors")


def test_load_file_loads_what_tensors_load(nano, examples):
    for name, tensor in poise.torch.load_file(examples / "nano-mistral/model.safetensors").items():
        assert torch.equal(tensor, nano[name].torch())


def test_tensors_of_load_file_have_storages_of_their_own(tmp_path):
    path = tmp_path / "a.safetensors"
    numbers = {
        "large": torch.arange(250_000.0),
        "small": torch.arange(6.0).reshape(2, 3),
        "half": torch.ones(4, dtype=torch.bfloat16),
    }
    poise.torch.save_file(numbers, path)
    loaded = poise.torch.load_file(path)
    for name, tensor in loaded.items():
        assert tensor.storage_offset() == 0 and tensor.storage().nbytes() == tensor.numel() * tensor.element_size()
        assert torch.equal(tensor, numbers[name])
    file = io.BytesIO()
    torch.save(loaded["small"], file)
    assert len(file.getvalue()) < 10_000 and copy.deepcopy(loaded["small"]).storage().nbytes() == 24
    with open("/proc/self/smaps") as maps:  # the file's pages, which nobody wrote
        text = maps.read().split(str(path))[1]
    assert int(re.search(r"Private_Dirty: +(\d+)", text).group(1)) == 0
    tied = Tied()
    tied.a.weight = torch.nn.Parameter(poise.torch.load_file(path)["large"][:100].reshape(10, 10).clone())
    poise.torch.save_file({"weight": torch.arange(100.0).reshape(10, 10), "bias": torch.arange(10.0)}, path)
    loaded = poise.torch.load_file(path)
    tied.a.weight, tied.a.bias = torch.nn.Parameter(loaded["weight"]), torch.nn.Parameter(loaded["bias"])
    poise.torch.save_model(tied, tmp_path / "tied.safetensors")
    other = Tied()
    assert poise.torch.load_model(other, tmp_path / "tied.safetensors") == ([], [])
    assert torch.equal(other.b.weight, loaded["weight"])
    missing, unexpected = poise.torch.load_model(tied, tmp_path / "tied.safetensors")
    assert (missing, unexpected) == ([], [])


def test_bytes_that_a_file_has_once_are_loaded_apart(tmp_path):
    same = torch.arange(50_000.0)
    poise.torch.save_file({"a": same, "b": same.clone()}, tmp_path / "a.zt")
    parts = [tensor.parts[0].offset for tensor in poise.open(tmp_path / "a.zt").tensors]
    assert parts[0] == parts[1]
    loaded = poise.torch.load_file(tmp_path / "a.zt")
    loaded["a"].zero_()
    assert torch.equal(loaded["b"], same)
    poise.torch.save_file(loaded, tmp_path / "b.safetensors")


@pytest.mark.parametrize(
    "numbers, dtype, message",
    [
        (np.array([1, 70000]), "f16", "element 1 is 70000"),
        (np.array([[1, 2], [3, -129]]), "i8", "element 3 is -129"),
        (np.array([200], np.uint8), torch.int8, "element 0 is 200"),
        (np.array([1e300]), "complex64", "element 0 is 1e"),
        (np.array([1e300j]), torch.complex64, "element 0 is 1e"),
        (np.array([70000], np.uint32), "i16", "element 0 is 70000"),
    ],
)
def test_numbers_that_do_not_fit_are_reported(numbers, dtype, message):
    tensor = poise.Model({"name": numbers})["name"]
    with pytest.raises(poise.UnsupportedError, match=f"tensor name: {message}"):
        tensor.torch(dtype)


def test_numbers_that_fit_are_cast():
    model = poise.Model(
        {
            "i": np.array([-128, 127]),
            "f": np.array([1.5, np.inf], np.float32),
            "u": np.array([7], np.uint32),
            "c": np.array([1 + 5j]),
        }
    )
    for dtype in ("i8", "f16", "bf16", "f64", "complex64"):
        assert model["i"].torch(dtype).tolist() == [-128, 127]
    assert model["f"].torch("complex128").tolist() == [1.5, complex(np.inf, 0)] and model["u"].torch(
        "i64"
    ).tolist() == [7]
    for name, dtype in (("f", "i8"), ("f", torch.int64), ("c", "f32"), ("i", "u8"), ("i", "bool")):
        with pytest.raises(TypeError, match="does not fit"):
            model[name].torch(dtype)


def test_empty_slices_and_single_elements():
    model = poise.Model({"e": np.zeros((3, 0, 4), np.float32), "i": np.array([5, 6])})
    assert tuple(model["e"][1].torch().shape) == (0, 4)
    assert (
        model["i"][1].torch().item() == 6
        and torch.from_dlpack(model["i"][1]).item() == 6
        and torch.arange(7)[int(model["i"][1])] == 6
    )


def test_metadata_are_text(tmp_path):
    for call in (
        lambda: poise.torch.save({"a": torch.zeros(1)}, {"a": 1}),
        lambda: poise.torch.save_file({"a": torch.zeros(1)}, tmp_path / "a.zt", {"a": 1}),
        lambda: poise.torch.save_model(Apart(), tmp_path / "a.safetensors", {"a": 1}),
    ):
        with pytest.raises(TypeError, match="metadata"):
            call()
    one, other = torch.zeros(2), torch.ones(2, dtype=torch.float64)
    assert poise.torch.save({"a": one, "b": other}) == poise.torch.save({"b": other, "a": one})


def test_views_of_one_element_are_saved(tmp_path):
    whole = torch.arange(10.0)
    given = {
        "a": whole[::20],
        "b": whole[3:4],
        "c": torch.arange(6, dtype=torch.bfloat16).reshape(2, 3)[1:, 2:],
        "d": whole[7],
    }
    poise.save(given, tmp_path / "a.zt")
    for name, tensor in poise.open(tmp_path / "a.zt").items():
        assert torch.equal(tensor.torch(), given[name]), name
    poise.torch.save_file({"a": whole[::20].clone()}, tmp_path / "a.safetensors")


def test_torch_takes_tensors_as_it_takes_arrays(arrays, nano, tmp_path):
    model = poise.Model({**arrays, "bf16": nano["lm_head.weight"][:30]})
    for name, tensor in model.items():
        # which this torch lacks, or takes no items of
        if tensor.dtype in ("u16", "u32", "u64", "bool") or not tensor.size or not tensor.shape:
            continue
        for make in (torch.as_tensor, torch.tensor):
            found = make(tensor)
            assert found.dtype == tensor.torch().dtype and torch.equal(found, tensor.torch()), name
            assert torch.equal(make(tensor[:4]), tensor[:4].torch())
            assert torch.equal(
                make(tensor[1:, ..., 1:] if tensor.ndim > 1 else tensor[1::2]),
                (tensor[1:, ..., 1:] if tensor.ndim > 1 else tensor[1::2]).torch(),
            )
    with pytest.raises(TypeError, match=r"\.item\(\)"):
        torch.tensor(model["f"][0, 0])
    assert [row.shape for row in reversed(model["f"])] == [(5,)] * 7


def test_torch_tensors_are_ids(nano):
    session = poise.Session(nano)
    session.feed(torch.tensor([1, 5, 9]))
    assert session.position == 3 and nano.tokenizer.decode(torch.tensor([5, 9])) == nano.tokenizer.decode([5, 9])
    with pytest.raises(TypeError, match=r"one dimension.*\[1, 3\].*ids\[0\]"):
        session.feed(torch.tensor([[1, 5, 9]]))
    with pytest.raises(TypeError, match="1.5"):
        session.feed(torch.tensor([1.5]))
    assert session.position == 3


def test_unsigned_integers_become_types_of_torch():
    model = poise.Model({"u": np.array([1, 513], np.uint16)})
    assert model["u"].torch("bf16").tolist() == [1, 512] and model["u"].torch("bf16").dtype == torch.bfloat16
    if not hasattr(torch, "uint32"):
        with pytest.raises(poise.UnsupportedError, match="u32"):
            model["u"].torch("u32")
