"""Names of versions: a small document beside the manifest.

The format has no names, so they are in a side document, `version_names.json`.

    {"names": {"released": 12}}
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, TypeGuard

from tensorstore_py.errors import NotFoundError, SpecError
from tensorstore_py.kvstores.ocdbt.side_document import SideDocument

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tensorstore_py.kvstores.ocdbt.database import Place

__all__ = ["NAMES", "change_names", "check_name", "generation_named", "is_name", "read_names"]

#: The document's key, from the directory of the manifest.
NAMES: Final = "version_names.json"
_NAME: Final = re.compile(r"(?![vV](?:[\d.\-]|$))[A-Za-z_][A-Za-z0-9_.\-]{0,127}")
_DOCUMENT: Final = SideDocument(
    NAMES, "names", int, "no document of names of versions; delete it to go on without names"
)


def is_name(text: object) -> TypeGuard[str]:
    """Whether a version may have such a name: no number, no time, nothing that URLs need.

    Example:
        >>> is_name("released-1.0"), is_name("v3"), is_name("2025-01-01T00:00:00Z"), is_name("a/b")
        (True, False, False, False)
    """
    return isinstance(text, str) and _NAME.fullmatch(text) is not None


def check_name(text: object) -> str:
    """A name.

    Raises:
        SpecError: it is none.
    """
    if is_name(text):
        return text
    raise SpecError(
        "expected the name of a version: a letter or _, then letters, digits, _, - and ., 128 at "
        f'most, and not like "v3"; found {text!r:.60}'
    )


async def read_names(manifests: Place) -> dict[str, int]:
    """The generation of each name.

    Raises:
        DataLossError: the document is damaged; names it.
    """
    return await _DOCUMENT.read(manifests)


async def generation_named(manifests: Place, name: str) -> int:
    """The generation of a name.

    Raises:
        NotFoundError: no version has that name.
        DataLossError: the document is damaged.
    """
    names = await read_names(manifests)
    if name in names:
        return names[name]
    known = ", ".join(sorted(names)[:20]) or "none has one"
    raise NotFoundError(
        f"{manifests.store.describe_key(manifests.root + 'manifest.ocdbt')}: no version has the "
        f'name "{name}"; names are: {known}'
    )


async def change_names(manifests: Place, changes: Mapping[str, int | None]) -> dict[str, int]:
    """Give names to generations; None takes one away.

    Returns:
        All names after the change.
    """

    def changed(names: dict[str, int]) -> dict[str, int]:
        after = {**names, **changes}
        return {name: generation for name, generation in after.items() if generation is not None}

    return await _DOCUMENT.change(manifests, changed)
