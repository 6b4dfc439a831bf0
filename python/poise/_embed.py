"""Computes vectors of texts."""

from __future__ import annotations

import typing

from . import _poise
from ._model import Model
from ._progress import show_progress
from ._session import Ids, Weights, _make_floats, make_weights
from ._types import Path, Progress, SessionOptions, add_options

if typing.TYPE_CHECKING:
    import numpy
    import numpy.typing
    from typing_extensions import Unpack


@add_options(SessionOptions)
def embed(
    model: Model | Weights | Path,
    texts: typing.Iterable[str | Ids],
    *,
    pooling: str = "last",
    layer: int = -1,
    normalize: bool = False,
    progress: Progress = None,
    **options: Unpack[SessionOptions],
) -> numpy.typing.NDArray[numpy.float32]:
    """Returns the vectors of texts, as `poise embed` prints them: a float32 array [texts, hidden_size].

    texts: each is a text, which gets the special tokens of the vocabulary, or token ids, which get none.
    pooling: "last": the hidden state of the last token; "mean": the mean over all tokens.
    layer: the layer of hidden states, as in Session.hidden_states(); -1: the last one, after the final norm.
    normalize: divides each vector by its length, so that the product of two vectors is a cosine.
    progress: as in convert(), but it counts tokens instead of bytes. Other options: as in Session.
    Short texts are computed together. A text without tokens, or longer than the context, raises BadArgumentError.
    """
    if isinstance(texts, (str, bytes)):
        raise TypeError(f"texts is {texts!r:.40}, expected a list of texts or of token ids")
    weights = make_weights(model)
    core = _poise.Embedder(weights, pooling, layer, normalize, dict(options))
    with show_progress(progress, "embed") as callback:
        return _make_floats(core.embed(list(texts), callback)).reshape(-1, weights.hidden_size)
