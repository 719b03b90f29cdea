"""Stores by the names that zarr users know, and `store_of` for whatever else says where."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Mapping, MutableMapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self, TypeAlias

from tensorstore_py._api.kvstore import KvStore
from tensorstore_py._api.kvstore_spec import Spec as KvStoreSpec
from tensorstore_py._api.spec import Spec
from tensorstore_py._api.tensorstore import TensorStore
from tensorstore_py._spec.held import Held, is_store
from tensorstore_py.zarr.mapping import MappingSpec
from tensorstore_py.zarr.store import Store

if TYPE_CHECKING:
    from obstore.store import ObjectStore
    from zarr.abc.store import Store as ZarrStore

    from tensorstore_py._spec.context import Context

__all__ = [
    "DictStore",
    "DirectoryStore",
    "FSStore",
    "FsspecStore",
    "LocalStore",
    "MemoryStore",
    "NestedDirectoryStore",
    "StoreLike",
    "TempStore",
    "ZipStore",
    "default_compressor",
    "store_of",
]

#: Drivers of arrays, with the version of the format that they are.
_FORMATS = {"zarr": 2, "zarr2": 2, "zarr3": 3, "auto": None}
#: What compresses arrays of which nothing else is said: a codec, None, or `"default"` for what is
#: usual in the array's version. As in zarr-python it may be set, for the whole program.
default_compressor: object = "default"

PathLike: TypeAlias = "str | os.PathLike[str]"
ZipMode = Literal["r", "r+", "a", "w", "w-", "x"]
StoreLike: TypeAlias = (
    "Store | KvStore | KvStoreSpec | Spec | TensorStore | str | os.PathLike[str] | "
    "Mapping[str, object] | ZarrStore | ObjectStore | None"
)


class DirectoryStore(Store):
    """A directory.

    Args:
        path: of the directory; made when something is stored.
        read_only: refuse changes.
        context: caches and limits that its arrays share.

    Attributes:
        path: of the directory, absolute.

    Example:
        >>> import pathlib
        >>> import tensorstore_py as ts
        >>> store = ts.zarr.DirectoryStore("lab")
        >>> store["run/2/log"] = b"late"
        >>> pathlib.Path("lab", "run", "2", "log").read_bytes()
        b'late'
    """

    def __init__(
        self, path: PathLike, *, read_only: bool = False, context: Context | None = None
    ) -> None:
        self.path = str(Path(path).absolute())
        super().__init__(_directory(path), read_only=read_only, context=context)


class LocalStore(DirectoryStore):
    """A directory, as zarr-python 3 calls it."""

    @property
    def root(self) -> Path:
        """The directory."""
        return Path(self.path)


class NestedDirectoryStore(DirectoryStore):
    """A directory in which chunks lie in directories of their own, one for each dimension."""

    separator = "/"


class TempStore(DirectoryStore):
    """A new temporary directory, deleted with the store.

    Args:
        suffix: of its name.
        prefix: of its name.
        dir: where it is made.
    """

    def __init__(self, suffix: str = "", prefix: str = "zarr", dir: PathLike | None = None) -> None:
        path = tempfile.mkdtemp(suffix=suffix, prefix=prefix, dir=dir)
        super().__init__(path)
        self._finalizer = weakref.finalize(self, shutil.rmtree, path, ignore_errors=True)


class MemoryStore(Store):
    """Keys and values in memory.

    Args:
        mapping: a dictionary that holds them; None for the context's memory.
        read_only: refuse changes.
        context: caches and limits that its arrays share.
    """

    def __init__(
        self,
        mapping: MutableMapping[str, bytes] | None = None,
        *,
        read_only: bool = False,
        context: Context | None = None,
    ) -> None:
        where: object = "memory://"
        if mapping is not None:
            model = MappingSpec(held=Held(mapping))
            where = KvStore.of(model, model.open())
        super().__init__(where, read_only=read_only, context=context)
        self.mapping = mapping


class DictStore(MemoryStore):
    """Keys and values in memory, as zarr-python 2 calls it."""


class FSStore(Store):
    """A place that a URL names: `s3://`, `gs://`, `http://`, `file://`, `memory://`.

    Args:
        url: of the place.
        read_only: refuse changes.
        mode: `"r"` for reading only.
        context: credentials, caches and limits that it shares.
    """

    def __init__(
        self,
        url: str,
        *,
        read_only: bool = False,
        mode: str = "w",
        context: Context | None = None,
    ) -> None:
        super().__init__(url, read_only=read_only or mode == "r", context=context)


class FsspecStore(FSStore):
    """A place that a URL names, as zarr-python 3 calls it."""

    @classmethod
    def from_url(cls, url: str, *, read_only: bool = False) -> Self:
        """The same as calling the class."""
        return cls(url, read_only=read_only)


class ZipStore(Store):
    """A zip archive.

    Args:
        path: of the archive.
        compression: of new entries, by the numbers of `zipfile`: 0 stores, 8 deflates.
        allowZip64: accepted; archives are as large as they are.
        mode: `"r"` reads; `"a"` and `"r+"` change it; `"w"` begins a new one; `"x"` and `"w-"`,
            too, if there is none.
        read_only: refuse changes.
        context: caches and limits that its arrays share.

    Raises:
        FileExistsError: there is an archive, and the mode is `"x"`.
    """

    def __init__(
        self,
        path: PathLike,
        compression: int = 0,
        allowZip64: bool = True,  # noqa: N803 - the name in zipfile
        mode: ZipMode = "a",
        *,
        read_only: bool = False,
        context: Context | None = None,
    ) -> None:
        self.path = str(Path(path).absolute())
        if mode in ("x", "w-") and Path(path).exists():
            raise FileExistsError(f"{path} exists; open it with mode='a', or pass mode='w'")
        if mode == "w":
            Path(path).unlink(missing_ok=True)
        base = {"driver": "file", "path": Path(self.path).as_posix()}
        how = {0: "store", 8: "deflate", 14: "xz", 93: "zstd"}.get(compression)
        if how is None:
            raise ValueError(
                f"compression {compression} is not known; use 0 (stored) or 8 (deflate)"
            )
        spec = {"driver": "zip", "base": base, "compression": how}
        super().__init__(spec, read_only=read_only or mode == "r", context=context)


def _directory(path: PathLike) -> dict[str, object]:
    whole = Path(path).absolute().as_posix()
    return {"driver": "file", "path": whole if whole.endswith("/") else whole + "/"}


def _is_array_spec(store: object) -> bool:
    """Whether it is JSON, or a URL, that names the driver of an array and not only a store."""
    if isinstance(store, str):
        return "://" in store and store.rpartition("|")[2].rstrip(":") in _FORMATS
    return isinstance(store, Mapping) and store.get("driver") in _FORMATS


def _of_array(store: object, context: Context | None) -> Store:
    """The store that an array's spec names, or an open array is in."""
    spec = store.spec(retain_context=True) if isinstance(store, TensorStore) else Spec(store)
    if spec.kvstore is None:
        raise TypeError(f"{store!r} names no store; it needs a kvstore")
    made = Store(spec.kvstore, context=context)
    made.zarr_format = _FORMATS.get(spec.model.driver)
    return made


