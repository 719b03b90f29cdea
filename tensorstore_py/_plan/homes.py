"""Where operations are: the modules that register them, imported when one is asked for by its name.

A document, or a worker in another process, has nothing but the name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tensorstore_py._runtime.loading import load as load_module

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["CALLS", "STEPS", "load"]

#: By the name of a public function, the module that registers its calls (`register_call`).
CALLS: Final[Mapping[str, str]] = {
    "copy": "_conversion.copy",
    "diff": "_compute.diff",
    "digest": "_compute.digest",
    "map_blocks": "_compute.map_blocks",
    "migrate": "_conversion.migrate",
    "pyramid": "multiscale.pyramid",
    "rechunk": "_conversion.copy",
    "reduce": "_compute.reduce",
}
#: By the kind of a step, the module that registers it (`steps.register`).
STEPS: Final[Mapping[str, str]] = {
    "copy": "_conversion.copy_call",
    "diff": "_compute.diff",
    "digest": "_compute.digest",
    "map_blocks": "_compute.map_blocks_call",
    "pyramid": "_compute.pyramid",
    "reduce": "_compute.reduce",
}


def load(homes: Mapping[str, str], *names: str) -> None:
    """Import the modules that register some names; those that none registers are left out."""
    for home in {homes[name] for name in names if name in homes}:
        load_module(f"tensorstore_py.{home}")
