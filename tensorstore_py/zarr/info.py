"""Sizes as `ts.zarr` writes them, and the table that it tells them in."""

from __future__ import annotations

from tensorstore_py._display.info import Info

__all__ = ["Info", "human_size"]


def human_size(size: int) -> str:
    """A number of bytes for people.

    Example:
        >>> human_size(800), human_size(400_000_000)
        ('800', '381.5M')
    """
    if size < 1024:
        return str(size)
    scaled = float(size)
    for unit in "KMGTPE":
        scaled /= 1024
        if scaled < 1024 or unit == "E":
            break
    return f"{scaled:.1f}{unit}"
