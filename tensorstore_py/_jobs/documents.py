"""`Document`: one JSON document in a directory or a store, and what job files say of places.

In a job file a string with `://` is a URL, and any other one a local path, relative to the
directory that the file is in. Messages name a document as the user did.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tensorstore_py._api.kvstore import KvStore
from tensorstore_py._api.prepared import as_model
from tensorstore_py._api.spec import clean_json
from tensorstore_py._spec.json_value import parse_json_text
from tensorstore_py._spec.pretty import pretty
from tensorstore_py.errors import NotFoundError, SpecError, TensorStoreError, without_secrets

if TYPE_CHECKING:
    from tensorstore_py._interface.hierarchy import JsonObject
    from tensorstore_py._spec.trust import Trust

__all__ = ["Document", "as_place", "in_memory"]


class Document(NamedTuple):
    """Where a document is.

    Attributes:
        where: a URL, a local path, or the JSON of a store's spec with the path of a document.
    """

    where: object

    @property
    def name(self) -> str:
        """How to name it to a person."""
        where = self.where
        return without_secrets(
            str(where) if isinstance(where, str | Path) else pretty("KvStore.Spec", where)
        )

    @property
    def folder(self) -> Path | None:
        """The directory that it is in; None: that is no local one."""
        return self.where.absolute().parent if isinstance(self.where, Path) else None

    def spec(self, trust: Trust | None = None) -> KvStore.Spec:
        """The spec of the store, with the path of the document.

        Raises SpecError: it is no place of one document, or not one that may be used.
        """
        where = self.where
        # as a URL, a path names a document; as a path, it would name a directory
        given = where.absolute().as_uri() if isinstance(where, Path) else where
        spec = KvStore.Spec(given, trust=trust)
        if not spec.path or spec.path.endswith("/"):
            raise SpecError(f"{self.name} is a directory; name one document in it")
        return spec

    def read(self, *, env: bool = False) -> JsonObject:
        """What is in it.

        Raises:
            NotFoundError: it is not there.
            SpecError: it is no JSON object.
        """
        found = KvStore.open(self.spec()).result().read("").result()
        if found.state != "value":
            raise NotFoundError(f"{self.name} does not exist; a job file or a plan is expected")
        return parsed(bytes(found.value), self.name, env=env)

    def write(self, content: JsonObject) -> None:
        """Replace what is in it."""
        text = json.dumps(content, indent=1, ensure_ascii=False) + "\n"
        KvStore.open(self.spec()).result().write("", text.encode()).result()

    def beside(self, suffix: str) -> Document:
        """The document whose name goes on with a suffix."""
        where = self.where
        if isinstance(where, Path):
            return Document(Path(f"{where}{suffix}"))
        if isinstance(where, str):
            return Document(where + suffix)
        spec = self.spec().to_json()
        assert isinstance(spec, dict)
        return Document({**spec, "path": f"{spec.get('path', '')}{suffix}"})


def parsed(text: bytes, name: str, *, env: bool = False) -> JsonObject:
    """The JSON object in the text of a document, without notes.

    Raises SpecError: it is something else; names the document.
    """
    try:
        found = clean_json(parse_json_text(text), env=env)
    except SpecError as error:
        raise SpecError(f"{error.problem} (in {name})", error.path) from None
    if not isinstance(found, dict):
        raise SpecError(f"expected a job file or a plan, which is a JSON object (in {name})")
    return found


def as_place(given: object, folder: Path | None) -> object:
    """What a job file says of a place, as the library takes it; paths are relative to `folder`.

    Raises SpecError: it is a relative path where there is no folder.

    Example:
        >>> as_place("memory://a/", None), as_place("a/b", Path("/data")).as_posix()
        ('memory://a/', '/data/a/b')
    """
    if not isinstance(given, str) or "://" in given:
        return given
    path = Path(given).expanduser()
    if folder is None and not path.is_absolute():
        raise SpecError(f"{given!r} is relative to a directory, and the document is in none; "
                        "write a URL or an absolute path")  # fmt: skip
    return path if folder is None else folder / path


def in_memory(place: object) -> bool:
    """Whether the outermost store of a spec is memory; a wrong spec is an error later."""
    if isinstance(place, Path):
        return False
    try:
        model: object = as_model(place)
    except TensorStoreError:
        return False
    while (inner := getattr(model, "kvstore", None) or getattr(model, "base", None)) is not None:
        model = inner
    return getattr(model, "driver", "") == "memory"
