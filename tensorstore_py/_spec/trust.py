"""What a spec of unknown origin is trusted with: data, and the stores that the caller names.

An allow-list, by construction. Each class of spec says which of its members are mere data
(`Model.data_members`); any other member has to keep its default, a store has to be one that was
named, in all but the path below it, and a class that says nothing may not be named at all. What is
checked is what was parsed, so URLs, references and members that are joined have become what will be
used. Code of other packages is refused before it runs, where names are looked up (`only_built_in`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Final, TypeVar
from urllib.parse import unquote

from tensorstore_py._display.public_name import public
from tensorstore_py._spec.codec_spec import CodecSpec
from tensorstore_py._spec.model import Model
from tensorstore_py._spec.registered import parse_registered
from tensorstore_py._spec.registry import is_built_in, kvstores, only_built_in
from tensorstore_py._spec.resource import ContextSpec, ResourceSpec, resource_class
from tensorstore_py._spec.schema import Schema
from tensorstore_py._spec.url import kvstore_from_url, show_url
from tensorstore_py.errors import SpecError, UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Trust"]

T = TypeVar("T")
Path = tuple[str | int, ...]

_REMEDY: Final = "leave it out, or load the spec without trust= if you trust who wrote it"
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_PARTS: Final = re.compile(r"[/\\]")
#: Class attributes that hold the name of a class, by which a plug-in is admitted.
_NAMES: Final = ("codec_id", "resource_id", "driver", "encoding_id", "grid_id")


@public
class Trust:
    """What a spec that somebody else wrote may do; by default nothing but name data in itself.

    Pass it as `trust=` to `ts.load_spec`, `ts.Spec`, `ts.KvStore.Spec` or `ts.Context.Spec`.
    Whatever runs programs, unpickles, reads, writes or sends anything outside the named stores, or
    uses a plug-in that is not named, is a `SpecError` with the JSON path.

    Args:
        stores: URLs, specs or local paths of stores that may be used, with all that is below them;
            write directories with a final `/`. A spec may choose the path below, and limits such as
            a number of requests; everything else, such as headers, must be as it is named here.
        plugins: names of drivers, stores, codecs and resources of other packages that may be used,
            and of functions that documents may name (`"module:function"`).
        write: whether a spec may say that an array is to be created or deleted.

    Raises:
        SpecError: a store is wrong, or it is one inside another such as a zip archive: name the
            store that the archive is in.

    Example:
        >>> import tensorstore_py as ts
        >>> trust = ts.Trust(stores=["s3://bucket/public/"])
        >>> ts.Spec("s3://bucket/public/image/|zarr3:", trust=trust).kvstore.path
        'public/image/'
        >>> try:
        ...     ts.Spec("s3://bucket/public-evil/|zarr3:", trust=trust)
        ... except ts.SpecError as error:
        ...     print(str(error).partition("(")[0])
        kvstore: s3://bucket/public-evil/ is in none of the stores that this spec is trusted with
    """

    __slots__ = ("_plugins", "_stores", "_write")

    def __init__(
        self, stores: Iterable[object] = (), *, plugins: Iterable[str] = (), write: bool = False
    ) -> None:
        for name, given in (("stores", stores), ("plugins", plugins)):
            if isinstance(given, str):
                raise TypeError(f"{name} is a list: write {name}=[{given!r}]")
        self._stores = tuple(_store(place, each) for place, each in enumerate(stores))
        self._plugins = frozenset(plugins)
        self._write = write

    def __repr__(self) -> str:
        return (
            f"Trust(stores={[_shown(each) for each in self._stores]}, "
            f"plugins={sorted(self._plugins)}, write={self._write})"
        )

    def parsed(self, parse: Callable[[], T]) -> T:
        """What `parse` makes of a spec, if this trust is enough for it.

        Args:
            parse: gives a model or a `ContextSpec`.

        Raises:
            SpecError: it is not; has the JSON path.
        """
        with self._looking_up():
            found = parse()
        self._check(found, ())
        return found

    def _looking_up(self) -> AbstractContextManager[None]:
        return only_built_in(self._plugins)

    def _check(self, value: object, path: Path) -> None:
        """Check a value with all that is inside it; values of other types are their member's."""
        if isinstance(value, Model):
            self._check_model(value, path)
        elif isinstance(value, ResourceSpec):
            self._check_resource(value, path)
        elif isinstance(value, CodecSpec):
            self._check(value.model, path)
        else:
            for step, inner in _inside(value):
                self._check(inner, (*path, step))

    def _check_model(self, model: Model, path: Path) -> None:
        harmless = self._harmless(model, path)
        named: Model | None = None
        if model.is_store:
            _check_path(str(getattr(model, "path", "")), path)
            if "base" not in harmless:
                named = self._named(model, harmless, path)
        for name, field in type(model).model_fields.items():
            value = getattr(model, name)
            at = path if name in model.spread_members else (*path, field.alias or name)
            if name in harmless or (self._write and name in model.writing_members):
                allowed = model.data_values.get(name)
                if allowed is not None and value not in allowed:
                    raise SpecError(
                        f"a spec that is not trusted may only say one of {_listed(allowed)}; "
                        f"{_REMEDY}",
                        at,
                    )
                self._check(value, at)
            elif name == "path" and model.is_store:
                continue
            elif named is None and not _is_default(value, field.default):
                raise SpecError(_refused(name, model), at)

    def _harmless(self, model: Model, path: Path) -> frozenset[str]:
        cls = type(model)
        harmless = cls.harmless_members()
        if is_built_in(cls) and harmless is not None:
            return harmless
        name = next((getattr(cls, each) for each in _NAMES if hasattr(cls, each)), cls.__name__)
        if not is_built_in(cls) and name in self._plugins:
            return frozenset(cls.model_fields)
        if is_built_in(cls):
            raise SpecError(f'a spec that is not trusted may not name "{name}"; {_REMEDY}', path)
        raise SpecError(
            f'"{name}" is a plug-in, which a spec that is not trusted may not use; if this one may '
            f'be used, pass trust=Trust(plugins=["{name}"])',
            path,
        )

    def _named(self, store: Model, harmless: frozenset[str], path: Path) -> Model:
        """The named store that a store is, or is inside of."""
        differs = ""
        for each in self._stores:
            if type(each) is not type(store):
                continue
            other = _difference(each, store, harmless)
            if other is None and _is_inside(str(getattr(store, "path", "")), each):
                return each
            differs = other or differs
        names = ", ".join(_shown(each) for each in self._stores) or "none"
        why = f"; it differs from one of them in {differs!r}" if differs else ""
        raise SpecError(
            f"{_shown(store)} is in none of the stores that this spec is trusted with ({names})"
            f"{why}; if it may be used, add it to Trust(stores=...)",
            path,
        )

    def _check_resource(self, resource: ResourceSpec, path: Path) -> None:
        if resource.inline is not None:
            self._check(resource.inline, path)
            return
        cls = resource_class(resource.provider)
        harmless = cls.harmless_members()
        is_data = harmless is not None and harmless >= set(cls.model_fields) and not cls.data_values
        if resource.reference not in ("", resource.provider) and not is_data:
            raise SpecError(
                f"a spec that is not trusted may not choose among the {resource.provider!r} of a "
                f"context; {_REMEDY}",
                path,
            )


