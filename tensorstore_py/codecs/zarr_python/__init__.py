"""Codecs that other packages publish for zarr-python: its `Codec` classes, adapted.

Specification: https://zarr.readthedocs.io/en/stable/user-guide/extending.html
Names: the entry points `zarr.codecs`; once the program imported zarr, also whatever it registered
by `zarr.registry.register_codec`.
Example: `{"name": "package.codec", "configuration": {"level": 1}}`.
Limits: zarr-python 3.1 or later; no Python objects. Codecs with `_encode_sync` and `_decode_sync`,
or whose coroutines never wait, run as fast as they are; those that wait (for a thread, as a rule)
get an event loop for each chunk. How much memory a codec takes for data that lies is its own
business.
"""

from tensorstore_py.codecs.zarr_python.specs import (
    ZarrArrayToArraySpec,
    ZarrArrayToBytesSpec,
    ZarrBytesToBytesSpec,
    from_zarr,
)

__all__ = [
    "ZarrArrayToArraySpec",
    "ZarrArrayToBytesSpec",
    "ZarrBytesToBytesSpec",
    "from_zarr",
]
