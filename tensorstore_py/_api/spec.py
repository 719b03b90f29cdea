"""`Spec`: what is to be opened, as a value that can be printed, changed, indexed and opened.

A Spec wraps one frozen driver spec; `update` replaces it. Nothing is opened here.

Spec files are JSON. Members named `$schema` and `$comment` are for editors and people; they are
dropped wherever they stand, except among an array's own attributes, which are data. Nothing of the
environment gets in unless the caller asks for it.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Self, Unpack

from tensorstore_py._api.kvstore import KvStore
from tensorstore_py._api.kvstore_spec import place
from tensorstore_py._api.options import SpecOptions, spec_given, updated
from tensorstore_py._display.public_name import public
from tensorstore_py._index import Indexable, IndexDomain, IndexTransform, identity
from tensorstore_py._interface.adapter import AdapterSpec
from tensorstore_py._interface.driver import DriverSpec
from tensorstore_py._interface.kvstore import KvStoreSpec
from tensorstore_py._spec.arguments import spelled_out
from tensorstore_py._spec.context import same_spec, spec_json
from tensorstore_py._spec.held import is_store
from tensorstore_py._spec.json_value import parse_json_text
from tensorstore_py._spec.pretty import json_page, pretty
from tensorstore_py._spec.registered import parse_registered
from tensorstore_py._spec.registry import drivers, kvstores
from tensorstore_py._spec.schema import schema_lines
from tensorstore_py._spec.url import driver_from_url
from tensorstore_py.errors import (
    IndexingError,
    NotFoundError,
    SpecError,
    UnsupportedError,
    did_you_mean,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from tensorstore_py._spec.chunk_layout import ChunkLayout
    from tensorstore_py._spec.codec_spec import CodecSpec
    from tensorstore_py._spec.dtype import dtype
    from tensorstore_py._spec.open_mode import OpenMode
    from tensorstore_py._spec.schema import Schema
    from tensorstore_py._spec.trust import Trust
    from tensorstore_py._spec.units import Unit


__all__ = ["Spec", "clean_json", "in_file", "load_json", "load_spec", "parse_spec"]

#: So much of a file tells whether it is an archive.
_HEAD_BYTES = 64
_NOTES = ("$schema", "$comment")
#: Members whose content is the user's data, not ours.
_DATA = ("attributes", "array")
_REFERENCE = re.compile(r"\$(\$\{)|\$\{([^}:]*)(?::-([^}]*))?\}")

JsonPath = tuple[str | int, ...]


def load_json(path: str | os.PathLike[str], *, env: bool = False) -> object:
    """The JSON in a spec file, ready to be parsed; arguments and errors as for `ts.load_spec`."""
    try:
        text = Path(path).read_bytes()
    except FileNotFoundError:
        raise NotFoundError(f"{os.fspath(path)} does not exist; a spec file is expected") from None
    except IsADirectoryError:
        raise SpecError(f"{os.fspath(path)} is a directory; a spec file is expected") from None
    try:
        return clean_json(parse_json_text(text), env=env)
    except SpecError as error:
        raise in_file(error, path) from None


def clean_json(json: object, *, env: bool = False) -> object:
    """JSON without notes, and with the environment's values where that is asked for.

    Raises SpecError: a variable is not set; has the path to the member.
    """
    return _cleaned(json, env, ())


def _cleaned(json: object, env: bool, path: JsonPath) -> object:
    if isinstance(json, dict):
        return {
            name: _cleaned(value, env, (*path, name)) if name not in _DATA else value
            for name, value in json.items()
            if name not in _NOTES
        }
    if isinstance(json, list):
        return [_cleaned(value, env, (*path, place)) for place, value in enumerate(json)]
    if env and isinstance(json, str):
        return _REFERENCE.sub(lambda match: _value(match, path), json)
    return json


def _value(match: re.Match[str], path: JsonPath) -> str:
    if match[1]:
        return match[1]
    name: str = match[2]
    default: str | None = match[3]
    found = os.environ.get(name, default)
    if found is None:
        hint = did_you_mean(name, [each for each in os.environ if len(each) > 3])
        hint = hint if "did you mean" in hint else ""
        raise SpecError(
            f"the environment variable {name} is not set{hint}; set it, or write "
            f"${{{name}:-default}}",
            path,
        )
    return found


def in_file(error: SpecError, path: str | os.PathLike[str]) -> SpecError:
    """The error, with the name of the file."""
    return SpecError(f"{error.problem} (in {os.fspath(path)})", error.path)


def parse_spec(json: object) -> DriverSpec:
    """The driver spec for JSON or a URL.

    Raises SpecError: something is wrong with it; names the JSON path and the nearest valid name.
    """
    if isinstance(json, os.PathLike):
        return _from_path(Path(os.fspath(json)))
    if not isinstance(json, dict | str) and is_store(json):
        json = {"driver": "auto", "kvstore": json}
    if isinstance(json, dict) and _names_a_store(json.get("driver")):
        json = {"driver": "auto", "kvstore": json}
    if isinstance(json, dict) and "driver" not in json:
        which = did_you_mean("", drivers.names())
        # The reference's words, which programs look for.
        problem = f'Error parsing object member "driver": it is required{which}'
        raise SpecError(problem, ("driver",))
    found = parse_registered(drivers, json, from_url=driver_from_url)
    assert isinstance(found, DriverSpec)
    return found


def _names_a_store(name: object) -> bool:
    """A store's spec stands for whatever array is in it, as its URL does."""
    return isinstance(name, str) and drivers.find(name) is None and kvstores.find(name) is not None


