"""Poise opens (without copying), checks, converts, writes and runs model weight files of every format.

    model = poise.open("model.safetensors")
    model["model.norm.weight"].numpy()
    poise.convert("model.safetensors", "model.zt", quantize="group4")
    session = poise.Session("model.zt")
    for piece in session.generate("Once upon a time"):
        print(piece, end="")

poise.numpy and poise.torch have the functions of safetensors' Python package. numpy and torch are imported on first
use.
"""

import typing

from . import _poise
from ._codes import dequantize, quantize
from ._elements import Part, Slice, Tensor
from ._embed import embed
from ._errors import (
    BadArgumentError,
    CancelledError,
    Error,
    InputOutputError,
    InternalError,
    InvalidFileError,
    MissingTensorError,
    NotFoundError,
    OutputExistsError,
    PermissionDeniedError,
    UnsupportedError,
)
from ._making import convert_lora, extract_lora, fetch, make_delta, measure_imatrix
from ._model import Model, open, open_bytes, open_url
from ._operations import convert, diff, edit, formats, hash, plan, report, save, stats, verify
from ._perplexity import PerplexityResult, perplexity
from ._poise import TextStream, Tokenizer, Vocabulary, chat_templates, read_tokenizer
from ._reports import (
    Cast,
    ConvertLoraReport,
    ConvertReport,
    DeltaReport,
    DeltaTensor,
    DiffReport,
    EditReport,
    ExtractedMatrix,
    ExtractLoraReport,
    FetchReport,
    FieldDifference,
    Finding,
    FormatInfo,
    ImatrixReport,
    ModelHash,
    Plan,
    PlannedTensor,
    Quantized,
    TensorDifference,
    TensorStatistics,
    VerifyReport,
)
from ._safe_open import safe_open
from ._serialize import deserialize, serialize, serialize_file, serialize_file_threadable
from ._session import Answer, Session, Weights, generate_batch
from ._tensor_spec import TensorSpec

__version__ = _poise.version

#: Code that catches the error of safetensors' package needs no change.
SafetensorError = Error

if typing.TYPE_CHECKING:
    from . import numpy as numpy
    from . import torch as torch

__all__ = [
    "Answer",
    "BadArgumentError",
    "CancelledError",
    "Cast",
    "ConvertLoraReport",
    "ConvertReport",
    "DeltaReport",
    "DeltaTensor",
    "DiffReport",
    "EditReport",
    "Error",
    "ExtractLoraReport",
    "ExtractedMatrix",
    "FetchReport",
    "FieldDifference",
    "Finding",
    "FormatInfo",
    "ImatrixReport",
    "InputOutputError",
    "InternalError",
    "InvalidFileError",
    "MissingTensorError",
    "Model",
    "ModelHash",
    "NotFoundError",
    "OutputExistsError",
    "Part",
    "PermissionDeniedError",
    "PerplexityResult",
    "Plan",
    "PlannedTensor",
    "Quantized",
    "SafetensorError",
    "Session",
    "Slice",
    "Tensor",
    "TensorDifference",
    "TensorSpec",
    "TensorStatistics",
    "TextStream",
    "Tokenizer",
    "UnsupportedError",
    "VerifyReport",
    "Vocabulary",
    "Weights",
    "__version__",
    "chat_templates",
    "convert",
    "convert_lora",
    "dequantize",
    "deserialize",
    "diff",
    "edit",
    "embed",
    "extract_lora",
    "fetch",
    "formats",
    "generate_batch",
    "hash",
    "make_delta",
    "measure_imatrix",
    "open",
    "open_bytes",
    "open_url",
    "perplexity",
    "plan",
    "quantize",
    "read_tokenizer",
    "report",
    "safe_open",
    "save",
    "serialize",
    "serialize_file",
    "serialize_file_threadable",
    "stats",
    "verify",
]


if not typing.TYPE_CHECKING:  # type checkers would accept every name because of __getattr__

    def __getattr__(name):
        if name in ("numpy", "torch"):
            import importlib

            return importlib.import_module(f"poise.{name}")
        raise AttributeError(f"module 'poise' has no attribute {name!r}")
