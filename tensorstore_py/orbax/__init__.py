"""`ts.orbax`: checkpoints of Orbax, the checkpoint library of JAX, as trees of arrays.

`open` gives a checkpoint's tree without reading an array, `steps` what a CheckpointManager's
directory has, `check` what is damaged, `save` writes a checkpoint that Orbax restores;
`to_safetensors` and `from_safetensors` convert, in bounded memory. JAX is not needed for any of it.

Read in this order: `leaves` (what a tree is), `documents` (what Orbax stores of one), `layout`
(which directory holds what), `checkpoint` (what users hold), `opening`, `blocks`, `checking`,
`saving`, `safetensors_writing`, `safetensors_files`.
"""

from tensorstore_py.orbax.checking import check
from tensorstore_py.orbax.checkpoint import Checkpoint
from tensorstore_py.orbax.layout import Step
from tensorstore_py.orbax.opening import (
    open,  # it opens
    steps,
)
from tensorstore_py.orbax.safetensors_files import from_safetensors, to_safetensors
from tensorstore_py.orbax.saving import save

__all__ = [
    "Checkpoint",
    "Step",
    "check",
    "from_safetensors",
    "open",
    "save",
    "steps",
    "to_safetensors",
]
