"""Databases of several processes, and what becomes of them: merged by reference into one.

One process takes the part of all of them, by Orbax's own functions: each writes its part of every
array to a database of its own, and the first one merges them.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import tensorstore
from etils import epath
from orbax.checkpoint._src.serialization import ocdbt_utils
from orbax.checkpoint._src.serialization import tensorstore_utils as ts_utils

from tests.integrations.orbax.scenarios import Scenario, noise

PROCESSES = 3
ARRAYS = {
    "layers.0.kernel": noise(12, 8),
    "layers.0.bias": noise(30, seed=2),
    "big": noise(300, 20, dtype="f8", seed=3),
}
CONTEXT = ts_utils.get_ts_context()


def parts(array: np.ndarray) -> Iterator[tuple[int, slice]]:
    """Which rows each process writes."""
    rows = len(array) // PROCESSES
    for process in range(PROCESSES):
        yield process, slice(process * rows, (process + 1) * rows)


async def write(spec: dict[str, Any], rows: slice, values: np.ndarray, *, create: bool) -> None:
    """As each process does: the first one makes the metadata, the others know it."""
    transaction = tensorstore.Transaction(atomic=True)
    opened: dict[str, Any] = {"context": CONTEXT, "open": True, "transaction": transaction}
    if create:
        await tensorstore.open(tensorstore.Spec(spec), create=True, **opened)
    array = await tensorstore.open(tensorstore.Spec(spec), assume_metadata=True, **opened)
    await array[rows].write(values, can_reference_source_data_indefinitely=True)
    await transaction.commit_async()


def temporary(path: Path, process: int) -> ts_utils.OcdbtTemporaryMetadataContext:
    where = epath.Path(path.parent / f"{path.name} metadata") / str(process)
    where.mkdir(parents=True, exist_ok=True)
    return ts_utils.OcdbtTemporaryMetadataContext(where)


async def save_all(path: Path, zarr3: bool, apart: bool, aside: bool, merge: bool) -> None:
    options = {"store_ocdbt_metadata_and_values_separately": apart}
    writes: list[Awaitable[None]] = []
    for name, array in ARRAYS.items():
        for process, rows in parts(array):
            spec = ts_utils.ArrayWriteSpec(
                str(path),
                name,
                global_shape=array.shape,
                write_shape=array[rows].shape,
                dtype=array.dtype,
                use_zarr3=zarr3,
                use_ocdbt=True,
                process_id=process,
                ocdbt_temporary_metadata_context=temporary(path, process) if aside else None,
                **options,
            )
            writes.append(write(spec.json, rows, array[rows], create=process == 0))
    await asyncio.gather(*writes)
    if aside:
        for process in range(PROCESSES):
            await ocdbt_utils.commit_temporary_ocdbt_metadata(
                epath.Path(path / f"ocdbt.process_{process}"),
                temporary(path, process),
                CONTEXT,
                **options,
            )
    if merge:
        await ocdbt_utils.merge_ocdbt_per_process_files(
            epath.Path(path), CONTEXT, use_zarr3=zarr3, **options
        )


def save(
    path: Path, *, zarr3: bool = True, apart: bool = False, aside: bool = False, merge: bool = True
) -> object:
    path.mkdir()
    asyncio.run(save_all(path, zarr3, apart, aside, merge))
    return dict(ARRAYS)


async def load_all(path: Path, zarr3: bool) -> dict[str, Any]:
    found = {}
    for name in ARRAYS:
        spec = ts_utils.ArrayReadSpec(str(path), name, zarr3, use_ocdbt=True)
        array = await tensorstore.open(tensorstore.Spec(spec.json), open=True, context=CONTEXT)
        found[name] = await array.read()
    return found


def load(path: Path, *, zarr3: bool = True) -> object:
    return asyncio.run(load_all(path, zarr3))


def names(path: Path, *, database: str = "") -> object:
    """The keys of the merged database, or of the first process's."""
    spec = ts_utils.build_kvstore_tspec(str(path / database), use_ocdbt=True)
    store = tensorstore.KvStore.open(spec, context=CONTEXT).result()
    return [key.decode() for key in store.list().result()]


def sizes(path: Path) -> dict[str, int]:
    """How many bytes each array takes, which Orbax counts in the dump of the tree."""
    return asyncio.run(ocdbt_utils.get_tensor_raw_bytes(epath.Path(path)))


def own_bytes(path: Path) -> object:
    """Whether the merged database has less than the values in files of its own."""
    files = [file for file in path.iterdir() if file.is_dir() and "process" not in file.name]
    size = sum(file.stat().st_size for each in files for file in each.iterdir())
    return size < sum(size for size in sizes(path).values())


RESTORE: dict[str, Callable[[Path], object]] = {
    "as saved": load,
    "names": names,
    "sizes": sizes,
    "by reference": own_bytes,
}
SCENARIOS = {
    "merged": Scenario(save, RESTORE),
    "merged, zarr": Scenario(
        partial(save, zarr3=False), {**RESTORE, "as saved": partial(load, zarr3=False)}
    ),
    "metadata apart": Scenario(partial(save, apart=True), RESTORE),
    "metadata aside": Scenario(partial(save, aside=True), RESTORE),
    "metadata aside and apart": Scenario(partial(save, aside=True, apart=True), RESTORE),
    "of one process": Scenario(
        partial(save, merge=False), {"names": partial(names, database="ocdbt.process_0")}
    ),
}