def _inside(value: object) -> Iterable[tuple[str | int, object]]:
    """What is inside a value that is no model, each with its step of the JSON path."""
    if isinstance(value, ContextSpec):
        return value.resources.items()
    if isinstance(value, Schema):
        return (("codec", value.codec),)
    if isinstance(value, Mapping):
        return ((str(name), inner) for name, inner in value.items())
    if isinstance(value, tuple | list):
        return enumerate(value)
    if is_dataclass(value):
        return ((field.name, getattr(value, field.name)) for field in fields(value))
    return ()


def _store(place: int, given: object) -> Model:
    try:
        model = parse_registered(
            kvstores, getattr(given, "model", given), from_url=kvstore_from_url
        )
    except SpecError as error:
        raise error.inside("stores", place) from None
    if "base" in type(model).model_fields:
        raise SpecError(
            "this store is inside of another one; name that one, which is the file of an archive",
            ("stores", place),
        )
    return model


def _difference(named: Model, store: Model, harmless: frozenset[str]) -> str | None:
    """The member in which a store is another one than the named store; None: in its path only."""
    for name, field in type(named).model_fields.items():
        if name not in harmless and name != "path" and getattr(named, name) != getattr(store, name):
            return field.alias or name
    return None


def _is_inside(path: str, named: Model) -> bool:
    above = str(getattr(named, "path", ""))
    if not above or above.endswith("/"):
        return path.startswith(above)
    return path == above or path.startswith(f"{above}/")


def _check_path(path: str, at: Path) -> None:
    """Refuse what a store, a server or a library on the way there may read as a way out."""
    parts = _PARTS.split(path)
    decoded = [_PARTS.split(unquote(part)) for part in parts if "%" in part]
    if (
        _CONTROL.search(path)
        or any(part in (".", "..") for part in parts)
        or any(len(inner) > 1 or inner[0] in (".", "..") for inner in decoded)
    ):
        raise SpecError(
            'a spec that is not trusted may have no ".", "..", encoded slashes or control '
            "characters in a path; write the path without them",
            (*at, "path"),
        )


def _is_default(value: object, default: object) -> bool:
    return value is default or (type(value) is type(default) and bool(value == default))


def _refused(name: str, model: Model) -> str:
    if name in model.writing_members:
        return (
            "a spec that is not trusted may not create or delete arrays; leave it out, or pass "
            "trust=Trust(..., write=True)"
        )
    return f"a spec that is not trusted may not say this; {_REMEDY}"


def _listed(values: frozenset[object]) -> str:
    return ", ".join(sorted(f'"{value}"' for value in values))


def _shown(store: Model) -> str:
    """A store for an error message."""
    to_url: Callable[[], str] | None = getattr(store, "to_url", None)
    try:
        return show_url(to_url()) if to_url is not None else type(store).__name__
    except (SpecError, UnsupportedError):
        where = getattr(store, "url", None) or getattr(store, "bucket", None)
        place = f" of {show_url(str(where))}" if where else ""
        return f"{getattr(store, 'driver', 'store')}{place} at {getattr(store, 'path', '')!r}"
