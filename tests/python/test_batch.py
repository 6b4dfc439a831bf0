"""Compares many prompts at the same time with the same prompts one by one."""

import numpy as np
import pytest

import poise

PROMPTS = ["Once upon a time", "The", "One day, a mouse", "Once upon a hill there lived", "A"]


def alone(model, prompt, **options):
    session = poise.Session(model, exact=True)
    return list(session.generate_tokens(prompt, **options))


def test_each_prompt_gets_what_it_gets_alone(nano):
    options = {"max_tokens": 20, "temperature": 0.9, "seed": 3}
    for parallel in (1, 2, 8):
        answers = poise.generate_batch(nano, PROMPTS, parallel=parallel, exact=True, **options)
        assert [answer.tokens for answer in answers] == [alone(nano, prompt, **options) for prompt in PROMPTS]
        assert all(answer.finish_reason == "length" for answer in answers)
        session = poise.Session(nano, exact=True)
        assert answers[2].text == "".join(session.generate(PROMPTS[2], **options))


def test_prompts_are_texts_or_ids_and_may_come_from_a_generator(nano):
    weights = poise.Weights(nano)
    tokenizer = nano.tokenizer
    ids = [tokenizer.encode(prompt, special=True) for prompt in PROMPTS]
    texts = poise.generate_batch(weights, PROMPTS, max_tokens=5, exact=True)
    assert poise.generate_batch(weights, (np.array(i) for i in ids), parallel=2, max_tokens=5, exact=True) == texts
    assert poise.generate_batch(weights, []) == []


def test_stop_texts_cut_and_tell_why(nano):
    whole = poise.generate_batch(nano, ["Once upon a time"], max_tokens=30)[0]
    word = whole.text.split()[3]
    cut = poise.generate_batch(nano, ["Once upon a time"], max_tokens=30, stop=word)[0]
    assert cut.text == whole.text[: whole.text.index(word)] and cut.finish_reason == "stop"
    full = poise.generate_batch(nano, [[1, 580]], max_tokens=30, context=8, ignore_eos=True)[0]
    assert full.finish_reason == "context" and len(full.tokens) == 7


def test_wrong_arguments_are_named(nano):
    with pytest.raises(TypeError, match="expected a list of texts or of token ids"):
        poise.generate_batch(nano, "Once")
    with pytest.raises(poise.BadArgumentError, match="parallel is 0, expected an integer from 1 on"):
        poise.generate_batch(nano, PROMPTS, parallel=0)
    with pytest.raises(poise.BadArgumentError, match="token 99999 is out of range"):
        poise.generate_batch(nano, [[1, 99999]])
    with pytest.raises(poise.BadArgumentError, match="the text has no tokens"):
        poise.generate_batch(nano, [[]])
    with pytest.raises(TypeError, match="token ids are integers"):
        poise.generate_batch(nano, [3.5])
    with pytest.raises(poise.BadArgumentError, match="max_tokens is -1"):
        poise.generate_batch(nano, PROMPTS, max_tokens=-1)
