"""Gives elements of tensors to numpy, torch and other users of DLPack or the buffer protocol."""

from __future__ import annotations

import typing

from . import _html, _poise
from ._dtypes import (
    fits_always,
    find_greatest_saturating,
    find_integer_range,
    is_numpy_type,
    find_type_name,
    find_numpy_dtype,
    require_cast,
    find_torch_dtype,
)
from ._errors import Error, UnsupportedError
from ._read_only import ReadOnlyDict
from ._types import DType

if typing.TYPE_CHECKING:
    from ._types import NumpyArray, TorchTensor

_DECODED = ("f32", "f16", "bf16")
# Every version of torch accepts these types through DLPack; others are passed as integers of the same width.
_TORCH_DLPACK = ("f64", "f32", "f16", "bf16", "complex64", "complex128", "i64", "i32", "i16", "i8", "u8")
# memoryview has these letters for types.
_LETTERS = {
    "f64": "d", "f32": "f", "i64": "q", "i32": "i", "i16": "h", "i8": "b",
    "u64": "Q", "u32": "I", "u16": "H", "u8": "B", "bool": "?",
}  # fmt: skip


class Part(typing.NamedTuple):
    """Describes one run of bytes of a tensor, and its place in a file."""

    role: str  #: "data", "values", "scales", ...
    dtype: str
    nbytes: int  #: the number of decoded bytes
    path: str | None  #: the path of the file; None for bytes that are not in a file
    offset: int | None
    stored_bytes: int | None
    encoding: str | None  #: "raw", "zstd", ...
    digest: str | None  #: as the file spells it: "sha256:9f86..."


