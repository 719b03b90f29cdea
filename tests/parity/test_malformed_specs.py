"""What is wrong in a spec is refused as the reference does, and named better: with its path."""

from collections.abc import Callable
from typing import Any

import pytest
import tensorstore as reference

import tensorstore_py as ts
from tests.parity.malformed_specs import ACCEPTED_BY_THE_REFERENCE, MALFORMED, Z2, Z3

WAYS: dict[str, Callable[[Any, Any], object]] = {
    "Spec": lambda library, json: library.Spec(json),
    "Schema": lambda library, json: library.Schema(json),
    "ChunkLayout": lambda library, json: library.ChunkLayout(json),
    "KvStore.Spec": lambda library, json: library.KvStore.Spec(json),
    "Context": lambda library, json: library.Context(json),
    "CodecSpec": lambda library, json: library.CodecSpec(json),
    "Unit": lambda library, json: library.Unit(json=json),
    "IndexTransform": lambda library, json: library.IndexTransform(json=json),
    "IndexDomain": lambda library, json: library.IndexDomain(json=json),
}
NAN = float("nan")
ROWS = [(way, json, path) for way in MALFORMED for json, path in MALFORMED[way]]


def test_there_are_many():
    assert len(ROWS) >= 200
    assert set(MALFORMED) == set(WAYS)


@pytest.mark.parametrize(("way", "json", "path"), ROWS, ids=lambda part: str(part)[:100])
def test_refused_with_the_path_to_the_member(way, json, path):
    with pytest.raises((ValueError, TypeError, IndexError)) as theirs:
        WAYS[way](reference, json)
    with pytest.raises(theirs.type) as ours:
        WAYS[way](ts, json)
    found = getattr(ours.value, "path", ())
    assert found == path
    for part in path:
        assert str(part) in str(ours.value)


@pytest.mark.parametrize(("json", "path"), ACCEPTED_BY_THE_REFERENCE, ids=str)
def test_refused_before_it_is_opened(json, path):
    reference.Spec(json)
    with pytest.raises(ts.SpecError) as ours:
        ts.Spec(json)
    assert ours.value.path == path


@pytest.mark.parametrize(
    ("json", "path"),
    [
        ({**Z3, "metadata": {"data_type": "int32", "fill_value": NAN}}, ("metadata", "fill_value")),
        ({**Z3, "metadata": {"shape": [NAN]}}, ("metadata", "shape", 0)),
        ({**Z3, "rank": NAN}, ("rank",)),
        ({**Z3, "cache_pool": {"total_bytes_limit": NAN}}, ("cache_pool", "total_bytes_limit")),
        (
            {**Z3, "schema": {"chunk_layout": {"chunk": {"elements": NAN}}}},
            ("schema", "chunk_layout", "chunk", "elements"),
        ),
        ({**Z2, "metadata": {"dtype": "|u1", "fill_value": NAN}}, ("metadata", "fill_value")),
        ({**Z2, "metadata": {"compressor": {"id": "zlib", "level": NAN}}},
         ("metadata", "compressor", "level")),
    ],
    ids=str,
)  # fmt: skip
def test_nan_where_it_cannot_be(json, path):
    for library in (ts, reference):
        with pytest.raises(ValueError):
            library.Spec(json)
    with pytest.raises(ts.SpecError) as caught:
        ts.Spec(json)
    assert caught.value.path == path


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"driver": "zarr3", "driver": "zarr"}', "driver: this member is given twice"),
        ('{"driver": "zarr3", "metadata": {"shape": [1], "shape": [2]}}', "metadata.shape: this"),
        ('{"driver": "zarr3", "rank": NaN}', "NaN is not JSON"),
        ('{"driver": zarr3}', "line 1, column 12"),
        ('{"driver": "zarr3" "rank": 1}', "line 1, column 20"),
    ],
)
def test_json_text(text, words):
    with pytest.raises(ts.SpecError) as caught:
        ts.open(text)
    assert words in str(caught.value)
