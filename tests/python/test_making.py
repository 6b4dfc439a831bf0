"""Adapters, deltas, importance matrices, models on servers."""

import os
import pathlib
import sys

import numpy as np
import pytest

import poise

sys.path.insert(0, str(pathlib.Path(os.environ["POISE_SOURCE"]) / "tests" / "remote"))
from server import Server  # noqa: E402

Q, UP = "model.layers.0.self_attn.q_proj.weight", "model.layers.1.mlp.up_proj.weight"


@pytest.fixture
def tuned(nano, tmp_path):
    """Writes the example in float32 and a tuned one; returns their paths and the change of each matrix."""
    random = np.random.default_rng(3)
    changes, tensors = {}, {}
    for name in nano:
        tensors[name] = nano[name].numpy("f32").copy()
        if name in (Q, UP):
            rows, columns = tensors[name].shape
            changes[name] = (random.normal(size=(rows, 2)) @ random.normal(size=(2, columns))).astype(np.float32)
    base, model = tmp_path / "base", tmp_path / "tuned"
    poise.save(poise.Model(tensors, like=nano), f"{base}/", format="huggingface")
    tensors.update({name: tensors[name] + change for name, change in changes.items()})
    poise.save(poise.Model(tensors, like=nano), f"{model}/", format="huggingface")
    return base, model, changes


def test_extract_lora(tuned, tmp_path):
    base, model, changes = tuned
    seen = []
    report = poise.extract_lora(
        base, model, tmp_path / "lora.safetensors", rank=2, progress=lambda *one: seen.append(one)
    )
    assert [one.name for one in report.matrices] == [Q, UP] and [one.rank for one in report.matrices] == [2, 2]
    assert report.captured == pytest.approx(1, abs=1e-6) and report.warnings == [] and report.equal == 37 and seen
    assert report.matrices[0].rms == pytest.approx(np.sqrt((changes[Q].astype(np.float64) ** 2).mean()), rel=1e-4)
    assert "2 matrices, 100.00 % captured" in repr(report)
    adapter = poise.open(report.output)
    for name, change in changes.items():
        module = "base_model.model." + name.removesuffix(".weight")
        left, right = (adapter[f"{module}.lora_{letter}.weight"].numpy() for letter in "BA")
        assert np.abs(left @ right - change).max() < 1e-4
    poise.convert(base, tmp_path / "merged.safetensors", lora=report.output)
    merged = poise.open(tmp_path / "merged.safetensors")
    assert np.abs(merged[UP].numpy() - poise.open(model)[UP].numpy()).max() < 1e-4
    assert poise.extract_lora(base, model, tmp_path / "no.gguf", only=[Q], dry_run=True).output is None
    assert not (tmp_path / "no.gguf").exists()
    for wrong in ({"rank": 0}, {"only": "nix*"}, {"io": "x"}, {"compress": "zip"}):
        with pytest.raises(poise.BadArgumentError):
            poise.extract_lora(base, model, tmp_path / "no.gguf", **wrong)
    with pytest.raises(TypeError):
        poise.extract_lora(base, model, tmp_path / "no.gguf", rank="x")
    with pytest.raises(poise.BadArgumentError, match="no matrix differs"):
        poise.extract_lora(base, base, tmp_path / "no.gguf")
    with pytest.raises(FileExistsError):
        poise.extract_lora(base, model, report.output)
    with pytest.raises(poise.CancelledError):
        poise.extract_lora(base, model, tmp_path / "no.gguf", progress=lambda *_: False)


def test_convert_lora(tuned, tmp_path):
    base, model, _ = tuned
    poise.extract_lora(base, model, f"{tmp_path}/peft/", rank=2)
    report = poise.convert_lora(tmp_path / "peft", tmp_path / "lora.gguf", base=base)
    assert (report.format, report.matrices, report.warnings) == ("gguf", 2, []) and report.bytes_out > 0
    poise.convert_lora(tmp_path / "lora.gguf", f"{tmp_path}/back/", base=base / "config.json")
    first, again = (poise.open(tmp_path / one / "adapter_model.safetensors") for one in ("peft", "back"))
    assert sorted(first) == sorted(again) and len(first) == 4
    for name in first:
        assert np.array_equal(first[name].numpy(), again[name].numpy())
    with pytest.raises(poise.BadArgumentError, match="already"):
        poise.convert_lora(tmp_path / "peft", f"{tmp_path}/no/", base=base)
    with pytest.raises(FileNotFoundError):
        poise.convert_lora(tmp_path / "absent", tmp_path / "no.gguf")


