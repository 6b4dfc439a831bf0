"""safetensors.numpy's names for files of every format: load_file, save_file, load, save."""

import os
import pathlib
import tempfile
import typing

import numpy as np

from . import _operations
from ._dtypes import numpy_dtype
from ._elements import Tensor
from ._model import Model, open, open_bytes

__all__ = ["load", "load_file", "save", "save_file"]


def load_file(filename: "typing.Union[str, os.PathLike]") -> "dict[str, np.ndarray]":
    """All tensors of a file of any format, by name: read-only views of the mapped file where its bytes are the elements, else decoded copies."""
    return _arrays(open(filename))


def load(data: bytes, name: str = "") -> "dict[str, np.ndarray]":
    """The same for a file that is in memory."""
    return _arrays(open_bytes(data, name))


def save_file(tensor_dict, filename: "typing.Union[str, os.PathLike]", metadata: "typing.Optional[dict[str, str]]" = None, **options) -> None:
    """Writes arrays to a file whose extension says the format; without one that does, safetensors. An existing file is replaced, whole or not at all.

    options: those of poise.save().
    """
    _operations.save(Model(tensor_dict, metadata=metadata), filename, **{"overwrite": True, **_usual_format(filename), **options})


def save(tensor_dict, metadata: "typing.Optional[dict[str, str]]" = None, format: str = "safetensors") -> bytes:
    """The bytes of a file."""
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "saved")
        _operations.save(Model(tensor_dict, metadata=metadata), path, format=format)
        return pathlib.Path(path).read_bytes()


def _usual_format(filename):
    extension = os.path.splitext(os.fspath(filename))[1]
    known = {one.extension for one in _operations.formats() if one.writable and one.extension}
    return {} if extension in known else {"format": "safetensors"}


def _arrays(model):
    result = {}
    for name, dtype, shape, place in model._core.all_mapped(False):
        if place is None:
            result[name] = Tensor(model._core, name).numpy()
        else:
            result[name] = np.ndarray(shape, numpy_dtype(dtype), *place)
    return result
