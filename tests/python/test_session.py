"""Sessions and tokenizers, beside the command and the reference that a trained model came with."""

import itertools
import json
import subprocess
import sys
import threading

import numpy as np
import pytest

import poise

PROMPT = "One day, a mouse"


def test_generates_what_the_command_generates(command, examples, nano):
    run = [command, "run", examples / "nano-mistral", "-p", PROMPT, "-n", "40", "--temperature", "0.8", "--top-p", "0.9", "--seed", "7", "--json"]
    told = json.loads(subprocess.run(run, check=True, capture_output=True).stdout)
    options = {"max_tokens": 40, "temperature": 0.8, "top_p": 0.9, "seed": 7}
    session = poise.Session(nano, threads=2)
    pieces = list(session.generate(PROMPT, **options))
    assert "".join(pieces) == told["text"] and len(pieces) > 10
    session.reset()
    assert list(session.generate_tokens(PROMPT, **options)) == told["tokens"]
    assert session.prompt(PROMPT) == told["prompt_tokens"]
    session.reset()
    assert list(session.generate_tokens(told["prompt_tokens"], **options)) == told["tokens"]


def test_logits_and_tokens_are_the_references(examples):
    """Computed in float64 by the program that trained the model: examples/nano-mistral/reference.json."""
    reference = json.loads((examples / "nano-mistral/reference.json").read_text())
    session = poise.Session(examples / "nano-mistral")
    for case in reference["prompts"]:
        session.reset()
        assert session.prompt(case["text"]) == case["tokens"]
        session.feed(case["tokens"])
        assert session.position == len(case["tokens"])
        logits = session.logits()
        assert logits.shape == (960,) and logits.dtype == np.float32
        if "logits" in case:
            np.testing.assert_allclose(logits, case["logits"], atol=1e-3)
        kept = logits.copy()
        session.reset()
        wanted = case["greedy_tokens"]
        assert list(session.generate_tokens(case["text"], max_tokens=len(wanted))) == wanted
        np.testing.assert_array_equal(logits, kept)  # they are the caller's own


def test_exact_sessions_give_the_scores_of_the_numbers_that_codes_are(nano, tmp_path):
    poise.save(nano, tmp_path / "codes.gguf", quantize="q4_0")
    poise.convert(tmp_path / "codes.gguf", tmp_path / "numbers.zt", dtype="f32")

    def scores(name, **options):
        session = poise.Session(tmp_path / name, **options)
        session.feed([5])
        return session.logits()

    expected = scores("numbers.zt")
    most = np.abs(expected).max()
    assert np.abs(scores("codes.gguf", exact=True) - expected).max() < 1e-5 * most
    assert np.abs(scores("codes.gguf") - expected).max() > 1e-4 * most


def test_long_prompts_are_fed_as_the_library_feeds_them(command, examples, nano):
    tokens = [1] + [3 + i % 900 for i in range(256)]  # 257: one more than a batch
    run = [command, "run", examples / "nano-mistral", "--tokens", ",".join(map(str, tokens)), "--logits"]
    told = json.loads(subprocess.run(run, check=True, capture_output=True).stdout)
    session = poise.Session(nano)
    session.feed(tokens)
    assert [round(float(logit), 6) for logit in session.logits()] == pytest.approx(told["logits"], abs=1e-6)


def test_state(nano):
    session = poise.Session(nano, context=64)
    assert (session.context, session.position, session.vocabulary_size) == (64, 0, 960)
    with pytest.raises(ValueError, match="first token"):
        session.logits()
    session.feed(np.array([1, 5, 9], np.int64))
    first = session.logits()
    session.reset()
    assert session.position == 0
    session.feed((1, 5, 9))
    np.testing.assert_array_equal(session.logits(), first)
    for wrong, raised in (([960], ValueError), ([-1], ValueError), ([2**40], (ValueError, TypeError)), (["a"], TypeError), ([1] * 65, ValueError), ("a", TypeError)):
        with pytest.raises(raised):
            session.feed(wrong)
    assert session.position == 3
    log = session.log_probabilities([1, 5, 9])
    assert len(log) == 2 and all(value < 0 for value in log)
    exact = first.astype(np.float64)
    session.reset()
    session.feed([1, 5])
    scores = session.logits().astype(np.float64)
    assert log[1] == pytest.approx(scores[9] - np.log(np.exp(scores).sum()), abs=1e-4) and exact.shape == (960,)


