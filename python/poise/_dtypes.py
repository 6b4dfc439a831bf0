"""Element types by their names here ("bf16"), in numpy and in torch."""

from ._errors import UnsupportedError

# name: (numpy, ml_dtypes, torch, safetensors)
_TABLE = {
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

_OTHER_NAMES = {name: row for row, names in _TABLE.items() for name in names if name} | {name: name for name in _TABLE}

_numpy_dtypes = {}


def name_of(dtype):
    """The name here of a type given as that, as numpy's or torch's, or as their names: "bf16", np.float32, torch.bfloat16, "float32"."""
    if isinstance(dtype, str):
        text = dtype
    elif type(dtype).__module__ == "torch":
        text = str(dtype).removeprefix("torch.")
    else:
        import numpy as np

        text = np.dtype(dtype).name
    try:
        return _OTHER_NAMES[text]
    except KeyError:
        raise TypeError(f"{dtype!r} is no element type: expected one of {', '.join(_TABLE)}") from None


def safetensors_name(name):
    """ "F32" for "f32"."""
    return _TABLE[name][3]


def numpy_dtype(name):
    """numpy's type for a name; those that numpy lacks come from ml_dtypes."""
    found = _numpy_dtypes.get(name)
    if found is not None:
        return found
    import numpy as np

    plain, extended, _, _ = _TABLE[name]
    if plain is None:
        try:
            import ml_dtypes

            plain = getattr(ml_dtypes, extended)
        except (ImportError, AttributeError):
            raise UnsupportedError(f'numpy has no type for {name} without the package ml_dtypes; .numpy(dtype="f32") decodes it') from None
    return _numpy_dtypes.setdefault(name, np.dtype(plain))


def numpy_name(dtype):
    """The name here of an array's type, whatever its byte order; TypeError for what files do not hold."""
    text = dtype.name if dtype.isbuiltin == 1 or dtype.kind in "biufcV" else str(dtype)
    found = _OTHER_NAMES.get(text)
    if found is None or (dtype.kind == "V" and _TABLE[found][1] is None):
        raise TypeError(f"files hold no elements of type {dtype}")
    return found


def torch_dtype(name):
    """torch's type for a name."""
    import torch

    known = _TABLE[name][2]
    found = getattr(torch, known, None) if known else None
    if found is None:
        raise UnsupportedError(f'torch {torch.__version__} has no type for {name}; .torch(dtype="f32") decodes floating-point numbers, .numpy() takes others')
    return found
