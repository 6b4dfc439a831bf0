"""Declares types of arguments, and the options that several functions share."""

import functools
import inspect
import os
import typing
from typing import Annotated

if typing.TYPE_CHECKING:
    import numpy
    import numpy.typing
    import torch

    NumpyArray = numpy.typing.NDArray[typing.Any]
    NumpyType = numpy.dtype[typing.Any]
    TorchTensor = torch.Tensor
    TorchType = torch.dtype

Path = typing.Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]"]
# A type, or its name in Poise, numpy or torch: "bf16", "bfloat16", numpy.float32, torch.bfloat16.
DType = typing.Union[str, typing.Type[typing.Any], "NumpyType", "TorchType"]
# Arrays of numpy and torch, Tensors, Slices, and other objects with DLPack or the buffer protocol.
Arrays = typing.Mapping[str, typing.Any]
# A number of bytes: 4096, "64KiB", "2GB".
Size = typing.Union[int, str]
Patterns = typing.Union[str, typing.Iterable[str]]
# A function of (done, total, item), in bytes; it returns False to stop.
Callback = typing.Callable[[int, int, str], object]
Progress = typing.Union[None, bool, str, Callback]

Function = typing.TypeVar("Function", bound=typing.Callable[..., typing.Any])

# The options of functions. The default of an option is in Annotated; without Annotated it is None.


class SessionOptions(typing.TypedDict, total=False):
    threads: Annotated[int, 0]
    context: Annotated[int, 0]
    exact: Annotated[bool, False]
    cache: "str | None"


class GenerateOptions(typing.TypedDict, total=False):
    max_tokens: Annotated[int, 128]
    temperature: Annotated[float, 0.0]
    top_k: Annotated[int, 0]
    top_p: Annotated[float, 1.0]
    seed: Annotated[int, 0]
    stop_id: "int | None"
    stop: Annotated["str | typing.Sequence[str]", ()]
    ignore_eos: Annotated[bool, False]
    min_p: Annotated[float, 0.0]
    repetition_penalty: Annotated[float, 1.0]
    presence_penalty: Annotated[float, 0.0]
    frequency_penalty: Annotated[float, 0.0]
    logit_bias: "typing.Mapping[int, float] | None"


class BatchOptions(SessionOptions, GenerateOptions, total=False):
    pass


class SaveOptions(typing.TypedDict, total=False):
    format: "str | None"
    dtype: "DType | None"
    quantize: "str | None"
    group_size: "int | None"
    size: "Size | None"
    bpw: "float | None"
    text: "Path | None"
    imatrix: "Path | None"
    delta: "Path | None"
    lora: "Path | typing.Mapping[Path, float] | None"
    strip_prefix: "str | None"
    rename: "typing.Mapping[str, str] | None"
    add_prefix: "str | None"
    layers: "str | None"
    vocab_size: "int | None"
    drop_rows: Annotated[bool, False]
    set: "typing.Mapping[str, typing.Any] | None"
    keep: "typing.Mapping[str, DType] | None"
    only: "Patterns | None"
    skip: "Patterns | None"
    sparse: "str | None"
    min_sparsity: "float | None"
    card: "typing.Mapping[str, str] | None"
    compress: "str | None"
    digest: "str | None"
    align: "Size | None"
    shard_size: "Size | None"
    dialect: "str | None"
    vocab: "Path | None"
    merges: "Path | None"
    overwrite: Annotated[bool, False]
    verify: Annotated[bool, True]
    strict: Annotated[bool, False]


class SaveFileOptions(SaveOptions, total=False):
    progress: "Progress"


class ConvertOptions(SaveOptions, total=False):
    io: Annotated["str | None", "map"]


def add_options(options: typing.Any, **defaults: typing.Any) -> typing.Callable[[Function], Function]:
    """Replaces the **options of a function by the keywords that `options`, one of the classes above, lists. `defaults`
    replaces defaults of that class."""
    keywords = []
    for name, kind in options.__annotations__.items():
        default = defaults.get(name, getattr(kind, "__metadata__", [None])[0])
        plain = getattr(kind, "__origin__", kind)
        annotation = getattr(plain, "__forward_arg__", plain)
        keywords.append(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation))

    def change(function: Function) -> Function:
        own = inspect.signature(function)
        signature = own.replace(parameters=[*list(own.parameters.values())[:-1], *keywords])

        @functools.wraps(function)
        def call(*arguments: typing.Any, **given: typing.Any) -> typing.Any:
            signature.bind(*arguments, **given)  # raises TypeError for other keywords
            return function(*arguments, **{**{one.name: one.default for one in keywords}, **given})

        typing.cast(typing.Any, call).__signature__ = signature
        return typing.cast(Function, call)

    return change
