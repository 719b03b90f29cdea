"""`ts.json_schema`: what a spec may say, told to editors and validators.

The schema is made of whatever is registered when it is asked for, plug-ins included, and costs some
milliseconds; nothing is remembered.
"""

from __future__ import annotations

from typing import Any

from tensorstore_py._spec.codec_spec import codec_specs
from tensorstore_py._spec.json_schema import spec_schema

__all__ = ["json_schema"]


def json_schema() -> dict[str, Any]:  # Any: JSON, to be walked through
    """One JSON Schema (draft 2020-12) of every TensorStore spec.

    Save it beside your spec files and name it in them, and an editor completes and checks them:
    `{"$schema": "tensorstore.schema.json", "driver": "zarr3", ...}`.

    Example:
        >>> import tensorstore_py as ts
        >>> schema = ts.json_schema()
        >>> "Driver.zarr3" in schema["$defs"]
        True
    """
    return spec_schema(codec_specs)