def test_generation_ends(nano):
    session = poise.Session(nano, context=20)
    tokens = list(session.generate_tokens(PROMPT, max_tokens=1000))
    assert len(tokens) + len(session.prompt(PROMPT)) == 21  # the last one is not fed
    session.reset()
    assert list(session.generate(PROMPT, max_tokens=0)) == []
    session.reset()
    stop = tokens[3]
    assert list(session.generate_tokens(PROMPT, stop_id=stop)) == tokens[: tokens.index(stop) + 1]
    for wrong in ({"stop_id": 960}, {"temperature": -1}, {"top_p": 0}, {"top_k": -1}):
        with pytest.raises(ValueError):
            session.generate(PROMPT, **wrong)
    with pytest.raises(TypeError):
        session.generate(PROMPT, max_tokens=-1)


def test_a_text_is_generated_without_other_calls_between(nano):
    session = poise.Session(nano)
    pieces = session.generate(PROMPT)
    next(pieces)
    session.feed([3])
    with pytest.raises(ValueError, match="meanwhile"):
        list(itertools.islice(pieces, 3))


def test_weights_are_shared_by_threads(nano):
    weights = poise.Weights(nano)
    nano.close()
    results = [None] * 4

    def run(i):
        results[i] = "".join(poise.Session(weights, threads=1).generate(PROMPT, max_tokens=30))

    threads = [threading.Thread(target=run, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(results)) == 1 and results[0]


def test_threads_may_share_a_session(nano):
    session = poise.Session(nano, context=128)

    def run():
        for _ in range(20):
            session.feed([5])
            session.logits()

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert session.position == 80


def test_tokenizer(command, examples, nano):
    tokenizer = nano.tokenizer
    text = "One day, a mouse named ä日本🙂 lived there."
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == text and len(tokenizer) == 960
    assert nano.tokenizer is tokenizer
    stream = poise.TextStream(tokenizer)
    assert "".join([*(stream.add(i) for i in ids), stream.finish()]) == text
    assert poise.Session(nano).prompt(text) == [1, *ids]
    with pytest.raises(ValueError):
        tokenizer.decode([960])
    with pytest.raises(TypeError):
        tokenizer.encode(3)
    tiny = poise.open(examples / "nano-tiny-llama/weights.tllm")
    with pytest.raises(poise.UnsupportedError, match="vocabulary"):
        tiny.tokenizer
    with pytest.raises(poise.UnsupportedError, match="vocabulary"):
        poise.Session(tiny).generate([1])
    assert len(list(poise.Session(tiny).generate_tokens([1, 2], max_tokens=5))) <= 5
    with pytest.raises(poise.UnsupportedError):
        poise.Session(poise.Model({"a": b"x"}))


def test_a_tokenizer_outlives_its_model(nano):
    tokenizer, session_tokenizer = nano.tokenizer, poise.Session(nano).tokenizer
    nano.close()
    assert tokenizer.encode("a mouse") == session_tokenizer.encode("a mouse")


def test_ctrl_c_between_pieces(examples):
    code = """if True:
        import os, signal, sys, poise
        session = poise.Session(sys.argv[1])
        try:
            for count, piece in enumerate(session.generate("One day", max_tokens=10000)):
                if count == 3:
                    os.kill(os.getpid(), signal.SIGINT)
        except KeyboardInterrupt:
            sys.exit(0 if count < 10 else 1)
        sys.exit(2)
    """
    subprocess.run([sys.executable, "-c", code, examples / "nano-mistral"], check=True)
