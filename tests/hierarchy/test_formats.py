from tensorstore_py._hierarchy.formats import format_of, formats


def test_the_newest_comes_first():
    versions = [form.zarr_format for form in formats() if form.zarr_format]

    assert versions == sorted(versions, reverse=True)
    assert {2, 3} <= set(versions)


def test_a_format_is_found_by_its_driver():
    for form in formats():
        assert format_of(form.driver) is form
    assert format_of("cast") is None
