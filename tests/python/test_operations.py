"""Operations on whole files, and their errors."""

import errno
import hashlib
import io
import itertools
import json
import math
import os
import pathlib
import pickle
import signal
import struct
import subprocess
import sys
import threading
import time
import zipfile

import numpy as np
import pytest

import poise
from poise import _progress


def test_errors_say_what_and_where(tmp_path):
    with pytest.raises(FileNotFoundError) as missing:
        poise.open(tmp_path / "nothing.zt")
    assert isinstance(missing.value, poise.Error) and missing.value.kind == "not_found"
    assert missing.value.filename == missing.value.path == str(tmp_path / "nothing.zt")
    path = tmp_path / "a.safetensors"
    path.write_bytes(b"\x02\0\0\0\0\0\0\0{]")
    with pytest.raises(poise.InvalidFileError) as broken:
        poise.open(path)
    error = broken.value
    assert (
        error.kind == "invalid_file"
        and error.path == str(path)
        and error.offset == 10
        and isinstance(error, ValueError)
    )
    assert str(error).startswith(f"{path}: ") and str(error).endswith("(at 0xa)") and error.message in str(error)
    with pytest.raises(poise.BadArgumentError):
        poise.open("/dev/null")
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), str(copy), copy.offset, copy.path) == (type(error), str(error), 10, str(path))
    for kind in (
        poise.InvalidFileError,
        poise.UnsupportedError,
        poise.NotFoundError,
        poise.BadArgumentError,
        poise.InputOutputError,
        poise.CancelledError,
    ):
        assert issubclass(kind, poise.Error)


def test_verify(nano, examples, tmp_path):
    report = poise.verify(examples / "nano-mistral")
    assert report.ok and report.tensors == 39 and report.bytes > 1_800_000 and report.findings == []
    path = tmp_path / "a.zt"
    poise.save(nano, path)
    assert poise.verify(path).digests == 39
    place = poise.open(path)["lm_head.weight"].parts[0].offset
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(data)
    report = poise.verify(path)
    assert (
        not report.ok
        and len(report.errors) == 1
        and report.warnings == []
        and "lm_head.weight" in str(report.errors[0])
    )
    with pytest.raises(poise.InvalidFileError, match="lm_head.weight"):
        poise.convert(path, tmp_path / "b.safetensors")
    poise.convert(path, tmp_path / "b.safetensors", verify=False)
    with pytest.raises(FileNotFoundError):
        poise.verify(tmp_path / "nothing")


def test_hash_is_sha256_of_the_parts(nano, tmp_path):
    result = poise.hash(nano)
    for (name, role), digest in result.parts.items():
        assert hashlib.sha256(nano[name].part_bytes(role)).hexdigest() == digest
    assert result.content is None
    poise.convert(nano.path, tmp_path / "a.zt")
    other = poise.hash(tmp_path / "a.zt")
    assert other.model == result.model and other.content.startswith("xxh3:")
    assert poise.hash({"a": b"x"}).parts[("a", "data")] == hashlib.sha256(b"x").hexdigest()


def test_stats_equal_numpy(nano):
    for tensor in poise.stats(nano, only=["*.mlp.*", "lm_head.*"], skip="*.1.*"):
        numbers = nano[tensor.name].numpy("f32").astype(np.float64)
        assert tensor.shape == numbers.shape and tensor.type == "bf16" and tensor.elements == numbers.size
        assert (tensor.min, tensor.max, tensor.zeros) == (numbers.min(), numbers.max(), (numbers == 0).sum())
        expected = (numbers.mean(), numbers.std(), np.sqrt((numbers**2).mean()))
        assert (tensor.mean, tensor.std, tensor.rms) == pytest.approx(expected, rel=1e-9, abs=1e-12)
        channels = np.sqrt((numbers**2).mean(axis=1))
        assert tensor.largest_channel == (channels.argmax(), pytest.approx(channels.max()))
        low, high, counts = tensor.histogram
        assert low < high and len(counts) == 8 and 0 < sum(counts) <= numbers.size
    odd = poise.stats({"a": np.array([np.nan, np.inf], np.float32), "b": np.array([1 + 1j])})
    assert odd[0].nans == odd[0].infinities == 1 and np.isnan(odd[0].mean) and odd[0].histogram is None
    assert "complex" in odd[1].problem and odd[1].largest_channel is None
    with pytest.raises(poise.BadArgumentError, match="no such"):
        poise.stats(nano, only="no such")


def test_report(nano, tmp_path):
    page = tmp_path / "page.html"
    size = poise.report(nano.path, page, against=nano.path)
    assert size == page.stat().st_size and page.read_bytes().startswith(b"<!DOCTYPE html>")
    with pytest.raises(FileExistsError):
        poise.report(nano.path, page)
    poise.report(nano.path, page, overwrite=True)
    with pytest.raises(FileNotFoundError):
        poise.report(nano.path, tmp_path / "b.html", against=tmp_path / "no model")
    assert not (tmp_path / "b.html").exists()


