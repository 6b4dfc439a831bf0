"""Has the functions of safetensors that write TensorSpecs (serialize, serialize_file), and deserialize.

    spec = poise.TensorSpec(dtype="float32", shape=[2, 3], data_ptr=array.ctypes.data, data_len=array.nbytes)
    poise.serialize_file({"weight": spec}, "model.safetensors")
"""

from __future__ import annotations

import io
import typing

from . import _operations, _poise
from ._dtypes import spell_for_safetensors
from ._elements import Tensor
from ._inputs import describe_items, require_texts
from ._model import Model, open_bytes
from ._tensor_spec import TensorSpec
from ._types import Arrays, Path

# safetensors orders the tensors of a file by type, roughly the widest first (bool is last), and then by name.
_ORDER = (
    "complex128 u64 i64 f64 complex64 f32 u32 i32 bf16 f16 u16 i16 "
    "f8_e5m2fnuz f8_e4m3fnuz f8_e8m0 f8_e4m3 f8_e5m2 i8 u8 f4_e2m1 bool"
).split()
_RANKS = {dtype: rank for rank, dtype in enumerate(_ORDER)}


def make_ordered_model(tensor_dict: Arrays, metadata: dict[str, str] | None) -> Model:
    """Makes a model of arrays, in the order in which safetensors writes them."""
    require_texts(metadata)
    pairs = []
    for name, made in describe_items(tensor_dict):
        if not isinstance(name, str):
            raise TypeError(f"the name {name!r} of a tensor is not a str")
        rank = _RANKS.get((made.dtype if isinstance(made, Tensor) else made[0]) or "", len(_RANKS))
        pairs.append((rank, name, made))
    pairs.sort(key=lambda pair: pair[:2])
    return Model._from_core(_poise.Model.build([(name, made) for _, name, made in pairs], metadata))


def serialize(tensor_dict: typing.Mapping[str, TensorSpec], metadata: dict[str, str] | None = None) -> bytes:
    """Returns the bytes of a safetensors file. metadata: keys and values are str, else it raises TypeError."""
    file = io.BytesIO()
    _operations.save(make_ordered_model(tensor_dict, metadata), file, format="safetensors")
    return file.getvalue()


def serialize_file(
    tensor_dict: typing.Mapping[str, TensorSpec], filename: Path, metadata: dict[str, str] | None = None
) -> None:
    """Writes a safetensors file. An existing file is replaced, whole or not at all. Other threads of Python run
    meanwhile."""
    _operations.save(make_ordered_model(tensor_dict, metadata), filename, format="safetensors", overwrite=True)


#: Some releases of safetensors have this name. serialize_file() lets other threads run, too.
serialize_file_threadable = serialize_file


def deserialize(bytes: typing.Any) -> list[tuple[str, dict[str, typing.Any]]]:
    """Returns the tensors of a file in memory, in the order of the file: [("weight", {"shape": [2, 3], "dtype": "F32",
    "data": bytearray})]."""
    result = []
    for name, tensor in open_bytes(bytes).items():
        packed: typing.Any = tensor._packed()
        dtype = spell_for_safetensors(tensor._require_dtype())
        result.append((name, {"shape": list(tensor.shape), "dtype": dtype, "data": bytearray(packed)}))
    return result
