import pytest

from tensorstore_py._display.codec_words import codec_list, codec_words


@pytest.mark.parametrize(
    ("json", "words"),
    [
        ({"driver": "zarr3", "codecs": ["zstd"]}, "zstd"),
        ({"driver": "zarr3", "codecs": []}, "none"),
        ({"driver": "n5", "compression": {"type": "gzip", "level": 6}}, "gzip (level 6)"),
        (
            {"driver": "zarr", "filters": [{"id": "delta", "dtype": "<i2"}], "compressor": None},
            "delta (dtype <i2)",
        ),
        (
            {"codecs": [{"name": "transpose", "configuration": {"order": [1, 0]}}]},
            "transpose (order 1 × 0)",
        ),
        (
            {
                "codecs": [
                    {
                        "name": "sharding_indexed",
                        "configuration": {
                            "chunk_shape": [4],
                            "codecs": [{"name": "zstd", "configuration": {"level": 1}}],
                            "index_location": "end",
                        },
                    }
                ]
            },
            "sharding_indexed (zstd (level 1))",
        ),
        (
            {"codecs": [{"name": "x", "configuration": {"on": True, "off": False, "no": None}}]},
            "x (on)",
        ),
        ({"codecs": [{"configuration": 5}, 7]}, "? (5), 7"),
    ],
)
def test_codecs_in_words(json, words):
    assert codec_words(json) == words


def test_each_codec_in_order():
    json = {"filters": [{"id": "delta"}], "compressor": {"id": "blosc", "cname": "lz4"}}
    assert codec_list(json) == [("delta", ""), ("blosc", "cname lz4")]