def test_diff(nano):
    left = {"a": np.array([1.0, 2, 3], np.float32), "b": b"x"}
    right = {"a": np.array([1.0, 2.5, 3], np.float32), "c": b"x"}
    report = poise.diff(left, right)
    by_name = {tensor.name: tensor for tensor in report.tensors}
    assert not report.same and by_name["a"].different == 1 and by_name["a"].max_absolute == 0.5
    assert by_name["b"].b == "-" and by_name["c"].a == "-" and by_name["b"].different is None
    assert by_name["a"].max_relative == 0.25  # 2.5 for 2
    assert abs(by_name["a"].signal_to_noise_db - 10 * math.log10(14 / 0.25)) < 1e-9
    assert poise.diff(nano, nano.path).same


def test_options_of_diff(nano):
    left = {"a.x": np.array([1.0, 2, 3], np.float32), "a.y": np.float32([1]), "b": np.float32([1])}
    right = {"a.x": np.array([1.0, 2.5, 3], np.float32), "a.y": np.float32([1]), "b": np.float64([1])}
    assert [one.name for one in poise.diff(left, right).tensors] == ["a.x", "b"]
    assert [one.name for one in poise.diff(left, right, only="a.*").tensors] == ["a.x"]
    assert [one.name for one in poise.diff(left, right, skip=["a.x"]).tensors] == ["b"]
    report = poise.diff(left, right, tolerance=0.5)
    assert [one.name for one in report.tensors] == ["b"] and report.within_tolerance == 1
    report = poise.diff(left, right, values=True, skip=("a.x",))
    assert report.same and report.equal_tensors == 2 and report.equal_as_numbers == 1
    for wrong in ({"only": "no.such"}, {"skip": ["no.such"]}, {"tolerance": -1}):
        with pytest.raises(poise.BadArgumentError):
            poise.diff(left, right, **wrong)
    for wrong in ({"only": 3}, {"tolerance": "x"}, {"values": "x"}):
        with pytest.raises(TypeError):
            poise.diff(left, right, **wrong)


