"""What callers of copies may say; what comes of it is in test_copy."""

import numpy as np
import pytest

import tensorstore_py as ts
from tensorstore_py._conversion.asked import Asked, as_chunks


def asked(**options):
    return Asked.of("memory://a/", "memory://b/", **options)


@pytest.mark.parametrize(
    ("given", "expected"),
    [(None, None), (3, 3), ((1, 2), (1, 2)), ([np.int64(4)], (4,)), ({"x": 5}, {"x": 5})],
)
def test_chunks(given, expected):
    assert as_chunks(given) == expected


@pytest.mark.parametrize("wrong", [True, "3", 2.5])
def test_what_says_no_chunks(wrong):
    with pytest.raises(TypeError, match="chunks are a number"):
        as_chunks(wrong)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"if_exists": "skipp"}, 'did you mean "skip"'),
        ({"zarr_format": 4}, "expected 2 or 3"),
        ({"includes": ""}, "includes"),
    ],
)
def test_what_is_wrong_is_named(options, said):
    with pytest.raises(ts.SpecError, match=said):
        asked(**options)


def test_as_json_it_asks_for_the_same():
    layout = ts.ChunkLayout(chunk_shape=[2, 3])
    codec = ts.CodecSpec({"driver": "zarr3", "codecs": ["zstd"]})
    one = asked(chunk_layout=layout, codec=codec, dtype=ts.int16, fill_value=np.int16(3),
                excludes="x/*", if_exists="replace", zarr_format=3)  # fmt: skip

    said = one.to_json()
    source, dest = said.pop("source"), said.pop("dest")
    other = Asked.of(source, dest, **said)

    assert said["dtype"] == "int16"
    assert other.to_json() == one.to_json()
    assert other.request.identity == one.request.identity
    assert other.request.wanted.chunk_layout == layout