def _from_path(path: Path) -> DriverSpec:
    """A spec file, or the spec of the array that a directory holds, or a file such as an archive.

    Raises:
        NotFoundError: no such file.
        SpecError: the spec file is wrong; names the file.
    """
    if path.is_dir():
        return parse_spec({"driver": "auto", "kvstore": path})
    if _is_metadata(path.name):
        raise SpecError(
            f"{path} is the metadata of an array, not a spec; open its directory: "
            f"{str(path.parent)!r} as a pathlib.Path"
        )
    if not path.exists():
        raise NotFoundError(
            f"{path} does not exist: neither the directory of an array nor a spec file; to create "
            'an array name its format: {"driver": "zarr3", "kvstore": path}'
        )
    if _is_store_file(path):
        return parse_spec({"driver": "auto", "kvstore": path})
    try:
        return parse_spec(load_json(path))
    except SpecError as error:
        named = str(path) in error.problem
        raise error if named else in_file(error, path) from None


def _is_store_file(path: Path) -> bool:
    """Whether a file holds keys and values, such as an archive: none of these is text."""
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD_BYTES)
    except OSError:
        return False
    return b"\0" in head and KvStoreSpec.detected(head) is not None


def _is_metadata(name: str) -> bool:
    """Whether files of that name are a format's own."""
    return any(name in cls.detected_by for cls in DriverSpec.detectable())


