"""Models: a mapping from name to Tensor, and their metadata."""

import collections.abc
import copy
import io
import json
import os
import pickle
import struct

import numpy as np
import pytest

import poise


def test_is_a_mapping_in_file_order(examples, nano):
    header = (examples / "nano-mistral/model.safetensors").read_bytes()
    names = [
        name for name in json.loads(header[8 : 8 + int.from_bytes(header[:8], "little")]) if name != "__metadata__"
    ]
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
    assert (tensor.name, tensor.shape, tensor.ndim, tensor.size, tensor.dtype) == (
        "model.norm.weight",
        (128,),
        1,
        128,
        "bf16",
    )
    assert (tensor.layout, tensor.stored, tensor.nbytes, tensor.attributes) == ("dense", "bf16", 256, {})
    (part,) = tensor.parts
    file = examples / "nano-mistral/model.safetensors"
    assert (part.role, part.dtype, part.path, part.encoding, part.digest) == ("data", "bf16", str(file), "raw", None)
    assert bytes(tensor.part_bytes()) == file.read_bytes()[part.offset : part.offset + part.stored_bytes]
    with pytest.raises(poise.NotFoundError, match="scales"):
        tensor.part_bytes("scales")


def test_values_of_files_become_pythons(tmp_path):
    attributes = {
        "text": "ä",
        "int": -3,
        "big": 2**63,
        "float": 0.5,
        "none": None,
        "yes": True,
        "bytes": b"\0\xff",
        "list": [1, [2]],
        "map": {"a": {"b": 1}},
    }
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
    assert (
        "closed" in repr(nano)
        and "closed" in repr(tensor)
        and "closed" in nano._repr_html_()
        and "closed" in tensor._repr_html_()
    )
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
    model = poise.Model(
        {
            "large": np.array([1e300, -1e308, 1.7e308, 3]),
            "same": np.full(9, 1e300),
            "none": np.array([np.nan]),
            "f": np.linspace(0, 1, 99),
            "wide": np.zeros((1, 3, 200_000), np.float32) + np.arange(200_000) % 7,
            "tiny": np.array([0, 5e-324]),
        }
    )
    for name in ("large", "f", "wide", "tiny"):
        assert model[name]._repr_html_().count("<rect") == 24, name
    assert "-1e+308 to 1.7e+308, all elements" in model["large"]._repr_html_()
    assert "<p>1e+300, all elements</p>" in model["same"]._repr_html_() and "no finite" in model["none"]._repr_html_()
    assert "0 to 6, 65,536 elements" in model["wide"]._repr_html_()


def test_what_a_file_says_does_not_change_without_a_word(nano):
    def set_config():
        nano.config["x"] = 1

    def set_nested():
        poise.Model({}, metadata={"a": {"b": [1]}}).attributes["a"]["b"].append(2)

    for change, told in (
        (set_config, "config="),
        (lambda: nano.config.update(x=1), "config="),
        (lambda: nano.config.pop("hidden_size"), "config="),
        (lambda: nano.card.setdefault("author", "me"), "card="),
        (lambda: nano.attributes.clear(), "metadata="),
        (set_nested, "metadata="),
        (lambda: nano["lm_head.weight"].attributes.update(a=1), "do not change"),
    ):
        with pytest.raises(TypeError, match=told):
            change()
    config = nano.config
    assert json.loads(json.dumps(config)) == config and isinstance(config, dict)
    for plain in (
        dict(config),
        config.copy(),
        copy.copy(config),
        copy.deepcopy(config),
        pickle.loads(pickle.dumps(config)),
        {**config},
    ):
        plain["x"] = 1
        assert type(plain) is dict and plain != config
    assert config == nano.config


