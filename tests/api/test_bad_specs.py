"""A wrong spec is refused at once, by a message that a person can act on."""

import pytest

import tensorstore_py as ts
from tensorstore_py.errors import SpecError, TensorStoreError

ZARR3 = {"driver": "zarr3", "kvstore": "memory://"}
ZARR2 = {"driver": "zarr", "kvstore": "memory://"}


def zarr3(**metadata):
    return {**ZARR3, "metadata": metadata}


def zarr2(**metadata):
    return {**ZARR2, "metadata": metadata}


def codec(name, **configuration):
    return zarr3(codecs=[{"name": name, "configuration": configuration}])


CASES = [
    ({}, "driver", "required|missing"),
    ({"driver": 5}, "driver", "5"),
    ({"driver": "zar3"}, "driver", 'did you mean "zarr3"'),
    ({"driver": "zarr3", "kvstor": "memory://"}, "kvstor", 'did you mean "kvstore"'),
    ({"driver": "zarr3", "kvstore": {"driver": "fil"}}, "kvstore.driver", 'did you mean "file"'),
    ({"driver": "zarr3", "kvstore": {"path": "a"}}, "kvstore.driver", "required|missing"),
    ({"driver": "zarr3", "kvstore": "filee:///a"}, "kvstore", 'did you mean "file'),
    ({"driver": "zarr3", "kvstore": {"driver": "file", "path": 7}}, "kvstore.path", "7"),
    ({**ZARR3, "dtype": "uint9"}, "dtype", "uint"),
    ({**ZARR3, "rank": -1}, "rank", "-1"),
    ({**ZARR3, "rank": 33}, "rank", "33"),
    ({**ZARR3, "create": "yes"}, "create", '"yes"'),
    ({**ZARR3, "recheck_cached_data": "never"}, "recheck_cached_data", '"open"'),
    ({**ZARR3, "context": {"cache_pol": {}}}, "context.cache_pol", 'did you mean "cache_pool"'),
    (
        {**ZARR3, "context": {"cache_pool": {"total_bytes_limit": -5}}},
        "context.cache_pool.total_bytes_limit",
        "-5",
    ),
    ({**ZARR3, "cache_pool": {"total_bytes": 5}}, "cache_pool.total_bytes", "total_bytes_limit"),
    ({**ZARR3, "transform": {"input_rnk": 1}}, "transform.input_rnk", "input_rank"),
    ({**ZARR3, "schema": {"chunk_layot": {}}}, "schema.chunk_layot", "chunk_layout"),
    (
        {**ZARR3, "schema": {"chunk_layout": {"chunk": {"shape": [-2]}}}},
        r"schema.chunk_layout.chunk.shape[0]",
        "-2",
    ),
    (zarr3(shpe=[1]), "metadata.shpe", 'did you mean "shape"'),
    (zarr3(shape=[-1]), "metadata.shape[0]", "-1"),
    (zarr3(shape="big"), "metadata.shape", '"big"'),
    (zarr3(data_type="unit8"), "metadata.data_type", 'did you mean "uint8"'),
    (zarr3(chunk_grid={"name": "regula"}), "metadata.chunk_grid.name", "regular"),
    (
        zarr3(chunk_grid={"name": "regular", "configuration": {"chunk_shape": [0]}}),
        "metadata.chunk_grid.configuration.chunk_shape[0]",
        "0",
    ),
    (zarr3(chunk_key_encoding={"name": "v3"}), "metadata.chunk_key_encoding.name", "default"),
    (codec("gzp"), "metadata.codecs[0].name", 'did you mean "gzip"'),
    (codec("gzip", level=10), "metadata.codecs[0].configuration.level", "10"),
    (codec("gzip", lvl=1), "metadata.codecs[0].configuration.lvl", 'did you mean "level"'),
    (codec("blosc", cname="lz5"), "metadata.codecs[0].configuration.cname", "lz4"),
    (codec("blosc", shuffle="bits"), "metadata.codecs[0].configuration.shuffle", "bitshuffle"),
    (codec("bytes", endian="middle"), "metadata.codecs[0].configuration.endian", "little"),
    (
        codec("sharding_indexed", chunk_shape=[2], codecs=[{"name": "zsdt"}]),
        "metadata.codecs[0].configuration.codecs[0].name",
        'did you mean "zstd"',
    ),
    (zarr2(dtype="<u3"), "metadata.dtype", "<u3"),
    (zarr2(chunks=[0]), "metadata.chunks[0]", "0"),
    (zarr2(order="Fortran"), "metadata.order", '"Fortran"'),
    (zarr2(compressor={"id": "zlb"}), "metadata.compressor.id", 'did you mean "zlib"'),
    (zarr2(compressor={"id": "zlib", "level": 11}), "metadata.compressor.level", "11"),
    (zarr2(compressor={"level": 1}), "metadata.compressor.id", "required|missing"),
    (zarr2(zarr_format=3), "metadata.zarr_format", "3"),
    (zarr2(dimension_separator=":"), "metadata.dimension_separator", '":"'),
    (zarr2(fillvalue=1), "metadata.fillvalue", 'did you mean "fill_value"'),
]


@pytest.mark.parametrize(("spec", "path", "hint"), CASES, ids=[case[1] for case in CASES])
def test_named_by_its_json_path_with_what_is_allowed(spec, path, hint):
    import re

    with pytest.raises(SpecError) as caught:
        ts.Spec(spec)
    message = str(caught.value)
    assert message.startswith(f"{path}: "), message
    assert re.search(hint, message), message
    with pytest.raises(SpecError):
        ts.open(spec)


def test_it_is_what_the_reference_raises():
    with pytest.raises(ValueError):
        ts.open({"driver": "nope"})
    assert issubclass(SpecError, TensorStoreError)


def test_a_metadata_document_that_is_wrong_names_its_key(tmp_path):
    from tensorstore_py.errors import DataLossError

    spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": f"{tmp_path}/"}}
    ts.open(spec, create=True, dtype="uint8", shape=[4]).result()
    document = tmp_path / "zarr.json"
    good = document.read_text()
    for bad in (
        "", "{", "[]", "null", good[:-10], good.replace('"uint8"', '"uint9"'),
        good.replace('"zarr_format":3', '"zarr_format":7'), "\xff", good.replace("[4]", "[-4]"),
        '{"zarr_format":3,"node_type":"group"}',
    ):  # fmt: skip
        document.write_bytes(bad.encode("latin-1"))
        with pytest.raises(ValueError, match=r"zarr\.json") as caught:
            ts.open(spec).result()
        assert isinstance(caught.value, (DataLossError, TensorStoreError)), bad


def test_a_codec_nobody_has_is_named_by_the_document(tmp_path):
    spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": f"{tmp_path}/"}}
    ts.open(spec, create=True, dtype="uint8", shape=[4]).result()
    document = tmp_path / "zarr.json"
    document.write_text(document.read_text().replace('"bytes"', '"bytez"'))
    with pytest.raises((ValueError, NotImplementedError), match=r"zarr\.json.*bytez"):
        ts.open(spec).result()
