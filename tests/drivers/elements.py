"""Sample elements of every data type, which differ from each other where the type allows it."""

import numpy as np

import tensorstore_py as ts

DATA_TYPES = [
    "bool", "int2", "int4", "int8", "int16", "int32", "int64", "uint2", "uint4", "uint8", "uint16",
    "uint32", "uint64", "bfloat16", "float16", "float32", "float64", "float4_e2m1fn",
    "float6_e2m3fn", "float6_e3m2fn", "float8_e3m4", "float8_e4m3", "float8_e4m3fn",
    "float8_e4m3fnuz", "float8_e4m3b11fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu",
    "complex64", "complex128", "string", "ustring", "json", "object", "char", "byte",
    "datetime64[s]", "timedelta64[ms]", "U3", "S3", "V4",
]  # fmt: skip
RECORD = [["x", "uint16"], ["y", "float32"]]

_WORDS: dict[str, list[object]] = {
    "string": [b"a", b"", b"\xff", b"bcd"],
    "ustring": ["a", "", "\u00e9", "bcd"],
    "json": [[1, [2]], {"a": [1]}, None, "text"],
    "object": ["a", b"b", (1, 2), None],
    "char": [b"a", b"b", b"c", b"d"],
    "byte": [b"a", b"b", b"c", b"d"],
    "U3": ["a", "", "xyz", "b"],
    "S3": [b"a", b"", b"xyz", b"b"],
    "V4": [b"abcd", b"\1\2\3\4", b"efgh", b"zzzz"],
}


def elements(data_type, shape, start=0):
    """An array of a data type's samples, over and over, beginning with the one numbered `start`."""
    found = ts.dtype(data_type)
    samples = _WORDS.get(found.name, [1, 0.5, 2, 1.5])
    if found.kind in "biumM":
        samples = [1, 0, 1, 1]
    if found.is_record:
        samples = [(1, 0.5), (2, 1.5), (3, 2.5), (4, 3.5)]
    out = np.empty(shape, found.array_dtype)
    flat = out.reshape(-1)
    for place in range(flat.size):
        sample = samples[(start + place) % 4]
        flat[place : place + 1] = _one(sample, out.dtype)
    return out


def _one(sample, dtype):
    one = np.empty((), dtype)
    if dtype.kind == "V" and dtype.isbuiltin == 0 and dtype.names is None:
        return np.frombuffer(sample, dtype)
    one[()] = sample if dtype.kind not in "mM" else np.array(sample, "int64").view(dtype)
    return one


def same(found, expected):
    """Whether two arrays agree in shape, type and elements; 1 and true differ."""
    return (found.shape, found.dtype, repr(found.tolist())) == (
        expected.shape,
        expected.dtype,
        repr(expected.tolist()),
    )