class Slice(_poise.Elements):
    """Refers to elements of a tensor. Reads only the elements that a call returns."""

    __slots__ = ()

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def numpy(self, dtype: DType | None = None) -> NumpyArray:
        """Returns the elements as a numpy.ndarray.

        Without dtype: a read-only view of the mapped file, which stays mapped, if its bytes are the elements; else a
        decoded copy. Codes of quantized tensors become f32, sparse tensors dense. dtype: "f32", "f16", "bf16" or any
        other name or numpy type; floating-point numbers become f32, f16 and bf16 as in poise.convert(). A finite number
        that does not fit raises UnsupportedError. A type that would truncate numbers (floating-point ones to integers,
        complex ones to real ones) raises TypeError.
        bf16, f8 and f4 need the package ml_dtypes, unless they are decoded with dtype="f32".
        """
        import numpy as np

        own, shape, memory, offset, strides = self._view()
        name = own if dtype is None else find_type_name(dtype)
        if name == own:
            buffer: typing.Any = self._read() if memory is None else memory
            return np.ndarray(shape, find_numpy_dtype(name), buffer, offset, strides)
        if name in _DECODED and self._has_floats():
            decoded: typing.Any = self._read(name)
            return np.ndarray(shape, find_numpy_dtype(name), decoded)
        source = "f32" if self._has_floats() and own != "f64" else own
        require_cast(source, name)
        return self._cast_array(self.numpy(source), source, name)

    def torch(self, dtype: DType | None = None) -> TorchTensor:
        """Returns the elements as a torch.Tensor. Writing to it makes private copies of the mapped file's pages; the
        file never changes.

        dtype as in numpy(); also torch's own types.
        """
        name = self._require_dtype() if dtype is None else find_type_name(dtype)
        made: TorchTensor = self._make_tensor(name)
        return made

    def _make_tensor(self, name: str) -> typing.Any:
        import torch

        own = self._require_dtype()
        if name != own and not (name in _DECODED and self._has_floats()):
            source = "f32" if self._has_floats() and own != "f64" else own
            require_cast(source, name)
            if own in ("u16", "u32", "u64"):  # torch lacks these types, or most operations on them
                find_torch_dtype(name)  # raises for a type that this torch lacks
                if is_numpy_type(name):
                    return torch.from_numpy(self.numpy(name))
                return self._cast_tensor(torch.from_numpy(self.numpy("f32")), "f32", name)
            return self._cast_tensor(self.torch(source), source, name)
        if name == "f4_e2m1":
            find_torch_dtype(name)  # raises, naming the type
        if name in _TORCH_DLPACK:
            return torch.from_dlpack(_Capsule(self._dlpack(name)))
        return torch.from_dlpack(_Capsule(self._dlpack(name, bits=True))).view(find_torch_dtype(name))

    def _cast_array(self, plain: NumpyArray, source: str, name: str) -> NumpyArray:
        import numpy as np

        with np.errstate(all="ignore"):
            cast = plain.astype(find_numpy_dtype(name))
            if fits_always(source, name):
                return cast
            common = find_integer_range(source, name)
            if common is not None:
                least, greatest = (plain.dtype.type(limit) for limit in common)
                lost = (plain < least) | (plain > greatest)
            elif (greatest := find_greatest_saturating(name)) is not None:
                lost = ~((plain >= -greatest) & (plain <= greatest))
            else:
                lost = np.isfinite(plain) & ~np.isfinite(cast)
        if lost.any():
            self._refuse(int(lost.argmax()), plain.reshape(-1)[lost.argmax()], name)
        return cast

    def _cast_tensor(self, plain: typing.Any, source: str, name: str) -> typing.Any:
        import torch

        cast = plain.to(find_torch_dtype(name))
        if fits_always(source, name):
            return cast
        common = find_integer_range(source, name)
        if common is not None:
            lost = (plain < common[0]) | (plain > common[1])
        else:
            lost = torch.isfinite(plain) & ~torch.isfinite(cast.float() if name.startswith("f8") else cast)
        if lost.any():
            index = int(lost.reshape(-1).nonzero()[0])
            self._refuse(index, plain.reshape(-1)[index].item(), name)
        return cast

    def _refuse(self, index: int, value: object, name: str) -> typing.NoReturn:
        raise UnsupportedError(f"tensor {self.name}: element {index} is {value}, which does not fit {name}")

    def __dlpack__(
        self,
        *,
        stream: object = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> typing.Any:
        if dl_device is not None and tuple(dl_device) != (1, 0):
            raise BufferError("the elements are in the processor's memory")
        return self._dlpack()

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def __array__(self, dtype: DType | None = None, copy: bool | None = None) -> NumpyArray:
        made = self.numpy(dtype)
        return made.copy() if copy else made

    def item(self) -> typing.Any:
        """Returns the only element of a tensor as a Python number."""
        if self.size != 1:
            raise ValueError(f"item() needs a tensor with one element, found {self.size}; .tolist() returns all")
        return self._read_numbers()[0]

    def tolist(self) -> typing.Any:
        """Returns the elements as Python numbers, in nested lists; one number for a tensor without dimensions."""
        shape = self.shape
        return _nest(self._read_numbers(), shape) if self.size else _make_empty(shape)

    def _read_numbers(self) -> list[typing.Any]:
        """Returns the elements as Python numbers in one list, without numpy."""
        own = self._require_dtype()
        name = "f32" if self._has_floats() and own != "f64" else own
        buffer: typing.Any = self._read(name)
        data = memoryview(buffer)
        if not name.startswith("complex"):
            return list(data.cast(_LETTERS[name]).tolist())
        halves = data.cast("f" if name == "complex64" else "d").tolist()
        return [complex(real, imaginary) for real, imaginary in zip(halves[::2], halves[1::2])]

    def _get_only(self) -> typing.Any:
        if self.size != 1:
            raise TypeError(f"only a tensor with one element is a number, found {self.size} elements")
        return self.item()

    def __int__(self) -> int:
        return int(self._get_only())

    def __float__(self) -> float:
        return float(self._get_only())

    def __complex__(self) -> complex:
        return complex(self._get_only())

    def __index__(self) -> int:
        if self.shape or not (self.dtype or "").startswith(("i", "u")):
            raise TypeError("only an integer tensor without dimensions is an index")
        return int(self.item())

    def __getitem__(self, key: typing.Any) -> Slice:
        """Returns some of the elements. key: integers, slices and `...`, as in numpy, but no negative steps."""
        return Slice(self, key)

    def _item(self, index: int) -> typing.Any:
        """Returns a row, or a number, for C code that uses the tensor as a sequence.

        torch.as_tensor() and torch.tensor() do so before torch 2.1, and take the type from rows that are arrays.
        """
        row = self[index]
        if is_numpy_type(self._require_dtype()):
            return row.numpy()[()]
        return row if row.shape else row.torch()

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError(
                "a tensor without dimensions has no len(); .item() is its number, .numpy() and .torch() are its arrays"
            )
        return self.shape[0]

    def __iter__(self) -> typing.Iterator[Slice]:
        return (self[i] for i in range(len(self)))

    def __reversed__(self) -> typing.Iterator[Slice]:
        return (self[i] for i in reversed(range(len(self))))

    def __contains__(self, _: object) -> bool:
        raise TypeError("elements do not support `in`; .numpy() returns an array that does")

    def __bool__(self) -> bool:
        if self.size != 1:
            raise TypeError(
                "a tensor is neither true nor false, unless it has one element; compare its size or its elements"
            )
        return bool(self.item())

    def __reduce__(self) -> typing.NoReturn:
        raise TypeError(
            "a Tensor cannot be pickled: it is a place in a mapped file. Pickle model.path and open it there, or "
            "pickle .numpy()"
        )

    def __repr__(self) -> str:
        try:
            return f"<poise.{type(self).__name__} {self.name!r} {self._stored} {list(self.shape)}>"
        except Error:
            return f"<poise.{type(self).__name__} of a closed model>"

    def _repr_html_(self) -> str:
        return _html.make_elements_html(self)


class Tensor(Slice):
    """Describes a tensor of a model: name, shape, dtype, and where its bytes are. It is a Slice of all its elements."""

    __slots__ = ()

    @property
    def layout(self) -> str:
        """The way in which parts make up elements: "dense", "sparse_csr", "quantized_group", "affine", ..."""
        return self._layout

    @property
    def stored(self) -> str:
        """The type of the stored elements: "bf16", "qint8", "group4:128", "q4_k", "sparse_csr f16", "layout zt.foo/1".
        `dtype` is the type that numpy() returns."""
        return self._stored

    @property
    def nbytes(self) -> int:
        """The number of decoded bytes of all parts."""
        return self._stored_bytes

    @property
    def attributes(self) -> dict[str, typing.Any]:
        return ReadOnlyDict(self._attributes, "the attributes of a tensor do not change")

    @property
    def parts(self) -> list[Part]:
        return [Part(*part) for part in self._parts()]

    def part_bytes(self, role: str = "data") -> memoryview:
        """Returns the decoded bytes of one part, read-only: the mapped file's if possible."""
        buffer: typing.Any = self._part_bytes(role)
        return memoryview(buffer).toreadonly()


for _sequence in (Slice, Tensor):
    _poise.set_item_function(_sequence)


def _nest(numbers: list[typing.Any], shape: tuple[int, ...]) -> typing.Any:
    if not shape:
        return numbers[0]
    for size in reversed(shape[1:]):
        numbers = [numbers[i : i + size] for i in range(0, len(numbers), size)]
    return numbers


def _make_empty(shape: tuple[int, ...]) -> list[typing.Any]:
    return [_make_empty(shape[1:]) for _ in range(shape[0])]


class _Capsule:
    """Holds a DLPack capsule for functions that call __dlpack__()."""

    def __init__(self, capsule: typing.Any):
        self._made = capsule

    def __dlpack__(self, **_: object) -> typing.Any:
        return self._made

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)
