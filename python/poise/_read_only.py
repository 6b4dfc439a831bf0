"""Defines dicts and lists with a file's data. They reject changes, because changes would not reach the file."""

from __future__ import annotations

import typing


class ReadOnlyDict(typing.Dict[str, typing.Any]):
    """A dict that raises TypeError, with advice, on changes. Its copies are plain dicts."""

    __slots__ = ("_advice",)

    def __init__(self, items: typing.Mapping[str, typing.Any], advice: str):
        super().__init__({key: _freeze(value, advice) for key, value in items.items()})
        self._advice = advice

    def _refuse(self, *_: object, **__: object) -> typing.NoReturn:
        raise TypeError(self._advice)

    __setitem__ = __delitem__ = __ior__ = _refuse  # type: ignore[assignment]
    clear = pop = popitem = setdefault = update = _refuse  # type: ignore[assignment]

    def __reduce__(self) -> typing.Any:
        return dict, (dict(self),)


class ReadOnlyList(typing.List[typing.Any]):
    """A list that raises TypeError, with advice, on changes. Its copies are plain lists."""

    __slots__ = ("_advice",)

    def __init__(self, items: typing.Iterable[typing.Any], advice: str):
        super().__init__(_freeze(item, advice) for item in items)
        self._advice = advice

    def _refuse(self, *_: object, **__: object) -> typing.NoReturn:
        raise TypeError(self._advice)

    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse  # type: ignore[assignment]
    append = clear = extend = insert = pop = remove = reverse = sort = _refuse  # type: ignore[assignment]

    def __reduce__(self) -> typing.Any:
        return list, (list(self),)


def _freeze(value: typing.Any, advice: str) -> typing.Any:
    if isinstance(value, dict):
        return ReadOnlyDict(value, advice)
    return ReadOnlyList(value, advice) if isinstance(value, list) else value
