"""Has the functions of safetensors.numpy, for files of every format: load_file, save_file, load, save."""

from __future__ import annotations

import io
import os
import typing

import numpy as np

from . import _operations, _poise
from ._dtypes import normalize_type_name, find_numpy_dtype
from ._elements import Tensor
from ._errors import BadArgumentError
from ._model import Model, open, open_bytes
from ._safe_open import find_io
from ._serialize import make_ordered_model
from ._types import Arrays, DType, Path, SaveFileOptions, add_options

if typing.TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._types import NumpyArray

__all__ = ["load", "load_file", "save", "save_file"]


def load_file(filename: Path, *, dtype: DType | None = None, backend: str = "mmap") -> dict[str, NumpyArray]:
    """Returns all tensors of a file, by name: read-only views of the mapped file if its bytes are the elements, else
    decoded copies.

    dtype: the type of floating-point tensors and of quantized ones, "f32", "f16" or "bf16"; None: their own. Other
    tensors keep their type. backend: as in safe_open.
    """
    return _load_arrays(open(filename, io=find_io(backend)), dtype)


def load(data: typing.Any, name: str = "", *, dtype: DType | None = None) -> dict[str, NumpyArray]:
    """Returns all tensors of a file in memory, as load_file() does."""
    return _load_arrays(open_bytes(data, name), dtype)


@add_options(SaveFileOptions, overwrite=True)
def save_file(
    tensor_dict: Arrays,
    filename: Path,
    metadata: dict[str, str] | None = None,
    **options: Unpack[SaveFileOptions],
) -> None:
    """Writes arrays to a file in the format of its extension, by default safetensors. An existing file is
    replaced, whole or not at all.

    The same arrays make the same bytes, in any order of the dict. metadata: keys and values are str, else it raises
    TypeError. The other options are those of poise.save().
    """
    if options.get("format") is None:
        options["format"] = _choose_format(filename)
    _operations.save(make_ordered_model(tensor_dict, metadata), filename, **options)


def save(tensor_dict: Arrays, metadata: dict[str, str] | None = None, format: str = "safetensors") -> bytes:
    """Returns the bytes of a file with these arrays."""
    file = io.BytesIO()
    _operations.save(make_ordered_model(tensor_dict, metadata), file, format=format)
    return file.getvalue()


_FLOATS = frozenset(
    {"f64", "f32", "f16", "bf16", "f8_e4m3", "f8_e5m2", "f8_e4m3fnuz", "f8_e5m2fnuz", "f8_e8m0", "f4_e2m1"}
)


def _choose_format(filename: Path) -> str | None:
    found = _poise.format_from_extension(os.fsdecode(filename))
    # A Tiny Llama file (.bin) begins with a configuration, which arrays do not have.
    return found if found and found != "tllm" else "safetensors"


def _load_arrays(model: Model, wanted: DType | None) -> dict[str, NumpyArray]:
    target = None if wanted is None else normalize_type_name(wanted)
    if target not in (None, "f32", "f16", "bf16"):
        raise BadArgumentError(f'dtype is {wanted!r}, expected "f32", "f16" or "bf16"')
    result = {}
    for name, dtype, shape, place in model._core.all_mapped(False):
        if target is not None and dtype in _FLOATS and dtype != target:
            result[name] = Tensor(model._core, name).numpy(dtype=target)
        elif place is None or dtype is None:
            result[name] = Tensor(model._core, name).numpy()
        else:
            memory: typing.Any = place[0]
            result[name] = np.ndarray(shape, find_numpy_dtype(dtype), memory, place[1])
    return result
