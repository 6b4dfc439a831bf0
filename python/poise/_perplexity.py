"""Measures how well a model predicts texts (perplexity), and how far its predictions are from another model's."""

from __future__ import annotations

import typing

from . import _poise
from ._model import Model
from ._progress import show_progress
from ._session import Ids, Weights, make_weights
from ._types import Callback, Path, Progress, SessionOptions, add_options

if typing.TYPE_CHECKING:
    from typing_extensions import Unpack

_BYTES_PER_ID = 4  # progress counts bytes


class PerplexityResult(typing.NamedTuple):
    """The results of perplexity(). Names that end in _error are standard errors, as if tokens were independent of each
    other; NaN for a single token. Comparisons with another model are None without one."""

    texts: int
    tokens: int  #: predicted tokens: all but the first of each text
    perplexity: float  #: exp(-mean of the natural logarithms of their probabilities)
    perplexity_error: float
    base_perplexity: float | None = None
    base_perplexity_error: float | None = None
    ratio: float | None = None  #: perplexity / base_perplexity
    ratio_error: float | None = None  #: smaller than both other errors, since both perplexities vary together
    kl_mean: float | None = None  #: mean Kullback-Leibler divergence in nats, from the base to the model
    kl_mean_error: float | None = None
    kl_max: float | None = None  #: the largest divergence
    same_top: float | None = None  #: the share of tokens for which both models predict the same best token
    same_top_error: float | None = None
    windows: int | None = None  #: the number of windows, with window=


@add_options(SessionOptions)
def perplexity(
    model: Model | Weights | Path,
    texts: typing.Iterable[str | Ids],
    *,
    against: Model | Weights | Path | None = None,
    window: int = 0,
    stride: int = 0,
    progress: Progress = None,
    **options: Unpack[SessionOptions],
) -> PerplexityResult:
    """Measures how well a model predicts texts, as `poise run --perplexity` does.

    texts: each is a text, which gets BOS and EOS if the vocabulary has them, or token ids, which get none.
    against: another model with the same vocabulary, for example the one before it was quantized. The predictions of
    both are compared (docs/quantization.md). Raises BadArgumentError, naming the difference, for another vocabulary.
    window: computes each text, which may be longer than the context, in windows of `window` tokens, and counts the
    second half of each, as llama-perplexity of llama.cpp does. stride: begins a window every `stride` tokens instead,
    and counts only tokens that no earlier window had, as papers do.
    progress: as in convert(); it counts the bytes of texts, and 4 for each id. Other options: as in Session.
    """
    if isinstance(texts, (str, bytes)):
        raise TypeError(f"texts is {texts!r:.40}, expected a list of texts or of token ids")
    base = None if against is None else make_weights(against)
    core = _poise.Perplexity(make_weights(model), base, dict(options))
    waiting = list(texts)
    sizes = [_count_bytes(text) for text in waiting]
    whole, before = sum(sizes), 0
    with show_progress(progress, "perplexity") as callback:
        for number, (text, size) in enumerate(zip(waiting, sizes), 1):
            core.add(
                text, window, stride, callback and _scale_progress(callback, before, size, whole, f"text {number}")
            )
            before += size
    return PerplexityResult(**core.result())


def _scale_progress(callback: Callback, before: int, size: int, whole: int, item: str) -> Callback:
    """Returns a callback that reports the progress of one text as progress of all texts."""
    return lambda done, total, _: callback(before + size * done // total, whole, item)


def _count_bytes(text: str | Ids) -> int:
    if isinstance(text, str):
        return len(text.encode(errors="surrogatepass"))
    return _BYTES_PER_ID * len(text) if isinstance(text, typing.Sized) else _BYTES_PER_ID
