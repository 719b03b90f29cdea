import numpy as np
import pytest
import tensorstore as reference

from tensorstore_py.errors import SpecError
from tensorstore_py.plugin.codec import dtype, parse_number
from tensorstore_py.plugin.driver import number_to_json

FLOATS = [
    "float16", "bfloat16", "float32", "float64", "float4_e2m1fn", "float8_e3m4", "float8_e4m3fn",
    "float8_e4m3fnuz", "float8_e4m3b11fnuz", "float8_e5m2", "float8_e5m2fnuz",
]  # fmt: skip
REALS = [0, 1, -0.0, 0.1, 449.0, 1e38, -1e38, 1e-40, "NaN", "Infinity", "-Infinity"]
REALS += ["0x1", "0x7f", "0xFF", "0x7fc1", "0x8000", "0x7fa00000", "0x7ff8000000000001", "0x"]
REALS += ["0X1f", "0xg", "-0x1", "nan", "1.5", True, None, [1, 2], {}]
SMALL = {"int2": 3, "int4": 15, "float4_e2m1fn": 15}
VALUES: dict[str, list[object]] = {
    "bool": [True, False, 0, "true", None],
    "int2": [-2, 1, 2],
    "int4": [-8, 7, 8, 1.0],
    "int8": [-128, 127, 128, 1.0, 1.5, "1", True, None],
    "uint64": [2**64 - 1, 1e3, -1],
    "int64": [-(2**63), 2**63 - 1, 2**63],
    "complex64": [[1, 2], ["NaN", -0.0], ["0x7fc00001", "-Infinity"], [1], [1, 2, 3], 0, "NaN"],
    "complex128": [[0.1, "Infinity"], ["0x7ff8000000000001", 1], [True, 1]],
}
VALUES |= dict.fromkeys(FLOATS, REALS)


def written_by_reference(name: str, json: object) -> tuple[object, bytes]:
    """The document's fill value, and the value's bits."""
    metadata = {"shape": [1], "data_type": name, "fill_value": json}
    spec = {"driver": "zarr3", "kvstore": "memory://", "metadata": metadata}
    store = reference.open(spec, create=True).result()
    bits = np.asarray(store.read().result()).tobytes()
    if name in SMALL:
        # a byte has room for more bits than the type: which ones they are does not matter
        bits = bytes([bits[0] & SMALL[name]])
    return store.spec().to_json()["metadata"]["fill_value"], bits


@pytest.mark.parametrize("name", VALUES)
def test_the_reference_reads_and_writes_the_same(name: str) -> None:
    for json in VALUES[name]:
        try:
            expected = written_by_reference(name, json)
        except ValueError:
            with pytest.raises(SpecError):
                parse_number(json, dtype(name))
            continue
        value = parse_number(json, dtype(name))
        # as text, because -0.0 equals 0.0
        assert repr(number_to_json(value)) == repr(expected[0]), json
        assert value.tobytes() == expected[1], json


@pytest.mark.parametrize("name", [*VALUES, "float8_e8m0fnu"])
def test_every_bit_pattern_survives(name: str) -> None:
    data_type = dtype(name)
    size = data_type.itemsize
    patterns = {0, 1, 2 ** (8 * size - 1), 2 ** (8 * size) - 1, 0x7E, 0xA5}
    if data_type.kind in "bi" and size == 1:
        patterns = {0, 1}
    for pattern in patterns:
        if name == "float4_e2m1fn":
            pattern &= 0xF
        raw = np.frombuffer(pattern.to_bytes(size, "little"), data_type.array_dtype)
        value = raw.reshape(())

        again = parse_number(number_to_json(value), data_type)

        assert again.tobytes() == value.tobytes(), (name, hex(pattern))
        assert again.dtype == data_type.array_dtype
        assert again.shape == ()


def test_an_error_in_a_complex_number_names_the_part() -> None:
    with pytest.raises(SpecError) as caught:
        parse_number([1, "x"], dtype("complex64"))

    assert caught.value.path == (1,)
