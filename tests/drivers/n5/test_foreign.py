"""Words of other writers, put into those of the format; what says nothing or two things stays."""

import pytest

from tensorstore_py.drivers.n5.metadata import N5Metadata

standard = N5Metadata.standard


def test_what_keeps_to_the_format_is_not_touched() -> None:
    document = {
        "dimensions": [4, 5],
        "compression": {"type": "gzip", "level": -1, "useZlib": True},
        "axes": ["x", ""],
        "units": ["nm", "s"],
        "resolution": [4, 0.5],
        "note": None,
    }
    assert standard(document) == (document, {})


@pytest.mark.parametrize(
    ("name", "value"),
    [("axes", ["x"]), ("axes", ["x", 1]), ("units", None), ("resolution", [1, True]),
     ("resolution", ["1", "2"]), ("units", {"x": "nm"})],
)  # fmt: skip
def test_attributes_by_a_name_of_the_format(name: str, value: object) -> None:
    assert standard({"dimensions": [4, 5], name: value}) == ({"dimensions": [4, 5]}, {name: value})


def test_the_old_member_gives_way_to_the_new_one() -> None:
    found, kept = standard({"compressionType": "gzip", "compression": {"type": "raw"}})
    assert found == {"compression": {"type": "raw"}}
    assert kept == {"compressionType": "gzip"}


@pytest.mark.parametrize("compression", [3, {"type": 3}, {"type": "nix", "level": 1}])
def test_what_is_wrong_stays_wrong(compression: object) -> None:
    assert standard({"compression": compression})[0] == {"compression": compression}
