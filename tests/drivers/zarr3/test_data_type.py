import pytest

from tensorstore_py.drivers.zarr3.data_type import check_data_type, parse_data_type
from tensorstore_py.errors import SpecError
from tensorstore_py.plugin import dtype


@pytest.mark.parametrize("name", ["bool", "int2", "uint64", "float8_e5m2", "bfloat16", "complex64"])
def test_names_are_the_same_here(name: str) -> None:
    assert parse_data_type(name) is dtype(name)
    assert parse_data_type({"name": name, "configuration": {}}) is dtype(name)
    assert check_data_type(dtype(name)) is dtype(name)


@pytest.mark.parametrize("json", ["string", "json", "<u2", "float128", 5, None, ["uint8"]])
def test_what_is_not_supported_is_named(json: object) -> None:
    with pytest.raises(SpecError, match="not supported"):
        parse_data_type(json)


def test_a_typing_error_gets_a_hint() -> None:
    with pytest.raises(SpecError, match='did you mean "uint16"'):
        parse_data_type("unit16")


def test_a_configuration_that_nobody_understands_is_refused() -> None:
    with pytest.raises(SpecError):
        parse_data_type({"name": "uint8", "configuration": {"bits": 7}})


def test_a_data_type_without_a_name_in_the_format_is_refused() -> None:
    with pytest.raises(SpecError, match='"json" cannot be stored'):
        check_data_type(dtype("json"))
