"""Chat templates, sessions that are truncated and forked, and samplers."""

import json
import math
import shutil
import subprocess

import pytest

import poise

JINJA = "{{ bos_token }}{% for m in messages %}{{ m.content }}{% endfor %}{{ end }}"
TALK = [{"role": "user", "content": "Once upon a time"}]
PROMPT = "Once upon a time"


def test_built_in_templates_by_name(nano):
    ends = poise.chat_templates()
    assert list(ends)[0] == "chatml" and ends["chatml"] == "<|im_end|>" and ends["zephyr"] == ""
    tokenizer = nano.tokenizer
    text, ids = tokenizer.encode_chat([{"role": "user", "content": "Hi"}], template="chatml")
    assert text == "<s><|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n" and ids[0] == nano.vocabulary.bos_id
    assert tokenizer.encode_chat(TALK, template="no-such-name")[0] == "no-such-name"  # Jinja without an expression


def test_sampling_defaults(nano, examples, tmp_path):
    assert nano.sampling_defaults == {}
    folder = tmp_path / "model"
    shutil.copytree(examples / "nano-mistral", folder)
    stated = {"temperature": 0.6, "top_k": 20, "top_p": 0.95, "repetition_penalty": 1.1}
    (folder / "generation_config.json").write_text(json.dumps({**stated, "do_sample": True, "min_p": 7}))
    model = poise.open(folder)
    assert model.sampling_defaults == stated
    assert "".join(poise.Session(model).generate("Once", max_tokens=4, **model.sampling_defaults)) != ""
    (folder / "generation_config.json").write_text(json.dumps(stated))
    assert poise.open(folder).sampling_defaults == {"repetition_penalty": 1.1}  # the best token


def test_a_conversation_becomes_a_text_and_tokens(nano):
    tokenizer = poise.Tokenizer(nano)
    text, ids = tokenizer.encode_chat(TALK, template=JINJA, end=" there")
    assert text == "<s>Once upon a time there"
    assert ids == tokenizer.encode("Once upon a time there", special=True)
    _, spelled = tokenizer.encode_chat([{"role": "user", "content": "</s>"}], template=JINJA)
    assert 2 not in spelled
    with pytest.raises(poise.UnsupportedError, match="no chat template"):
        tokenizer.encode_chat(TALK)
    with pytest.raises(poise.BadArgumentError, match="line 1: the template refuses this: no"):
        tokenizer.encode_chat(TALK, template="{{ raise_exception('no') }}")
    with pytest.raises(poise.InvalidFileError, match="line 2"):
        tokenizer.encode_chat(TALK, template="\n{% if %}")
    with pytest.raises(poise.InvalidFileError, match="messages: 0"):
        tokenizer.encode_chat([{"content": "x"}], template=JINJA)


def test_sessions_are_cut_back_and_fork(nano):
    session = poise.Session(nano, exact=True)
    session.feed(session.prompt(PROMPT))
    fork = session.fork()
    assert list(fork.generate_tokens([], max_tokens=5)) == list(session.generate_tokens([], max_tokens=5))
    session.truncate(4)
    assert session.position == 4 and fork.position == 9
    with pytest.raises(poise.BadArgumentError):
        session.logits()
    session.feed(fork.prompt(PROMPT)[4:])
    again = poise.Session(nano, exact=True)
    again.feed(again.prompt(PROMPT))
    assert abs(session.logits() - again.logits()).max() < 1e-5
    with pytest.raises(poise.BadArgumentError):
        session.truncate(6)
    best = again.top_log_probabilities(3)
    assert [token for token, _ in best] == sorted(range(again.vocabulary_size), key=lambda i: -again.logits()[i])[:3]
    total = sum(math.exp(p) for _, p in again.top_log_probabilities(again.vocabulary_size))
    assert abs(total - 1) < 1e-5


