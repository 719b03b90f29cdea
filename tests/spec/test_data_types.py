import tensorstore as reference

from tensorstore_py._spec import data_types


def test_the_constants_are_those_of_the_reference():
    expected = {
        name for name in dir(reference) if isinstance(getattr(reference, name), reference.dtype)
    }

    assert set(data_types.__all__) == expected
    for name in expected:
        mine, theirs = getattr(data_types, name), getattr(reference, name)
        assert mine.name == name
        assert (mine.numpy_dtype, mine.type) == (theirs.numpy_dtype, theirs.type)
