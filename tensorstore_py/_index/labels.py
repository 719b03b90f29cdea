"""Dimension labels: finding, merging and printing them.

`""` means unlabeled.

Invariant: the labels of a domain that are not empty are unique.
"""

from __future__ import annotations

from collections.abc import Sequence

from tensorstore_py.errors import IndexingError

__all__ = ["escape", "find_label", "merge_labels", "quote", "require_unique"]


_ESCAPES = str.maketrans(
    {"\\": "\\\\", '"': '\\"', "'": "\\'", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
)


def escape(text: str) -> str:
    """`text` with the escapes that it needs between quotes of either kind."""
    return text.translate(_ESCAPES)


def quote(text: str) -> str:
    """`text` in double quotes."""
    return f'"{escape(text)}"'


def require_unique(labels: Sequence[str]) -> None:
    """Raise IndexingError naming the labels that occur more than once."""
    named = [label for label in labels if label]
    if len(set(named)) == len(named):
        return
    repeated = sorted({label for label in named if named.count(label) > 1})
    raise IndexingError(f"Dimension label(s) {', '.join(map(quote, repeated))} not unique")


def merge_labels(a: str, b: str) -> str:
    """The common label of two dimensions; an unlabeled one agrees with any."""
    if a and b and a != b:
        raise IndexingError(f"Dimension labels do not match: {quote(a)} and {quote(b)}")
    return a or b


def find_label(label: str, labels: Sequence[str]) -> int:
    """The dimension that carries `label`."""
    if not label:
        raise IndexingError("Dimension cannot be specified by empty label")
    try:
        return labels.index(label)
    except ValueError:
        if not any(labels):
            raise IndexingError(
                f"no dimension is named {quote(label)}: none has a label; give its number"
            ) from None
        known = ", ".join(map(quote, labels))
        raise IndexingError(f"Label {quote(label)} does not match one of {{{known}}}") from None
