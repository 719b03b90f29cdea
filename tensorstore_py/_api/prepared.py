"""What `open` is given becomes one driver spec: parsed, changed by its keywords, and bound.

Programs open thousands of arrays by specs that are equal but for the path in one store. What is
plain JSON is parsed and checked once without that path, and bound once a context. Everything else,
and whatever is wrong, goes the long way, so that what is allowed and what errors say is the same.
"""

from __future__ import annotations

import marshal
import re
from collections.abc import Mapping
from os import PathLike
from types import NoneType
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

import numpy as np

from tensorstore_py._api.kvstore import KvStore
from tensorstore_py._api.options import Options, given, updated
from tensorstore_py._api.spec import Spec, parse_spec
from tensorstore_py._api.tensorstore import TensorStore
from tensorstore_py._chunked.format import ArrayFormat
from tensorstore_py._runtime.future import Future
from tensorstore_py._spec.context import bind
from tensorstore_py._spec.held import is_store
from tensorstore_py._spec.json_value import parse_json_text
from tensorstore_py.errors import SpecError

if TYPE_CHECKING:
    from tensorstore_py._interface.driver import DriverSpec
    from tensorstore_py._spec.context import Context

__all__ = ["Prepared", "as_model", "prepared"]

#: How many specs are remembered without their paths, and how many bytes of JSON each may have.
_REMEMBERED = 256
_LONGEST = 1 << 16
_SCALARS = frozenset({str, bool, int, float, NoneType})
_remembered: dict[bytes, ArrayFormat[Any]] = {}


class Prepared(NamedTuple):
    """A spec that is ready to be bound.

    Attributes:
        model: the spec; one of another path if `path` is given.
        path: where in the store the array is.
    """

    model: DriverSpec
    path: str | None = None

    @property
    def whole(self) -> DriverSpec:
        """The spec of the array at that path."""
        if self.path is None:
            return self.model
        assert isinstance(self.model, ArrayFormat)
        return self.model.at(self.path)

    def bound(self, context: Context) -> DriverSpec:
        """The spec with every resource bound.

        Raises:
            SpecError: a reference is undefined or circular.
        """
        if self.path is None:
            return bind(self.model, context)
        model = context.bound(self.model)
        assert isinstance(model, ArrayFormat)
        return model.at(self.path)


def prepared(spec: object, **options: Unpack[Options]) -> Prepared:
    """A spec in any of its forms, with the keywords of `open`.

    Raises:
        SpecError, MismatchError, TypeError: as for `open`.
    """
    parts = _path_apart(spec)
    if parts is None:
        return Prepared(updated(as_model(spec), given(**options)))
    rest, text = parts
    said = {name: value for name, value in options.items() if value is not None}
    key = _key(rest, said)
    known = _recalled(key, text)
    if known is not None or not said:
        return known or _noted(key, as_model(spec), text)
    alone = _key(rest, {})
    plain = _recalled(alone, text) or _noted(alone, as_model(spec), text)
    return _noted(key, updated(plain.whole, given(**options)), text)


def _recalled(key: bytes | None, text: str) -> Prepared | None:
    """What a spec of these bytes and of another path was, for a path as it is written."""
    known = None if key is None else _remembered.get(key)
    if known is None:
        return None
    try:
        path = known.store_spec().path_of(text)
    except SpecError:
        return None
    return None if path is None else Prepared(known, path)


def _noted(key: bytes | None, model: DriverSpec, text: str) -> Prepared:
    """The spec, remembered for other paths, if it can be."""
    if key is not None and len(key) <= _LONGEST and _path_of(model, text) is not None:
        assert isinstance(model, ArrayFormat)
        if len(_remembered) >= _REMEMBERED:
            _remembered.clear()
        _remembered[key] = model
    return Prepared(model)


def _key(rest: object, options: Mapping[str, object]) -> bytes | None:
    """What a spec says beside the path in its store, and keywords, as bytes; None if it can not."""
    data_type = options.get("dtype")
    if isinstance(data_type, np.dtype) and data_type.isbuiltin == 1:
        options = {**options, "dtype": [data_type.str]}
    if not _is_plain(options):
        return None
    try:
        # Version 2 has no back references, so that equal values give equal bytes.
        return marshal.dumps((rest, {**options}), 2)  # type: ignore[arg-type]
    except ValueError:  # no text, or nested too deeply
        return None


