"""Has the functions of safetensors.torch, for files of every format: load_file, save_file, load, save, load_model,
save_model."""

from __future__ import annotations

import typing

import torch

from . import numpy as _numpy
from ._model import Model, open, open_bytes
from ._safe_open import find_io
from ._types import Path, SaveFileOptions, add_options

if typing.TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["load", "load_file", "load_model", "save", "save_file", "save_model"]

Device = typing.Union[str, int]
Tensors = typing.Dict[str, torch.Tensor]


def load_file(filename: Path, device: Device = "cpu", *, backend: str = "mmap") -> Tensors:
    """Returns all tensors of a file, by name. Writing to them makes private copies of the mapped file's pages; the file
    never changes. backend: as in safe_open."""
    return _load_tensors(open(filename, io=find_io(backend)), device)


def load(data: typing.Any, name: str = "") -> Tensors:
    """Returns all tensors of a file in memory, as load_file() does."""
    return _load_tensors(open_bytes(data, name), "cpu")


@add_options(SaveFileOptions, overwrite=True)
def save_file(
    tensors: Tensors,
    filename: Path,
    metadata: dict[str, str] | None = None,
    **options: Unpack[SaveFileOptions],
) -> None:
    """Writes tensors to a file in the format of its extension, by default safetensors. An existing file is
    replaced, whole or not at all.

    Raises ValueError for sparse tensors and for those that are not contiguous, and RuntimeError for tensors that share
    memory, which save_model() writes. The other options are those of poise.save().
    """
    _check_tensors(tensors)
    _numpy.save_file(tensors, filename, metadata, **options)


def save(tensors: Tensors, metadata: dict[str, str] | None = None, format: str = "safetensors") -> bytes:
    """Returns the bytes of a file with these tensors."""
    _check_tensors(tensors)
    return _numpy.save(tensors, metadata, format)


@add_options(SaveFileOptions, overwrite=True)
def save_model(
    model: torch.nn.Module,
    filename: Path,
    metadata: dict[str, str] | None = None,
    force_contiguous: bool = True,
    **options: Unpack[SaveFileOptions],
) -> None:
    """Writes the state of a module. If tensors share memory, one is written, and the metadata has the names of the
    others.

    force_contiguous: True copies tensors that are not contiguous; False raises ValueError for them. The other options
    are those of poise.save().
    """
    state = dict(model.state_dict())
    metadata = dict(metadata or {})
    for kept, others in _find_duplicates(state).items():
        for name in others:
            metadata.setdefault(name, kept)
            del state[name]
    if force_contiguous:
        state = {name: tensor.contiguous() for name, tensor in state.items()}
    try:
        save_file(state, filename, metadata, **options)
    except ValueError as error:
        if force_contiguous or "contiguous" not in str(error):
            raise
        raise ValueError(f"{error} Or use save_model(..., force_contiguous=True)") from None


def load_model(
    model: torch.nn.Module, filename: Path, strict: bool = True, device: Device = "cpu", *, backend: str = "mmap"
) -> tuple[list[str], list[str]]:
    """Copies the tensors of a file into a module, shared ones too. Returns the names that the file lacks, and the names
    that the module lacks.

    strict: raises RuntimeError if there are such names. backend: as in safe_open.
    """
    state = load_file(filename, device, backend=backend)
    duplicates = _find_duplicates(model.state_dict(), preferred=state.keys())
    found = model.load_state_dict(state, strict=False)
    missing, unexpected = set(found.missing_keys), list(found.unexpected_keys)
    for others in duplicates.values():
        for name in others:
            if name in missing:
                missing.remove(name)
            else:
                unexpected.append(name)
    if strict and (missing or unexpected):
        lines = [f"Error(s) in loading state_dict for {type(model).__name__}:"]
        if missing:
            lines.append("    Missing key(s) in state_dict: " + ", ".join(f'"{name}"' for name in sorted(missing)))
        if unexpected:
            names = ", ".join(f'"{name}"' for name in sorted(unexpected))
            lines.append(f"    Unexpected key(s) in state_dict: {names}")
        raise RuntimeError("\n".join(lines))
    return sorted(missing), sorted(unexpected)


def _name_device(device: Device) -> str:
    return f"cuda:{device}" if isinstance(device, int) else str(device)


