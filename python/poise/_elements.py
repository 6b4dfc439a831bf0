"""Tensors and slices of them: elements for numpy, torch and everything that takes DLPack or buffers."""

import typing

from . import _html, _poise
from ._dtypes import name_of, numpy_dtype, torch_dtype
from ._errors import Error

_DECODED = ("f32", "f16", "bf16")
# What torch takes through DLPack in every version; others go as integers of the same width.
_TORCH_DLPACK = ("f64", "f32", "f16", "bf16", "complex64", "complex128", "i64", "i32", "i16", "i8", "u8")


class Part(typing.NamedTuple):
    """One run of bytes of a tensor, and where a file has it."""

    role: str  #: "data", "values", "scales", ...
    dtype: str
    nbytes: int  #: decoded
    path: typing.Optional[str]  #: of the file; None for bytes of no file
    offset: typing.Optional[int]
    stored_bytes: typing.Optional[int]
    encoding: typing.Optional[str]  #: "raw", "zstd", ...
    digest: typing.Optional[str]  #: as the file spells it: "sha256:9f86..."


class Slice(_poise.Elements):
    """Elements of a tensor. Nothing is read before they are asked for as numbers, and then these alone."""

    __slots__ = ()

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def numpy(self, dtype=None):
        """The elements as a numpy.ndarray.

        Without dtype: where the file's bytes are the elements and are mapped, a read-only view of them, which keeps the file mapped; else a decoded copy.
        Codes of quantized tensors become f32, sparse tensors are filled up. dtype: "f32", "f16", "bf16" or any other name or numpy type; f32, f16 and bf16
        are made as poise.convert() makes them, and raise UnsupportedError where a finite number does not fit.
        bf16, f8 and f4 need the package ml_dtypes, unless they are decoded with dtype="f32".
        """
        import numpy as np

        own, shape, memory, offset, strides = self._view()
        name = own if dtype is None else name_of(dtype)
        if name == own:
            return np.ndarray(shape, numpy_dtype(name), self._read() if memory is None else memory, offset, strides)
        if name in _DECODED and self._has_floats():
            return np.ndarray(shape, numpy_dtype(name), self._read(name))
        plain = self.numpy("f32") if self._has_floats() and own != "f64" else self.numpy()
        return plain.astype(numpy_dtype(name), casting="same_kind")

    def torch(self, dtype=None):
        """The elements as a torch.Tensor, which may be written to: pages of the mapped file become private copies when they are, the file never changes.

        dtype as in numpy(); also torch's own types.
        """
        import torch

        own = self._require_dtype()
        name = own if dtype is None else name_of(dtype)
        if name != own and not (name in _DECODED and self._has_floats()):
            return self.torch("f32" if self._has_floats() and own != "f64" else None).to(torch_dtype(name))
        if name == "f4_e2m1":
            torch_dtype(name)  # which says that there is none
        if name in _TORCH_DLPACK:
            return torch.from_dlpack(_Capsule(self._dlpack(name)))
        return torch.from_dlpack(_Capsule(self._dlpack(name, bits=True))).view(torch_dtype(name))

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        if dl_device is not None and tuple(dl_device) != (1, 0):
            raise BufferError("the elements are in the processor's memory")
        return self._dlpack()

    def __dlpack_device__(self):
        return (1, 0)

    def __array__(self, dtype=None, copy=None):
        made = self.numpy(dtype)
        return made.copy() if copy else made

    def item(self):
        """The element of a tensor that has one, as a Python number."""
        if self.size != 1:
            raise ValueError(f"item() takes one element, and there are {self.size}")
        return self._numbers().item()

    def tolist(self):
        """The elements as Python numbers, in nested lists."""
        return self._numbers().tolist()

    def _numbers(self):
        return self.numpy("f32" if self._has_floats() and self.dtype != "f64" else None)

    def __getitem__(self, key) -> "Slice":
        """Some of the elements: integers, slices and ... as in numpy, forward only."""
        return Slice(self, key)

    def __len__(self):
        if not self.shape:
            raise TypeError("a tensor without dimensions has no len()")
        return self.shape[0]

    def __iter__(self):
        return (self[i] for i in range(len(self)))

    def __bool__(self):
        raise TypeError("a tensor is neither true nor false; compare its size or its elements")

    def __reduce__(self):
        raise TypeError("a Tensor cannot be pickled: it is a place in a mapped file. Pickle model.path and open it there, or pickle .numpy()")

    def __repr__(self):
        try:
            return f"<poise.{type(self).__name__} {self.name!r} {self.dtype or self._layout} {list(self.shape)}>"
        except Error:
            return f"<poise.{type(self).__name__} of a closed model>"

    def _repr_html_(self):
        return _html.elements(self)


class Tensor(Slice):
    """A tensor of a model: name, shape, dtype, and where its bytes are."""

    __slots__ = ()

    @property
    def layout(self) -> str:
        """How parts make up elements: "dense", "sparse_csr", "quantized_group", "affine", ..."""
        return self._layout

    @property
    def stored(self) -> str:
        """How the elements are stored: "bf16", "qint8", "quantized_group", "layout zt.foo/1". `dtype` is what numpy() gives."""
        return self._stored

    @property
    def nbytes(self) -> int:
        """Bytes of all parts, decoded."""
        return self._stored_bytes

    @property
    def attributes(self) -> dict:
        return self._attributes

    @property
    def parts(self) -> "list[Part]":
        return [Part(*part) for part in self._parts()]

    def part_bytes(self, role="data") -> memoryview:
        """The decoded bytes of one part, read-only: those of the mapped file where it has them."""
        return memoryview(self._part_bytes(role)).toreadonly()


class _Capsule:
    """One DLPack capsule, for a consumer that asks an object for it."""

    def __init__(self, capsule):
        self._made = capsule

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        return self._made

    def __dlpack_device__(self):
        return (1, 0)
