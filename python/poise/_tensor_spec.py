"""Defines the TensorSpec of safetensors 0.8, which describes a tensor by the address of its bytes."""

from __future__ import annotations

import ctypes
import math
import operator
import typing

from ._dtypes import find_bits, find_type_name, spell_for_safetensors
from ._errors import BadArgumentError

# torch counts two elements of four bits as one element of this type.
_PACKED_F4 = "float4_e2m1fn_x2"


class TensorSpec:
    """Describes the type, shape and memory of a tensor. The memory must outlive each call that writes the tensor.

    dtype: torch's name ("float32", "bfloat16", "float4_e2m1fn_x2"). shape: the shape of the elements; for
    float4_e2m1fn_x2 the last dimension counts bytes, as in torch. data_ptr: the address of the elements, in row-major
    and little-endian order. data_len: their length in bytes.
    Raises BadArgumentError for an unknown type, and for a shape and a length that contradict each other.
    """

    def __init__(self, *, dtype: str, shape: typing.Sequence[int], data_ptr: int, data_len: int):
        try:
            name = "f4_e2m1" if dtype == _PACKED_F4 else find_type_name(dtype)
        except TypeError as error:
            raise BadArgumentError(str(error)) from None
        sizes = [operator.index(size) for size in shape]
        if name == "f4_e2m1" and dtype == _PACKED_F4 and sizes:
            sizes[-1] *= 2
        if any(size < 0 for size in sizes) or data_len < 0 or data_ptr < 0:
            raise BadArgumentError("shape, data_ptr and data_len of a TensorSpec must not be negative")
        needed = (math.prod(sizes) * find_bits(name) + 7) // 8
        if data_len != needed:
            raise BadArgumentError(f"data_len is {data_len}, expected {needed} bytes for {name} of the shape {sizes}")
        if data_ptr == 0 and data_len > 0:
            raise BadArgumentError(f"data_ptr is 0, expected the address of {data_len} bytes")
        self._name, self._shape, self._data_ptr, self._data_len = name, sizes, data_ptr, data_len

    @property
    def dtype(self) -> str:
        """safetensors' name of the type: "F32", "BF16"."""
        return spell_for_safetensors(self._name)

    @property
    def shape(self) -> list[int]:
        """The number of elements along each axis."""
        return list(self._shape)

    @property
    def data_ptr(self) -> int:
        """The address of the first byte."""
        return self._data_ptr

    @property
    def data_len(self) -> int:
        """The length in bytes."""
        return self._data_len

    def __repr__(self) -> str:
        return (
            f"TensorSpec(dtype={self.dtype!r}, shape={self._shape}, data_ptr={self._data_ptr}, "
            f"data_len={self._data_len})"
        )

    def describe(self) -> tuple[str, tuple[int, ...], typing.Any]:
        """Returns the name of the type, the shape and the memory: the form of an array for _poise.Model.build()."""
        memory = (ctypes.c_ubyte * self._data_len).from_address(self._data_ptr) if self._data_len else b""
        return self._name, tuple(self._shape), memory
