"""Sessions: models that run."""

from __future__ import annotations

import itertools
import typing

from . import _poise
from ._errors import BadArgumentError
from ._model import Model, open
from ._types import BatchOptions, GenerateOptions, Path, SessionOptions, with_options

if typing.TYPE_CHECKING:
    import numpy
    import numpy.typing
    from typing_extensions import Unpack

# Lists of integers, arrays of numpy and torch with one dimension, and other sequences of integers.
Ids = typing.Iterable[typing.SupportsIndex]


class Weights(_poise.Weights):
    """The weights that sessions of one model share; loaded once, constant and thread-safe."""

    __slots__ = ()

    def __init__(self, model: Model | Path):
        super().__init__((model if isinstance(model, Model) else open(model))._core)

    def __repr__(self) -> str:
        return f"<poise.Weights, {self.vocabulary_size} tokens, {self.max_context} positions>"


def make_weights(model: Model | Weights | Path) -> Weights:
    return model if isinstance(model, Weights) else Weights(model)


class Session:
    """A model that runs: feed it tokens, read the scores of the next one, or let it generate text.

    model: a Model, a path, or Weights that sessions share. threads: at most, 0: one a processor. context: positions, 0:
    as many as the model has. exact: multiply in float32 however weights are stored, and round nothing to integers;
    slower, for comparisons. cache: how keys and values are kept: "f32"; "f16", in half the memory; "q8", 8-bit codes
    with scales, in 28 % of it; None: "f16", or "f32" with exact=True. draft: a faster model with the same vocabulary,
    or "lookup", which finds repeated text, to guess tokens that the model then checks several at a time. A greedy text
    is the same, and sampled ones have the same probabilities.
    Threads may share a session; their calls wait for each other. A text that is being generated raises BadArgumentError
    when the session is used otherwise.
    Raises UnsupportedError, naming what the model lacks or what Poise does not run, and InvalidFileError.
    """

    __slots__ = ("_core",)

    @with_options(SessionOptions)
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
        """UnsupportedError when the model has no vocabulary."""
        return self._core.tokenizer

    @property
    def vocabulary_size(self) -> int:
        """The length of logits()."""
        return self._core.vocabulary_size

    @property
    def context(self) -> int:
        """The maximum number of positions."""
        return self._core.context

    @property
    def position(self) -> int:
        """Tokens fed so far, without the last generated token, which is fed when the text continues."""
        return self._core.position

    def __repr__(self) -> str:
        return f"<poise.Session, {self.position} of {self.context} positions>"

    def prompt(self, text: str) -> list[int]:
        """The ids of a text after BOS, if the vocabulary has it."""
        return self._core.prompt(text)

    def reset(self) -> None:
        """Drops all tokens."""
        self._core.reset()

    def truncate(self, position: int) -> None:
        """Drops all tokens after the first `position`; feed more to get scores."""
        self._core.truncate(position)

    def fork(self) -> Session:
        """An independent session with the same tokens, on the same weights."""
        other = Session.__new__(Session)
        other._core = self._core.fork()
        return other

    def save(self, path: Path, *, overwrite: bool = False) -> None:
        """Writes the tokens, their keys and values, and the next scores to a zTensor file, with a fingerprint of the
        model; an existing file is an error unless overwrite=True."""
        self._core.save(path, overwrite)

    def load(self, path: Path) -> None:
        """Replaces all tokens with those of such a file, without computing them again.

        Raises BadArgumentError for a file of another model, with another type of cache, or with more tokens than
        context; InvalidFileError.
        """
        self._core.load(path)

    def feed(self, tokens: Ids) -> None:
        """Appends only these tokens: the last generated one is dropped.

        tokens: ids, in a list, or in an array of numpy's or torch's. Ctrl-C ends it after the first `position` of all.
        """
        self._core.feed(tokens)

    def logits(self) -> numpy.typing.NDArray[numpy.float32]:
        """The scores of the next token, by id: a float32 array [vocabulary_size] of its own."""
        return _make_floats(self._core.logits())

    def hidden_state(self) -> numpy.typing.NDArray[numpy.float32]:
        """The hidden state from which logits() are computed: of the last token fed, after the final norm, a float32
        array [hidden_size] of its own. BadArgumentError before the first token, and after load() until something is
        fed."""
        return _make_floats(self._core.hidden_state())

    def hidden_states(self, tokens: Ids, layer: int = -1) -> numpy.typing.NDArray[numpy.float32]:
        """Starts over, feeds all tokens, and returns the hidden state of each: a float32 array [tokens, hidden_size].

        layer: as in the `hidden_states` of transformers. 0 is the embedding (scaled, and with positions, where the
        family has these), i the output of block i, and the last one, which -1 is, too, that of the last block after
        the final norm.
        """
        return _make_floats(self._core.hidden_states(tokens, layer)).reshape(-1, self._core.weights.hidden_size)

    def top_log_probabilities(self, count: int) -> list[tuple[int, float]]:
        """The likeliest next tokens, the best first: ids, and the natural logarithms of their probabilities."""
        return self._core.top_log_probabilities(count)

    def log_probabilities(self, tokens: Ids) -> list[float]:
        """Starts over, feeds all tokens, and returns the natural logarithm of the probability of each except the
        first."""
        return self._core.log_probabilities(tokens)

    @with_options(GenerateOptions)
    def generate(self, prompt: str | Ids, **options: Unpack[GenerateOptions]) -> typing.Iterator[str]:
        """Feeds a prompt, text or ids, and gives the continuation, in pieces of whole characters, as it is made.

        stop: a text, or several; each ends the continuation and is left out of it. repetition_penalty: divides
        scores above 0, and multiplies those below, of tokens that the text has; presence_penalty, frequency_penalty:
        are taken from scores of tokens that were generated, once and as often as they were; logit_bias: is added to the
        scores of these ids. min_p: among tokens with at least this share of the best one's probability. docs/chat.md
        has the order in which they are applied.

        temperature 0: always the best token. top_k: among the k best only; top_p: among the fewest that have this
        probability together. stop_id: the token that ends the text, instead of the model's own; ignore_eos: no token
        ends it. The same options and seed give the same text on every machine.

        The text goes on from what was fed and generated before: the token that was generated last is fed before the
        prompt, an end-of-text token too, and a prompt [] adds nothing. BOS is put before a text that begins, not before
        one that goes on. reset() begins another text. A character that the end of one call cuts is whole in the next
        one's text.
        """
        self.tokenizer  # noqa: B018: raises where there is no text
        return _generate_pieces(_poise.Generator(self._core, prompt, _make_lists(options)))

    @with_options(GenerateOptions)
    def generate_tokens(self, prompt: str | Ids, **options: Unpack[GenerateOptions]) -> typing.Iterator[int]:
        """Generates the same, but gives ids, with the end-of-text token where that ends it. For models without a
        vocabulary, too."""
        return _generate_ids(_poise.Generator(self._core, prompt, _make_lists(options)))


