"""Driver `n5`: arrays in the N5 format.

Specification: https://github.com/saalfeldlab/n5#file-system-specification, of which this is one
dataset: `attributes.json` and a block per chunk. Example: `{"driver": "n5", "kvstore": "file:///a/",
"metadata": {"dimensions": [100, 80], "blockSize": [64, 64], "dataType": "uint16",
"compression": {"type": "gzip"}}}`, or the URL `file:///a/|n5:`. Limits: no blocks of variable
length or of objects, and the fill value is 0.
"""

from tensorstore_py.drivers.n5.spec import N5Spec

__all__ = ["N5Spec"]
