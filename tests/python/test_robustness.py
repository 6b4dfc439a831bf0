"""Hostile files, threads, forks, and objects that are destroyed in any order lead to errors, never to a crash."""

import gc
import os
import pathlib
import random
import subprocess
import sys
import threading

import numpy as np
import pytest

import poise


def use_everything(path):
    """Opens a file and uses all of the model. Each step may raise poise.Error."""
    try:
        model = poise.open(path)
    except poise.Error:
        return False
    for ask in (
        lambda: model.config,
        lambda: model.card,
        lambda: model.attributes,
        lambda: model.warnings,
        lambda: model.tokenizer.encode("a b"),
        lambda: poise.Session(model),
        lambda: model._repr_html_(),
        lambda: poise.hash(model),
        lambda: poise.diff(model, model),
        lambda: [model.vocabulary[i] for i in range(len(model.vocabulary or ()))],
    ):
        try:
            ask()
        except poise.Error:
            pass
    for name in model:
        tensor = model[name]
        if tensor.size > 1_000_000:
            continue
        for ask in (
            tensor.numpy,
            lambda: tensor.numpy("f32"),
            lambda: tensor[:1].numpy("f32"),
            lambda: tensor[..., :1].numpy("f32"),
            lambda: memoryview(tensor),
            lambda: tensor.__dlpack__(),
            lambda: [tensor.part_bytes(part.role) for part in tensor.parts],
            lambda: tensor._repr_html_(),
        ):
            try:
                ask()
            except (poise.Error, BufferError, TypeError, IndexError):
                pass
    poise.verify(path)
    return True


def test_hostile_files_raise(tmp_path):
    """Uses every file of the tables in tests/hostile, which the C++ tests write, in every way."""
    tests = pathlib.Path(os.environ["POISE_BUILD"]) / "tests/poise_tests"
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    subprocess.run(
        [
            tests,
            "--gtest_filter=Hostile*-*FlippedBits*:*SmallFilesThatClaimMuchFailSoon*:*SoundShards*",
            "--gtest_brief=1",
        ],
        env={**os.environ, "POISE_HOSTILE_CORPUS": str(corpus)},
        check=True,
        stdout=subprocess.DEVNULL,
    )
    files = sorted(corpus.iterdir())
    assert len(files) > 300
    opened = sum(use_everything(path) for path in files)
    assert opened < len(files) / 2


def test_cut_and_flipped_files_raise(tmp_path, arrays):
    generator = random.Random(20)
    for name, options in (
        ("a.zt", {}),
        ("a.zt", {"compress": "zstd"}),
        ("a.safetensors", {}),
        ("a.zt", {"quantize": "qint8"}),
    ):
        arrays["floats"] = np.ones((4, 64), np.float32)
        poise.save(arrays, tmp_path / name, overwrite=True, **options)
        whole = (tmp_path / name).read_bytes()
        for _ in range(25):
            data = bytearray(whole)
            for _ in range(generator.randrange(1, 4)):
                data[generator.randrange(len(data))] ^= 1 << generator.randrange(8)
            (tmp_path / name).write_bytes(data[: generator.choice([len(data), generator.randrange(len(data))])])
            use_everything(tmp_path / name)


def test_threads_use_one_model(nano):
    expected = {name: nano[name].numpy("f32").sum() for name in nano}
    failures = []

    def run(seed):
        names = list(nano)
        random.Random(seed).shuffle(names)
        try:
            for name in names:
                tensor = nano[name]
                assert tensor.numpy("f32").sum() == expected[name]
                assert tensor[:1].numpy("f32").shape[0] == 1
                tensor.__dlpack__()
            assert poise.diff(nano, nano).same
        except Exception as error:  # noqa: BLE001
            failures.append(error)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_closing_while_others_read(examples):
    for seed in range(30):
        model = poise.open(examples / "nano-mistral")
        ready = threading.Barrier(3)
        wrong = []

        def run():
            ready.wait()
            try:
                for name in list(model):
                    model[name].numpy("f32")
                poise.hash(model)
            except poise.BadArgumentError:
                pass
            except Exception as error:  # noqa: BLE001
                wrong.append(error)

        threads = [threading.Thread(target=run) for _ in range(2)]
        for thread in threads:
            thread.start()
        ready.wait()
        for _ in range(seed * 50):
            pass
        model.close()
        for thread in threads:
            thread.join()
        assert not wrong


def test_fork_after_open(nano):
    """A child process uses models that its parent opened, and computed with on several threads."""
    tensor, session = nano["lm_head.weight"], poise.Session(nano, threads=2)
    expected = tensor.numpy("f32").sum()
    text = "".join(session.generate("One day", max_tokens=5))
    child = os.fork()
    if child == 0:
        ok = (
            nano["lm_head.weight"].numpy("f32").sum() == expected
            and poise.open(nano.path)["lm_head.weight"].numpy("f32").sum() == expected
        )
        ok = ok and len(nano) == 39 and poise.hash(nano).model
        os._exit(0 if ok and text else 1)
    for _ in range(600):
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            break
        threading.Event().wait(0.1)
    else:
        os.kill(child, 9)
        os.waitpid(child, 0)
        pytest.fail("the child hangs")
    assert os.waitstatus_to_exitcode(status) == 0


