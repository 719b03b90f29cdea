"""Arrays in the other version of Zarr: with the same chunks wherever there are words for them."""

import numpy as np
import pytest

import tensorstore_py as ts
from tests.multiscale.images import image


def chunks(store, prefix):
    """The stored chunks of a level, by their cell."""
    keys = [key.decode() for key in store.list().result()]
    found = {
        key[len(prefix) :].removeprefix("c/"): store[key] for key in keys if key.startswith(prefix)
    }
    return {key: value for key, value in found.items() if key[0].isdigit()}


@pytest.mark.parametrize("codec", ["zstd", "gzip", "blosc"])
@pytest.mark.parametrize(("version", "other"), [("0.4", "0.5"), ("0.5", "0.4")])
def test_chunks_stay_what_they_are(version, other, codec):
    made = image("memory://", version, codec=codec)
    new = ts.KvStore.open("memory://").result()

    ts.multiscale.convert(made, new, version=other).result()

    old = chunks(made.group.kvstore, "0/")
    assert len(old) > 4
    assert chunks(new, "0/") == old


@pytest.mark.parametrize(
    "options",
    [
        {"shards": (1, 20, 128, 128), "chunks": (1, 20, 64, 64)},
        {
            "codec": {
                "driver": "zarr3",
                "codecs": [{"name": "bytes", "configuration": {"endian": "big"}}],
            }
        },
        {"codec": {"driver": "zarr3", "codecs": ["zstd", "crc32c"]}},
    ],
)
def test_what_version_2_has_no_words_for_is_encoded_anew(options):
    made = image("memory://", "0.5", **options)

    new = ts.multiscale.convert(made, "memory://", version="0.4").result()

    opened = ts.multiscale.open(new).result()
    for one, other in zip(made.levels, opened.levels, strict=True):
        np.testing.assert_array_equal(one.read().result(), other.read().result())
        assert one.chunk_layout.read_chunk.shape == other.chunk_layout.read_chunk.shape
    assert b'"dimension_separator":"/"' in new.kvstore["0/.zarray"]


def test_what_version_3_has_no_words_for_is_encoded_anew():
    made = image("memory://", "0.4")
    group = made.group
    group.delete("0").result()
    array = group.create_array(
        "0", dtype="uint16", shape=[2, 20, 300, 310],
        metadata={"filters": [{"id": "fixedscaleoffset", "offset": 0, "scale": 1, "dtype": "<u2"}]},
    ).result()  # fmt: skip
    array[...] = 7

    new = ts.multiscale.convert(made, "memory://", version="0.5").result()

    level = ts.multiscale.open(new).result().levels[0]
    assert (level.read().result() == 7).all()
    assert b'"dimension_names":["c","z","y","x"]' in new.kvstore["0/zarr.json"]