def test_stops_and_samplers_are_those_of_the_command(command, examples, nano):
    def told(*options):
        run = [command, "run", examples / "nano-mistral", "-p", PROMPT, "-n", "30", "--json", *options]
        return json.loads(subprocess.run(run, check=True, capture_output=True).stdout)["text"]

    def text(**options):
        return "".join(poise.Session(nano).generate(PROMPT, max_tokens=30, **options))

    assert text(stop=" young") == told("--stop", " young") == ", there was a"
    assert text(stop=["zzz", "peng"]) == ", there was a young "
    options = {
        "temperature": 1.2,
        "seed": 5,
        "min_p": 0.05,
        "repetition_penalty": 1.1,
        "presence_penalty": 0.5,
        "frequency_penalty": 0.2,
        "logit_bias": {375: -2.5},
    }
    flags = [
        "--temp",
        "1.2",
        "--seed",
        "5",
        "--min-p",
        "0.05",
        "--repetition-penalty",
        "1.1",
        "--presence-penalty",
        "0.5",
        "--frequency-penalty",
        "0.2",
        "--logit-bias",
        "375=-2.5",
    ]
    assert text(**options) == told(*flags) != told("--temp", "1.2", "--seed", "5")
    with pytest.raises(poise.BadArgumentError):
        text(logit_bias={9999: 1.0})
    with pytest.raises(poise.BadArgumentError):
        text(stop="")
    with pytest.raises(poise.BadArgumentError):
        text(min_p=2.0)


def test_sessions_are_kept_in_files(nano, tmp_path):
    session = poise.Session(nano)
    begin = "".join(session.generate("Once upon a time", max_tokens=5))
    session.save(tmp_path / "talk.zt")
    with pytest.raises(poise.Error, match="exists"):
        session.save(tmp_path / "talk.zt")
    session.save(str(tmp_path / "talk.zt"), overwrite=True)
    other = poise.Session(nano)
    other.load(tmp_path / "talk.zt")
    assert other.position == session.position
    whole = "".join(poise.Session(nano).generate("Once upon a time", max_tokens=15))
    assert begin + "".join(other.generate([], max_tokens=10)) == whole
    assert begin + "".join(session.generate([], max_tokens=10)) == whole

    text = other.generate("and", max_tokens=5)
    next(text)
    other.load(tmp_path / "talk.zt")
    with pytest.raises(poise.BadArgumentError, match="was used or reset meanwhile"):
        next(text)
    with pytest.raises(poise.BadArgumentError, match="do not fit the context of 4"):
        poise.Session(nano, context=4).load(tmp_path / "talk.zt")
    with pytest.raises(poise.NotFoundError):
        other.load(tmp_path / "missing.zt")
    with pytest.raises(TypeError):
        other.load(3)
    with pytest.raises(TypeError):
        other.save(tmp_path / "x.zt", overwrite="yes")


def test_a_draft_does_not_change_the_text(nano, examples):
    plain = "".join(poise.Session(nano).generate(PROMPT, max_tokens=60))
    for draft in ("lookup", nano, poise.Weights(nano), examples / "nano-mistral"):
        session = poise.Session(nano, draft=draft)
        assert "".join(session.generate(PROMPT, max_tokens=60)) == plain
        assert session.position == poise.Session(nano).position + 64
    sampled = "".join(poise.Session(nano).generate(PROMPT, max_tokens=60, temperature=1.0, seed=3))
    lookup = poise.Session(nano, draft="lookup")
    assert "".join(lookup.generate(PROMPT, max_tokens=60, temperature=1.0, seed=3)) == sampled
    with pytest.raises(poise.BadArgumentError, match="the draft has another vocabulary than the model: token"):
        poise.Session(nano, draft=examples / "nano-mistral-wide")
    with pytest.raises(poise.NotFoundError):
        poise.Session(nano, draft="missing")
    with pytest.raises(TypeError):
        poise.Session(nano, draft=3)
