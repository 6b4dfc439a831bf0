"""Converts arrays to the form of files: (dtype, shape, bytes in row-major and little-endian order)."""

from __future__ import annotations

import collections.abc
import reprlib
import sys
import typing

from . import _poise
from ._dtypes import find_type_name, find_numpy_name
from ._elements import Slice, Tensor
from ._tensor_spec import TensorSpec

if typing.TYPE_CHECKING:
    import torch

    # dtype, shape, object with the bytes (by the buffer protocol)
    Described = typing.Tuple[str, typing.Tuple[int, ...], typing.Any]

_BUFFER_FORMATS = {
    "d": "f64", "f": "f32", "e": "f16", "q": "i64", "i": "i32", "h": "i16", "b": "i8", "Q": "u64", "I": "u32",
    "H": "u16", "B": "u8", "?": "bool", "l": "i64", "L": "u64", "Zf": "complex64", "Zd": "complex128", "c": "u8",
}  # fmt: skip


def list_items(tensors: typing.Any) -> typing.Iterable[tuple[typing.Any, typing.Any]]:
    if not hasattr(tensors, "items"):
        raise TypeError(
            f"a model is made of a dict of arrays, not of {type(tensors).__name__}; poise.open() opens a path"
        )
    return typing.cast("typing.Iterable[tuple[typing.Any, typing.Any]]", tensors.items())


def describe_items(tensors: typing.Any) -> typing.Iterator[tuple[typing.Any, Tensor | Described]]:
    """Yields the items of a mapping in the form that _poise.Model.build() expects.

    The arrays of a dict are borrowed. Another mapping may load an array on each access, so its arrays are dropped here,
    and loaded again, one at a time, when their bytes are written.
    """
    if isinstance(tensors, dict) or not isinstance(tensors, collections.abc.Mapping):
        for name, array in list_items(tensors):
            yield name, describe_array(name, array)
        return
    for name in tensors:
        made = describe_array(name, tensors[name])
        yield name, made if isinstance(made, Tensor) else (made[0], made[1], _make_loader(tensors, name, made))


def _make_loader(tensors: typing.Any, name: typing.Any, made: Described) -> typing.Callable[[], typing.Any]:
    dtype, shape = made[0], tuple(made[1])

    def load() -> typing.Any:
        again = describe_array(name, tensors[name])
        if isinstance(again, Tensor) or (again[0], tuple(again[1])) != (dtype, shape):
            raise ValueError(f"tensor {name}: the mapping returned another array than before, expected {dtype} {shape}")
        return again[2]

    return load


def describe_array(name: object, array: typing.Any) -> Tensor | Described:
    """Returns an array in the form that _poise.Model.build() expects. array: numpy's, torch's, a Tensor, a Slice, a
    TensorSpec, or an object with DLPack or the buffer protocol."""
    if isinstance(array, Tensor):
        return array
    if isinstance(array, Slice):
        return array._require_dtype(), array.shape, array._packed()
    if isinstance(array, TensorSpec):
        return array.describe()
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(array, (numpy.ndarray, numpy.generic)):
        return _describe_numpy(name, array, numpy)
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(array, torch.Tensor):
        return _describe_torch(name, array, torch)
    if hasattr(array, "__dlpack__"):
        return _poise.from_dlpack(array.__dlpack__())
    try:
        view = memoryview(array)
    except TypeError:
        raise TypeError(
            f"tensor {name}: {type(array).__name__} is not an array: arrays of numpy and torch and "
            "objects with DLPack or the buffer protocol can be saved"
        ) from None
    return _describe_buffer(name, view)


def make_dict(name: str, given: typing.Mapping[typing.Any, typing.Any] | None) -> dict[typing.Any, typing.Any] | None:
    """Returns a mapping as a dict; None for None. Raises TypeError for other objects."""
    if given is None:
        return None
    if not isinstance(given, collections.abc.Mapping):
        raise TypeError(f"{name} is {reprlib.repr(given)}, expected a dict")
    return dict(given)


def require_texts(metadata: typing.Mapping[typing.Any, typing.Any] | None) -> None:
    """Raises TypeError for metadata whose keys and values are not all str."""
    for key, value in (metadata or {}).items():
        if not isinstance(key, str):
            raise TypeError(f"metadata: the key {key!r} is not a str")
        if not isinstance(value, str):
            raise TypeError(f"metadata {key!r}: {value!r} is not a str; json.dumps() converts it to one")


def _describe_numpy(name: object, array: typing.Any, np: typing.Any) -> Described:
    if isinstance(array, np.generic):
        array = np.asarray(array)
    if type(array) is not np.ndarray and type(array) is not np.memmap:
        raise TypeError(
            f"tensor {name}: {type(array).__name__}, a subclass of numpy.ndarray, may mean more than its elements; "
            "numpy.asarray() makes them an array"
        )
    try:
        dtype = find_numpy_name(array.dtype)
    except TypeError as error:
        raise TypeError(f"tensor {name}: {error}") from None
    shape = array.shape
    if array.dtype.byteorder == ">" or (array.dtype.byteorder == "=" and sys.byteorder == "big"):
        array = array.astype(array.dtype.newbyteorder("<"))
    flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8) if array.size else np.empty(0, np.uint8)
    if dtype == "f4_e2m1":  # an element has a byte in numpy, and half a byte in files
        pairs = np.append(flat, np.uint8(0)) if flat.size % 2 else flat
        flat = (pairs[0::2] & 15) | (pairs[1::2] << 4)
    return dtype, shape, flat


def _describe_torch(name: object, tensor: torch.Tensor, torch: typing.Any) -> Described:
    if tensor.layout is not torch.strided:
        raise ValueError(
            f'tensor {name}: it is sparse; .to_dense() makes it dense, and sparse="csr" of poise.save() stores it so'
        )
    dtype, shape = find_type_name(tensor.dtype), tuple(tensor.shape)
    tensor = tensor.detach().to("cpu").resolve_conj().resolve_neg().contiguous()
    if tensor.numel() == 0:
        return dtype, shape, b""
    # A single element may have any stride, but view() requires a stride of 1.
    flat = tensor.reshape(-1).as_strided((tensor.numel(),), (1,))
    _, _, memory = _poise.from_dlpack(flat.view(torch.uint8).__dlpack__())
    return dtype, shape, memory


def _describe_buffer(name: object, view: memoryview) -> Described:
    shape = view.shape or ()
    order, letters = (view.format[0], view.format[1:]) if view.format[0] in "@=<>!" else ("@", view.format)
    dtype = _BUFFER_FORMATS.get(letters)
    if dtype is None or (letters in "lL" and view.itemsize != 8):
        raise TypeError(f"tensor {name}: files hold no elements of the buffer format {view.format!r}")
    swapped = order in ">!" if sys.byteorder == "little" else order in "@=<"
    if swapped and view.itemsize > 1:
        import array

        width = (
            view.itemsize // 2 if letters[0] == "Z" else view.itemsize
        )  # the bytes of each half of a complex number are swapped separately
        plain = array.array({2: "H", 4: "I", 8: "Q"}[width], view.tobytes())
        plain.byteswap()
        return dtype, shape, plain
    return dtype, shape, view if view.c_contiguous else view.tobytes()
