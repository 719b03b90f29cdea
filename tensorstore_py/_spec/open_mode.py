"""`OpenMode`: the five flags that say how a spec may be opened.

A plain mutable record, as the reference has it; what the flags mean is the drivers' business.
"""

from __future__ import annotations

from tensorstore_py._display.public_name import public

__all__ = ["DELETE_NEEDS_CREATE", "FLAGS", "OpenMode"]

DELETE_NEEDS_CREATE = (
    '"delete_existing" makes place for a new array or group: pass "create": true, too, '
    'and not "open": true'
)

#: Members of a spec that say how it may be opened.
FLAGS = ("open", "create", "delete_existing", "assume_metadata", "assume_cached_metadata")


@public
class OpenMode:
    """How to open; all flags default to false.

    Args:
        open: open an existing array.
        create: create the array if it does not exist.
        delete_existing: delete what exists first; needs `create`.
        assume_metadata: neither read nor write metadata; take what the spec says.
        assume_cached_metadata: take what the spec says as if it had been read just now.

    Example:
        >>> OpenMode(open=True, create=True)
        OpenMode(open=True, create=True)
        >>> mode = OpenMode()
        >>> mode.create = True
        >>> mode == OpenMode(create=True)
        True
    """

    __slots__ = FLAGS
    __hash__ = None  # type: ignore[assignment]

    def __init__(
        self,
        *,
        open: bool = False,
        create: bool = False,
        delete_existing: bool = False,
        assume_metadata: bool = False,
        assume_cached_metadata: bool = False,
    ) -> None:
        self.open = bool(open)
        self.create = bool(create)
        self.delete_existing = bool(delete_existing)
        self.assume_metadata = bool(assume_metadata)
        self.assume_cached_metadata = bool(assume_cached_metadata)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, OpenMode):
            return NotImplemented
        return all(getattr(self, flag) == getattr(other, flag) for flag in FLAGS)

    def __repr__(self) -> str:
        flags = ", ".join(f"{flag}=True" for flag in FLAGS if getattr(self, flag))
        return f"OpenMode({flags})"