RANDOM_ORDER = """if True:
    import gc, random, sys
    import numpy as np
    import poise
    path = sys.argv[1]
    for seed in range(60):
        generator = random.Random(seed)
        model = poise.open(path)
        tensor = model["a"]
        part = tensor[2:5, ::2]
        things = [model, tensor, part, tensor.numpy(), part.numpy(), memoryview(tensor), memoryview(part),
                  np.from_dlpack(tensor), tensor.__dlpack__(), tensor.part_bytes(), tensor.numpy("f16"),
                  poise.Model({"x": tensor, "y": np.arange(9), "z": memoryview(b"abc")}),
                  tensor.numpy()[1:, 1:], iter(model), model.tensors]
        things.append(things[11]["y"].numpy())
        things.append(memoryview(things[11]["z"]))
        if generator.random() < 0.3:
            model.close()
        del model, tensor, part
        generator.shuffle(things)
        sums = 0
        while things:
            thing = things.pop()
            if isinstance(thing, np.ndarray):
                sums += float(thing.sum())
            elif isinstance(thing, memoryview):
                sums += len(thing.tobytes())
            del thing
            if generator.random() < 0.2:
                gc.collect()
        assert sums > 0
    print("done")
"""


def test_objects_go_in_any_order(tmp_path):
    """Objects are destroyed in any order, with allocators that overwrite freed memory and check bytes around blocks."""
    path = tmp_path / "a.safetensors"
    poise.save({"a": np.ones((100, 300), np.float32)}, path)
    environment = {**os.environ, "PYTHONMALLOC": "debug", "MALLOC_PERTURB_": "165", "MALLOC_CHECK_": "3"}
    checker = pathlib.Path("/lib/x86_64-linux-gnu/libc_malloc_debug.so.0")
    if checker.exists():
        environment["LD_PRELOAD"] = str(checker)
    done = subprocess.run([sys.executable, "-c", RANDOM_ORDER, path], env=environment, capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout == "done\n", done.stderr


def test_nothing_leaks(tmp_path, nano):
    """Memory and descriptors do not grow over 10,000 opened models with arrays, and as many failures."""
    path, broken = tmp_path / "a.safetensors", tmp_path / "b.safetensors"
    poise.save({"a": np.ones((40, 30), np.float32), "b": np.ones(3, np.int8)}, path)
    broken.write_bytes(path.read_bytes()[:-1])

    def round_trip():
        model = poise.open(path)
        tensor = model["a"]
        tensor.numpy(), tensor.numpy("f16"), tensor[3:5, ::2].numpy(), tensor.__dlpack__(), np.from_dlpack(
            tensor
        ), memoryview(tensor), model.attributes
        poise.Model({"x": tensor.numpy(), "y": tensor})
        try:
            poise.open(broken)
        except poise.Error:
            pass

    def resident():
        gc.collect()
        return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")

    for _ in range(1000):
        round_trip()
    before, files = resident(), len(os.listdir("/proc/self/fd"))
    for _ in range(10_000):
        round_trip()
    assert resident() - before < 4_000_000  # 400 bytes a round would be more
    assert len(os.listdir("/proc/self/fd")) == files
    session = poise.Session(nano)
    list(session.generate("a", max_tokens=2))
    before = resident()
    for _ in range(300):
        session.reset()
        list(session.generate("a", max_tokens=2))
        session.logits()
    assert resident() - before < 4_000_000


DAEMON = """if True:
    import sys, threading, time, poise
    large, folder, mode = sys.argv[1:]

    def convert():
        while True:
            poise.convert(large, folder + "/out.gguf", quantize="q8_0", overwrite=True, progress=lambda *_: None)

    def call_back():
        while True:
            poise.verify(large, progress=lambda *_: sum(i for i in range(300_000)) < 0 or None)

    def verify():
        while True:
            poise.verify(large, progress=lambda *_: None)

    def read():
        model = poise.open(large)
        while True:
            model["a"].numpy("f16")

    def generate():
        session = poise.Session(sys.argv[1])
        while True:
            session.reset()
            list(session.generate("One day", max_tokens=100))

    threading.Thread(target=locals()[mode], daemon=True).start()
    time.sleep(0.3)
"""


@pytest.mark.parametrize("mode", ["convert", "call_back", "verify", "read", "generate"])
def test_daemon_threads_do_not_end_the_process(mode, examples, tmp_path):
    """If the interpreter ends while a thread is in a call, the process ends as it would without the thread."""
    path = tmp_path / "a.safetensors"
    poise.save({"a": np.ones((4000, 1000), np.float32)}, path)
    source = examples / "nano-mistral" if mode == "generate" else path
    for _ in range(5):
        done = subprocess.run(
            [sys.executable, "-c", DAEMON, source, tmp_path, mode], capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0 and done.stderr == ""


def test_none_is_no_model():
    for make in (poise.Slice, poise.Tokenizer, poise.Weights, poise.TextStream):
        for arguments in ((None,), (None, 0), (None, "a")):
            with pytest.raises(TypeError):
                make(*arguments)
