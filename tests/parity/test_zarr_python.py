"""Arrays made by zarr-python with its own defaults and options, opened by us, and the reverse."""

import numpy as np
import pytest
import zarr
import zarr.codecs

from tests.parity.libraries import COMMON, document, ours, same, sample, spec_of

SHAPE = (7, 9)


def compressors(version):
    if version == 2:
        return ["auto", None]
    return [
        "auto",
        None,
        [zarr.codecs.GzipCodec(level=2)],
        [zarr.codecs.BloscCodec(cname="zstd", shuffle="bitshuffle")],
        [zarr.codecs.ZstdCodec(level=1), zarr.codecs.Crc32cCodec()],
    ]


@pytest.mark.parametrize("dtype", COMMON)
@pytest.mark.parametrize("version", [2, 3])
def test_made_by_zarr(tmp_path, version, dtype):
    values = sample(dtype, SHAPE)
    for number, compressor in enumerate(compressors(version)):
        for shards in (None, (4, 6)) if version == 3 else (None,):
            path = tmp_path / f"{number}{shards}"
            made = zarr.create_array(
                path, shape=SHAPE, chunks=(2, 3), shards=shards, dtype=dtype,
                compressors=compressor, zarr_format=version,
                attributes={"made": "by zarr"},
                dimension_names=["y", None] if version == 3 else None,
            )  # fmt: skip
            made[...] = values
            opened = ours.open(path).result()
            same(opened.read().result(), values)
            opened[2:5, 1:8] = values[1:4, 0:7]
            expected = values.copy()
            expected[2:5, 1:8] = values[1:4, 0:7]
            same(zarr.open_array(path, mode="r")[...], expected)


@pytest.mark.parametrize("dtype", COMMON)
@pytest.mark.parametrize("version", [2, 3])
def test_made_by_us(tmp_path, version, dtype):
    """With nothing said but a type and a shape, and with everything said by the schema."""
    values = sample(dtype, SHAPE)
    driver = "zarr" if version == 2 else "zarr3"
    layouts = [
        None,
        ours.ChunkLayout(chunk_shape=[2, 3], inner_order=[1, 0]),
        ours.ChunkLayout(read_chunk_shape=[2, 3], write_chunk_shape=[4, 6]),
    ]
    for number, layout in enumerate(layouts[:version]):
        path = tmp_path / str(number)
        made = ours.open(
            spec_of(driver, path), create=True, dtype=dtype, shape=SHAPE, chunk_layout=layout
        ).result()
        made[...] = values
        read = zarr.open_array(path, mode="r+")
        same(read[...], values)
        read[1:3, 4:9] = values[2:4, 0:5]
        expected = values.copy()
        expected[1:3, 4:9] = values[2:4, 0:5]
        same(made.read().result(), expected)


def test_domain_labels_are_dimension_names(tmp_path):
    made = ours.open(
        spec_of("zarr3", tmp_path), create=True, dtype="uint8",
        domain=ours.IndexDomain(labels=["y", ""], shape=[3, 4]),
    ).result()  # fmt: skip
    assert document(tmp_path, "zarr.json")["dimension_names"][0] == "y"
    assert zarr.open_array(tmp_path).shape == (3, 4)
    assert made.domain.labels == ("y", "")


@pytest.mark.parametrize("version", [2, 3])
def test_what_zarr_says_besides_survives_a_resize(tmp_path, version):
    zarr.create_array(
        tmp_path, shape=(4, 4), chunks=(2, 2), dtype="u1", zarr_format=version,
        attributes={"scale": [1, 2.5], "note": "é"},
    )  # fmt: skip
    ours.open(tmp_path).result().resize(exclusive_max=[6, 4]).result()
    again = zarr.open_array(tmp_path)
    assert again.shape == (6, 4)
    assert dict(again.attrs) == {"scale": [1, 2.5], "note": "é"}


@pytest.mark.parametrize("version", [2, 3])
def test_resized_by_zarr(tmp_path, version):
    made = zarr.create_array(tmp_path, shape=(4,), chunks=(2,), dtype="u1", zarr_format=version)
    made[...] = [1, 2, 3, 4]
    opened = ours.open(tmp_path).result()
    made.resize((6,))
    assert opened.resolve().result().shape == (6,)
    same(opened.resolve().result().read().result(), np.array([1, 2, 3, 4, 0, 0], "u1"))


def test_an_array_inside_a_group(tmp_path):
    group = zarr.open_group(tmp_path / "g", mode="w", zarr_format=3)
    group.create_array("a/b", shape=(3,), chunks=(2,), dtype="u1")[...] = [1, 2, 3]
    opened = ours.open(tmp_path / "g" / "a" / "b").result()
    assert opened.read().result().tolist() == [1, 2, 3]
    assert document(tmp_path / "g", "zarr.json")["node_type"] == "group"
    with pytest.raises(ValueError, match=r"zarr\.json"):
        ours.open(tmp_path / "g").result()
