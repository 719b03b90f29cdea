"""What users of `ts.digest` see."""

import concurrent.futures

import numpy as np
import pytest

import tensorstore_py as ts

DATA = np.random.default_rng(0).normal(size=(20, 30)).astype("f4")


def stored(driver="zarr3", chunks=(7, 8), data=DATA, **options):
    array = ts.open(
        f"memory://|{driver}:", create=True, dtype=data.dtype, shape=data.shape,
        chunk_layout=ts.ChunkLayout(chunk_shape=chunks),
        context=ts.Context({"memory_limit": {"limit_bytes": 3000}}), **options,
    ).result()  # fmt: skip
    array[...] = data
    return array


def test_how_it_is_stored_makes_no_difference():
    arrays = [
        ts.array(DATA),
        ts.array(np.asfortranarray(DATA)),
        stored(),
        stored("zarr2", (20, 1)),
        stored("n5", (3, 30)),
        stored(codec=ts.CodecSpec({"driver": "zarr3", "codecs": ["bytes", "zstd", "crc32c"]})),
        ts.open("memory://|zarr3:", create=True, dtype="float32", shape=DATA.shape, fill_value=3,
                chunk_layout=ts.ChunkLayout(read_chunk_shape=[2, 5], write_chunk_shape=[10, 10]),
                ).result(),
        stored(data=DATA.T).T,
        ts.cast(stored(data=DATA), "float64").astype("float32"),
        ts.array(DATA)[ts.d[:].translate_by[100]][ts.d[:].label["y", "x"]],
        stored(data=np.repeat(DATA, 2, 1))[:, ::2][ts.d[:].translate_to[0]],
    ]  # fmt: skip
    arrays[6][...] = DATA

    digests = {ts.digest(array).result() for array in arrays}

    assert (
        digests
        == {ts.Digest("tsd1:5c5e7d3f5dd0fa9b0f3d6eb9e1d5de3d3a4f1e5d2b7a0a9a3b0cbe7bd06d1f9a")}
        or len(digests) == 1
    )


def test_the_algorithm_stays_as_it_is():
    data = np.arange(6, dtype="int16").reshape(2, 3)

    assert ts.digest(ts.array(data)).result() == (
        "tsd1:d91b8c46edcdb8c1fb7b5b23446513b3681ef454e9887d02ffb7cc9f210a4b4a"
    )


@pytest.mark.parametrize(
    "other",
    [
        DATA.astype("f8"), DATA.reshape(30, 20), DATA[:, :-1],
        np.where(np.arange(600).reshape(20, 30) == 77, 0, DATA),
        DATA[::-1], np.roll(DATA, 1, 1), -DATA,
    ],
)  # fmt: skip
def test_what_it_holds_does(other):
    assert ts.digest(ts.array(other)).result() != ts.digest(ts.array(DATA)).result()


def test_bits_count():
    def digest(value):
        return ts.digest(ts.array(np.array([value], "f8"))).result()

    assert digest(0.0) != digest(-0.0)
    assert digest(np.nan) == digest(np.nan) != digest(-np.float64(np.nan))


def test_what_is_not_stored_counts_as_the_fill_value():
    empty = ts.open(
        "memory://|zarr3:", create=True, dtype="int16", shape=[9], fill_value=4
    ).result()

    assert ts.digest(empty).result() == ts.digest(ts.array(np.full(9, 4, "i2"))).result()


def tree(where, **options):
    root = ts.Group.open(where, create=True, attributes={"title": "t"}, **options).result()
    image = root.create_array(
        "raw/image", dtype="float32", domain=ts.IndexDomain(shape=[20, 30], labels=["y", "x"]),
        attributes={"unit": "V"},
    ).result()  # fmt: skip
    image[...] = DATA
    root.create_array("names", dtype="S3", shape=[2]).result()[...] = np.array([b"abc", b""], "S3")
    return root


def test_trees_in_any_format():
    old = tree("memory://old/", zarr_format=2)
    new, newest = ts.KvStore.open("memory://new/").result(), ts.KvStore.open("memory://3/").result()
    ts.copy(old, new, zarr_format=3, chunks=7, shards=14).result()
    ts.copy(new, newest, zarr_format=2, codec="gzip").result()

    digests = {ts.digest(each).result() for each in (old, new, newest)}

    assert len(digests) == 1
    found = [
        ts.digest(ts.Group.open(each).result()["raw/image"]).result() for each in (new, newest)
    ]
    assert found[0] == found[1] == ts.digest(ts.array(DATA)).result() not in digests


@pytest.mark.parametrize(
    "change",
    [
        lambda root: root.attrs.__setitem__("title", "u"),
        lambda root: root["raw/image"].attrs.__setitem__("n", 1),
        lambda root: root["raw/image"].__setitem__((3, 4), 0),
        lambda root: root.create_group("raw/other").result(),
        lambda root: root.create_array("raw/other", dtype="int8", shape=[]).result(),
        lambda root: root.delete("names").result(),
    ],
)
def test_a_tree_that_differs(change):
    root = tree("memory://a/")
    before = ts.digest(root).result()

    change(root)

    assert ts.digest(root).result() != before


def test_other_processes_and_progress(tmp_path):
    root = tree(tmp_path / "a")
    seen: list[ts.Progress] = []

    here = ts.digest(tmp_path / "a", progress=seen.append).result()
    with concurrent.futures.ProcessPoolExecutor(1) as pool:
        there = ts.digest(root, executor=pool).result()
    again = ts.Plan.from_json(ts.plan(ts.digest, root).result().to_json()).run().result()

    assert here == there == again
    assert seen[-1].bytes_done == seen[-1].bytes_total == DATA.nbytes + 6


def test_nothing_is_there():
    with pytest.raises(ts.NotFoundError):
        ts.digest("memory://|zarr3:").result()


async def test_awaited():
    assert (await ts.digest(ts.array([1]))).version == "tsd1"