def test_models_are_changed(nano, tmp_path):
    changed = poise.Model(nano, like=nano, config={"rope_theta": 5e5, "mine": {"a": [1]}}, card={"author": "me"})
    assert changed.config == {**nano.config, "rope_theta": 5e5, "mine": {"a": [1]}}
    assert changed.card == {**nano.card, "author": "me"} and changed.attributes == nano.attributes
    for extension in ("zt", "gguf", "safetensors"):
        poise.save(changed, tmp_path / f"a.{extension}")
        found = poise.open(tmp_path / f"a.{extension}")
        assert (found.config["rope_theta"], found.config["mine"], found.card["author"]) == (5e5, {"a": [1]}, "me")
    report = poise.save(nano, f"{tmp_path}/made/", config={"rope_theta": 5e5})
    assert report.format == "huggingface" and poise.open(tmp_path / "made").config["rope_theta"] == 5e5
    assert json.loads((tmp_path / "made/config.json").read_text())["rope_theta"] == 5e5
    made = poise.Model(
        {"a": np.zeros(3)}, config={"model_type": "made", "x": 1}, card={"license": "mit"}, vocabulary=nano
    )
    assert made.config["x"] == 1 and {k: v for k, v in made.card.items() if v} == {
        "model_type": "made",
        "license": "mit",
    }
    sizes = {"hidden_size": 8, "intermediate_size": 4, "num_attention_heads": 2, "num_hidden_layers": 1}
    typed = poise.Model({}, config=sizes, card={"model_type": "mistral"})
    assert typed.config == poise.Model({}, config={**sizes, "model_type": "mistral"}).config
    assert typed.config["sliding_window"] == 4096 and poise.Model({}, config=sizes).config == sizes
    for other in (nano, nano.vocabulary, nano.tokenizer):
        found = poise.Model({}, vocabulary=other)
        assert found.tokenizer.encode("a mouse") == nano.tokenizer.encode("a mouse") and len(found.vocabulary) == 960
    for wrong, raised in (
        ({"config": {"hidden_size": "many"}, "like": nano}, ValueError),
        ({"card": {"colour": "red"}}, ValueError),
        ({"config": {"hidden_size": 8}, "card": {"model_type": "mistral"}}, ValueError),
        ({"card": {"created_at": "today"}}, ValueError),
        ({"vocabulary": 3}, TypeError),
        ({"card": {"author": 3}}, TypeError),
        ({"vocabulary": poise.Model({})}, poise.UnsupportedError),
        ({"config": 3}, TypeError),
    ):
        with pytest.raises(raised):
            poise.Model({}, **wrong)


def test_a_changed_key_counts_wherever_it_is(tmp_path):
    """A changed key takes effect in the nested object of config.json that holds it, too."""
    text = {"model_type": "gemma3_text", "hidden_size": 64, "rope_theta": 1e4}
    like = poise.Model({}, config={"model_type": "gemma3", "text_config": text})
    changed = poise.Model({}, like=like, config={"hidden_size": 32})
    assert changed.config["text_config"]["hidden_size"] == 32
    like = poise.Model(
        {}, config={"model_type": "made", "rope_parameters": {"rope_theta": 1e4, "rope_type": "default"}}
    )
    assert poise.Model({}, like=like, config={"rope_theta": 2e4}).config["rope_parameters"] == {
        "rope_theta": 2e4,
        "rope_type": "default",
    }


def test_bytes_come_from_file_objects_and_go_to_them(nano, tmp_path):
    for format in ("zt", "gguf", "safetensors"):
        file = io.BytesIO()
        report = poise.save(nano, file, format=format, quantize="q8_0" if format == "gguf" else None)
        assert report.format == format and report.outputs == [] and report.bytes_out == len(file.getvalue())
        found = poise.open_bytes(file, f"a.{format}")
        assert found.format.startswith(format) and list(found) == list(nano)
    with open(tmp_path / "a.zt", "wb") as file:
        poise.save({"a": np.arange(3)}, file, format="zt")
    with open(tmp_path / "a.zt", "rb") as file:
        assert poise.open_bytes(file)["a"].tolist() == [0, 1, 2]
    for options, told in (
        ({}, "format="),
        ({"format": "huggingface"}, "directory"),
        ({"format": "zt", "shard_size": 1000}, "one"),
    ):
        with pytest.raises(poise.BadArgumentError, match=told):
            poise.save(nano, io.BytesIO(), **options)
    with pytest.raises(TypeError, match="int"):
        poise.save(nano, 3)


def test_paths_of_every_kind(examples, tmp_path):
    for path in (tmp_path / "a.zt", str(tmp_path / "b.zt"), os.fsencode(tmp_path / "c.zt")):
        poise.save({"a": b"x"}, path)
        assert list(poise.open(path)) == ["a"] and poise.verify(path).ok and poise.hash(path).model
        poise.convert(path, os.fsencode(tmp_path / "d.safetensors"), overwrite=True)