def test_convert_and_plan_agree_with_the_command(command, examples, tmp_path):
    source = examples / "nano-mistral"
    planned = poise.plan(source, tmp_path / "a.zt", quantize="qint8")
    report = poise.convert(source, tmp_path / "a.zt", quantize="qint8")
    subprocess.run(
        [command, "convert", source, "-o", tmp_path / "b.zt", "--quantize", "qint8"],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    assert (tmp_path / "a.zt").read_bytes() == (tmp_path / "b.zt").read_bytes()
    assert report.bytes_out == (tmp_path / "a.zt").stat().st_size <= planned.bytes_out
    assert report.tensors == len(planned.tensors) == 39 and len(report.quantized) > 10
    told = json.loads(
        subprocess.run([command, "inspect", tmp_path / "a.zt", "--json"], check=True, capture_output=True).stdout
    )
    model = poise.open(tmp_path / "a.zt")
    assert [tensor["name"] for tensor in told["tensors"]] == list(model)
    assert told["config"] == model.config
    assert [cast.source for cast in poise.convert(source, tmp_path / "c.alt").casts] == ["bf16"]


def test_edit(tmp_path):
    poise.save({"a": b"x"}, tmp_path / "a.zt", metadata={"old": "1", "kept": "2"})
    report = poise.edit(tmp_path / "a.zt", set={"new": "3"}, delete="old")
    assert report.way == "appended" and report.bytes > 0
    assert poise.open(tmp_path / "a.zt").attributes == {"kept": "2", "new": "3"}
    with pytest.raises(ValueError):
        poise.edit(tmp_path / "a.zt", delete=["nothing"])


def test_formats_are_told():
    known = {one.name: one for one in poise.formats()}
    assert (
        known["safetensors"].extension == ".safetensors"
        and known["zt"].writable
        and known["huggingface"].extension == ""
    )


def test_progress(nano, tmp_path):
    events = []
    poise.save(nano, tmp_path / "a.zt", progress=lambda done, total, item: events.append((done, total, item)))
    assert events and events[-1][0] == events[-1][1] and all(item in nano for _, _, item in events)
    assert [event[0] for event in events] == sorted(event[0] for event in events)
    for call in (
        lambda stop: poise.save(nano, tmp_path / "b.zt", progress=stop),
        lambda stop: poise.convert(nano.path, tmp_path / "b.zt", progress=stop),
        lambda stop: poise.verify(nano.path, progress=stop),
        lambda stop: poise.hash(nano, progress=stop),
        lambda stop: poise.stats(nano, progress=stop),
        lambda stop: poise.report(nano.path, tmp_path / "a.html", progress=stop),
        lambda stop: poise.diff(nano, tmp_path / "a.zt", progress=stop),
    ):
        with pytest.raises(poise.CancelledError):
            call(lambda *_: False)

        def fail(*_):
            raise KeyError("mine")

        with pytest.raises(KeyError, match="mine"):
            call(fail)
    with pytest.raises(TypeError):
        poise.verify(nano.path, progress=3)
    assert not (tmp_path / "b.zt").exists() and len(list(tmp_path.iterdir())) == 1
    poise.verify(nano.path, progress=True)  # no terminal: nothing to see


class Stream(io.StringIO):
    """Is a stream on which each event takes a number of seconds of a simulated clock."""

    def __init__(self, terminal):
        super().__init__()
        self._terminal = terminal

    def isatty(self):
        return self._terminal


NotebookStream = type("OutStream", (Stream,), {"__module__": "ipykernel.iostream"})


def shown(monkeypatch, stream, progress, seconds, events):
    """Returns the output for events that come every `step` seconds."""
    now = itertools.count(0, seconds)
    monkeypatch.setattr(_progress.time, "monotonic", lambda: next(now))
    monkeypatch.setattr(sys, "stderr", stream)
    with _progress.show_progress(progress, "save") as callback:
        for event in events:
            assert callback(*event) is None
    return stream.getvalue()


def test_a_bar_is_drawn_and_wiped(monkeypatch):
    events = [(10**8, 10**9, "a"), (5 * 10**8, 10**9, "model.norm\x1b.weight"), (10**9, 10**9, "b")]
    for stream in (Stream(True), NotebookStream(False)):
        text = shown(monkeypatch, stream, True, 1, events)
        lines = text.split("\r")[1:]
        assert (
            lines[0] == "save [==                      ]  10%  100.0 MB/s  9 s left  a"
            and "\x1b" not in text
            and "\n" not in text
        )
        assert lines[1] == "save [============            ]  50%  250.0 MB/s  2 s left  model.norm?.weight"
        assert lines[2].rstrip() == "save [========================] 100%  333.3 MB/s  0 s left  b" and len(
            lines[2]
        ) == len(lines[1])
        assert lines[3].strip() == lines[4] == "" and len(lines[3]) == len(lines[2].rstrip())
    assert shown(monkeypatch, Stream(True), "auto", 0.05, events) == ""  # what is quick needs no bar


def test_lines_where_there_is_no_terminal(monkeypatch):
    events = [(10**8 * i, 10**9, f"tensor{i}") for i in range(1, 11)]
    text = shown(monkeypatch, Stream(False), True, 3, events)
    assert text.splitlines()[0] == "save  20% of 1.0 GB  33.3 MB/s  24 s left  tensor2" and len(text.splitlines()) == 5
    assert text.splitlines()[-1] == "save 100% of 1.0 GB  33.3 MB/s"
    assert shown(monkeypatch, Stream(True), "plain", 3, events) == text
    assert shown(monkeypatch, Stream(False), True, 0.1, events) == "save 100% of 1.0 GB  1.0 GB/s\n"  # quick, but shown
    assert shown(monkeypatch, Stream(False), True, 1, [(0, 0, "")]) == "save 100% of 0 bytes  0 bytes/s\n"
    for nothing in (None, False, "none"):
        with _progress.show_progress(nothing, "save") as callback:
            assert callback is None
    monkeypatch.setattr(sys, "stderr", None)
    with _progress.show_progress(True, "save") as callback:
        assert callback is None
    for wrong in ("bar", 3):
        with pytest.raises(TypeError, match='"plain"'):
            poise.verify("a", progress=wrong)


def test_a_stream_that_fails_ends_nothing(monkeypatch):
    stream = Stream(False)
    stream.close()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(_progress, "_BETWEEN_LINES", -1)
    lines = _progress.Lines("save", stream)
    lines(1, 2, "a")
    assert [_progress.format_bytes(n) for n in (0, 1, 999, 1000, 1.5e9)] == [
        "0 bytes",
        "1 byte",
        "999 bytes",
        "1.0 kB",
        "1.5 GB",
    ]


def test_other_threads_run_meanwhile(tmp_path):
    """While one thread hashes 400 MB, another counts: the GIL is free."""
    with open(tmp_path / "a.safetensors", "wb") as file:
        header = b'{"a":{"dtype":"U8","shape":[400000000],"data_offsets":[0,400000000]}}'
        file.write(len(header).to_bytes(8, "little") + header)
        file.truncate(8 + len(header) + 400_000_000)
    model = poise.open(tmp_path / "a.safetensors")
    work = threading.Thread(target=lambda: poise.hash(model))
    work.start()
    ticks = 0
    while work.is_alive():
        time.sleep(0.002)
        ticks += 1
    assert ticks >= 5


@pytest.mark.parametrize("work", ["poise.hash(model)", "model['a'][:2**31:2].numpy('f32')"])
def test_ctrl_c_ends_a_long_call(work, tmp_path):
    with open(tmp_path / "a.safetensors", "wb") as file:
        size = 8_000_000_000  # zeros that take no room on the disk, and some seconds
        header = f'{{"a":{{"dtype":"F8_E4M3","shape":[{size}],"data_offsets":[0,{size}]}}}}'.encode()
        file.write(len(header).to_bytes(8, "little") + header)
        file.truncate(8 + len(header) + size)
    code = (
        "import sys, numpy, poise\nmodel = poise.open(sys.argv[1])\nprint('on', flush=True)\n"
        f"try:\n    {work}\nexcept KeyboardInterrupt:\n    print('interrupted')"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", code, tmp_path / "a.safetensors"], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout.readline() == "on\n"
    time.sleep(0.3)
    child.send_signal(signal.SIGINT)
    start = time.monotonic()
    assert child.communicate(timeout=60)[0] == "interrupted\n"
    assert time.monotonic() - start < 20


@pytest.mark.parametrize(
    "prepare, work",
    [
        (
            "tokenizer, text = poise.read_tokenizer(path), 'Some words of a text. ' * 5_000_000",
            "tokenizer.encode(text)",
        ),
        ("tokenizer, text = poise.read_tokenizer(path), ['Some words. ' * 5_000_000] * 3", "tokenizer.encode(text)"),
        ("session, text = poise.Session(path), 'Some words of a text. ' * 5_000_000", "session.prompt(text)"),
        ("session, text = poise.Session(path), 'Some words of a text. ' * 5_000_000", "session.generate(text)"),
        ("text = 'Some words of a text. ' * 5_000_000", "poise.embed(path, [text])"),
        ("text = 'Some words of a text. ' * 5_000_000", "poise.perplexity(path, [text])"),
        (
            "import numpy; rows = (numpy.arange(1 << 26, dtype='f4') % 251).reshape(4096, -1)",
            "poise.quantize(rows, 'iq4_xs')",
        ),
    ],
)
def test_ctrl_c_ends_long_work_in_memory(prepare, work, examples):
    code = f"""if True:
        import sys, poise
        path = sys.argv[1]
        {prepare}
        print("on", flush=True)
        try:
            {work}
        except KeyboardInterrupt:
            print("interrupted")
    """
    child = subprocess.Popen([sys.executable, "-c", code, examples / "nano-mistral"], stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "on\n"
    time.sleep(0.2)
    child.send_signal(signal.SIGINT)
    start = time.monotonic()
    assert child.communicate(timeout=60)[0] == "interrupted\n"
    assert time.monotonic() - start < 3


def test_disk_errors_are_os_errors(nano):
    with pytest.raises(OSError) as full:
        poise.save(nano, "/proc/nothing.zt")
    assert isinstance(full.value, poise.Error) and full.value.path
    if os.geteuid() != 0:
        with pytest.raises(OSError):
            poise.save(nano, "/nothing.zt")


def test_names_layers_tokens_and_keys_change(examples, nano, tmp_path):
    source, out = examples / "nano-mistral", tmp_path / "out.zt"
    report = poise.convert(
        source,
        out,
        rename={"model.layers.*.mlp.*": "model.layers.*.ff.*", "re:^lm_(.*)": "$1"},
        layers="1:3",
        set={"card.license": "mit", "note": 3, "config.rope_theta": 20000.0},
    )
    assert report.skipped == 18 and len(report.changes) == 6
    made = poise.open(out)
    assert made.attributes["note"] == 3 and made.config["num_hidden_layers"] == 2
    for name, before in (
        ("model.layers.1.ff.up_proj.weight", "model.layers.2.mlp.up_proj.weight"),
        ("head.weight", "lm_head.weight"),
    ):
        assert np.array_equal(made[name].numpy(dtype="f32"), nano[before].numpy(dtype="f32"))
    poise.save(nano, tmp_path / "few.zt", strip_prefix="model.", add_prefix="x.", vocab_size=900)
    few = poise.open(tmp_path / "few.zt")
    assert few["x.embed_tokens.weight"].shape == (900, 128)
    whole = nano["model.embed_tokens.weight"].numpy(dtype="f32")
    assert np.array_equal(few["x.embed_tokens.weight"].numpy(dtype="f32"), whole[:900])
    assert poise.plan(source, tmp_path / "no.zt", layers="0").changes[0].startswith("1 of 4 layers stay")
    for wrong in (
        {"rename": {"a": "b"}},
        {"layers": "0:9"},
        {"vocab_size": 961},
        {"vocab_size": 900, "drop_rows": True},
    ):
        with pytest.raises(poise.BadArgumentError):
            poise.convert(source, tmp_path / "no.zt", **wrong)
    with pytest.raises(TypeError):
        poise.convert(source, tmp_path / "no.zt", rename="a=b")


def _write_adapter(directory, factor):
    """Writes a PEFT adapter of one matrix, and returns the change of the matrix by PEFT's formula."""
    thin = np.random.default_rng(32).normal(0, 0.05, (2, 2, 128)).astype(np.float32)
    directory.mkdir()
    (directory / "adapter_config.json").write_text(json.dumps({"peft_type": "LORA", "r": 2, "lora_alpha": 2 * factor}))
    prefix = "base_model.model.model.layers.1.self_attn.q_proj.lora_"
    header, begin, data = {}, 0, b""
    for name, array in ((prefix + "A.weight", thin[0]), (prefix + "B.weight", thin[1].T)):
        array = np.ascontiguousarray(array)
        header[name] = {"dtype": "F32", "shape": list(array.shape), "data_offsets": [begin, begin + array.nbytes]}
        begin += array.nbytes
        data += array.tobytes()
    text = json.dumps(header).encode()
    (directory / "adapter_model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)
    return factor * thin[1].T @ thin[0]


def test_adapters_are_merged(examples, nano, tmp_path):
    name = "model.layers.1.self_attn.q_proj.weight"
    base = nano[name].numpy(dtype="f32")
    one, two = _write_adapter(tmp_path / "one", 3), _write_adapter(tmp_path / "two", 5)
    source = examples / "nano-mistral"
    poise.convert(source, tmp_path / "f32.safetensors", dtype="f32")
    for lora, change in (
        (tmp_path / "one", one),
        (str(tmp_path / "one"), one),
        ({tmp_path / "one": -0.5, tmp_path / "two": 2}, 2 * two - 0.5 * one),
        ({}, 0 * one),
    ):
        poise.convert(tmp_path / "f32.safetensors", tmp_path / "merged.zt", lora=lora, overwrite=True)
        merged = poise.open(tmp_path / "merged.zt")
        np.testing.assert_allclose(merged[name].numpy(), base + change, rtol=0, atol=1e-5)
        other = "model.layers.0.self_attn.q_proj.weight"
        assert np.array_equal(merged[other].numpy(), nano[other].numpy(dtype="f32"))
    poise.save(poise.open(tmp_path / "f32.safetensors"), tmp_path / "saved.zt", lora=tmp_path / "two")
    np.testing.assert_allclose(poise.open(tmp_path / "saved.zt")[name].numpy(), base + two, rtol=0, atol=1e-5)
    with pytest.raises(FileNotFoundError):
        poise.convert(source, tmp_path / "no.zt", lora=tmp_path / "nothing")
    with pytest.raises(poise.InvalidFileError, match="not an adapter"):
        poise.convert(source, tmp_path / "no.zt", lora=source)
    with pytest.raises(TypeError, match=r"lora: the scale of .*one.* is 'much', expected a number"):
        poise.convert(source, tmp_path / "no.zt", lora={tmp_path / "one": "much"})
    for wrong in (3, {tmp_path / "one": "much"}, [tmp_path / "one"], {3: 1.0}):
        with pytest.raises(TypeError):
            poise.convert(source, tmp_path / "no.zt", lora=wrong)


def test_weights_of_errors_are_the_commands(command, examples, nano, tmp_path):
    """Writes the older format of llama-imatrix: a count, then name, calls and numbers of each tensor."""
    name, numbers = b"output.weight", np.linspace(0.01, 50, 128).astype("<f4") ** 2
    entry = struct.pack("<i", len(name)) + name + struct.pack("<ii", 1, len(numbers)) + numbers.tobytes()
    (tmp_path / "weights.dat").write_bytes(struct.pack("<i", 1) + entry)
    source = examples / "nano-mistral"
    poise.convert(source, tmp_path / "a.gguf", quantize="q4_0", imatrix=tmp_path / "weights.dat")
    poise.save(nano, tmp_path / "b.gguf", quantize="q4_0", imatrix=str(tmp_path / "weights.dat"))
    poise.convert(source, tmp_path / "plain.gguf", quantize="q4_0")
    run = [
        command,
        "convert",
        source,
        "-o",
        tmp_path / "c.gguf",
        "--quantize",
        "q4_0",
        "--imatrix",
        tmp_path / "weights.dat",
    ]
    subprocess.run(run, check=True, stdout=subprocess.DEVNULL)
    weighed, unweighed, told = (
        poise.open(tmp_path / f"{file}.gguf")["lm_head.weight"].part_bytes() for file in ("a", "plain", "c")
    )
    assert weighed == told != unweighed and weighed == poise.open(tmp_path / "b.gguf")["lm_head.weight"].part_bytes()
    assert len(poise.plan(source, tmp_path / "d.gguf", quantize="q4_0", imatrix=tmp_path / "weights.dat").tensors) == 39
    with pytest.raises(FileNotFoundError):
        poise.convert(source, tmp_path / "d.gguf", quantize="q4_0", imatrix=tmp_path / "nothing")


def test_errors_of_the_system_have_its_numbers(tmp_path):
    with pytest.raises(poise.NotFoundError) as missing:
        poise.open(tmp_path / "nothing")
    assert (missing.value.errno, missing.value.strerror, missing.value.filename) == (
        errno.ENOENT,
        os.strerror(errno.ENOENT),
        str(tmp_path / "nothing"),
    )
    with pytest.raises(poise.NotFoundError) as refused:
        poise.open("/dev/null/a.zt")
    assert (refused.value.errno, refused.value.strerror) == (errno.ENOTDIR, os.strerror(errno.ENOTDIR))
    made = poise._errors.make_error("io", "cannot open: Permission denied", "/a", None, [])
    assert (
        isinstance(made, PermissionError)
        and isinstance(made, poise.PermissionDeniedError)
        and isinstance(made, poise.InputOutputError)
    )
    assert (made.kind, made.errno, made.strerror, made.filename) == ("io", errno.EACCES, "Permission denied", "/a")
    assert str(made) == "/a: cannot open: Permission denied"
    copy = pickle.loads(pickle.dumps(made))
    assert (type(copy), str(copy), copy.errno, copy.filename) == (type(made), str(made), made.errno, made.filename)
    made = poise._errors.make_error("io", "cannot write: No space left on device", "/a", None, [])
    assert type(made) is poise.InputOutputError and made.errno == errno.ENOSPC
    made = poise._errors.make_error("io", "the file ends early", None, 3, [])
    assert (made.errno, made.strerror, made.filename, str(made)) == (None, None, None, "the file ends early (at 0x3)")


@pytest.mark.skipif(not pathlib.Path("/proc/1/mem").exists(), reason="no file that everyone is kept from")
def test_what_is_not_permitted_is_a_permission_error():
    try:
        open("/proc/1/mem", "rb").close()
    except PermissionError:
        with pytest.raises(PermissionError) as refused:
            poise.open("/proc/1/mem")
        assert refused.value.errno in (errno.EACCES, errno.EPERM) and refused.value.filename == "/proc/1/mem"
    else:
        pytest.skip("this user may read it")


def test_arguments_that_make_no_sense_are_told(nano, tmp_path):
    for call in (
        lambda p: poise.open(p),
        lambda p: poise.verify(p),
        lambda p: poise.convert(p, "b.zt"),
        lambda p: poise.convert(nano.path, p),
        lambda p: poise.save({}, p),
        lambda p: poise.plan(p, "b.zt"),
        lambda p: poise.edit(p, delete="a"),
        lambda p: poise.read_tokenizer(p),
        lambda p: poise.convert(nano.path, tmp_path / "b.zt", imatrix=p),
        lambda p: poise.Session(p),
    ):
        with pytest.raises(ValueError, match="null byte"):
            call("a.zt\0")
        with pytest.raises(TypeError, match="path|PathLike|str"):
            call(3)
    assert poise.verify(os.fsencode(nano.path)).ok
    assert "\ud800" not in nano and nano.get("\ud800") is None
    with pytest.raises(KeyError):
        nano["\ud800"]
    for wrong in (None, 3, [1]):
        with pytest.raises(TypeError, match="expected a Model, a path or a dict"):
            poise.hash(wrong)
        with pytest.raises(TypeError, match="expected a Model, a path or a dict"):
            poise.diff(nano, wrong)
    for wrong in ("x", None, [("a", b"x")]):
        with pytest.raises(TypeError, match="dict"):
            poise.Model(wrong)
    for wrong in ("gzip", "zstd:a", "lz4:3"):
        with pytest.raises(poise.BadArgumentError, match="zstd:LEVEL"):
            poise.save(nano, tmp_path / "b.zt", compress=wrong)
    assert poise.plan({"a": np.zeros(3)}, tmp_path / "b.zt").tensors[0].target == "f64"


def test_options_are_spelled_as_the_command_spells_them(command, examples, nano, tmp_path):
    source = examples / "nano-mistral"

    def same(name, told, **options):
        poise.convert(source, tmp_path / f"a{name}", **options)
        subprocess.run(
            [command, "convert", source, "-o", tmp_path / f"b{name}", *told], check=True, stdout=subprocess.DEVNULL
        )
        assert (tmp_path / f"a{name}").read_bytes() == (tmp_path / f"b{name}").read_bytes()

    same("1.gguf", ["--quantize", "Q4_K_M"], quantize="Q4_K_M")
    same("2.zt", ["--quantize", "group4", "--group-size", "64"], quantize="GROUP4", group_size=64)
    same("2.gguf", ["--quantize", "auto", "--size", "1.1MB"], quantize="auto", size="1.1MB")
    same("3.gguf", ["--quantize", "auto", "--bpw", "6.5"], quantize="AUTO", bpw=6.5)
    text = examples / "training" / "heldout.txt"
    same("4.gguf", ["--quantize", "auto", "--bpw", "5", "--text", text], quantize="auto", bpw=5, text=text)
    assert (tmp_path / "a4.gguf").read_bytes() != (tmp_path / "a3.gguf").read_bytes()
    same("3.zt", ["--align", "4KiB", "--shard-size", "500KB"], align="4KiB", shard_size="500KB")
    assert len(poise.save(nano, tmp_path / "4.zt", shard_size="500KB", align=4096).outputs) > 2
    for align in (0, -1, 2**70, np.int64(-1)):
        with pytest.raises(poise.BadArgumentError, match="align is .*, expected a size"):
            poise.save(nano, tmp_path / "6.zt", align=align)
    same("5.zt", ["--keep", "lm_head.*=Q6_K", "--compress", "zstd:5"], keep={"lm_head.*": "Q6_K"}, compress="zstd:5")


def test_names_may_have_capitals(nano, tmp_path):
    for i, options in enumerate(
        (
            {"dtype": "BF16"},
            {"format": "GGUF"},
            {"format": "ZT", "digest": "SHA256"},
            {"format": "Zt", "compress": "ZSTD:3"},
            {"format": "zt", "sparse": "CSR"},
            {"format": "SafeTensors"},
        )
    ):
        small = {name: value.lower() for name, value in options.items()}
        for name, given in (("capitals", options), ("small", small)):
            report = poise.save(nano, tmp_path / f"{name}{i}.safetensors", **given)
            assert report.format == small.get("format", "safetensors")
        assert (tmp_path / f"capitals{i}.safetensors").read_bytes() == (tmp_path / f"small{i}.safetensors").read_bytes()
    for capitals in ("GGUF", "gguf"):
        file = io.BytesIO()
        poise.save(nano, file, format=capitals)
        assert file.getvalue().startswith(b"GGUF")
    with pytest.raises(poise.BadArgumentError, match="directory"):
        poise.save(nano, io.BytesIO(), format="HuggingFace")


def test_a_configuration_that_does_not_fit_is_told(nano, tmp_path):
    for model, options in (
        (nano, {"config": {"num_hidden_layers": 5}}),
        (poise.Model(nano, like=nano, config={"num_hidden_layers": 5}), {}),
    ):
        report = poise.save(model, tmp_path / "a.zt", overwrite=True, **options)
        assert report.bytes_in == (
            nano.file_size if model is nano and not options else sum(tensor.nbytes for tensor in nano.values())
        )
        assert len(report.warnings) == 1
        findings = [one.message for one in poise.verify(tmp_path / "a.zt").findings if one.severity == "error"]
        assert (
            report.warnings[0].message
            == f"verify() will report faults in this model: {findings[0]} (and {len(findings) - 1} more)"
        )
    assert poise.plan(model, tmp_path / "b.zt").warnings == report.warnings
    assert poise.save(nano, tmp_path / "c.zt", config={"rope_theta": 5000.0}).warnings == []


def checkpoint(path, code):
    """Writes a checkpoint of one tensor, as torch.save() does, with `code` as the value of another key."""

    def text(word):
        return b"X" + struct.pack("<I", len(word)) + word

    rebuild = b"ctorch._utils\n_rebuild_tensor_v2\n((" + text(b"storage") + b"ctorch\nFloatStorage\n"
    rebuild += text(b"0") + text(b"cpu") + b"K\2tQK\0K\2\x85K\1\x85\x89ccollections\nOrderedDict\n)RtR"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a/data.pkl", b"\x80\2}(" + text(b"w") + rebuild + text(b"x") + code + b"u.")
        archive.writestr("a/data/0", bytes(8))


def test_strict_refuses_warnings(nano, tmp_path):
    checkpoint(tmp_path / "evil.bin", b"cos\nsystem\n(X\4\0\0\0truetR")
    checkpoint(tmp_path / "good.bin", b"K\1")
    evil, out = poise.open(tmp_path / "evil.bin"), tmp_path / "out.safetensors"
    for call in (
        lambda: poise.convert(tmp_path / "evil.bin", out, strict=True),
        lambda: poise.save(evil, out, strict=True),
        lambda: poise.plan(evil, out, strict=True),
        lambda: poise.plan(tmp_path / "evil.bin", out, strict=True),
        lambda: poise.save(nano, out, config={"num_hidden_layers": 5}, strict=True),  # verify() will refuse it
    ):
        with pytest.raises(poise.InvalidFileError, match="os.system|layer"):
            call()
        assert not out.exists()
    poise.convert(tmp_path / "good.bin", out, strict=True)
    assert "os.system" in str(poise.convert(tmp_path / "evil.bin", out, overwrite=True).warnings)


def test_errors_list_what_there_is(nano, tmp_path):
    for wrong, told in (
        ({"quantize": "q9"}, ["qint8", "group4", "q4_k", "iq4_nl", "q4_k_m"]),
        ({"keep": {"*": "q9"}}, ["bf16", "group4", "q6_k"]),
        ({"dtype": "f9"}, ["f32", "f16", "bf16"]),
        ({"digest": "md5"}, ["xxh3", "sha256", "crc32c", "none"]),
        ({"sparse": "x"}, ["csr", "coo"]),
        ({"format": "x"}, ["safetensors", "gguf"]),
        ({"card": {"colour": "red"}}, ["author", "license"]),
        ({"compress": "gzip"}, ["zstd:LEVEL"]),
        ({"align": "4 bits"}, ["64KiB"]),
        ({"shard_size": 0}, ["64KiB"]),
        ({"shard_size": -1}, ["64KiB"]),
        ({"align": -(2**70)}, ["64KiB"]),
        ({"quantize": "group4", "group_size": 13}, ["multiple of 8"]),
        ({"group_size": 64}, ["group4", "group8"]),
        ({"size": "1GB"}, ['quantize="auto"']),
        ({"bpw": 4.5}, ['quantize="auto"']),
        ({"text": "story.txt"}, ['quantize="auto"']),
        ({"quantize": "auto", "size": "1.5"}, ["64KiB"]),
        ({"quantize": "auto", "bpw": float("nan")}, ["nan"]),
        ({"quantize": "auto", "bpw": -1}, ["above 0"]),
    ):
        with pytest.raises(poise.BadArgumentError) as error:
            poise.save(nano, tmp_path / "a.zt", **wrong)
        for text in [list(wrong)[-1], *told]:
            assert text in str(error.value), (wrong, str(error.value))
    assert not list(tmp_path.iterdir())


def test_a_directory_is_a_hugging_face_model(nano, tmp_path):
    assert poise.save(nano, f"{tmp_path}/made/").format == "huggingface"
    assert poise.plan(nano, f"{tmp_path}/other/").format == "huggingface"
    assert poise.diff(nano, tmp_path / "made").same
    with pytest.raises(poise.BadArgumentError, match="slash.*format="):
        poise.save(nano, tmp_path / "other")


def test_edit_takes_numbers_of_the_keys_type(nano, tmp_path):
    path = tmp_path / "a.gguf"
    poise.save(nano, path)
    numbers = {"llama.context_length": 256, "llama.rope.freq_base": 500_000}
    report = poise.edit(path, set={**numbers, "general.name": "Ada", "general.description": "A model"})
    model = poise.open(path)
    assert (
        model.config["max_position_embeddings"] == 256
        and model.config["rope_theta"] == 500_000
        and report.added == ["general.description"]
    )
    assert poise.edit(path, set={"llama.context_length": np.int64(128), "llama.rope.freq_base": 1 / 3}).added == []
    assert poise.open(path).config["rope_theta"] == pytest.approx(1 / 3, rel=1e-7)
    report = poise.edit(
        path,
        set={
            "llama.context_lenght": 512,
            "my.yes": True,
            "my.real": 0.5,
            "my.list": [1, 2],
            "tokenizer.ggml.add_sep_token": False,
        },
    )
    assert report.added == ["llama.context_lenght", "my.yes", "my.real", "my.list", "tokenizer.ggml.add_sep_token"]
    found = poise.open(path).attributes
    assert (found["llama.context_lenght"], found["my.yes"], found["my.real"], found["my.list"]) == (
        512,
        True,
        0.5,
        [1, 2],
    )
    before = path.read_bytes()
    for key, value, told in (
        ("llama.context_length", 0.5, "u32"),
        ("llama.context_length", -1, "u32"),
        ("llama.context_length", 2**32, "u32"),
        ("llama.context_length", True, "u32"),
        ("general.name", 3, "text"),
        ("llama.rope.freq_base", 1e300, "f32"),
        ("tokenizer.ggml.add_eos_token", 1, "bool"),
        ("tokenizer.ggml.tokens", [1], "text"),
        ("tokenizer.ggml.scores", ["a"], "f32"),
        ("tokenizer.ggml.scores", 1, "f32"),
        ("my.yes", None, "bool"),
    ):
        with pytest.raises(ValueError, match=f"{key}: expected .*{told}"):
            poise.edit(path, set={key: value})
    assert path.read_bytes() == before
    poise.save({"a": b"x"}, tmp_path / "a.zt", metadata={"old": "1"})
    poise.edit(tmp_path / "a.zt", set={"half": np.float16(0.5), "tenth": np.float32(0.1), "whole": np.uint8(3)})
    assert poise.open(tmp_path / "a.zt").attributes == {"old": "1", "half": 0.5, "tenth": 0.1, "whole": 3}
    poise.edit(tmp_path / "a.zt", delete=["half", "tenth", "whole"])
    for value, told in (
        ({"b": [2**64]}, "new.b: the integer 18446744073709551616 does not fit 64 bits"),
        (-(2**63) - 1, "new: the integer"),
        (3j, "new: expected None, bool, int, float, str, bytes, a list or a dict, found a complex"),
    ):
        with pytest.raises(poise.BadArgumentError, match=told):
            poise.edit(tmp_path / "a.zt", set={"new": value})
    assert poise.edit(tmp_path / "a.zt", set={"old": 2, "new": [0.5, {"a": None}]}).added == ["new"]
    assert poise.open(tmp_path / "a.zt").attributes == {"old": 2, "new": [0.5, {"a": None}]}


def test_numpys_booleans_cancel(nano, tmp_path):
    for stop in (False, np.bool_(False)):
        with pytest.raises(poise.CancelledError):
            poise.save(nano, tmp_path / "a.zt", progress=lambda *_: stop)
    for go_on in (None, True, np.bool_(True), 0, "", np.float32(0)):
        poise.verify(nano.path, progress=lambda *_: go_on)


def test_what_is_of_a_wrong_type_is_told_in_plain_words(nano, tmp_path):
    session, tokenizer, tensor = poise.Session(nano), nano.tokenizer, nano["lm_head.weight"]
    for call in (
        lambda: poise.Model({}, config=3),
        lambda: poise.Model({}, card=[1]),
        lambda: poise.save(nano, tmp_path / "a", metadata=3, format="zt"),
        lambda: poise.save(nano, tmp_path / "a.zt", keep=3),
        lambda: poise.save(nano, tmp_path / "a.zt", card="x"),
        lambda: poise.save(nano, tmp_path / "a.zt", overwrite="no"),
        lambda: poise.save(nano, tmp_path / "a.zt", align=[4]),
        lambda: poise.edit(tmp_path / "a.zt", set=3),
        lambda: poise.edit(tmp_path / "a.zt", set={"a": 1}, force="x"),
        lambda: poise.diff(nano, nano, verify="x"),
        lambda: poise.Session(nano, exact="x"),
        lambda: nano.vocabulary["a"],
        lambda: poise.TextStream(3),
        lambda: poise.TextStream(tokenizer, special=3),
        lambda: poise.TextStream(tokenizer).add("a"),
        lambda: tokenizer.encode("a", special="x"),
        lambda: tokenizer.decode([1], special="x"),
        lambda: tokenizer.piece("a"),
        lambda: tensor.part_bytes(3),
        lambda: session.prompt(3),
        lambda: poise.quantize(np.ones(32), 3),
        lambda: poise.dequantize(bytes(34), 3, (32,)),
        lambda: poise.dequantize(bytes(34), "q8_0", ("a",)),
        lambda: poise.quantize([1.0], "q8_0"),
    ):
        with pytest.raises(TypeError) as error:
            call()
        assert "expected" in str(error.value) or "is not an array" in str(error.value), str(error.value)
        assert (
            "pybind" not in str(error.value)
            and "argument" not in str(error.value)
            and "Invoked" not in str(error.value)
        )
    assert not list(tmp_path.iterdir())
    with pytest.raises(IndexError):
        nano.vocabulary[-1]
