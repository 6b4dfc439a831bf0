"""Compares perplexities and divergences with those that NumPy computes from the logits of both models."""

import json
import math
import subprocess

import numpy as np
import pytest

import poise

TEXTS = ["Once upon a time there was a mouse.", "The fox saw the moon", "A"]


@pytest.fixture
def quantized(nano, tmp_path):
    path = tmp_path / "q4.zt"
    poise.convert(nano.path, path, quantize="q4_0")
    return poise.open(path)


def logarithms(model, tokens):
    """Returns the logarithms of the probabilities after each token: float64 [tokens, vocabulary]. Feeds all tokens up
    to each one at once, so that products round as in a text."""
    session = poise.Session(model, exact=True)
    rows = []
    for end in range(1, len(tokens)):
        session.reset()
        session.feed(tokens[:end])
        logits = session.logits().astype(np.float64)
        rows.append(logits - np.log(np.sum(np.exp(logits - logits.max()))) - logits.max())
    return np.array(rows)


def error(sample):
    return np.std(sample, ddof=1) / math.sqrt(len(sample))


def test_numpy_computes_the_same(nano, quantized):
    found = poise.perplexity(quantized, TEXTS, against=nano, exact=True)
    vocabulary = nano.vocabulary
    loss, base_loss, divergence, same = [], [], [], []
    for text in TEXTS:
        tokens = [*nano.tokenizer.encode(text, special=True), vocabulary.eos_id]
        q, p = logarithms(quantized, tokens), logarithms(nano, tokens)
        at = np.arange(len(tokens) - 1), tokens[1:]
        loss.extend(-q[at])
        base_loss.extend(-p[at])
        divergence.extend(np.sum(np.exp(p) * (p - q), axis=1))
        same.extend(np.argmax(p, axis=1) == np.argmax(q, axis=1))
    loss, base_loss, divergence = map(np.array, (loss, base_loss, divergence))
    assert found.texts == len(TEXTS) and found.tokens == len(loss)

    def near(value):
        return pytest.approx(value, rel=1e-3)

    def exponential(sample):
        return near((math.exp(np.mean(sample)), math.exp(np.mean(sample)) * error(sample)))

    assert (found.perplexity, found.perplexity_error) == exponential(loss)
    assert (found.base_perplexity, found.base_perplexity_error) == exponential(base_loss)
    assert (found.ratio, found.ratio_error) == exponential(loss - base_loss)
    assert (found.kl_mean, found.kl_mean_error) == near((np.mean(divergence), error(divergence)))
    assert found.kl_max == near(divergence.max())
    assert (found.same_top, found.same_top_error) == near((np.mean(same), error(same)))
    assert found.kl_max > 0.01 and found.same_top < 1  # otherwise there is nothing to measure


def test_the_command_gives_the_same(nano, quantized, command, tmp_path):
    file = tmp_path / "texts"
    file.write_text("\n\n".join(TEXTS))
    ran = subprocess.run(
        [command, "run", quantized.path, "--perplexity", file, "--against", nano.path, "--json"],
        check=True,
        capture_output=True,
    )
    found = poise.perplexity(quantized.path, TEXTS, against=nano.path)
    assert json.loads(ran.stdout) == {name: value for name, value in found._asdict().items() if value is not None}
    long = " ".join(TEXTS)
    file.write_text(long + "\n")
    windows = [command, "run", nano.path, "--perplexity", file, "--window", "8", "--json"]
    for stride in (0, 5):
        ran = subprocess.run([*windows, *(["--stride", "5"] if stride else [])], check=True, capture_output=True)
        found = poise.perplexity(nano.path, [long], window=8, stride=stride)
        assert json.loads(ran.stdout) == {name: value for name, value in found._asdict().items() if value is not None}
        assert found.windows >= 2


def test_windows_begin_with_bos_where_llama_perplexity_has_it(nano):
    """Each window of 8 tokens is a prompt: BOS replaces its first token, and the tokens after the fifth count."""
    tokens = nano.tokenizer.encode(" ".join(TEXTS), special=True)
    log = []
    for begin in range(0, len(tokens) - 7, 8):
        window = [nano.vocabulary.bos_id, *tokens[begin + 1 : begin + 8]]
        log.extend(poise.Session(nano, exact=True).log_probabilities(window)[4:])
    found = poise.perplexity(nano, [" ".join(TEXTS)], window=8, exact=True)
    assert found.tokens == len(log) == 3 * found.windows
    assert found.perplexity == pytest.approx(math.exp(-np.mean(log)), rel=1e-5)
    with pytest.raises(poise.BadArgumentError, match="stride needs window"):
        poise.perplexity(nano, TEXTS, stride=5)


def test_without_a_base_and_of_ids(nano):
    weights = poise.Weights(nano)
    ids = [[*nano.tokenizer.encode(text, special=True), nano.vocabulary.eos_id] for text in TEXTS]
    found = poise.perplexity(weights, (np.array(i) for i in ids))
    assert found == poise.perplexity(weights, TEXTS) and found.kl_mean is None and found.same_top_error is None
    log = [p for i in ids for p in poise.Session(nano).log_probabilities(i)]
    assert found.perplexity == pytest.approx(math.exp(-np.mean(log)), rel=1e-5)
    assert math.isnan(poise.perplexity(weights, [[1, 5]]).perplexity_error)


def test_progress_counts_bytes_of_texts_and_can_stop(nano):
    events = []
    poise.perplexity(nano, [*TEXTS, [1, 2]], progress=lambda *event: events.append(event))
    sizes = np.cumsum([len(text) for text in TEXTS] + [8])
    assert events == [(size, sizes[-1], f"text {number}") for number, size in enumerate(sizes, 1)]
    with pytest.raises(poise.CancelledError):
        poise.perplexity(nano, TEXTS, progress=lambda *event: False)


def test_wrong_arguments_are_named(nano, examples):
    with pytest.raises(TypeError, match="expected a list of texts or of token ids"):
        poise.perplexity(nano, "Once")
    with pytest.raises(
        poise.BadArgumentError, match=r"the vocabularies differ: token \d+ is \".*\", and \".*\" in the"
    ):
        poise.perplexity(nano, TEXTS, against=examples / "nano-mistral-wide")
    with pytest.raises(poise.BadArgumentError, match="no text with a token to predict has been added"):
        poise.perplexity(nano, [])
    with pytest.raises(poise.BadArgumentError, match="token 99999 is out of range"):
        poise.perplexity(nano, [[1, 99999]])
    with pytest.raises(poise.BadArgumentError, match="do not fit the context of 5 tokens"):
        poise.perplexity(nano, TEXTS, context=5)
    with pytest.raises(TypeError, match="token ids are integers"):
        poise.perplexity(nano, [3.5])