def test_make_delta(tuned, tmp_path):
    base, model, _ = tuned
    report = poise.make_delta(base, model, tmp_path / "step.zt", compress="zstd:1")
    assert sorted(one.name for one in report.changed) == [Q, UP] and report.equal == 37 and report.removed == []
    assert report.changed[0].form in ("sparse", "xor", "whole") and report.base == poise.hash(base).model
    assert report.bytes_out == os.path.getsize(report.output) and "2 changed tensors" in repr(report)
    poise.convert(base, tmp_path / "again.zt", delta=report.output)
    assert poise.hash(tmp_path / "again.zt").model == poise.hash(model).model
    assert poise.make_delta(base, model, tmp_path / "no.zt", dry_run=True).output is None
    with pytest.raises(FileExistsError):
        poise.make_delta(base, model, report.output)
    assert not (tmp_path / "no.zt").exists()


def test_measure_imatrix(nano, tmp_path):
    text = "One day, a mouse saw the moon. " * 60
    seen = []
    report = poise.measure_imatrix(
        nano, text, tmp_path / "a.gguf", chunk_size=64, chunks=3, dataset="m", progress=lambda *one: seen.append(one)
    )
    assert (report.entries, report.chunks, report.chunk_size, report.datasets) == (28, 3, 64, ["m"])
    assert report.unused_experts == {} and seen[-1][1] == len(text)
    sums = poise.open(tmp_path / "a.gguf")
    assert sums["blk.0.attn_q.weight.counts"].tolist() == [[192.0]]
    # Sums of matrices with the same input are the same.
    assert np.array_equal(sums["blk.0.attn_q.weight.in_sum2"].numpy(), sums["blk.0.attn_k.weight.in_sum2"].numpy())
    both = poise.measure_imatrix(None, None, tmp_path / "b.gguf", add=[tmp_path / "a.gguf", tmp_path / "a.gguf"])
    assert both.chunks == 6
    twice = poise.open(tmp_path / "b.gguf")["blk.0.attn_q.weight.in_sum2"].numpy()
    assert np.allclose(twice, 2 * sums["blk.0.attn_q.weight.in_sum2"].numpy(), rtol=1e-6)
    more = poise.measure_imatrix(nano.path, text, tmp_path / "c.dat", chunk_size=64, process_output=True)
    assert more.entries == 29
    poise.convert(nano.path, tmp_path / "q4.gguf", quantize="q4_0", imatrix=tmp_path / "b.gguf")
    for wrong in ({"chunk_size": 8}, {"chunks": 0}, {"threads": -1}):
        with pytest.raises(poise.BadArgumentError):
            poise.measure_imatrix(nano, text, tmp_path / "no.gguf", **{"chunk_size": 64, **wrong})
    with pytest.raises(poise.BadArgumentError):
        poise.measure_imatrix(nano, "short", tmp_path / "no.gguf")
    with pytest.raises(poise.BadArgumentError, match="no file to add"):
        poise.measure_imatrix(None, None, tmp_path / "no.gguf")
    with pytest.raises(TypeError):
        poise.measure_imatrix(nano, None, tmp_path / "no.gguf")
    with pytest.raises(FileExistsError):
        poise.measure_imatrix(nano, text, tmp_path / "a.gguf", chunk_size=64)
    assert not (tmp_path / "no.gguf").exists()


@pytest.fixture
def server(examples, tmp_path, monkeypatch):
    served = tmp_path / "served"
    (served / "org").mkdir(parents=True)
    (served / "org" / "nano").symlink_to(examples / "nano-mistral")
    other = Server(served)
    one = Server(served, other)
    for name in list(os.environ):
        if name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HF_ENDPOINT", one.url)
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
    yield one
    for started in (one, other):
        started.shutdown()
        started.server_close()


def test_open_url(server, nano):
    for url in ("hf://org/nano", f"{server.url}/files/none/org/nano/model.safetensors"):
        model = poise.open_url(url)
        assert list(model) == list(nano)
        assert np.array_equal(model[Q].numpy("f32"), nano[Q].numpy("f32"))
    for wrong in ("ftp://127.0.0.1/a", "a.zt"):
        with pytest.raises(poise.BadArgumentError):
            poise.open_url(wrong)
    with pytest.raises(FileNotFoundError):
        poise.open_url("hf://org/absent")
    with pytest.raises(TypeError):
        poise.open_url(3)


def test_fetch(server, nano, tmp_path):
    report = poise.fetch("hf://org/nano")
    assert len(report.commit) == 40 and report.files >= 4 and report.files_kept == 0 and report.bytes > 1_800_000
    assert poise.hash(report.directory).model == poise.hash(nano).model
    again = poise.fetch("hf://org/nano")
    assert (again.files_kept, again.bytes, again.directory) == (report.files, 0, report.directory)
    plain = poise.fetch("hf://org/nano", output=tmp_path / "plain", only="*.json", parallel=2)
    assert "config.json" in os.listdir(plain.directory) and "model.safetensors" not in os.listdir(plain.directory)
    for wrong in ({"parallel": 17}, {"only": "nix*"}):
        with pytest.raises(poise.BadArgumentError):
            poise.fetch("hf://org/nano", output=tmp_path / "no", **wrong)
    with pytest.raises(poise.BadArgumentError):
        poise.fetch(f"{server.url}/files/none/org/nano/model.safetensors")
