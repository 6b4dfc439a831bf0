"""Models: files opened, and models made of arrays."""

import collections.abc
import os
import typing

from . import _html, _poise
from ._elements import Tensor
from ._errors import Error
from ._inputs import described, items_of


class Finding(typing.NamedTuple):
    """Something about a file that its user should know."""

    severity: str  #: "error": the file is not what it says it is; "warning": it can be used
    message: str
    path: str
    offset: typing.Optional[int]

    def __str__(self):
        return self.message if self.offset is None else f"{self.message} (at {self.offset:#x})"


class Model(collections.abc.Mapping):
    """A mapping from name to Tensor, in the order of the file, and what a file says beside tensors.

    poise.open() gives one. Model({"a": array, ...}) makes one of arrays: numpy's, torch's, other models' tensors, and whatever has DLPack or buffers. Arrays
    are not copied, unless they are big-endian or their elements are not in row-major order. metadata: its attributes, a dict. like: a model whose card,
    configuration, vocabulary and attributes it gets.

    A model is safe to use from many threads. close() lets the file go; arrays made before keep what they need of it.
    """

    __slots__ = ("_core", "_tokenizer", "__weakref__")

    def __init__(self, tensors: "collections.abc.Mapping", *, metadata: typing.Optional[dict] = None, like: "typing.Optional[Model]" = None):
        pairs = [(name, described(name, array)) for name, array in items_of(tensors)]
        self._take(_poise.Model.build(pairs, metadata, None if like is None else like._core))

    @classmethod
    def _of(cls, core):
        model = cls.__new__(cls)
        model._take(core)
        return model

    def _take(self, core):
        self._core, self._tokenizer = core, None

    # ---- the mapping

    def __getitem__(self, name: str) -> Tensor:
        if not isinstance(name, str):
            raise KeyError(name)
        return Tensor(self._core, name)

    def __len__(self):
        return len(self._core)

    def __iter__(self):
        return iter(self._core.names())

    def __contains__(self, name):
        return name in self._core

    def __bool__(self):
        return True

    __eq__ = object.__eq__
    __hash__ = object.__hash__

    # ---- what is beside tensors

    @property
    def tensors(self) -> "list[Tensor]":
        """All tensors, in the order of the file."""
        return [Tensor(self._core, i) for i in range(len(self._core))]

    @property
    def config(self) -> dict:
        """The configuration, with the keys of a Hugging Face config.json; {} where the file has none."""
        return self._core.config

    @property
    def card(self) -> dict:
        """Who made the model: model_type, author, license, ..."""
        return self._core.card

    @property
    def attributes(self) -> dict:
        """What else the file says, by key."""
        return self._core.attributes

    @property
    def vocabulary(self):
        """The tokens by id, or None."""
        return self._core.vocabulary

    @property
    def tokenizer(self):
        """The tokenizer of the vocabulary; UnsupportedError without one."""
        if self._tokenizer is None or self.closed:
            self._tokenizer = _poise.Tokenizer(self._core)
        return self._tokenizer

    @property
    def warnings(self) -> "list[Finding]":
        """What the reader accepted although it is unusual."""
        return [Finding(*finding) for finding in self._core.warnings]

    @property
    def format(self) -> str:
        """ "alt-v2", "safetensors", ...; "" for a model made of arrays."""
        return self._core.format

    @property
    def path(self) -> str:
        return self._core.path

    @property
    def files(self) -> "list[str]":
        """Every file that was opened."""
        return self._core.files

    @property
    def file_size(self) -> int:
        """Bytes of all files."""
        return self._core.file_size

    # ---- its life

    def close(self) -> None:
        """Lets the file go; the model and its tensors then raise. Arrays made of them stay valid, and keep it mapped."""
        self._core.close()

    @property
    def closed(self) -> bool:
        return self._core.closed

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __reduce__(self):
        raise TypeError("a Model cannot be pickled: it is a mapped file. Pickle model.path, and poise.open() it in the other process")

    def __repr__(self):
        try:
            return f"<poise.Model {self.path!r} {self.format} of {len(self)} tensors>"
        except Error:
            return "<poise.Model, closed>"

    def _repr_html_(self):
        return _html.model(self)


def open(path: "typing.Union[str, os.PathLike]", *, io: str = "map") -> Model:
    """Opens a file or directory of any format, found by its content. Reads headers only.

    io: "map" borrows the page cache and copies nothing; a file that another program cuts meanwhile then ends the process with SIGBUS. "read" copies what is
    asked for, and a cut file is an error.
    Raises NotFoundError (a FileNotFoundError), InvalidFileError, UnsupportedError, InputOutputError.
    """
    return Model._of(_poise.Model(os.fspath(path), io))


def open_bytes(data, name: str = "") -> Model:
    """Opens a file that is in memory: bytes, or what has buffers. It is copied once. name: takes the place of the path in messages; its extension may help."""
    return Model._of(_poise.Model.from_bytes(data, name))
