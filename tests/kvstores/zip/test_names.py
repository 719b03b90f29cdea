import struct
import zlib

import pytest

import tensorstore_py as ts
from tensorstore_py.kvstores.zip.names import UTF8, encode_name, fields, key_of


@pytest.mark.parametrize("key", ["a", "a/b.c", "é", "日本/語", "a b", "w\\q", "..", "/a"])
def test_a_new_name_reads_back(key):
    name, flags = encode_name(key)

    assert key_of(name, flags, b"") == key
    assert bool(flags & UTF8) == (not key.isascii())


def test_names_that_do_not_say_so_may_be_utf8_all_the_same():
    assert key_of("é/語".encode(), 0, b"") == "é/語"


def test_other_names_are_in_the_old_code_page():
    assert key_of(b"caf\x82", 0, b"") == "café"


def test_a_unicode_path_counts_if_it_belongs_to_the_name():
    def field(name):
        data = b"\1" + struct.pack("<I", zlib.crc32(name)) + "ж".encode()
        return struct.pack("<2H", 0x7075, len(data)) + data

    assert key_of(b"\xa6", 0, field(b"\xa6")) == "ж"
    assert key_of(b"\xa6", 0, field(b"other")) == "ª"


@pytest.mark.parametrize("key", ["", "a/", "\udcff", "a\0b", "x" * 70000])
def test_keys_that_no_entry_can_have(key):
    with pytest.raises(ts.SpecError, match="use another key"):
        encode_name(key)


def test_fields_end_where_they_are_cut():
    assert fields(b"\1\0\2\0ab\5\0\0\0") == [(1, b"ab"), (5, b"")]
    assert fields(b"\1\0\2\0a") == []
