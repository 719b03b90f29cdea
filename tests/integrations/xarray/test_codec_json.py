import copy
import pickle

import pytest
from zarr.codecs import GzipCodec

from tensorstore_py.integrations.xarray.codec_json import (
    CodecJson,
    codecs_of_version_2,
    codecs_of_version_3,
)

BYTES = {"name": "bytes", "configuration": {"endian": "little"}}
GZIP = {"name": "gzip", "configuration": {"level": 5}}
TRANSPOSE = {"name": "transpose", "configuration": {"order": [1, 0]}}


def test_a_codec_compares_with_zarrs_and_has_its_attributes():
    codec = CodecJson(GZIP)

    assert codec == GzipCodec(level=5)
    assert GzipCodec(level=5) == codec
    assert codec != GzipCodec(level=6)
    assert codec == GZIP
    assert codec != {}
    assert codec.level == 5
    with pytest.raises(AttributeError, match=r"gzip.*\['level'\]"):
        _ = codec.cname
    assert pickle.loads(pickle.dumps(codec)) == copy.deepcopy(codec) == codec


def test_the_chain_of_version_3_is_told_apart():
    assert codecs_of_version_3([TRANSPOSE, BYTES, GZIP]) == {
        "filters": (TRANSPOSE,),
        "serializer": BYTES,
        "compressors": (GZIP,),
    }
    assert codecs_of_version_3(["bytes"])["serializer"] == {"name": "bytes"}
    assert codecs_of_version_3([{"name": "unheard-of"}]) == {}


def test_codecs_of_a_shard_are_those_of_its_chunks():
    inner = {"chunk_shape": [2], "codecs": [BYTES, GZIP], "index_codecs": [BYTES]}

    found = codecs_of_version_3([{"name": "sharding_indexed", "configuration": inner}])

    assert (found["serializer"], found["compressors"]) == (BYTES, (GZIP,))


def test_codecs_of_version_2_are_objects():
    from numcodecs import Delta, Zlib

    document = {
        "compressor": {"id": "zlib", "level": 3},
        "filters": [{"id": "delta", "dtype": "<i2"}],
    }

    assert codecs_of_version_2(document) == {
        "compressors": (Zlib(level=3),),
        "filters": (Delta("<i2"),),
    }
    assert codecs_of_version_2({"compressor": None}) == {"compressors": (), "filters": ()}
