"""Runs models in sessions and in batches."""

from __future__ import annotations

import itertools
import typing

from . import _poise
from ._errors import BadArgumentError
from ._model import Model, open
from ._types import BatchOptions, GenerateOptions, Path, SessionOptions, add_options

if typing.TYPE_CHECKING:
    import numpy
    import numpy.typing
    from typing_extensions import Unpack

# Lists of integers, arrays of numpy and torch with one dimension, and other sequences of integers.
Ids = typing.Iterable[typing.SupportsIndex]


class Weights(_poise.Weights):
    """Holds the weights that sessions of one model share. They are loaded once, never change, and are thread-safe."""

    __slots__ = ()

    def __init__(self, model: Model | Path):
        super().__init__((model if isinstance(model, Model) else open(model))._core)

    def __repr__(self) -> str:
        return f"<poise.Weights, {self.vocabulary_size} tokens, {self.max_context} positions>"


def make_weights(model: Model | Weights | Path) -> Weights:
    return model if isinstance(model, Weights) else Weights(model)


class Session:
    """A model that runs: feed it tokens, read the scores of the next one, or let it generate text.

    model: a Model, a path, or Weights that sessions share. threads: the largest number of threads; 0: one for each
    processor. context: the largest number of positions; 0: the model's maximum. exact: multiply in float32 without
    rounding to integers or bfloat16, which is slower; for comparisons. cache: the type of stored keys and values:
    "f32"; "f16", half the memory of f32; "q8", 8-bit codes with scales, 28 % of the memory of f32; None: "f16", or
    "f32" with exact=True. draft: a faster model with the same vocabulary that guesses tokens, or "lookup", which
    guesses them from repeated text; the model checks several guesses at a time. At temperature 0 the text is the same
    as without a draft; otherwise tokens have the same probabilities.
    Threads may share a session; their calls wait for each other. A text that is being generated raises BadArgumentError
    if the session is used for something else meanwhile.
    Raises UnsupportedError, naming what the model lacks or what Poise does not run, and InvalidFileError.
    """

    __slots__ = ("_core",)

    @add_options(SessionOptions)
    def __init__(
        self,
        model: Model | Weights | Path,
        *,
        draft: Model | Weights | Path | None = None,
        **options: Unpack[SessionOptions],
    ):
        weights = make_weights(model)
        lookup = draft == "lookup"
        guesses = None if draft is None or lookup else make_weights(draft)
        self._core = _poise.Session(weights, dict(options), guesses, lookup)

    @property
    def tokenizer(self) -> _poise.Tokenizer:
        """The tokenizer of the model's vocabulary. Raises UnsupportedError if the model has no vocabulary."""
        return self._core.tokenizer

    @property
    def vocabulary_size(self) -> int:
        """The length of logits()."""
        return self._core.vocabulary_size

    @property
    def context(self) -> int:
        """The largest number of positions."""
        return self._core.context

    @property
    def position(self) -> int:
        """Tokens fed so far, without the last generated token, which is fed when the text continues."""
        return self._core.position

    def __repr__(self) -> str:
        return f"<poise.Session, {self.position} of {self.context} positions>"

    def prompt(self, text: str) -> list[int]:
        """Returns the ids of a text with the vocabulary's special tokens around it, usually BOS in front."""
        return self._core.prompt(text)

    def reset(self) -> None:
        """Drops all tokens."""
        self._core.reset()

    def truncate(self, position: int) -> None:
        """Drops all tokens after the first `position`; scores need another feed()."""
        self._core.truncate(position)

    def fork(self) -> Session:
        """Returns an independent session with the same tokens, on the same weights."""
        other = Session.__new__(Session)
        other._core = self._core.fork()
        return other

    def save(self, path: Path, *, overwrite: bool = False) -> None:
        """Writes the tokens, their keys and values, and the scores of the next token to a zTensor file, with a
        fingerprint of the model. Raises OutputExistsError for an existing file unless overwrite=True."""
        self._core.save(path, overwrite)

    def load(self, path: Path) -> None:
        """Replaces all tokens with those of a file that save() wrote, without computing them again.

        Raises BadArgumentError for a file of another model, with another type of cache, or with more tokens than
        context; InvalidFileError.
        """
        self._core.load(path)

    def feed(self, tokens: Ids) -> None:
        """Appends tokens. The last generated token, which has not been fed yet, is dropped.

        tokens: ids, in a list, or in an array of numpy or torch. After Ctrl-C the session has the tokens that were
        computed: `position` is their number.
        """
        self._core.feed(tokens)

    def logits(self) -> numpy.typing.NDArray[numpy.float32]:
        """Returns a copy of the scores of the next token, by id: a float32 array [vocabulary_size]."""
        return _make_floats(self._core.logits())

    def hidden_state(self) -> numpy.typing.NDArray[numpy.float32]:
        """Returns a copy of the hidden state of the last token fed, after the final norm, from which logits() are
        computed: a float32 array [hidden_size]. Raises BadArgumentError before the first token, and after load() until
        something is fed."""
        return _make_floats(self._core.hidden_state())

    def hidden_states(self, tokens: Ids, layer: int = -1) -> numpy.typing.NDArray[numpy.float32]:
        """Starts over, feeds all tokens, and returns the hidden state of each: a float32 array [tokens, hidden_size].

        layer: as in the `hidden_states` of transformers. 0 is the embedding (scaled, and with positions, where the
        family has these), i the output of block i. The last layer, also -1, is the output of the last block after the
        final norm.
        """
        return _make_floats(self._core.hidden_states(tokens, layer)).reshape(-1, self._core.weights.hidden_size)

    def top_log_probabilities(self, count: int) -> list[tuple[int, float]]:
        """Returns the most probable next tokens, the best first: ids, and the natural logarithms of their
        probabilities."""
        return self._core.top_log_probabilities(count)

    def log_probabilities(self, tokens: Ids) -> list[float]:
        """Starts over, feeds all tokens, and returns the natural logarithm of the probability of each except the
        first."""
        return self._core.log_probabilities(tokens)

    @add_options(GenerateOptions)
    def generate(self, prompt: str | Ids, **options: Unpack[GenerateOptions]) -> typing.Iterator[str]:
        """Feeds a prompt, text or ids, and yields the continuation, in pieces of whole characters, as it is made.

        max_tokens: the largest number of tokens to generate. stop: a text or several; the continuation ends before the
        first of them. stop_id: the token that ends the text, instead of the model's own; ignore_eos: no token ends the
        text.

        temperature 0: always the best token. top_k: chooses among the k best tokens. top_p: among the fewest tokens
        that together have this probability. min_p: among tokens with at least this share of the best one's probability.
        repetition_penalty: divides positive scores of tokens in the text, and multiplies negative ones.
        presence_penalty: is subtracted from the score of each generated token; frequency_penalty: for each of its
        occurrences. logit_bias: {id: number}, numbers that are added to scores. docs/chat.md has the order in which
        these are applied. The same options and seed produce the same text on every machine.

        The text continues what was fed and generated before. The token that was generated last, even an end token, is
        fed before the prompt; the prompt [] adds no token. BOS begins only a new text, such as after reset(). If a call
        ends within a character, the next call yields the whole character.
        """
        self.tokenizer  # noqa: B018: raises UnsupportedError if the model has no vocabulary
        return _generate_pieces(_poise.Generator(self._core, prompt, _make_lists(options)))

    @add_options(GenerateOptions)
    def generate_tokens(self, prompt: str | Ids, **options: Unpack[GenerateOptions]) -> typing.Iterator[int]:
        """Generates as generate() does, but yields ids, including an end token. Also works without a vocabulary."""
        return _generate_ids(_poise.Generator(self._core, prompt, _make_lists(options)))


