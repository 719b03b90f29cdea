"""Every data type as a constant of its name.

For re-export only: some hide builtins on purpose, so no code of ours works inside this module.
"""

from tensorstore_py._spec.dtype import dtype

__all__ = [
    "bfloat16",
    "bool",
    "byte",
    "char",
    "complex64",
    "complex128",
    "float4_e2m1fn",
    "float8_e3m4",
    "float8_e4m3b11fnuz",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
    "float16",
    "float32",
    "float64",
    "int2",
    "int4",
    "int8",
    "int16",
    "int32",
    "int64",
    "json",
    "string",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "ustring",
]

bool = dtype("bool")
char = dtype("char")
byte = dtype("byte")
int2 = dtype("int2")
int4 = dtype("int4")
int8 = dtype("int8")
uint8 = dtype("uint8")
int16 = dtype("int16")
uint16 = dtype("uint16")
int32 = dtype("int32")
uint32 = dtype("uint32")
int64 = dtype("int64")
uint64 = dtype("uint64")
float8_e3m4 = dtype("float8_e3m4")
float8_e4m3fn = dtype("float8_e4m3fn")
float8_e4m3fnuz = dtype("float8_e4m3fnuz")
float8_e4m3b11fnuz = dtype("float8_e4m3b11fnuz")
float8_e5m2 = dtype("float8_e5m2")
float8_e5m2fnuz = dtype("float8_e5m2fnuz")
float8_e8m0fnu = dtype("float8_e8m0fnu")
float4_e2m1fn = dtype("float4_e2m1fn")
float16 = dtype("float16")
bfloat16 = dtype("bfloat16")
float32 = dtype("float32")
float64 = dtype("float64")
complex64 = dtype("complex64")
complex128 = dtype("complex128")
string = dtype("string")
ustring = dtype("ustring")
json = dtype("json")