def _path_apart(spec: object) -> tuple[object, str] | None:
    """What a spec says beside the path in its store, and that; None if it is not so."""
    found = _url_apart(spec) if type(spec) is str else _json_apart(spec)
    if found is not None and not found[1].isascii():
        try:
            found[1].encode()
        except ValueError:  # no text
            return None
    return found


#: Stores whose URL holds a path and no more, which is what JSON has for the path unless it is
#: written in another way than it might be; and what may stand behind it.
_PLAIN_URL = re.compile(
    r"(file:///|memory://)"
    r"((?:[A-Za-z0-9_-][A-Za-z0-9_.-]*/)*(?:[A-Za-z0-9_-][A-Za-z0-9_.-]*)?)"
    r"(\|[a-z0-9]+:?)?"
)


def _url_apart(url: str) -> tuple[object, str] | None:
    found = _PLAIN_URL.fullmatch(url)
    if found is None:
        return None
    scheme, path, rest = found.groups()
    return (scheme, rest), f"/{path}" if scheme == "file:///" else path


def _json_apart(spec: object) -> tuple[object, str] | None:
    if type(spec) is not dict or "path" in spec or not _is_plain(spec):
        return None
    store = spec.get("kvstore")
    if type(store) is str:
        found = _url_apart(store)
        return None if found is None else ({**spec, "kvstore": found[0]}, found[1])
    if type(store) is not dict or type(path := store.get("path")) is not str:
        return None
    return {**spec, "kvstore": {**store, "path": None}}, path


def _is_plain(value: Any) -> bool:  # noqa: ANN401 - told apart by its type
    """Whether it is JSON as it is; not what is merely like it, or would have to be copied."""
    kind = type(value)
    if kind is dict:
        for name, inner in value.items():
            if type(name) is not str or (type(inner) not in _SCALARS and not _is_plain(inner)):
                return False
        return True
    if kind is list or kind is tuple:
        return all(type(inner) in _SCALARS or _is_plain(inner) for inner in value)
    return kind in _SCALARS


def _path_of(model: DriverSpec, text: str) -> str | None:
    """The path that a spec of this text has, if one of another text has no more than another."""
    if not isinstance(model, ArrayFormat) or model.kvstore is None:
        return None
    path = model.kvstore.path_of(text)
    if path is None or model.at(path).store_spec().path != model.store_spec().path:
        return None
    return path


def as_model(spec: object) -> DriverSpec:
    """The driver spec that a spec in any of its forms says.

    Raises SpecError: something is wrong with it; names the JSON path.
    """
    if isinstance(spec, Spec):
        return spec.model
    if isinstance(spec, str) and spec.lstrip()[:1] == "{":
        return parse_spec(parse_json_text(spec))
    if isinstance(spec, str) and "://" not in spec:
        raise SpecError(
            f"{spec!r} is neither JSON nor a URL; pass a local path as pathlib.Path({spec!r}), "
            "or as file:///absolute/path/|zarr3:"
        )
    if not isinstance(spec, Mapping | str | PathLike) and not is_store(spec):
        raise _not_a_spec(spec)
    return parse_spec(spec)


def _not_a_spec(found: object) -> Exception:
    """The error for an object that may be mistaken for a spec."""
    if isinstance(found, KvStore.Spec):
        return TypeError(
            "the spec of a store does not say what is in it; name a driver: "
            'ts.open({"driver": "zarr3", "kvstore": spec}), or "auto"'
        )
    if isinstance(found, TensorStore):
        return TypeError("it is open already; use it as it is, or open its .spec()")
    if isinstance(found, np.ndarray):
        return TypeError("an array in memory becomes a TensorStore by ts.array(...)")
    if isinstance(found, Future):
        return TypeError("a Future is no spec; call .result() or await it first")
    return SpecError(
        f"Expected object, but received: {found!r:.60}; give a dict, a URL or a pathlib.Path"
    )
