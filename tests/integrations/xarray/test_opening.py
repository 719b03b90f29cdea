import pytest
import xarray as xr

import tensorstore_py as ts
from tensorstore_py.integrations.xarray.opening import OPTIONS, open_groups
from tests.api.counted_memory import counts


@pytest.fixture(params=[2, 3])
def group(request):
    spec = {"driver": "counted_memory"}
    root = ts.Group.open(spec, create=True, zarr_format=request.param).result()
    for path in ("t", "v", "g/x", "g/v"):
        name = path.rpartition("/")[2]
        units = {"units": "days since 2000-01-01"} if name in "tx" else {}
        domain = ts.IndexDomain(shape=[2], labels=["t" if "/" not in path else "x"])
        made = root.create_array(path, dtype="int64", domain=domain, attributes=units).result()
        made[...] = [1, 2]
    return root


def chunks(asked):
    return sorted(key for key in asked.reads.elements() if key[-1].isdigit())


def test_a_group_and_all_below_it(group):
    assert list(open_groups(group, tree=False)) == ["/"]
    found = open_groups(group, tree=True)
    assert list(found) == ["/", "/g"]
    assert set(found["/g"].variables) == {"x", "v"}


def test_coordinates_are_read_once_and_data_not_at_all(group):
    asked = counts(group)

    found = xr.open_datatree(group, engine="tensorstore")

    assert {key.rpartition("/")[0].removesuffix("/c") for key in chunks(asked)} == {"t", "g/x"}
    assert len(chunks(asked)) == 2
    assert max(asked.reads.values()) == 1
    assert found["v"].sum() == 3
    assert len(chunks(asked)) == 3


def test_nothing_is_read_ahead_unless_wanted(group):
    asked = counts(group)

    found = xr.open_dataset(
        group,
        engine="tensorstore",
        prefetch=False,
        create_default_indexes=False,
        decode_times=False,
    )

    assert chunks(asked) == []
    assert found["t"].values.tolist() == [1, 2]


def test_consolidated_metadata_costs_nothing_more(group):
    known = group.consolidate().result()
    asked = counts(group)

    xr.open_datatree(known, engine="tensorstore")

    assert len(asked.reads) == len(chunks(asked)) == 2
    assert not asked.directories


def test_what_is_no_keyword_is_refused(group):
    with pytest.raises(TypeError, match=r"takes no 'mode'; it takes mask_and_scale.*prefetch"):
        open_groups(group, tree=False, mode="r")
    assert len(set(OPTIONS)) == len(OPTIONS)


def test_what_was_opened_is_closed_if_something_goes_wrong(tmp_path):
    root = ts.Group.open(tmp_path, create=True).result()
    root.create_array("nameless", dtype="int8", shape=[2]).result()
    context = ts.Context()

    with pytest.raises(ts.UnsupportedError):
        open_groups(tmp_path, tree=True, context=context)
    assert open_groups(tmp_path, tree=False, context=context, drop_variables=["nameless"])
