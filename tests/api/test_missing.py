import pytest

import tensorstore_py as ts


def made(spec):
    ts.open(spec, create=True, dtype="uint16", shape=[4]).result()


def refused(mistake):
    with pytest.raises(ValueError) as caught:
        mistake()
    return str(caught.value)


@pytest.mark.parametrize(
    ("there", "opened", "words"),
    [
        ("zarr3", "zarr", 'zarr.json is there: name the driver "zarr3", or "auto"'),
        ("zarr", "zarr3", '.zarray is there: name the driver "zarr", or "auto"'),
        ("n5", "zarr3", 'attributes.json is there: name the driver "n5", or "auto"'),
        ("zarr", "n5", '.zarray is there: name the driver "zarr", or "auto"'),
    ],
)
def test_another_format_is_named(there, opened, words, tmp_path):
    made({"driver": there, "kvstore": tmp_path})
    spec = {"driver": opened, "kvstore": tmp_path}

    told = refused(lambda: ts.open(spec).result())

    assert words in told
    assert "create=True" not in told
    over = {"driver": "cast", "dtype": "int64", "base": spec}
    assert words in refused(lambda: ts.open(over).result())


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("driver", ["zarr", "zarr3", "auto"])
def test_a_group_instead_of_an_array_is_named(version, driver, tmp_path):
    ts.Group.open(tmp_path, create=True, zarr_format=version).result()

    told = refused(lambda: ts.open({"driver": driver, "kvstore": tmp_path}).result())

    assert "ts.Group.open" in told or (version, driver) == (3, "zarr")


def test_an_array_instead_of_a_group_is_named(tmp_path):
    made({"driver": "zarr3", "kvstore": tmp_path})
    assert "open it with ts.open" in refused(lambda: ts.Group.open(tmp_path).result())


def test_looking_for_what_is_there_costs_an_open_that_succeeds_nothing(tmp_path):
    made({"driver": "zarr3", "kvstore": tmp_path})
    (tmp_path / ".zarray").write_text("not looked at")
    assert ts.open({"driver": "zarr3", "kvstore": tmp_path}).result().shape == (4,)
