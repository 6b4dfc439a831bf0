"""Types of arguments, for type checkers."""

from __future__ import annotations

import os
import typing

if typing.TYPE_CHECKING:
    import numpy
    import numpy.typing
    import torch

    NumpyArray = numpy.typing.NDArray[typing.Any]
    NumpyType = numpy.dtype[typing.Any]
    TorchTensor = torch.Tensor
    TorchType = torch.dtype

Path = typing.Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]"]
# A type by its name here, in numpy or in torch, or one of theirs: "bf16", "bfloat16", numpy.float32, torch.bfloat16.
DType = typing.Union[str, typing.Type[typing.Any], "NumpyType", "TorchType"]
# numpy's, torch's, Tensors, Slices, and whatever has DLPack or buffers.
Arrays = typing.Mapping[str, typing.Any]
# Bytes: 4096, "64KiB", "2GB".
Size = typing.Union[int, str]
Patterns = typing.Union[str, typing.Iterable[str]]
# (done, total, item), in bytes; False stops.
Callback = typing.Callable[[int, int, str], object]
Progress = typing.Union[None, bool, str, Callback]
