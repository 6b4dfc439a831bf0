"""Opens files as models, and makes models of arrays."""

from __future__ import annotations

import collections.abc
import os
import typing

from . import _html, _poise
from ._elements import Tensor
from ._errors import Error
from ._inputs import make_dict, describe_items
from ._read_only import ReadOnlyDict
from ._reports import Finding
from ._types import Arrays, Path

_CHANGES = "a model does not change: poise.Model(model, like=model, {0}) makes one with another {1}, and poise.save()"
_CONFIG = _CHANGES.format('config={"key": value}', "configuration") + ' takes config={"key": value}, too'
_CARD = _CHANGES.format('card={"key": value}', "card") + ' takes card={"key": value}, too'
_ATTRIBUTES = (
    _CHANGES.format('metadata={**model.attributes, "key": value}', "dict of attributes")
    + " takes metadata=, too; poise.edit() changes those of a file"
)


class Model(collections.abc.Mapping[str, Tensor]):
    """Maps names to Tensors, in the order of the file, and has the file's metadata.

    poise.open() returns one. Model({"a": array, ...}) makes one of arrays: numpy's, torch's, other models' tensors, and
    objects with DLPack or the buffer protocol. Arrays are not copied, unless they are big-endian or their elements are
    not in row-major order. like: a model whose card, configuration, vocabulary and attributes are copied. metadata: a
    dict of attributes, which replaces all copied attributes. config, card: keys of the configuration and fields of the
    card, which replace the copied ones or are added. vocabulary: a Vocabulary, a Tokenizer, or a model with a
    vocabulary, instead of the copied one.

    A model is safe to use from many threads. close() releases the file; arrays made before keep it mapped.
    """

    __slots__ = ("_core", "_tokenizer", "__weakref__")

    _core: _poise.Model
    _tokenizer: _poise.Tokenizer | None

    def __init__(
        self,
        tensors: Arrays,
        *,
        metadata: typing.Mapping[str, typing.Any] | None = None,
        like: Model | None = None,
        config: typing.Mapping[str, typing.Any] | None = None,
        card: typing.Mapping[str, str] | None = None,
        vocabulary: Model | _poise.Vocabulary | _poise.Tokenizer | None = None,
    ):
        pairs = list(describe_items(tensors))
        core = _poise.Model.build(
            pairs,
            make_dict("metadata", metadata),
            None if like is None else like._core,
            make_dict("config", config),
            make_dict("card", card),
            vocabulary._core if isinstance(vocabulary, Model) else vocabulary,
        )
        self._set_core(core)

    @classmethod
    def _from_core(cls, core: _poise.Model) -> Model:
        model = cls.__new__(cls)
        model._set_core(core)
        return model

    def _set_core(self, core: _poise.Model) -> None:
        self._core, self._tokenizer = core, None

    # ---- the mapping

    def __getitem__(self, name: str) -> Tensor:
        if not isinstance(name, str):
            raise KeyError(name)
        return Tensor(self._core, name)

    def __len__(self) -> int:
        return len(self._core)

    def __iter__(self) -> typing.Iterator[str]:
        return iter(self._core.names())

    def __contains__(self, name: object) -> bool:
        return name in self._core

    def __bool__(self) -> bool:
        return True

    __eq__ = object.__eq__
    __hash__ = object.__hash__

    # ---- metadata

    @property
    def tensors(self) -> list[Tensor]:
        """All tensors, in the order of the file."""
        return [Tensor(self._core, i) for i in range(len(self._core))]

    @property
    def config(self) -> typing.Mapping[str, typing.Any]:
        """The configuration, with the keys of a Hugging Face config.json; {} if the file has none. Read-only."""
        return ReadOnlyDict(self._core.config, _CONFIG)

    @property
    def card(self) -> typing.Mapping[str, typing.Any]:
        """The description of the model's origin: model_type, author, license, ... Read-only."""
        return ReadOnlyDict(self._core.card, _CARD)

    @property
    def attributes(self) -> typing.Mapping[str, typing.Any]:
        """The file's other attributes, by key. Read-only."""
        return ReadOnlyDict(self._core.attributes, _ATTRIBUTES)

    @property
    def vocabulary(self) -> _poise.Vocabulary | None:
        """The vocabulary, or None."""
        return self._core.vocabulary

    @property
    def tokenizer(self) -> _poise.Tokenizer:
        """The tokenizer of the vocabulary. Raises UnsupportedError if the model has no vocabulary."""
        if self._tokenizer is None or self.closed:
            self._tokenizer = _poise.Tokenizer(self._core)
        return self._tokenizer

    @property
    def sampling_defaults(self) -> dict[str, typing.Any]:
        """The sampling options that the model's files state, as keywords of Session.generate().

        They come from generation_config.json or general.sampling.*, as in `poise run`."""
        return self._core.sampling_defaults

    @property
    def warnings(self) -> list[Finding]:
        """Findings about unusual properties of the file, which was read all the same."""
        return [Finding(*finding) for finding in self._core.warnings]

    @property
    def format(self) -> str:
        """ "alt-v2", "safetensors", ...; "" for a model made of arrays."""
        return self._core.format

    @property
    def path(self) -> str:
        return self._core.path

    @property
    def files(self) -> list[str]:
        """The paths of all files that were opened."""
        return self._core.files

    @property
    def file_size(self) -> int:
        """The number of bytes of all files."""
        return self._core.file_size

    # ---- closing the file

    def close(self) -> None:
        """Closes the file. Using the model and its tensors then raises; arrays made of them stay valid and keep the
        file mapped."""
        self._core.close()

    @property
    def closed(self) -> bool:
        return self._core.closed

    def __enter__(self) -> Model:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> typing.NoReturn:
        raise TypeError(
            "a Model cannot be pickled: it is a mapped file. Pickle model.path, and poise.open() it in the other "
            "process"
        )

    def __repr__(self) -> str:
        try:
            origin = f"{self.path!r} {self.format}" if self.format else "made of arrays"
            return f"<poise.Model {origin}, {len(self)} tensor{'' if len(self) == 1 else 's'}>"
        except Error:
            return "<poise.Model, closed>"

    def _repr_html_(self) -> str:
        return _html.make_model_html(self)


