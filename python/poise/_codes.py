"""Quantizes and dequantizes without a file."""

from __future__ import annotations

import contextlib
import typing

from . import _poise
from ._elements import Slice, Tensor
from ._errors import Error
from ._inputs import describe_array
from ._types import DType

if typing.TYPE_CHECKING:
    from ._types import NumpyArray


def quantize(array: typing.Any, type: str, *, group_size: int | None = None, name: str = "") -> Tensor:
    """Quantizes floating-point numbers as convert() does, and returns a Tensor that owns the codes.

    array: numpy's, torch's, a Tensor, or any object with DLPack or the buffer protocol. type: "q4_k", "qint8",
    "group4", ... group_size: codes of a group (default: 128). name: the tensor's, for Model and messages.
    .part_bytes() returns the codes, .numpy() the decoded numbers.
    Raises BadArgumentError for an unknown type; UnsupportedError for numbers that are not finite, and for rows
    that are not whole blocks or groups.
    """
    made = _poise.Model.build([(name, describe_array(name or "without a name", array))])
    with _adapt_errors(name):
        return Tensor(_poise.quantize(made, type, group_size), 0)


def dequantize(
    codes: typing.Any,
    type: str | None = None,
    shape: typing.Iterable[int] | None = None,
    *,
    dtype: DType = "f32",
) -> NumpyArray:
    """Decodes codes, and returns their numbers.

    codes: a Tensor, or a buffer with ggml's blocks, row after row. type: of these blocks ("q4_k"). shape: of their
    numbers. dtype: as in Tensor.numpy().
    """
    if isinstance(codes, Slice):
        if type is not None or shape is not None:
            raise TypeError("a Tensor has its own type and shape; leave out type and shape")
        return codes.numpy(dtype)
    if type is None or shape is None:
        raise TypeError('blocks in a buffer need a type ("q4_k") and the shape of their numbers')
    with _adapt_errors(""):
        return Tensor(_poise.from_blocks(codes, type, tuple(shape)), 0).numpy(dtype)


@contextlib.contextmanager
def _adapt_errors(name: str) -> typing.Iterator[None]:
    """Removes remedies for conversions from errors, and the name of an unnamed tensor."""
    try:
        yield
    except Error as error:
        message = error.message if name else error.message.replace("tensor : ", "the array: ", 1)
        raise type(error)(message, error.path, error.offset) from None
