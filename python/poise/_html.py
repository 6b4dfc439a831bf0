"""Makes HTML representations of models and tensors for notebooks. Escapes all texts from a file."""

from __future__ import annotations

import math
import typing
from html import escape

from ._errors import Error
from ._progress import format_bytes

if typing.TYPE_CHECKING:
    from . import _poise
    from ._elements import Slice
    from ._model import Model

_ROWS = 60  # the largest number of rows in a table; a file may have millions of tensors
_SAMPLE = 65536  # elements that a histogram reads
_BINS = 24
_CELL = ' style="text-align:left"'


def make_model_html(model: Model) -> str:
    """Returns HTML with the model's origin and a table of its first tensors."""
    try:
        total = len(model)
    except Error:
        return "<p>a closed model</p>"
    rows = "".join(_make_row(model._core, i) for i in range(min(total, _ROWS)))
    more = f"<p>… and {total - _ROWS} more</p>" if total > _ROWS else ""
    head = "".join(f"<th{_CELL}>{title}</th>" for title in ("tensor", "shape", "type", "bytes"))
    return f"<p>{_make_title(model)}</p><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{more}"


def make_elements_html(tensor: Slice) -> str:
    """Returns HTML with one line, and a histogram of some elements if they are floating-point numbers."""
    try:
        type_ = _escape(tensor._stored)
        line = f"<p><b>{_escape(tensor.name)}</b> {list(tensor.shape)} {type_}, {tensor.size:,} elements</p>"
    except Error as error:
        return f"<p>{_escape(str(error))}</p>"
    try:
        return line + _make_histogram(tensor)
    except Error as error:
        return f"{line}<p>no histogram: {_escape(str(error))}</p>"


def _make_title(model: Model) -> str:
    path = f"<b>{_escape(model.path)}</b> " if model.path else ""
    size = format_bytes(model.file_size or sum(tensor.nbytes for tensor in model.tensors))
    return f"{path}{_escape(model.format or 'made of arrays')}, {len(model):,} tensors, {size}"


def _make_row(core: _poise.Model, index: int) -> str:
    from ._elements import Tensor

    tensor = Tensor(core, index)
    cells = (
        _escape(tensor.name),
        _escape(str(list(tensor.shape))),
        _escape(tensor.stored),
        format_bytes(tensor.nbytes),
    )
    return "<tr>" + "".join(f"<td{_CELL}>{cell}</td>" for cell in cells) + "</tr>"


def _make_histogram(tensor: Slice) -> str:
    if not tensor.size or not tensor.shape or not tensor._has_floats():
        return ""
    try:
        import numpy as np
    except ImportError:
        return ""
    sample = tensor[_select_first(tensor.shape)].numpy("f64").reshape(-1)
    finite = sample[np.isfinite(sample)]
    if not finite.size:
        return "<p>no finite element among those looked at</p>"
    some = f"{finite.size:,} elements" if finite.size < tensor.size else "all elements"
    if finite.min() == finite.max():
        return f"<p>{finite[0]:.4g}, {some}</p>"
    exponent = np.frexp(np.abs(finite).max())[1]  # scaled to about 1, so that widths of bins do not overflow
    try:
        counts, edges = np.histogram(np.ldexp(finite, -exponent), bins=_BINS)
    except ValueError:  # the numbers are too close to each other for bins
        return f"<p>{finite.min():.17g} to {finite.max():.17g}, {some}</p>"
    edges = np.ldexp(edges, exponent)
    heights = (40 * counts / counts.max()).round().astype(int).tolist()
    bars = "".join(
        f'<rect x="{8 * i}" y="{40 - height}" width="7" height="{height}" fill="#47a"/>'
        for i, height in enumerate(heights)
    )
    return f'<svg width="{8 * _BINS}" height="40">{bars}</svg><p>{edges[0]:.4g} to {edges[-1]:.4g}, {some}</p>'


def _select_first(shape: tuple[int, ...]) -> tuple[slice, ...]:
    """Returns a subscript for about _SAMPLE elements, from the first on."""
    key: list[slice] = []
    left = _SAMPLE
    for i, size in enumerate(shape):
        inner = math.prod(shape[i + 1 :])
        key.append(slice(0, max(1, min(size, left // inner))))
        left = max(1, left // key[-1].stop)
    return tuple(key)


def _escape(text: str) -> str:
    return escape(text.encode("utf-8", "replace").decode())
