"""Opens files of every format with the interface of safetensors' safe_open."""

from __future__ import annotations

import json
import typing

from ._dtypes import spell_for_safetensors
from ._elements import Slice, Tensor
from ._errors import BadArgumentError, MissingTensorError
from ._model import Model, open
from ._types import Path

Framework = typing.Literal["pt", "torch", "pytorch", "np", "numpy"]
Device = typing.Union[str, int]
Converter = typing.Callable[[Slice], typing.Any]

_BACKENDS = {"mmap": "map", "pread": "read"}
_FRAMEWORKS = {"pt": "torch", "torch": "torch", "pytorch": "torch", "np": "numpy", "numpy": "numpy"}


def find_io(backend: str) -> str:
    """Returns the `io` of poise.open() for a backend of safetensors."""
    try:
        return _BACKENDS[backend]
    except KeyError:
        raise ValueError(f"backend is {backend!r}, expected one of {', '.join(_BACKENDS)}") from None


class safe_open:
    """Opens a file, and returns its tensors as arrays of a framework: "pt" (torch) or "np" (numpy).

    with safe_open("model.gguf", framework="pt") as f:
        for name in f.keys():
            tensor = f.get_tensor(name)

    backend: "mmap" maps the file; "pread" reads each tensor when get_tensor() or a slice needs it.
    """

    def __init__(self, filename: Path, framework: Framework, device: Device | None = "cpu", *, backend: str = "mmap"):
        known = _FRAMEWORKS.get(framework)
        if known is None:
            raise ValueError(f"framework is {framework!r}, expected one of {', '.join(_FRAMEWORKS)}")
        device = "cpu" if device is None else device
        if known == "numpy" and str(device) != "cpu":
            raise ValueError(f"device is {device!r}, expected cpu for numpy's arrays")
        self._convert: Converter = _make_torch_converter(device) if known == "torch" else _convert_to_numpy
        self._opened: Model | None = open(filename, io=find_io(backend))

    def __enter__(self) -> safe_open:
        return self

    def __exit__(self, *_: object) -> None:
        self._opened = None  # existing slices keep the file open

    @property
    def _model(self) -> Model:
        if self._opened is None:
            raise BadArgumentError("the file is closed")
        return self._opened

    def keys(self) -> list[str]:
        """Returns the names of the tensors, sorted."""
        return sorted(self._model)

    def offset_keys(self) -> list[str]:
        """Returns the names of the tensors, in the order of the file."""
        return list(self._model)

    def metadata(self) -> dict[str, str] | None:
        """Returns the attributes of the file; values other than texts become JSON texts. None if there are none."""
        found = self._model.attributes.items()
        return {key: one if isinstance(one, str) else json.dumps(one, default=repr) for key, one in found} or None

    def _find(self, name: str) -> Tensor:
        try:
            return self._model[name]
        except KeyError:
            raise MissingTensorError(f"there is no tensor {name!r}", self._model.path) from None

    def get_tensor(self, name: str) -> typing.Any:
        """Returns a tensor as an array. Raises MissingTensorError, a SafetensorError and KeyError, for another name."""
        return self._convert(self._find(name))

    def get_tensors(self) -> dict[str, typing.Any]:
        """Returns all tensors, by name."""
        return {name: self.get_tensor(name) for name in self._model}

    def get_slice(self, name: str) -> _SafeSlice:
        """Returns an object that reads only the slices that its subscripts select, even after the file is closed."""
        return _SafeSlice(self._find(name), self._convert)


class _SafeSlice:
    def __init__(self, tensor: Slice, convert: Converter):
        self._tensor, self._convert = tensor, convert

    def get_shape(self) -> list[int]:
        return list(self._tensor.shape)

    def get_dtype(self) -> str:
        """Returns "F32", "BF16", ... as safetensors spells them."""
        return spell_for_safetensors(self._tensor._require_dtype())

    def __getitem__(self, key: typing.Any) -> typing.Any:
        if isinstance(key, list):
            if key:
                raise TypeError("lists of indices are not supported; .get_tensor() returns an array that supports them")
            key = slice(0, 0)
        return self._convert(Slice(self._tensor, key))


def _convert_to_numpy(elements: Slice) -> typing.Any:
    return elements.numpy()


def _make_torch_converter(device: Device) -> Converter:
    def convert(elements: Slice) -> typing.Any:
        made = elements.torch()
        return made if str(device) == "cpu" else made.to(device if not isinstance(device, int) else f"cuda:{device}")

    return convert