@public
class Spec(Indexable):
    """What is to be opened.

    Args:
        json: a JSON spec, a URL such as `file:///data/a/|zarr3:`, or a local path as
            `os.PathLike`: a spec file, or the directory of an array.
        trust: what it may do, if it comes from others; by default whatever it says.
        options: keyword arguments as for `update`.

    Raises:
        SpecError: something is wrong with it; names the JSON path and the nearest valid name.

    Example:
        >>> import tensorstore_py as ts
        >>> spec = ts.Spec({"driver": "zarr3", "kvstore": "memory://a/"})
        >>> spec.update(dtype="uint8", create=True)
        >>> spec.kvstore.url, spec.dtype, spec.open_mode
        ('memory://a/', dtype("uint8"), OpenMode(create=True))
    """

    __slots__ = ("__weakref__", "_model")
    __hash__ = None  # type: ignore[assignment]  # `update` changes it
    __iter__ = None
    _model: DriverSpec

    @spelled_out(SpecOptions)
    def __init__(
        self, json: object, *, trust: Trust | None = None, **options: Unpack[SpecOptions]
    ) -> None:
        def parse() -> DriverSpec:
            return json._model if isinstance(json, Spec) else parse_spec(json)

        model = parse() if trust is None else trust.parsed(parse)
        self._model = updated(model, spec_given(**options))

    @classmethod
    def of(cls, model: DriverSpec) -> Self:
        """The Spec of a driver spec."""
        spec = cls.__new__(cls)
        spec._model = model
        return spec

    @property
    def model(self) -> DriverSpec:
        """The frozen driver spec inside."""
        return self._model

    @spelled_out(SpecOptions)
    def update(self, **options: Unpack[SpecOptions]) -> None:
        """Add constraints, change the open mode, bind or unbind the context.

        Takes the keyword arguments of `ts.open` and `unbind_context`, `strip_context`,
        `minimal_spec`.

        Raises:
            TypeError: an option that does not exist.
            SpecError: a value is wrong, or the driver has no such member.
            MismatchError: a value contradicts what the spec says already.
        """
        self._model = updated(self._model, spec_given(**options))

    def copy(self) -> Self:
        """An independent copy."""
        return self.of(self._model)

    __copy__ = copy

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        return self.copy()

    def to_json(self, include_defaults: bool = False) -> dict[str, object]:
        """The JSON spec.

        Args:
            include_defaults: print members that equal their default, too.
        """
        return spec_json(self._model.canonical(), include_defaults)

    @property
    def transform(self) -> IndexTransform | None:
        """From the view's positions to the array's; None while the domain is unknown."""
        return self._known_transform()

    @property
    def domain(self) -> IndexDomain | None:  # type: ignore[override]
        """The domain, as far as the constraints tell."""
        transform = self._known_transform()
        return None if transform is None else transform.domain

    @property
    def rank(self) -> int | None:  # type: ignore[override]
        """Number of dimensions, if known."""
        transform = self._known_transform()
        return self.schema.rank if transform is None else transform.input_rank

    @property
    def ndim(self) -> int | None:  # type: ignore[override]
        """Number of dimensions, if known."""
        return self.rank

    @property
    def schema(self) -> Schema:
        """Every schema constraint, those that the metadata member implies included."""
        schema = self._model.known_schema()
        transform = self._model.transform
        if transform is None:
            return schema
        schema = schema[transform]
        if schema.domain is None:
            schema.update(domain=transform.domain)
        return schema

    @property
    def dtype(self) -> dtype | None:
        """Element type, if known."""
        return self.schema.dtype

    @property
    def chunk_layout(self) -> ChunkLayout:
        """Constraints on the chunk layout."""
        return self.schema.chunk_layout

    @property
    def codec(self) -> CodecSpec | None:
        """Constraints on the codec."""
        return self.schema.codec

    @property
    def fill_value(self) -> NDArray[np.generic] | None:
        """The fill value, if specified."""
        return self.schema.fill_value

    @property
    def dimension_units(self) -> tuple[Unit | None, ...] | None:
        """Units of the dimensions, if specified."""
        return self.schema.dimension_units

    @property
    def kvstore(self) -> KvStore.Spec | None:
        """The store underneath, if the driver has one."""
        model = self._model
        while isinstance(model, AdapterSpec):
            model = model.base
        kvstore = getattr(model, "kvstore", None)
        return None if kvstore is None else KvStore.Spec.of(kvstore)

    @property
    def base(self) -> Spec | None:
        """The array underneath, for drivers over arrays."""
        base = getattr(self._model, "base", None)
        return Spec.of(base) if isinstance(base, DriverSpec) else None

    @property
    def open_mode(self) -> OpenMode:
        """How it would be opened."""
        return self._model.open_mode()

    @property
    def url(self) -> str:
        """The URL form.

        Raises:
            UnsupportedError: it has constraints that no URL can carry.
        """
        return self._model.to_url()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Spec):
            return NotImplemented
        return same_spec(self._model, other._model)

    def _repr_html_(self) -> str:
        mode, model = self.open_mode, self._model
        store = self.kvstore
        lines = [
            ("Driver", model.driver),
            ("Place", None if store is None else place(store.model)),
            *schema_lines(self.schema),
            ("Open mode", repr(mode)),
        ]
        return json_page("Spec", "", lines, lambda: spec_json(model.canonical(), mark_bound=True))

    def __repr__(self) -> str:
        try:
            return pretty("Spec", spec_json(self._model.canonical(), mark_bound=True))
        except (SpecError, UnsupportedError):
            # elements in memory, or functions, that have no JSON form
            return "Spec(...)"

    def __reduce__(self) -> tuple[object, tuple[DriverSpec]]:
        return Spec.of, (self._model,)

    def _known_transform(self) -> IndexTransform | None:
        if self._model.transform is not None:
            return self._model.transform
        domain = self._model.known_domain()
        return None if domain is None else identity(domain)

    def _get_transform(self) -> IndexTransform:
        transform = self._known_transform()
        if transform is not None:
            return transform
        rank = self.rank
        if rank is None:
            raise IndexingError(
                "Cannot perform indexing operations on Spec with unspecified rank; "
                "specify its rank or domain"
            )
        return IndexTransform(input_rank=rank)

    def _with_transform(self, transform: IndexTransform) -> Self:
        return self.of(self._model.replace(transform=transform, rank=None))


def load_spec(
    path: str | os.PathLike[str], *, env: bool = False, trust: Trust | None = None
) -> Spec:
    """The Spec in a file.

    Args:
        path: a JSON file, UTF-8.
        env: replace `${NAME}` in strings by the environment variable of that name, and
            `${NAME:-text}` by `text` if there is none; `$${` stands for `${`. Off by default:
            then strings are taken as they are. Not together with `trust`: the environment holds
            what such a file is not to know.
        trust: what the spec may do, if the file comes from others; by default whatever it says.

    Raises:
        NotFoundError: there is no such file.
        SpecError: not JSON, a wrong spec, a variable that is not set, or more than it is trusted
            with; the message names the file, and the error has the path to the member.
        ValueError: both `env` and `trust`.

    Example:
        >>> import pathlib, tempfile
        >>> import tensorstore_py as ts
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = pathlib.Path(folder, "volume.json")
        ...     _ = file.write_text('{"driver": "zarr3", "kvstore": "memory://${NAME:-a}/"}')
        ...     ts.load_spec(file, env=True).kvstore.url
        'memory://a/'
    """
    if env and trust is not None:
        raise ValueError(
            "env=True would tell a spec that is not trusted what is in the environment"
        )
    json = load_json(path, env=env)
    try:
        return Spec(json, trust=trust)
    except SpecError as error:
        raise in_file(error, path) from None
