"""Models: a mapping from name to Tensor, and what is beside tensors."""

import collections.abc
import json
import pickle

import numpy as np
import pytest

import poise


def test_is_a_mapping_in_file_order(examples, nano):
    header = (examples / "nano-mistral/model.safetensors").read_bytes()
    names = [name for name in json.loads(header[8 : 8 + int.from_bytes(header[:8], "little")]) if name != "__metadata__"]
    assert isinstance(nano, collections.abc.Mapping)
    assert len(nano) == len(names) == 39
    assert sorted(nano) == sorted(names)
    assert [tensor.name for tensor in nano.tensors] == list(nano) == list(nano.keys())
    assert "lm_head.weight" in nano and "nothing" not in nano and 3 not in nano
    assert nano.get("nothing") is None
    with pytest.raises(KeyError, match="nothing"):
        nano["nothing"]
    for wrong in (None, 0, b"lm_head.weight"):
        with pytest.raises(KeyError):
            nano[wrong]


def test_tells_what_is_beside_tensors(examples, nano):
    config = json.loads((examples / "nano-mistral/config.json").read_text())
    assert {key: nano.config[key] for key in config} == config
    assert nano.card["model_type"] == "mistral"
    assert nano.format == "huggingface" and nano.path == str(examples / "nano-mistral")
    assert str(examples / "nano-mistral/model.safetensors") in nano.files
    assert nano.warnings == []
    assert len(nano.vocabulary) == 960 and nano.vocabulary.bos_id == 1 and nano.vocabulary.kind == "sentencepiece_bpe"
    assert nano.vocabulary[1] == ("<s>", 0.0, "bos")
    with pytest.raises(IndexError):
        nano.vocabulary[960]


def test_tells_of_a_tensor_and_its_parts(examples, nano):
    tensor = nano["model.norm.weight"]
    assert (tensor.name, tensor.shape, tensor.ndim, tensor.size, tensor.dtype) == ("model.norm.weight", (128,), 1, 128, "bf16")
    assert (tensor.layout, tensor.stored, tensor.nbytes, tensor.attributes) == ("dense", "bf16", 256, {})
    (part,) = tensor.parts
    file = examples / "nano-mistral/model.safetensors"
    assert (part.role, part.dtype, part.path, part.encoding, part.digest) == ("data", "bf16", str(file), "raw", None)
    assert bytes(tensor.part_bytes()) == file.read_bytes()[part.offset : part.offset + part.stored_bytes]
    with pytest.raises(poise.NotFoundError, match="scales"):
        tensor.part_bytes("scales")


def test_values_of_files_become_pythons(tmp_path):
    attributes = {"text": "ä", "int": -3, "big": 2**63, "float": 0.5, "none": None, "yes": True, "bytes": b"\0\xff", "list": [1, [2]], "map": {"a": {"b": 1}}}
    poise.save({"a": b"12"}, tmp_path / "a.zt", metadata=attributes)
    assert poise.open(tmp_path / "a.zt").attributes == attributes
    for wrong in ({"a": object()}, {1: "a"}, {"a": 2**64}):
        with pytest.raises(ValueError):
            poise.Model({}, metadata=wrong)
    deep = []
    for _ in range(100):
        deep = [deep]
    with pytest.raises(ValueError, match="deeper"):
        poise.Model({}, metadata={"a": deep})


def test_models_are_made_of_arrays_and_of_other_models(nano):
    made = poise.Model({"a": b"abc", "norm": nano["model.norm.weight"], "row": nano["lm_head.weight"][3]}, like=nano)
    assert list(made) == ["a", "norm", "row"]
    assert made["a"].dtype == "u8" and made["a"].tolist() == [97, 98, 99]
    assert made["norm"].tolist() == nano["model.norm.weight"].tolist()
    assert made["row"].shape == (128,) and made["row"].tolist() == nano["lm_head.weight"][3].tolist()
    assert made.config == nano.config and len(made.vocabulary) == 960
    assert made.format == "" and made.path == ""


def test_closed_models_are_not_used(nano):
    tensor, part = nano["model.norm.weight"], nano["lm_head.weight"][3:5]
    numbers = tensor.numpy("f32")
    with nano:
        pass
    assert nano.closed
    for use in (
        lambda: len(nano),
        lambda: nano["model.norm.weight"],
        lambda: list(nano),
        lambda: nano.config,
        lambda: nano.tokenizer,
        lambda: tensor.shape,
        lambda: tensor.numpy(),
        lambda: part.numpy("f32"),
        lambda: memoryview(tensor),
        lambda: poise.Session(nano),
        lambda: poise.hash(nano),
        lambda: poise.save(nano, "/nowhere/x.zt"),
    ):
        with pytest.raises((ValueError, BufferError), match="closed"):
            use()
    nano.close()  # again
    assert "closed" in repr(nano) and "closed" in repr(tensor) and "closed" in nano._repr_html_() and "closed" in tensor._repr_html_()
    assert numbers.sum() > 0


def test_pickling_is_refused_with_advice(nano):
    with pytest.raises(TypeError, match="model.path"):
        pickle.dumps(nano)
    with pytest.raises(TypeError, match="model.path"):
        pickle.dumps(nano["model.norm.weight"])


def test_shows_itself_in_a_notebook(nano):
    html = nano._repr_html_()
    assert html.count("<tr>") == 40 and "lm_head.weight" in html and "[960, 128]" in html
    html = nano["lm_head.weight"]._repr_html_()
    assert "122,880 elements" in html and html.count("<rect") == 24
    hostile = poise.Model({"<script>": b"a", "\udcff": b"b"})
    assert "<script>" not in hostile._repr_html_() and "<script>" not in hostile["<script>"]._repr_html_()
    many = poise.Model({f"t{i}": b"a" for i in range(200)})
    assert "and 140 more" in many._repr_html_()
    assert repr(nano["lm_head.weight"]) == "<poise.Tensor 'lm_head.weight' bf16 [960, 128]>"


def test_names_may_be_any_text(tmp_path):
    names = ["", "ä/ö", "a b", "日本", "🙂"]
    poise.save({name: b"1" for name in names}, tmp_path / "a.safetensors")
    assert list(poise.open(tmp_path / "a.safetensors")) == names


def test_bytes_are_opened(examples):
    data = (examples / "nano-tiny-llama/weights.tllm").read_bytes()
    for given in (data, bytearray(data), memoryview(data)):
        model = poise.open_bytes(given, "weights.tllm")
        assert model.format == "tllm" and len(model) > 0
    with pytest.raises(poise.InvalidFileError):
        poise.open_bytes(data[:-1], "weights.tllm")


def test_every_number_shows_itself():
    model = poise.Model({"large": np.array([1e300, -1e308, 1.7e308, 3]), "same": np.full(9, 1e300), "none": np.array([np.nan]), "f": np.linspace(0, 1, 99),
                         "wide": np.zeros((1, 3, 200_000), np.float32) + np.arange(200_000) % 7, "tiny": np.array([0, 5e-324])})  # fmt: skip
    for name in ("large", "f", "wide", "tiny"):
        assert model[name]._repr_html_().count("<rect") == 24, name
    assert "-1e+308 to 1.7e+308, all elements" in model["large"]._repr_html_()
    assert "<p>1e+300, all elements</p>" in model["same"]._repr_html_() and "no finite" in model["none"]._repr_html_()
    assert "0 to 6, 65,536 elements" in model["wide"]._repr_html_()
