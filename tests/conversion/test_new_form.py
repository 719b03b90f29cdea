from typing import Any

import pytest

import tensorstore_py as ts
from tensorstore_py._conversion.ends import source
from tensorstore_py._conversion.member import open_source
from tensorstore_py._conversion.new_form import Wanted, new_form
from tensorstore_py._hierarchy.formats import format_of
from tensorstore_py._runtime.inline import run_inline

V2, V3 = format_of("zarr"), format_of("zarr3")


def member(driver="zarr3", view: Any = ..., **options: Any):
    given = {"dtype": "int16", "shape": [6, 4], **options}
    array = ts.open({"driver": driver, "kvstore": "memory://"}, create=True, **given).result()
    found: Any = run_inline(source(array[view], ts.Context()).find())
    return run_inline(open_source(found, found.node, ""))


def test_nothing_changes():
    for driver, form in (("zarr", V2), ("zarr3", V3)):
        new: Any = new_form(member(driver), form, Wanted())

        assert new.same_chunks
        assert new.options["metadata"]["shape"] == [6, 4]
        assert "attributes" not in new.options["metadata"]


def test_names_of_chunks_stay():
    metadata = {"chunk_key_encoding": {"name": "v2", "configuration": {"separator": "/"}}}
    spec = {"driver": "zarr3", "kvstore": "memory://", "metadata": metadata}
    opened = ts.open(spec, create=True, dtype="int8", shape=[2]).result()
    found: Any = run_inline(source(opened, ts.Context()).find())
    given = run_inline(open_source(found, found.node, ""))

    new: Any = new_form(given, V3, Wanted(chunks=1))

    assert new.options["metadata"] == metadata
    assert not new.same_chunks


def test_codecs_are_said_in_the_other_format():
    level3 = {"name": "gzip", "configuration": {"level": 3}}
    gzip = ts.CodecSpec({"driver": "zarr3", "codecs": [level3]})
    new: Any = new_form(member(codec=gzip), V2, Wanted())
    old = ts.CodecSpec({"driver": "zarr", "compressor": {"id": "zlib", "level": 2}})
    back: Any = new_form(member("zarr", codec=old), V3, Wanted())

    assert new.options["codec"].to_json()["compressor"] == {"id": "gzip", "level": 3}
    assert back.options["codec"].to_json()["codecs"][1]["name"] == "numcodecs.zlib"
    assert new.how == "zarr3 to zarr2"


def test_sharding_is_the_layouts_matter():
    layout = ts.ChunkLayout(read_chunk_shape=[2, 2], write_chunk_shape=[4, 4])
    sharded = member(chunk_layout=layout)

    flat: Any = new_form(sharded, V3, Wanted(chunks=(3, 2)))
    kept: Any = new_form(sharded, V3, Wanted(codec="gzip"))
    old: Any = new_form(sharded, V2, Wanted())

    assert flat.options["chunk_layout"].write_chunk.shape == (3, 2)
    assert "sharding" not in str(flat.options["codec"])
    assert kept.options["chunk_layout"].read_chunk.shape == (2, 2)
    assert kept.options["chunk_layout"].write_chunk.shape == (4, 4)
    assert old.options["chunk_layout"].write_chunk.shape == (2, 2)


def test_what_tells_of_the_type_goes_with_it():
    blosc = {"name": "blosc", "configuration": {"cname": "lz4", "clevel": 1, "shuffle": "shuffle",
                                                "typesize": 2, "blocksize": 0}}  # fmt: skip
    codec = ts.CodecSpec({"driver": "zarr3", "codecs": [blosc]})

    new: Any = new_form(member(codec=codec), V3, Wanted(dtype="int32"))

    assert "typesize" not in str(new.options["codec"])


def test_a_view_has_no_document():
    new: Any = new_form(member(view=slice(1, 4)), V3, Wanted())

    assert not new.same_chunks
    assert new.options["domain"].shape == (3, 4)


def test_a_layout_and_chunks_exclude_each_other():
    with pytest.raises(ts.SpecError, match="one or the other"):
        new_form(member(), V3, Wanted(chunks=2, chunk_layout=ts.ChunkLayout(rank=2)))