def _make_floats(memory: _poise.Memory) -> numpy.typing.NDArray[numpy.float32]:
    """Returns an array of all float32 numbers of a memory, without a copy."""
    import numpy as np

    numbers: typing.Any = memory
    return np.ndarray(len(memory) // 4, np.dtype(np.float32), numbers)


def _make_lists(options: typing.Mapping[str, typing.Any]) -> dict[str, typing.Any]:
    """Returns the options of generate() in the extension's form: stop as a list, logit_bias as a dict."""
    stop = options["stop"]
    stops = [stop] if isinstance(stop, str) else list(stop)
    return {**options, "stop": stops, "logit_bias": dict(options["logit_bias"] or {})}


def _generate_pieces(generator: _poise.Generator) -> typing.Iterator[str]:
    while (step := generator.next()) is not None:
        if step[1]:
            yield step[1]
    rest = generator.finish()
    if rest:
        yield rest


def _generate_ids(generator: _poise.Generator) -> typing.Iterator[int]:
    while (step := generator.next()) is not None:
        yield step[0]


class Answer(typing.NamedTuple):
    """Has the continuation of a prompt by generate_batch()."""

    text: str  # the continuation alone; empty if the model has no vocabulary
    tokens: list[int]  # the generated tokens, including an end token
    finish_reason: str  # "stop", "length" (max_tokens) or "context" (the context is full)


@add_options(BatchOptions)
def generate_batch(
    model: Model | Weights | Path,
    prompts: typing.Iterable[str | Ids],
    *,
    parallel: int = 8,
    **options: Unpack[BatchOptions],
) -> list[Answer]:
    """Returns the continuations of many prompts, texts or ids, in their order. Generates `parallel` texts at a time.

    A step multiplies the tokens of these texts by each weight once. Eight texts take little longer than one if the
    memory's speed is the limit. Prompts that begin alike compute their beginning once. Each text equals that of a
    session, up to the rounding of sums and of the cache; with exact=True it is identical. Other options are those of
    Session and its generate(). prompts may be a generator: the call reads a prompt when there is room. Ctrl-C ends the
    call.
    """
    if isinstance(prompts, (str, bytes)):
        raise TypeError(f"prompts is {prompts!r:.40}, expected a list of texts or of token ids")
    if isinstance(parallel, bool) or not isinstance(parallel, int) or parallel < 1:
        raise BadArgumentError(f"parallel is {parallel!r}, expected an integer from 1 on")
    given = _make_lists(options)
    batch = _poise.Batch(make_weights(model), given)
    answers: dict[int, Answer] = {}
    waiting = iter(prompts)
    running = 0
    while True:
        for prompt in itertools.islice(waiting, parallel - running):
            batch.add(prompt, given)
            running += 1
        if running == 0:
            return [answers[i] for i in range(len(answers))]
        for number, text, tokens, reason in batch.next():
            answers[number] = Answer(text, tokens, reason)
            running -= 1
