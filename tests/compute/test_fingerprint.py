import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import tensorstore_py as ts
from tensorstore_py._compute.fingerprint import LANES, PRIME, _keys_along, added, fingerprint

DTYPES = ["bool", "u1", "i2", "f4", "M8[s]", "c16", "S3", "U2", "V5"]


def one_by_one(data):
    """What the fingerprint is, by its definition."""
    words = np.ascontiguousarray(data).reshape(-1, 1)
    size = data.dtype.itemsize
    words = words.view(np.uint8 if size % 2 else "<u2").reshape(*data.shape, -1)
    rank = max(1, data.ndim)
    total = [0] * LANES
    for position in np.ndindex(data.shape):
        for number, word in enumerate(words[position].tolist()):
            where = [*position] or [0]
            where[-1] = where[-1] * words.shape[-1] + number
            for lane in range(LANES):
                key = word
                for dim, at in enumerate(where):
                    key = key * int(_keys_along(rank - 1 - dim, at, 1)[lane, 0]) % PRIME
                total[lane] += key
    return tuple(each % PRIME for each in total)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (2, 1, 3), (1, 1, 1, 2)])
def test_the_definition(dtype, shape):
    rng = np.random.default_rng(0)
    data = rng.integers(0, 2**8, size=(*shape, np.dtype(dtype).itemsize), dtype=np.uint8)
    if dtype in ("bool", "U2"):
        data = np.zeros_like(data)
        data[..., :1] = 1
    data = data.view(dtype).reshape(shape)

    assert fingerprint(data, (0,) * len(shape), ts.dtype(data.dtype)) == one_by_one(data)


@given(st.data(), st.sampled_from(["u1", "f4", "f8"]))
@settings(max_examples=30)
def test_parts_are_added_in_any_order(draw, dtype):
    data = draw.draw(hnp.arrays(dtype, hnp.array_shapes(min_dims=1, max_dims=4, max_side=6)))
    data_type = ts.dtype(data.dtype)
    dim = draw.draw(st.integers(0, data.ndim - 1))
    cut = draw.draw(st.integers(0, data.shape[dim]))
    origin = [0] * data.ndim
    origin[dim] = cut
    one, other = np.split(data, [cut], axis=dim)

    whole = fingerprint(data, [0] * data.ndim, data_type)
    parts = fingerprint(one, [0] * data.ndim, data_type), fingerprint(other, origin, data_type)

    assert added(*parts) == added(*parts[::-1]) == whole
    assert fingerprint(np.asfortranarray(data), [0] * data.ndim, data_type) == whole


@given(st.data())
@settings(max_examples=50)
def test_any_change_changes_it(draw):
    data = draw.draw(hnp.arrays("u1", hnp.array_shapes(min_dims=1, max_dims=3, max_side=8)))
    at = tuple(draw.draw(st.integers(0, extent - 1)) for extent in data.shape)
    changed = data.copy()
    changed[at] ^= draw.draw(st.integers(1, 255))

    origin = (0,) * data.ndim
    assert fingerprint(data, origin, ts.uint8) != fingerprint(changed, origin, ts.uint8)
    swapped = data[::-1]
    if not np.array_equal(swapped, data):
        assert fingerprint(data, origin, ts.uint8) != fingerprint(swapped, origin, ts.uint8)


def test_no_two_of_many_arrays_share_it_not_even_by_one_lane():
    lanes = [fingerprint(np.array([one, other], "u1"), (0,), ts.uint8)
             for one in range(64) for other in range(64)]  # fmt: skip

    for lane in range(LANES):
        assert len({each[lane] for each in lanes}) == len(lanes)


def test_long_rows_are_taken_in_pieces():
    data = np.arange(70_000, dtype="u2")
    wide = np.broadcast_to(data, (3, 70_000))

    found = fingerprint(data, (5,), ts.uint16)

    parts = [fingerprint(data[at : at + 999], (5 + at,), ts.uint16) for at in range(0, 70_000, 999)]
    total = parts[0]
    for part in parts[1:]:
        total = added(total, part)
    assert found == total
    assert fingerprint(wide, (0, 0), ts.uint16) != fingerprint(wide[:2], (0, 0), ts.uint16)


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        ([b"", b"a", b"bcd"], "string"), (["", "ä", "xyz"], "ustring"),
        ([{"b": 1, "a": [None]}, 3, "x"], "json"),
    ],
)  # fmt: skip
def test_elements_of_any_length(values, dtype):
    data = np.empty(3, object)
    data[:] = values
    data_type = ts.dtype(dtype)

    whole = fingerprint(data, (0,), data_type)

    assert (
        added(fingerprint(data[:1], (0,), data_type), fingerprint(data[1:], (1,), data_type))
        == whole
    )
    assert fingerprint(data[::-1], (0,), data_type) != whole


def test_the_order_of_members_is_no_part_of_json():
    one, other = np.empty(1, object), np.empty(1, object)
    one[0], other[0] = {"a": 1, "b": 2}, {"b": 2, "a": 1}

    assert fingerprint(one, (0,), ts.json) == fingerprint(other, (0,), ts.json)


def test_objects_of_any_kind_have_none():
    with pytest.raises(ts.UnsupportedError, match="have no digest"):
        fingerprint(np.array([object()]), (0,), ts.dtype("object"))
