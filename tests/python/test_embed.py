"""Compares hidden states and vectors of texts with NumPy's forward pass (tests/runtime/forward_pass.py)."""

import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import poise

sys.path.insert(0, str(pathlib.Path(os.environ["POISE_SOURCE"]) / "tests" / "runtime"))
from forward_pass import hidden_states  # noqa: E402

TEXTS = ["Once upon a time there was a mouse.", "The fox", "", "A bee saw the moon and the sea"]


@pytest.fixture
def expected(nano):
    """Returns the hidden states of each text: float64 [layers + 1, tokens, hidden_size]."""
    config = json.loads((pathlib.Path(nano.path) / "config.json").read_text())
    weights = {name: tensor.numpy(dtype="f32").astype(np.float64) for name, tensor in nano.items()}
    return [np.array(hidden_states(config, weights, np.array(ids))) for ids in encoded(nano)]


def encoded(model):
    return [model.tokenizer.encode(text, special=True) for text in TEXTS]


def near(array, wanted):
    assert array.dtype == np.float32 and array.shape == wanted.shape
    np.testing.assert_allclose(array, wanted, atol=2e-5 * np.abs(wanted).max())


def test_hidden_states_are_those_of_numpy(nano, expected):
    session = poise.Session(nano, exact=True)
    for ids, states in zip(encoded(nano), expected):
        for layer, wanted in enumerate(states):
            near(session.hidden_states(ids, layer), wanted)
        near(session.hidden_states(np.array(ids)), states[-1])
        near(session.hidden_states(ids, layer=-2), states[-2])
        assert session.position == len(ids)
        session.reset()
        session.feed(ids)
        near(session.hidden_state(), states[-1][-1])
    weights = poise.Weights(nano)
    assert weights.layers == len(expected[0]) - 1 and weights.hidden_size == expected[0].shape[-1]
    assert session.hidden_states([]).shape == (0, weights.hidden_size)


def test_a_loaded_session_has_a_hidden_state_once_it_is_fed(nano, tmp_path):
    session = poise.Session(nano)
    session.feed([1, 5])
    session.save(tmp_path / "talk.zt")
    session.load(tmp_path / "talk.zt")
    with pytest.raises(poise.BadArgumentError, match="no hidden state before it is fed"):
        session.hidden_state()
    session.feed([9])
    assert session.hidden_state().shape == (session.hidden_states([1]).shape[1],)


def test_vectors_are_pooled_states(nano, expected):
    weights = poise.Weights(nano)
    last = np.array([states[-1][-1] for states in expected])
    mean = np.array([states[-1].mean(axis=0) for states in expected])
    near(poise.embed(weights, TEXTS, exact=True), last)
    near(poise.embed(weights, encoded(nano), exact=True, pooling="mean"), mean)
    near(poise.embed(weights, iter(TEXTS), exact=True, layer=1), np.array([states[1][-1] for states in expected]))
    near(poise.embed(weights, TEXTS, exact=True, normalize=True), last / np.linalg.norm(last, axis=1, keepdims=True))
    assert poise.embed(weights, []).shape == (0, weights.hidden_size)
    events = []
    poise.embed(weights, TEXTS, progress=lambda *event: events.append(event))
    tokens = sum(map(len, encoded(nano)))
    assert events == [(tokens, tokens, "tokens")]


def test_the_command_gives_the_same(nano, command):
    def vectors(*arguments, input=""):
        ran = subprocess.run(
            [command, "embed", nano.path, *arguments], check=True, capture_output=True, text=True, input=input
        )
        return [json.loads(line) for line in ran.stdout.splitlines()]

    found = vectors("--jsonl", "--pooling", "mean", input="\n".join(map(json.dumps, TEXTS)))
    np.testing.assert_array_equal(
        np.array([line["embedding"] for line in found], np.float32), poise.embed(nano, TEXTS, pooling="mean")
    )
    assert [line["tokens"] for line in found] == [len(ids) for ids in encoded(nano)]
    (one,) = vectors("--layer", "2", "--normalize", TEXTS[0])
    np.testing.assert_array_equal(
        np.array(one["embedding"], np.float32), poise.embed(nano, TEXTS[:1], layer=2, normalize=True)[0]
    )


def test_wrong_arguments_are_named(nano):
    weights = poise.Weights(nano)
    session = poise.Session(weights)
    with pytest.raises(poise.BadArgumentError, match="before the first token"):
        session.hidden_state()
    session.feed([1, 5])
    for wrong in (5, -6, 2**70):
        with pytest.raises(poise.BadArgumentError, match="layer is"):
            session.hidden_states([1], wrong)
    with pytest.raises(TypeError, match="layer"):
        session.hidden_states([1], "last")
    assert session.position == 2
    with pytest.raises(TypeError, match="expected a list of texts or of token ids"):
        poise.embed(weights, "Once")
    with pytest.raises(poise.BadArgumentError, match='pooling is .*, expected "last" or "mean"'):
        poise.embed(weights, TEXTS, pooling="max")
    with pytest.raises(poise.BadArgumentError, match="layer is 9"):
        poise.embed(weights, TEXTS, layer=9)
    with pytest.raises(poise.BadArgumentError, match="text 2: it has no tokens"):
        poise.embed(weights, [[1], []])
    with pytest.raises(poise.BadArgumentError, match="text 1: .* do not fit the context of 5 tokens"):
        poise.embed(weights, TEXTS, context=5)
    with pytest.raises(TypeError, match="normalize"):
        poise.embed(weights, TEXTS, normalize="yes")