def _load_tensors(model: Model, device: Device) -> Tensors:
    result = {}
    taken: set[tuple[int, int]] = set()  # places that have a view; another tensor there gets a copy
    for name, dtype, shape, place in model._core.all_mapped(True):
        made = None
        if place is not None and dtype is not None and (id(place[0]), place[1]) not in taken:
            made = _view_elements(*place, dtype, shape)
            if made is not None:
                taken.add((id(place[0]), place[1]))
        tensor = made if made is not None else model[name].torch()
        result[name] = tensor if _name_device(device) == "cpu" else tensor.to(_name_device(device))
    return result


def _view_elements(memory: typing.Any, offset: int, dtype: str, shape: tuple[int, ...]) -> torch.Tensor | None:
    """Returns the elements in a file's private pages, with their own storage, so that changes of the storage affect no
    other tensor. Returns None if torch cannot view them: an unknown type, no elements, or an unaligned offset."""
    from ._dtypes import _TABLE

    known = getattr(torch, _TABLE[dtype][2] or "", None)
    count = 1
    for size in shape:
        count *= size
    if known is None or not count:
        return None
    width = torch.empty(0, dtype=known).element_size()
    if offset % width:
        return None
    made: torch.Tensor = torch.frombuffer(memory, dtype=known, count=count, offset=offset).view(shape)
    return made


# ---- memory that tensors share


_Span = typing.Tuple[str, int, int, int]


def _find_span(tensor: torch.Tensor) -> _Span | None:
    """Returns the place of a tensor's bytes: device, storage, first byte, byte after the last. Returns None if the
    tensor has no bytes to share."""
    if tensor.device.type == "meta" or tensor.numel() == 0 or tensor.layout is not torch.strided:
        return None
    last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride()))
    begin = tensor.data_ptr()
    return str(tensor.device), _find_storage(tensor).data_ptr(), begin, begin + (last + 1) * tensor.element_size()


def _find_storage(tensor: torch.Tensor) -> typing.Any:
    return tensor.untyped_storage() if hasattr(tensor, "untyped_storage") else tensor.storage()


def _group_shared(state: Tensors) -> list[list[str]]:
    """Returns groups of names whose tensors overlap in memory."""
    spans = ((_find_span(tensor), name) for name, tensor in state.items())
    places = sorted((span, name) for span, name in spans if span is not None)
    groups: list[list[str]] = []
    end = ("", 0, 0)
    for (device, storage, begin, until), name in places:
        if groups and end[:2] == (device, storage) and begin < end[2]:
            groups[-1].append(name)
            end = (device, storage, max(end[2], until))
        else:
            groups.append([name])
            end = (device, storage, until)
    return [group for group in groups if len(group) > 1]


def _covers_storage(tensor: torch.Tensor) -> bool:
    storage = _find_storage(tensor)
    size = storage.nbytes() if callable(getattr(storage, "nbytes", None)) else len(storage) * tensor.element_size()
    return bool(tensor.data_ptr() == storage.data_ptr() and tensor.numel() * tensor.element_size() == size)


def _find_duplicates(state: Tensors, preferred: typing.Collection[str] = ()) -> dict[str, list[str]]:
    """Returns {kept name: other names} for each group of tensors that share memory. The kept tensor covers all of the
    memory; names in `preferred` take precedence."""
    result = {}
    for group in _group_shared(state):
        complete = sorted(name for name in group if _covers_storage(state[name]))
        if not complete:
            names = ", ".join(sorted(group))
            raise RuntimeError(
                f"tensors share memory and none of them has all of it: {names}; .clone() them before they are saved"
            )
        kept = next((name for name in complete if name in preferred), complete[0])
        result[kept] = sorted(name for name in group if name != kept)
    return result


def _check_tensors(tensors: Tensors) -> None:
    if not isinstance(tensors, dict):
        raise ValueError(f"expected a dict of str to torch.Tensor, not {type(tensors).__name__}")
    for name, tensor in tensors.items():
        if not isinstance(tensor, torch.Tensor):
            raise ValueError(f"tensor {name}: {type(tensor).__name__} is not a torch.Tensor")
    sparse = [name for name, tensor in tensors.items() if tensor.layout is not torch.strided]
    if sparse:
        raise ValueError(f"sparse tensors are not saved: {', '.join(sparse)}; .to_dense() makes them dense")
    groups = _group_shared(tensors)
    if groups:
        names = "; ".join(", ".join(sorted(group)) for group in groups)
        raise RuntimeError(
            f"some tensors share memory, which would be written more than once, and loaded as separate tensors: "
            f"{names}. save_model() writes it once; .clone() makes separate tensors"
        )
    scattered = [name for name, tensor in tensors.items() if not tensor.is_contiguous()]
    if scattered:
        raise ValueError(f"not contiguous: {', '.join(scattered)}; .contiguous() packs them.")
