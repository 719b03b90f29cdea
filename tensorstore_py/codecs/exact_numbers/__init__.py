"""Numbers of one type as numbers of another, or moved and scaled, with nothing left to chance.

Specification: https://github.com/zarr-developers/zarr-extensions/tree/main/codecs/cast_value and
https://github.com/zarr-developers/zarr-extensions/tree/main/codecs/scale_offset
Example: `{"name": "cast_value", "configuration": {"data_type": "uint8", "out_of_range": "clamp",
"rounding": "nearest-even", "scalar_map": {"encode": [["NaN", 0]], "decode": [[0, "NaN"]]}}}`,
`{"name": "scale_offset", "configuration": {"offset": 5, "scale": 0.1}}`.
Limits: integers and real floats. What the stored type cannot hold, and no member says what becomes
of it, is an error when it is written; so is a fill value that does not come back.
"""

from tensorstore_py.codecs.exact_numbers.cast_value import CastValueSpec
from tensorstore_py.codecs.exact_numbers.scale_offset import ScaleOffsetSpec

__all__ = ["CastValueSpec", "ScaleOffsetSpec"]