def test_everything_shows_itself_shortly(nano, tmp_path):
    poise.save(nano, tmp_path / "a.gguf", quantize="q4_0")
    model = poise.open(tmp_path / "a.gguf")
    assert repr(model["lm_head.weight"]) == "<poise.Tensor 'lm_head.weight' q4_0 [960, 128]>"
    assert repr(model["lm_head.weight"][3:]) == "<poise.Slice 'lm_head.weight' q4_0 [957, 128]>"
    assert (
        repr(nano.vocabulary) == "<poise.Vocabulary sentencepiece_bpe, 960 tokens>"
        and repr(nano.tokenizer) == "<poise.Tokenizer, 960 tokens>"
    )
    weights = poise.Weights(nano)
    session = poise.Session(weights, context=64)
    session.feed([1, 5])
    assert (
        repr(weights) == f"<poise.Weights, 960 tokens, {weights.max_context} positions>"
        and repr(session) == "<poise.Session, 2 of 64 positions>"
    )
    assert (
        repr(poise.Model({"a": b"x"})) == "<poise.Model made of arrays, 1 tensor>"
        and repr(nano) == f"<poise.Model {nano.path!r} huggingface, 39 tensors>"
    )
    report = poise.convert(nano.path, tmp_path / "b.alt", skip="*.norm.weight")
    reports = [
        report,
        poise.plan(nano, tmp_path / "b.zt", quantize="group4"),
        poise.verify(nano.path),
        poise.hash(nano),
        poise.diff(nano, model),
    ]
    assert all(len(repr(one)) < 200 and repr(one).startswith("<poise.") for one in reports)
    assert (
        "38 tensors" in repr(report)
        and repr(poise.verify(nano.path)) == "<poise.VerifyReport: ok, huggingface, 39 tensors, no digests>"
    )
    assert repr(poise.diff(nano, nano)) == "<poise.DiffReport: nothing differs, 39 equal tensors>"
    assert poise.hash(nano).model in repr(poise.hash(nano))


def test_folders_without_a_configuration(examples, nano, tmp_path):
    folder = tmp_path / "plain"
    folder.mkdir()
    (folder / "model.safetensors").write_bytes((examples / "nano-mistral/model.safetensors").read_bytes())
    model = poise.open(folder)
    assert list(model) == list(nano) and model.config == {} and model.vocabulary is None
    assert "there is no config.json" in str(model.warnings[0]) and poise.verify(folder).ok
    poise.save(nano, folder / "model.safetensors", overwrite=True)  # whose metadata have the rest
    model = poise.open(folder)
    assert model.config == nano.config and len(model.vocabulary) == 960 and model.card == nano.card
    poise.save(nano, f"{tmp_path}/shards/", shard_size="500KB")
    for name in (tmp_path / "shards/model.safetensors.index.json", f"{tmp_path}/shards/model.safetensors.index.json"):
        model = poise.open(name)
        assert model.path == str(tmp_path / "shards") and poise.diff(model, nano).same
    with pytest.raises(FileNotFoundError, match="index.json"):
        poise.open(tmp_path / "model.safetensors.index.json")


def test_names_of_the_file(nano, tmp_path):
    poise.convert(nano.path, tmp_path / "a.gguf")
    model = poise.open(tmp_path / "a.gguf")
    query = model["blk.0.attn_q.weight"]
    assert query.name == "model.layers.0.self_attn.q_proj.weight" and query.file_name == "blk.0.attn_q.weight"
    assert query.numpy(dtype="f32").tobytes() == model[query.name].numpy(dtype="f32").tobytes()
    assert "blk.0.attn_q.weight" in model and "blk.0.attn_q.weight" not in list(model)
    assert "blk.9.attn_q.weight" not in model and model.get("blk.9.attn_q.weight") is None
    assert nano["lm_head.weight"].file_name == "lm_head.weight"
    # A tensor in another model is no longer the file's.
    assert poise.Model({"x": query})["x"].file_name == "x"
    poise.convert(tmp_path / "a.gguf", tmp_path / "b.zt", only="blk.0.attn_*", skip="*k_proj*")
    assert sorted(poise.open(tmp_path / "b.zt")) == [
        f"model.layers.0.{name}.weight"
        for name in ("input_layernorm", "self_attn.o_proj", "self_attn.q_proj", "self_attn.v_proj")
    ]


def test_a_name_that_several_tensors_share_in_the_file(tmp_path):
    # llama2.c, version 1: one array of a matrix for all layers. dim 4, hidden 4, 2 layers, 1 head, 2 tokens, 1
    # position.
    header = struct.pack("<Ii7iB", 0x616B3432, 1, 4, 4, 2, 1, 1, 2, 1, 1).ljust(256, b"\0")
    norms, embedding, matrices = 5 * 4, 2 * 4, 2 * 7 * 16
    floats = np.arange(norms + embedding + matrices, dtype="<f4")
    (tmp_path / "a.bin").write_bytes(header + floats.tobytes())
    model = poise.open(tmp_path / "a.bin")
    assert model["rms_final_weight"].name == "model.norm.weight"
    with pytest.raises(KeyError, match="names 2 tensors, such as model.layers.0.self_attn.q_proj.weight"):
        model["wq"]
    assert "wq" not in model
    poise.convert(tmp_path / "a.bin", tmp_path / "b.safetensors", only="wq")
    assert sorted(poise.open(tmp_path / "b.safetensors")) == [
        f"model.layers.{layer}.self_attn.q_proj.weight" for layer in (0, 1)
    ]
