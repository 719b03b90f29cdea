"""The group and arrays of a new image: empty at first, and beside what is there."""

import numpy as np

import tensorstore_py as ts


def test_other_attributes_and_members_stay():
    group = ts.Group.open("memory://", create=True, attributes={"mine": 1}).result()
    group.create_array("other", dtype="uint8", shape=[2]).result()

    ts.pyramid(np.zeros((64, 64)), group, axes="yx").result()

    assert set(group.attrs.asdict()) == {"mine", "ome"}
    assert sorted(group) == ["0", "other"]


def test_fill_value_and_type_are_those_of_the_source():
    source = ts.open(
        "memory://|zarr3:", create=True, dtype="int16", shape=[300, 300], fill_value=-3
    ).result()

    made = ts.pyramid(source, "memory://", axes="yx", levels=2).result()

    assert [level.fill_value for level in made.levels] == [-3, -3]
    assert not any("/c/" in key for key in map(bytes.decode, made.group.kvstore.list().result()))


def test_a_codec_that_is_asked_for():
    made = ts.pyramid(np.zeros((64, 64)), "memory://", axes="yx", codec="gzip").result()

    assert "gzip" in str(made.levels[0].codec)
