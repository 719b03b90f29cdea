"""Files that nothing needs: noticed by one run, deleted by a later one.

A store may not say how old a file is, and a file that nothing refers to may be that of a writer
whose commit is about to come. So the first run that finds a file unreached only notes the time, in
a document beside the manifest; a run that finds it unreached after the grace deletes it.

    {"unreached": {"d/0123…": 1735689600.0}}
"""

from __future__ import annotations

import json
import time
from typing import Final

from tensorstore_py.errors import DataLossError
from tensorstore_py.kvstores.ocdbt.database import Place
from tensorstore_py.plugin.kvstore import UNKNOWN, RetryPolicy, fan_out

__all__ = ["GARBAGE", "delete_due", "noticed"]

#: The document's key, from the directory of the manifest.
GARBAGE: Final = "unreached_files.json"
_CONFLICTS: Final = RetryPolicy()


async def noticed(manifests: Place) -> tuple[dict[str, float], bytes]:
    """When each file was found unreached, in s since 1970, and the document's generation.

    Raises:
        DataLossError: the document is damaged; names it.
    """
    store, root = manifests
    result = await store.read(f"{root}{GARBAGE}")
    if result.state != "value":
        return {}, result.stamp.generation
    try:
        found = json.loads(bytes(result.value))["unreached"]
        return {str(path): float(since) for path, since in found.items()}, result.stamp.generation
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataLossError(
            f"{store.describe_key(root + GARBAGE)}: no document of unreached files; delete it: the "
            "grace of all files begins anew"
        ) from error


async def _note(manifests: Place, unreached: list[str]) -> dict[str, float]:
    """Note what is unreached, and forget what is not, or not there any more."""
    store, root = manifests
    key = f"{root}{GARBAGE}"
    attempts = _CONFLICTS.begin("change", lambda: store.describe_key(key), inline=store.inline)
    while True:
        known, generation = await noticed(manifests)
        now = time.time()
        after = {path: known.get(path, now) for path in sorted(unreached)}
        if after == known:
            return after
        document = json.dumps({"unreached": after}, indent=1).encode() if after else None
        stamp = await store.write(key, document, if_equal=generation)
        if stamp.generation != UNKNOWN:
            return after
        await attempts.lost(generation)


async def delete_due(
    manifests: Place, data: Place, unreached: list[str], grace_s: float
) -> list[str]:
    """Note which files are unreached, and delete those that have been for so long.

    Returns:
        The files that were deleted.
    """
    since = await _note(manifests, unreached)
    now = time.time()
    due = [path for path in unreached if since[path] + grace_s <= now]
    store, root = data

    async def delete(path: str) -> None:
        await store.write(f"{root}{path}", None)

    await fan_out(store.inline, due, delete, count=len(due), width=store.width)
    if due:
        gone = set(due)
        await _note(manifests, [path for path in unreached if path not in gone])
    return due
