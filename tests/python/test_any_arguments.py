"""Arbitrary arguments of the package's functions lead to a value or to a documented exception, never to a crash or an
internal error.

Calls are drawn at random, with a fixed seed.
"""

import inspect
import math
import os
import random

import numpy as np
import pytest

import poise
import poise.numpy

EXPECTED = (
    poise.Error,
    TypeError,
    ValueError,
    IndexError,
    KeyError,
    AttributeError,
    OverflowError,
    BufferError,
    OSError,
    NotImplementedError,
)
CALLS = 4000


class Anything:
    """Implements every protocol with wrong results."""

    def __fspath__(self):
        return 7

    def __index__(self):
        raise ZeroDivisionError("index")

    def __len__(self):
        return -1

    def __getitem__(self, key):
        raise IndexError(key)


def callables(owner, found):
    for name, member in inspect.getmembers(owner):
        # All but the classes of errors.
        if (
            not name.startswith("_")
            and callable(member)
            and not (inspect.isclass(member) and issubclass(member, BaseException))
        ):
            found.append((f"{getattr(owner, '__name__', type(owner).__name__)}.{name}", member))


def values(examples, directory):
    model = poise.open(examples / "nano-mistral")
    tensor = model[next(iter(model))]
    array = np.arange(24, dtype=np.float32).reshape(4, 6)
    readonly = array.copy()
    readonly.flags.writeable = False
    return [
        None,
        True,
        False,
        0,
        1,
        -1,
        2,
        3,
        8,
        2**31,
        2**63,
        -(2**64),
        0.0,
        -1.5,
        math.nan,
        math.inf,
        "",
        "a",
        "f32",
        "q4_k",
        "group4",
        "zt",
        "gguf",
        "caf\xe9 \udc80",
        "a\0b",
        "model.*",
        b"",
        b"a\0\xff",
        bytearray(b"abc"),
        memoryview(b"abc"),
        [],
        [1, 2],
        ["a", 1],
        (),
        (1, -1),
        {},
        {"a": 1},
        {"a": array},
        {1: "a"},
        {"a": {"b": [None, 1.5]}},
        set(),
        {"a"},
        slice(None),
        slice(5, None, -2),
        Ellipsis,
        object(),
        Anything(),
        int,
        len,
        lambda *a, **k: None,
        lambda *a, **k: 1 / 0,
        array,
        array[::-1, ::2],
        array[:0],
        np.float32(3),
        np.array(5),
        np.array(["a", "b"]),
        np.array([None, 1]),
        np.zeros((2, 2), ">f4"),
        np.zeros(3, np.complex64),
        readonly,
        np.zeros((1,) * 30, np.int8),
        np.zeros(2, [("a", "i4")]),
        np.array([2**63], np.uint64),
        np.datetime64("2020"),
        model,
        tensor,
        model.config,
        model.vocabulary,
        model.tokenizer,
        poise.Weights(model),
        poise.Session(model, threads=1),
        directory / "in.zt",
        directory / "in.gguf",
        str(directory / "new.zt"),
        directory / "new.safetensors",
        directory / "absent",
        directory,
        os.fspath(directory / "in.zt").encode(),
    ]


@pytest.mark.filterwarnings("ignore")  # numpy's, of what it is given
@pytest.mark.parametrize("seed", range(4))
def test_any_arguments(examples, tmp_path, monkeypatch, seed):
    monkeypatch.chdir(tmp_path)
    model = poise.open(examples / "nano-mistral")
    poise.save({"w": np.ones((4, 256), np.float32)}, tmp_path / "in.zt")
    poise.save({"w": np.ones((4, 256), np.float32)}, tmp_path / "in.gguf")
    pool = values(examples, tmp_path)
    session = poise.Session(model, threads=1)
    found = []
    for owner in (
        poise,
        poise.numpy,
        model,
        model[next(iter(model))],
        model.tokenizer,
        session,
        poise.Weights(model),
        model.config,
        model.vocabulary,
    ):
        callables(owner, found)
    words = (
        "path out quantize dtype keep only skip format overwrite compress align shard_size threads seed max_tokens "
        "temperature text config card progress set erase delete force io"
    ).split()
    chance = random.Random(seed)
    for _ in range(CALLS // 4):
        name, called = chance.choice(found)
        arguments = [chance.choice(pool) for _ in range(chance.choice([0, 1, 1, 2, 2, 3]))]
        named = {chance.choice(words): chance.choice(pool) for _ in range(chance.choice([0, 0, 1, 2]))}
        try:
            parameters = inspect.signature(called).parameters
            if chance.random() < 0.7:
                named = {key: value for key, value in named.items() if key in parameters}
        except (TypeError, ValueError):
            pass
        if "generate" in name:
            named["max_tokens"] = chance.choice([1, 2])
        try:
            result = called(*arguments, **named)
            repr(result)
            if inspect.isgenerator(result) or hasattr(result, "__next__"):
                for _, _ in zip(range(3), result):
                    pass
        except poise.InternalError:
            raise
        except ZeroDivisionError as error:  # that of a callback comes through
            assert "division by zero" in str(error) or str(error) == "index", name
        except EXPECTED:
            pass
    assert all(poise.verify(tmp_path / file).ok for file in ("in.zt", "in.gguf") if (tmp_path / file).exists())
