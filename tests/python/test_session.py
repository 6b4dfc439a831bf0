"""Sessions and tokenizers, compared with the command and the reference that a trained model came with."""

import itertools
import json
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import poise

PROMPT = "One day, a mouse"


def test_generates_what_the_command_generates(command, examples, nano):
    run = [
        command,
        "run",
        examples / "nano-mistral",
        "-p",
        PROMPT,
        "-n",
        "40",
        "--temperature",
        "0.8",
        "--top-p",
        "0.9",
        "--seed",
        "7",
        "--json",
    ]
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
    """The program that trained the model computed the reference in float64: examples/nano-mistral/reference.json."""
    reference = json.loads((examples / "nano-mistral/reference.json").read_text())
    session = poise.Session(examples / "nano-mistral", exact=True)
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

    expected = scores("numbers.zt", cache="f32")
    most = np.abs(expected).max()
    assert np.abs(scores("codes.gguf", exact=True) - expected).max() < 1e-5 * most
    assert np.abs(scores("codes.gguf") - expected).max() > 1e-4 * most


def test_caches_of_each_type(nano, tmp_path):
    text = nano.tokenizer.encode("Once upon a time, there was a young penguin named Pip. She lived in a sunny")

    def scores(cache):
        session = poise.Session(nano, cache=cache)
        session.feed([1, *text])
        session.save(tmp_path / cache)
        return session.logits()

    expected = scores("f32")
    for cache, bound in (("f16", 1e-3), ("q8", 2e-2)):
        error = np.abs(scores(cache) - expected).max() / np.abs(expected).max()
        assert 1e-6 < error < bound
    parts = poise.open(tmp_path / "q8")
    assert parts["layers.0.keys"].dtype == "i8" and parts["layers.0.values.scales"].dtype == "f32"
    session = poise.Session(nano, cache="q8")
    session.load(tmp_path / "q8")
    other = session.fork()
    other.feed([5])
    whole = poise.Session(nano, cache="q8")
    whole.feed([1, *text])
    np.testing.assert_array_equal(session.logits(), whole.logits())
    whole.feed([5])
    np.testing.assert_array_equal(other.logits(), whole.logits())
    with pytest.raises(poise.BadArgumentError, match='a cache of "q8", and this session one of "f16"'):
        poise.Session(nano).load(tmp_path / "q8")
    for wrong in ("q4", 8):
        with pytest.raises(poise.BadArgumentError, match="expected one of f32, f16, q8"):
            poise.Session(nano, cache=wrong)
    answers = poise.generate_batch(nano, ["Once upon a time"], max_tokens=5, cache="q8")
    assert answers[0].text == poise.generate_batch(nano, ["Once upon a time"], max_tokens=5)[0].text
    assert poise.perplexity(nano, ["Once upon a time"], cache="q8") != poise.perplexity(nano, ["Once upon a time"])


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
    for wrong, raised in (
        ([960], ValueError),
        ([-1], ValueError),
        ([2**40], (ValueError, TypeError)),
        (["a"], TypeError),
        ([1] * 65, ValueError),
        ("a", TypeError),
    ):
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
    session.reset()
    assert list(session.generate_tokens(PROMPT, stop_id=stop, ignore_eos=True, max_tokens=8)) == tokens[:8]
    with pytest.raises(TypeError, match="ignore_eos is 3, expected True or False"):
        session.generate(PROMPT, ignore_eos=3)
    for wrong in ({"stop_id": 960}, {"temperature": -1}, {"top_p": 0}, {"top_k": -1}):
        with pytest.raises(ValueError):
            session.generate(PROMPT, **wrong)
    for wrong in ({"max_tokens": -1}, {"seed": -1}, {"seed": 2**64}, {"stop_id": 2**31}):
        with pytest.raises(poise.BadArgumentError, match=f"{next(iter(wrong))} is .*, expected an integer from "):
            session.generate(PROMPT, **wrong)
    for wrong in (
        {"max_tokens": 1.5},
        {"seed": "7"},
        {"temperature": "hot"},
        {"top_k": None},
        {"stop_id": "a"},
        {"top_p": True},
    ):
        with pytest.raises(TypeError, match=f"{next(iter(wrong))} is .*, expected a"):
            session.generate(PROMPT, **wrong)
    for wrong, raised in (({"threads": -1}, ValueError), ({"context": "all"}, TypeError)):
        with pytest.raises(raised, match="expected an integer"):
            poise.Session(nano, **wrong)


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