def open(path: Path, *, io: str = "map") -> Model:
    """Opens a file or directory. Its content determines the format. Reads headers only.

    io: "map" borrows the page cache and copies no bytes, but if another program truncates the file, SIGBUS ends the
    process. "read" copies bytes when they are needed, and a truncated file raises an error. A file that the system
    cannot map is read.
    Raises NotFoundError (a FileNotFoundError), InvalidFileError, UnsupportedError, InputOutputError.
    """
    return Model._from_core(_poise.Model(os.fspath(path), io))


def open_url(url: str) -> Model:
    """Opens a file on a server by https:// or http://, or a repository of the Hugging Face Hub or one of its files by
    hf://ORG/NAME[@REVISION][/FILE] (docs/remote.md). Reads headers only; reading a tensor requests its bytes.

    HF_TOKEN and HF_ENDPOINT apply as in the command. Raises what open() raises: InputOutputError also if the server
    cannot be reached or refuses access, BadArgumentError for other URLs.
    """
    return Model._from_core(_poise.Model.from_url(url))


def open_bytes(data: typing.Any, name: str = "") -> Model:
    """Opens a file in memory: bytes, an object with the buffer protocol, a whole io.BytesIO, or the unread rest of
    another binary file object. Copies the bytes once. name: messages show it as the path; its extension may help to
    find the format.
    """
    if hasattr(data, "getbuffer"):
        data = data.getbuffer()
    elif hasattr(data, "read"):
        data = data.read()
    return Model._from_core(_poise.Model.from_bytes(data, name))
