"""Maps Poise's names of element types ("bf16") to the types of numpy and torch, and to safetensors' names."""

from __future__ import annotations

import re
import sys
import typing

from ._errors import UnsupportedError
from ._types import DType

if typing.TYPE_CHECKING:
    from ._types import NumpyType, TorchType

# name: (numpy, ml_dtypes, torch, safetensors)
_TABLE: dict[str, tuple[str | None, str | None, str | None, str]] = {
    "f64": ("float64", None, "float64", "F64"),
    "f32": ("float32", None, "float32", "F32"),
    "f16": ("float16", None, "float16", "F16"),
    "bf16": (None, "bfloat16", "bfloat16", "BF16"),
    "f8_e4m3": (None, "float8_e4m3fn", "float8_e4m3fn", "F8_E4M3"),
    "f8_e5m2": (None, "float8_e5m2", "float8_e5m2", "F8_E5M2"),
    "f8_e4m3fnuz": (None, "float8_e4m3fnuz", "float8_e4m3fnuz", "F8_E4M3FNUZ"),
    "f8_e5m2fnuz": (None, "float8_e5m2fnuz", "float8_e5m2fnuz", "F8_E5M2FNUZ"),
    "f8_e8m0": (None, "float8_e8m0fnu", "float8_e8m0fnu", "F8_E8M0"),
    "f4_e2m1": (None, "float4_e2m1fn", None, "F4"),
    "complex64": ("complex64", None, "complex64", "C64"),
    "complex128": ("complex128", None, "complex128", "C128"),
    "i64": ("int64", None, "int64", "I64"),
    "i32": ("int32", None, "int32", "I32"),
    "i16": ("int16", None, "int16", "I16"),
    "i8": ("int8", None, "int8", "I8"),
    "u64": ("uint64", None, "uint64", "U64"),
    "u32": ("uint32", None, "uint32", "U32"),
    "u16": ("uint16", None, "uint16", "U16"),
    "u8": ("uint8", None, "uint8", "U8"),
    "bool": ("bool", None, "bool", "BOOL"),
}

_OTHER_NAMES: dict[str, str] = {name: row for row, names in _TABLE.items() for name in names if name}
_OTHER_NAMES.update({name: name for name in _TABLE})

