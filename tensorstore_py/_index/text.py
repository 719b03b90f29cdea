"""How domains and transforms print: the same text as the reference.

Only whole domains and transforms: intervals, labels and maps print themselves where they live.
"""

from __future__ import annotations

from tensorstore_py._index.frame import Frame
from tensorstore_py._index.interval import format_interval
from tensorstore_py._index.labels import quote
from tensorstore_py._index.maps import OutputIndexMap, format_index_array

__all__ = ["format_domain", "format_frame"]


def format_domain(frame: Frame) -> str:
    """`{ "x": [0, 3), [0*, 4) }`."""
    dims = []
    for dim, text in enumerate(frame.labels):
        prefix = f"{quote(text)}: " if text else ""
        dims.append(prefix + format_interval(*frame.bounds(dim)))
    return "{ " + ", ".join(dims) + " }"


def format_frame(frame: Frame) -> str:
    """One line per dimension and map, ending with a newline."""
    lines = [
        f"Rank {frame.rank} -> {len(frame.maps)} index space transform:",
        "  Input domain:",
    ]
    for dim, text in enumerate(frame.labels):
        suffix = f" {quote(text)}" if text else ""
        lines.append(f"    {dim}: {format_interval(*frame.bounds(dim))}{suffix}")
    lines.append("  Output index maps:")
    lines += [f"    out[{out}] = {_format_map(m)}" for out, m in enumerate(frame.maps)]
    return "\n".join(lines) + "\n"


def _format_map(index_map: OutputIndexMap) -> str:
    text = str(index_map.offset)
    if index_map.stride is None:
        return text
    text += f" + {index_map.stride} * "
    if index_map.index_array is None:
        return f"{text}in[{index_map.input_dimension}]"
    limits = format_interval(*index_map.value_range)
    values = format_index_array(index_map.index_array)
    return f"{text}bounded({limits}, array(in)), where array =\n      {values}"
