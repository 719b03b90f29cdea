"""Files that nothing needs: noticed by one run, deleted by a later one.

A store may not say how old a file is, and a file that nothing refers to may be that of a writer
whose commit is about to come. So the first run that finds a file unreached only notes the time, in
a side document; a run that finds it unreached after the grace deletes it.

    {"unreached": {"d/0123…": 1735689600.0}}
"""

from __future__ import annotations

import time
from typing import Final

from tensorstore_py.kvstores.ocdbt.database import Place
from tensorstore_py.kvstores.ocdbt.side_document import SideDocument
from tensorstore_py.plugin.kvstore import fan_out

__all__ = ["GARBAGE", "delete_due", "noticed"]

#: The document's key, from the directory of the manifest.
GARBAGE: Final = "unreached_files.json"
_DOCUMENT: Final = SideDocument(
    GARBAGE,
    "unreached",
    float,
    "no document of unreached files; delete it: the grace of all files begins anew",
)


async def noticed(manifests: Place) -> dict[str, float]:
    """When each file was found unreached, in s since 1970.

    Raises:
        DataLossError: the document is damaged; names it.
    """
    return await _DOCUMENT.read(manifests)


async def _note(manifests: Place, unreached: list[str]) -> dict[str, float]:
    """Note what is unreached, and forget what is not, or not there any more."""
    now = time.time()
    return await _DOCUMENT.change(
        manifests, lambda known: {path: known.get(path, now) for path in unreached}
    )


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