# name: (kind, least number, greatest finite number); for complex types those of the real part. Casts go to the same
# kind or a later one, as in numpy's "same_kind".
_BOOL, _UNSIGNED, _SIGNED, _FLOAT, _COMPLEX = range(5)
_FLOATS = {
    "f64": sys.float_info.max, "f32": (2 - 2**-23) * 2.0**127, "f16": 65504.0, "bf16": (2 - 2**-7) * 2.0**127,
    "f8_e4m3": 448.0, "f8_e5m2": 57344.0, "f8_e4m3fnuz": 240.0, "f8_e5m2fnuz": 57344.0, "f4_e2m1": 6.0,
}  # fmt: skip
_RANGES: dict[str, tuple[int, float, float]] = {name: (_FLOAT, -most, most) for name, most in _FLOATS.items()}
_RANGES.update({"bool": (_BOOL, 0, 1), "f8_e8m0": (_FLOAT, 2.0**-127, 2.0**127)})
_RANGES.update({name: (_COMPLEX, *_RANGES[half][1:]) for name, half in (("complex64", "f32"), ("complex128", "f64"))})
_RANGES.update({f"u{bits}": (_UNSIGNED, 0, 2**bits - 1) for bits in (8, 16, 32, 64)})
_RANGES.update({f"i{bits}": (_SIGNED, -(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for bits in (8, 16, 32, 64)})

_numpy_dtypes: dict[str, NumpyType] = {}


def find_type_name(dtype: DType) -> str:
    """Returns Poise's name of a type. dtype: that name ("bf16"), a type of numpy or torch (np.float32, torch.bfloat16),
    or its name there ("float32")."""
    if isinstance(dtype, str):
        text = dtype.lower() if dtype not in _OTHER_NAMES else dtype
    elif type(dtype).__module__ == "torch":
        text = str(dtype).removeprefix("torch.")
    else:
        import numpy as np

        text = np.dtype(typing.cast(typing.Any, dtype)).name
    try:
        return _OTHER_NAMES[text]
    except KeyError:
        raise TypeError(f"{dtype!r} is not an element type: expected one of {', '.join(_TABLE)}") from None


def normalize_type_name(dtype: DType) -> str:
    """Returns Poise's name of a type. Returns an unknown name unchanged, because the library checks it."""
    return (
        _OTHER_NAMES.get(dtype, _OTHER_NAMES.get(dtype.lower(), dtype))
        if isinstance(dtype, str)
        else find_type_name(dtype)
    )


def require_cast(source: str, target: str) -> None:
    """Raises TypeError if the target's kind comes before the source's, as in casts from f32 to i32 or from i8 to u8."""
    if _RANGES[source][0] > _RANGES[target][0]:
        raise TypeError(
            f"{source} does not fit {target} without loss; .numpy().astype() and .torch().to() convert with loss"
        )


def fits_always(source: str, target: str) -> bool:
    """Returns True if every finite number of the source is in the target's range."""
    return _RANGES[target][1] <= _RANGES[source][1] and _RANGES[source][2] <= _RANGES[target][2]


def find_integer_range(source: str, target: str) -> tuple[float, float] | None:
    """Returns the least and the greatest number that both types hold; None for floating-point and complex targets."""
    if _RANGES[target][0] >= _FLOAT:
        return None
    return max(_RANGES[source][1], _RANGES[target][1]), min(_RANGES[source][2], _RANGES[target][2])


def find_greatest_saturating(name: str) -> float | None:
    """Returns the greatest number of a type without infinity and NaN, to which casts saturate; None for others."""
    return _FLOATS[name] if name == "f4_e2m1" else None


def find_bits(name: str) -> int:
    """Returns the bits of an element, which are the first number in the name of a type."""
    return 8 if name == "bool" else int(re.findall(r"\d+", name)[0])


def spell_for_safetensors(name: str) -> str:
    """Returns "F32" for "f32"."""
    return _TABLE[name][3]


def is_numpy_type(name: str) -> bool:
    """Returns True if numpy has the type without other packages."""
    return _TABLE[name][0] is not None


def find_numpy_dtype(name: str) -> NumpyType:
    """Returns numpy's type for a name; types that numpy lacks come from ml_dtypes."""
    found = _numpy_dtypes.get(name)
    if found is not None:
        return found
    import numpy as np

    plain, extended, _, _ = _TABLE[name]
    if plain is None:
        try:
            import ml_dtypes

            plain = getattr(ml_dtypes, extended or "")
        except (ImportError, AttributeError):
            raise UnsupportedError(
                f'numpy has no type for {name} without the package ml_dtypes; .numpy(dtype="f32") decodes it'
            ) from None
    return _numpy_dtypes.setdefault(name, np.dtype(plain))


def find_numpy_name(dtype: NumpyType) -> str:
    """Returns Poise's name of an array's type, in any byte order. Raises TypeError for types that files do not hold."""
    text = dtype.name if dtype.isbuiltin == 1 or dtype.kind in "biufcV" else str(dtype)
    found = _OTHER_NAMES.get(text)
    if found is None or (dtype.kind == "V" and _TABLE[found][1] is None):
        raise TypeError(f"files hold no elements of type {dtype}")
    return found


def find_torch_dtype(name: str) -> TorchType:
    """Returns torch's type for a name."""
    import torch

    known = _TABLE[name][2]
    found = getattr(torch, known, None) if known else None
    if found is None:
        raise UnsupportedError(
            f'torch {torch.__version__} has no type for {name}; .torch(dtype="f32") decodes floating-point numbers, '
            ".numpy() takes others"
        )
    return typing.cast("TorchType", found)
