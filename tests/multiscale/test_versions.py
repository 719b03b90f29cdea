"""One version's metadata said in the other: there and back nothing changes."""

from typing import Any

import pytest

import tensorstore_py as ts
from tensorstore_py.multiscale.versions import in_version, is_ome, version_of

OLD: list[dict[str, Any]] = [
    {"multiscales": [{"version": "0.4", "axes": [], "datasets": []}], "omero": {"id": 1}},
    {"plate": {"version": "0.4", "wells": []}, "mine": {"version": 3}},
    {"well": {"version": "0.4", "images": []}},
    {"labels": ["a", "b"]},
    {"bioformats2raw.layout": 3},
    {"image-label": {"version": "0.4", "colors": []}, "multiscales": [{"version": "0.4"}]},
]


@pytest.mark.parametrize("old", OLD)
def test_there_and_back(old):
    new = in_version(old, "0.5")

    assert version_of(new) == "0.5"
    assert set(new) <= {"ome", "mine"}
    assert in_version(new, "0.4") == old
    assert in_version(new, "0.5") == new


def test_what_is_not_omes_stays():
    assert in_version({"unit": "nm"}, "0.5") == {"unit": "nm"}
    assert not is_ome({"unit": "nm"})


def test_unknown_versions_are_refused():
    with pytest.raises(ts.UnsupportedError, match=r"0\.3"):
        in_version({"multiscales": [{"version": "0.3"}]}, "0.5")
    assert version_of({"ome": {"version": "0.6"}}) == "0.6"