def store_of(store: object, *, mode: str | None = None, context: Context | None = None) -> Store:
    """The store that something says.

    Args:
        store: one of this module, a `ts.KvStore` or its spec, JSON, a URL, a local path, a mapping
            of keys to bytes, or None for new memory; also an array, or its spec, for where that is;
            also a store of zarr-python, of obstore or icechunk, a file system or mapper of fsspec.
        mode: that it is opened in; `"r"` is never to change it.
        context: shared resources.

    Raises:
        TypeError: it says nothing of the kind.
        SpecError: something is wrong with the JSON or the URL.
    """
    if store is None:
        return MemoryStore(context=context)
    if isinstance(store, Store):
        if context is not None and context is not store.context:
            raise TypeError("a store has a context of its own; pass context= where that is made")
        return store
    if isinstance(store, KvStore | KvStoreSpec):
        return Store(store, context=context)
    if isinstance(store, Spec | TensorStore) or _is_array_spec(store):
        return _of_array(store, context)
    if isinstance(store, str) and "://" in store:
        return Store(store, context=context)
    if isinstance(store, str | os.PathLike):
        if Path(store).suffix == ".zip":
            return ZipStore(store, mode="r" if mode == "r" else "a", context=context)
        return LocalStore(store, context=context)
    if not isinstance(store, dict) and is_store(store):  # an object of another library
        return Store(store, read_only=getattr(store, "read_only", None) is True, context=context)
    if isinstance(store, Mapping) and isinstance(store.get("driver"), str):
        return Store(store, context=context)
    if isinstance(store, MutableMapping):
        return MemoryStore(store, context=context)
    raise TypeError(
        f"{store!r} says no store: pass a path, a URL, a ts.KvStore, its JSON spec, a dict of "
        "bytes, or a store of ts.zarr, such as ts.zarr.ZipStore('a.zip')"
    )
