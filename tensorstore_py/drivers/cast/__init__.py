"""The `cast` driver: another array with its elements converted to another data type.

{"driver": "cast", "base": "file:///data/a/|zarr3:", "dtype": "float32"}
"""

from tensorstore_py.drivers.cast.spec import CastSpec

__all__ = ["CastSpec"]
