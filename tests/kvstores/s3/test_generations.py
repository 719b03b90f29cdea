import pytest

from tensorstore_py.kvstores.s3.generations import etag_of, generation_of, quoted


def test_a_generation_is_the_etag_as_the_reference_has_it():
    assert generation_of('"c4ca4238"') == b'\x00"c4ca4238"'


def test_servers_without_quotes_have_the_same_generations():
    assert generation_of("c4ca4238-2") == generation_of('"c4ca4238-2"')
    assert quoted(" 5 ") == '"5"'


def test_the_etag_comes_back():
    assert etag_of(generation_of('"c4ca4238-2"')) == '"c4ca4238-2"'


@pytest.mark.parametrize(
    "generation", [b"", b"\x02", b"5", b"\x00", b"\x005", b'\x00"5', b'\x00"5\r\n"', b'\x00"5"6"']
)
def test_other_generations_are_of_no_value_here(generation):
    assert etag_of(generation) is None