def _make_floats(memory: _poise.Memory) -> numpy.typing.NDArray[numpy.float32]:
    """All numbers of a memory, without a copy."""
    import numpy as np

    numbers: typing.Any = memory
    return np.ndarray(len(memory) // 4, np.dtype(np.float32), numbers)


def _make_lists(options: typing.Mapping[str, typing.Any]) -> dict[str, typing.Any]:
    """The options of generating, for the extension: a list of stop texts, and a dict of biases."""
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
    """The continuation of a prompt by generate_batch()."""

    text: str  # of the continuation alone; empty where the model has no vocabulary
    tokens: list[int]  # with the end-of-text token, where that ended it
    finish_reason: str  # "stop", "length" (max_tokens) or "context" (it is full)


@with_options(BatchOptions)
def generate_batch(
    model: Model | Weights | Path,
    prompts: typing.Iterable[str | Ids],
    *,
    parallel: int = 8,
    **options: Unpack[BatchOptions],
) -> list[Answer]:
    """The continuations of many prompts, texts or ids, in their order, `parallel` of them at a time.

    A step multiplies the tokens of all of them by each weight once, so that eight texts take little longer than one
    where memory is the limit. Prompts that begin alike compute their beginning once. Each text is what a session gives,
    up to the rounding of sums and of the cache; with exact=True it is the same. Other options are those of Session and
    its generate(). prompts may be a generator: a prompt is taken from it when there is room. Ctrl-C ends the call.
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
