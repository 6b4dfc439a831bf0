"""Poise: model weight files of every format, opened without copying, checked, converted, written and run.

    model = poise.open("model.safetensors")
    model["model.norm.weight"].numpy()
    poise.convert("model.safetensors", "model.zt", quantize="group4")
    session = poise.Session("model.zt")
    for piece in session.generate("Once upon a time"):
        print(piece, end="")

poise.numpy and poise.torch have the names of safetensors' Python package. numpy and torch are imported when they are asked for.
"""

from . import _poise
from ._elements import Part, Slice, Tensor
from ._errors import (
    BadArgumentError,
    CancelledError,
    Error,
    InputOutputError,
    InternalError,
    InvalidFileError,
    NotFoundError,
    PermissionDeniedError,
    UnsupportedError,
)
from ._model import Finding, Model, open, open_bytes
from ._operations import (
    Cast,
    ConvertReport,
    DiffReport,
    EditReport,
    FieldDifference,
    FormatInfo,
    ModelHash,
    Plan,
    PlannedTensor,
    Quantized,
    TensorDifference,
    VerifyReport,
    convert,
    diff,
    edit,
    formats,
    hash,
    plan,
    save,
    verify,
)
from ._poise import TextStream, Tokenizer, Vocabulary, read_tokenizer
from ._safe_open import safe_open
from ._session import Session, Weights

__version__ = _poise.version

__all__ = [name for name in dir() if not name.startswith("_")] + ["__version__"]


def __getattr__(name):
    if name in ("numpy", "torch"):
        import importlib

        return importlib.import_module(f"poise.{name}")
    raise AttributeError(f"module 'poise' has no attribute {name!r}")