def test_a_text_goes_on(nano):
    session = poise.Session(nano)
    ids = session.prompt("Once upon a")
    whole = "".join(session.generate("Once upon a", max_tokens=12))
    assert whole.startswith(" ")
    session.reset()
    tokens = list(session.generate_tokens("Once upon a", max_tokens=12))
    for first in (1, 4, 11):
        session.reset()
        text = "".join(session.generate("Once upon a", max_tokens=first))
        assert session.position == len(ids) + first - 1  # the last token is fed when the text goes on
        assert text + "".join(session.generate([], max_tokens=12 - first)) == whole
        session.reset()
        given = list(session.generate_tokens(ids, max_tokens=first))
        assert given + list(session.generate_tokens([], max_tokens=12 - first)) == tokens
    for cut in (1, 2, len(ids) - 1, len(ids)):  # whoever feeds it
        session.reset()
        session.feed(ids[:cut])
        assert "".join(session.generate(ids[cut:], max_tokens=12)) == whole
    session.reset()
    pieces = session.generate("Once upon a")  # left after three pieces
    text = "".join(next(pieces) for _ in range(3))
    assert whole.startswith(text + "".join(session.generate("", max_tokens=3)))


def test_what_is_fed_when_a_text_goes_on(nano):
    session = poise.Session(nano)

    def position_after(*calls):
        session.reset()
        for call in calls:
            call()
        return session.position

    ids, more = session.prompt("Once upon a"), nano.tokenizer.encode(" He was")
    assert session.prompt(" He was") == [1, *more]  # BOS is where a text begins

    def generate(prompt, **options):
        return lambda: list(session.generate(prompt, max_tokens=4, **options))

    assert position_after(generate("Once upon a")) == len(ids) + 3
    assert position_after(generate("Once upon a"), generate(" He was")) == len(ids) + 4 + len(more) + 3
    assert position_after(lambda: session.feed(ids), generate(" He was")) == len(ids) + len(more) + 3
    # feed() is what it says
    assert position_after(generate("Once upon a"), lambda: session.feed(more)) == len(ids) + 3 + len(more)
    assert (
        position_after(generate("Once upon a"), lambda: session.feed([]), generate(more))
        == len(ids) + 3 + len(more) + 3
    )
    assert position_after(generate("Once upon a"), session.reset, generate("Once upon a")) == len(ids) + 3
    assert position_after(generate("Once upon a"), lambda: session.log_probabilities(ids), generate([])) == len(ids) + 3
    with pytest.raises(ValueError, match="960"):
        position_after(generate("Once upon a"), lambda: session.feed([960]))
    generate([])()  # what was refused has changed nothing
    assert session.position == len(ids) + 3 + 1 + 3
    session.reset()
    stop = list(session.generate_tokens("Once upon a", max_tokens=4))[1]
    session.reset()
    assert len(list(session.generate_tokens("Once upon a", stop_id=stop))) == 2 and session.position == len(ids) + 1
    session.reset()
    expected = [*ids, *session.generate_tokens("Once upon a", max_tokens=8)]
    session.reset()
    given = [*ids, *session.generate_tokens("Once upon a", stop_id=stop), *session.generate_tokens([], max_tokens=6)]
    assert given == expected  # the token that ended it is part of it


def test_a_text_that_fills_the_context_ends(nano):
    session = poise.Session(nano, context=20)
    text = "".join(session.generate(PROMPT, max_tokens=1000))
    assert text and session.position == 20 and list(session.generate([])) == [] and session.position == 20
    with pytest.raises(poise.BadArgumentError, match="context"):
        session.generate(" He")


