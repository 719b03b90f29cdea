import pytest

from tensorstore_py._conversion.version2 import codec_in_version2


@pytest.mark.parametrize(
    ("codecs", "wanted"),
    [
        ([], None),
        (["bytes", "crc32c"], None),
        ([{"name": "zstd", "configuration": {"level": 3, "checksum": False}}],
         {"id": "zstd", "level": 3}),
        (["bytes", {"name": "numcodecs.zlib", "configuration": {"level": 2}}],
         {"id": "zlib", "level": 2}),
        ([{"name": "blosc", "configuration": {"cname": "zstd", "clevel": 1, "shuffle": "shuffle",
                                              "typesize": 4, "blocksize": 0}}],
         {"id": "blosc", "cname": "zstd", "clevel": 1, "shuffle": 1, "blocksize": 0}),
        ([{"name": "sharding_indexed", "configuration": {"chunk_shape": [1], "codecs": ["gzip"]}}],
         {"id": "gzip", "level": 6}),
        ([{"name": "sharding_indexed"}], None),
    ],
)  # fmt: skip
def test_the_compressor(codecs, wanted):
    assert codec_in_version2(codecs) == {"compressor": wanted}