def test_a_character_that_is_cut_is_whole_in_the_continuation(nano):
    """The tokens of this model are bytes, and the sampler chooses those that were fed."""
    session, tokenizer = poise.Session(nano), nano.tokenizer
    ids = tokenizer.encode("日")
    assert len(ids) > 3
    expected = poise.TextStream(tokenizer)
    for token in [1, *ids[:-1]]:
        expected.add(token)
    session.feed([1, *ids[:-1]])
    (token,) = session.generate_tokens([], max_tokens=1)
    session.reset()
    session.feed([1, *ids[:-1]])
    assert "".join(session.generate([], max_tokens=1)) == expected.add(token) + expected.finish()


def test_another_generation_ends_the_one_before(nano):
    session = poise.Session(nano)
    first = session.generate_tokens(PROMPT)
    next(first)
    second = session.generate_tokens([], max_tokens=2)
    next(second)
    with pytest.raises(poise.BadArgumentError, match="meanwhile"):
        next(first)
    assert len(list(second)) == 1


def test_tokens_with_special_ones_are_the_commands(command, examples, nano):
    text = "Hello wörld<s>"
    tokenizer = nano.tokenizer
    told = json.loads(
        subprocess.run(
            [command, "tokenize", examples / "nano-mistral", text, "--json"], check=True, capture_output=True
        ).stdout
    )
    ids = tokenizer.encode(text, special=True)
    assert ids == told["ids"] == [1, *tokenizer.encode(text)]
    assert [tokenizer.piece(i) for i in ids] == told["pieces"]
    assert tokenizer.decode(ids, special=True) == told["text"] and "<s>" in told["text"] and not tokenizer.decode([1])
    stream = poise.TextStream(tokenizer, special=True)
    assert "".join([*(stream.add(i) for i in ids), stream.finish()]) == told["text"]
    assert [tokenizer.id(piece) for piece in told["pieces"]] == ids
    assert tokenizer.id("<s>") == 1 and tokenizer.id("no such piece") is None and tokenizer.id("\ud800") is None
    assert [tokenizer.id(tokenizer.piece(i)) for i in range(len(tokenizer))] == list(range(len(tokenizer)))
    for wrong, raised in (
        (lambda: tokenizer.piece(960), ValueError),
        (lambda: tokenizer.piece(-1), ValueError),
        (lambda: tokenizer.id(3), TypeError),
        (lambda: tokenizer.encode("a", True), TypeError),
    ):
        with pytest.raises(raised):
            wrong()


def test_tokenizer_files_are_read_alone(examples, nano, tmp_path):
    poise.save(nano, tmp_path / "a.gguf")
    (tmp_path / "alone").mkdir()
    (tmp_path / "alone/tokenizer.model").write_bytes((examples / "nano-mistral/tokenizer.model").read_bytes())
    expected = nano.tokenizer.encode(PROMPT, special=True)
    for path in (
        examples / "nano-mistral",
        tmp_path / "alone",
        str(tmp_path / "alone/tokenizer.model"),
        tmp_path / "a.gguf",
    ):
        assert poise.read_tokenizer(path).encode(PROMPT, special=True) == expected
    with pytest.raises(poise.UnsupportedError, match="vocabulary"):
        poise.read_tokenizer(examples / "nano-tiny-llama/weights.tllm")
    with pytest.raises(FileNotFoundError):
        poise.read_tokenizer(tmp_path / "nothing")
    with pytest.raises(TypeError):
        poise.read_tokenizer(None)


def test_what_is_no_list_of_ids_is_told(nano):
    session, tokenizer = poise.Session(nano), nano.tokenizer
    for call in (session.feed, session.log_probabilities, tokenizer.decode):
        with pytest.raises(TypeError, match="token ids are integers, found the text 'a mouse'"):
            call("a mouse")
        with pytest.raises(TypeError, match="a token id is 'a', expected an integer"):
            call(["a"])
        for wrong in (3, None):
            with pytest.raises(TypeError, match="token ids are integers"):
                call(wrong)
        for wrong in (-1, 2**31):
            with pytest.raises(
                poise.BadArgumentError, match=f"a token id is {wrong}, expected an integer from 0 to 2147483647"
            ):
                call([5, wrong])
        with pytest.raises(TypeError, match="one dimension"):
            call(np.array([[1, 5]]))
    for ids in (np.array([1, 5, 9], np.uint16), (1, 5, 9), range(3), iter([1, 5, 9]), [np.int32(1)]):
        session.feed(ids)
    assert session.position == 13 and list(session.generate_tokens(np.array([5]), max_tokens=1))


def test_many_texts_are_encoded_at_once(nano):
    texts = ["One day", "", "a mouse"]
    for special in (False, True):
        for given in (texts, tuple(texts)):
            assert nano.tokenizer.encode(given, special=special) == [
                nano.tokenizer.encode(one, special=special) for one in texts
            ]
    assert nano.tokenizer.encode([]) == []
    for wrong in (3, None, b"a", {"a"}):
        with pytest.raises(TypeError, match="expected str or a list"):
            nano.tokenizer.encode(wrong)
    with pytest.raises(TypeError, match="str"):
        nano.tokenizer.encode(["a", 3])


def test_tokenizers_are_made_of_paths_and_models(examples, nano):
    expected = nano.tokenizer.encode(PROMPT)
    for tokenizer in (
        poise.Tokenizer(examples / "nano-mistral"),
        poise.Tokenizer(nano),
        poise.Tokenizer.open(str(examples / "nano-mistral/tokenizer.model")),
    ):
        assert tokenizer.encode(PROMPT) == expected
    with pytest.raises(TypeError, match="str, bytes or os.PathLike"):
        poise.Tokenizer(3)
    with pytest.raises(FileNotFoundError):
        poise.Tokenizer.open("nothing")


def large_model(path):
    """Writes a Llama of 200 MB of zeros, which take no space on the disk. A pass takes a second or more."""
    hidden, inner, layers, vocabulary = 1024, 4096, 6, 1000
    shapes = {
        "model.embed_tokens.weight": [vocabulary, hidden],
        "model.norm.weight": [hidden],
        "lm_head.weight": [vocabulary, hidden],
    }
    for i in range(layers):
        prefix = f"model.layers.{i}."
        shapes.update({f"{prefix}{name}_layernorm.weight": [hidden] for name in ("input", "post_attention")})
        shapes.update({f"{prefix}self_attn.{name}_proj.weight": [hidden, hidden] for name in "qkvo"})
        shapes.update({f"{prefix}mlp.{name}_proj.weight": [inner, hidden] for name in ("gate", "up")})
        shapes[f"{prefix}mlp.down_proj.weight"] = [hidden, inner]
    header, end = {}, 0
    for name, shape in shapes.items():
        begin, end = end, end + 2 * int(np.prod(shape))
        header[name] = {"dtype": "F16", "shape": shape, "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    path.mkdir()
    with open(path / "model.safetensors", "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        file.truncate(8 + len(text) + end)
    config = {
        "model_type": "llama",
        "hidden_size": hidden,
        "intermediate_size": inner,
        "num_hidden_layers": layers,
        "num_attention_heads": 8,
        "vocab_size": vocabulary,
        "max_position_embeddings": 2048,
        "rms_norm_eps": 1e-5,
    }
    (path / "config.json").write_text(json.dumps(config))


@pytest.mark.parametrize(
    "work",
    ["session.feed([5] * 250)", "list(session.generate_tokens([5] * 250))", "session.log_probabilities([5] * 1000)"],
)
def test_ctrl_c_ends_a_prompt(work, tmp_path):
    """Ctrl-C comes in the middle of a pass, whose tokens are then not fed."""
    large_model(tmp_path / "large")
    code = """if True:
        import sys, time, poise
        session = poise.Session(sys.argv[1], threads=1, exact=True)
        session.feed([3])
        print("on", flush=True)
        try:
            WORK
        except KeyboardInterrupt:
            print("interrupted", session.position, flush=True)
        session.feed([4])
        print(session.position, session.logits().shape)
    """.replace(
        "WORK", work
    )
    child = subprocess.Popen([sys.executable, "-c", code, tmp_path / "large"], stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "on\n"
    time.sleep(0.2)
    start = time.monotonic()
    child.send_signal(signal.SIGINT)
    before = 0 if "log" in work else 1
    assert child.stdout.readline() == f"interrupted {before}\n"
    assert time.monotonic() - start < 1  # 0.2 where nothing else runs
    assert child.communicate()[0] == f"{before + 1} (1000,)\n" and child.returncode == 0
