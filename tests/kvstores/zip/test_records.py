import io
import struct
import zipfile
import zlib

import pytest

import tensorstore_py as ts
from tensorstore_py.kvstores.zip.records import (
    UTF8,
    Entry,
    encode_name,
    end_records,
    fields,
    find_end,
    key_of,
    ntfs_times,
    parse_central,
)


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


WIDE = 5 << 32


def entry(**changes):
    plain = Entry(
        b"a/b", 0, 8, 0x5D750000, 7, 10, 20, ntfs_times(5), (0, 0, 0), b"", 100
    )  # fmt: skip
    return plain._replace(**changes)


def test_reads_what_the_standard_library_wrote():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a", b"A" * 100)
        archive.writestr("é/b", b"")
        archive.comment = b"with PK\5\6 in it"
    data = file.getvalue()

    end = find_end(data)
    found = parse_central(data[end.position - end.size : end.position], end.entries, 0)

    assert end.comment == b"with PK\5\6 in it"
    assert end.position - end.size == end.offset
    assert [each.key for each in found] == ["a", "é/b"]
    for each, info in zip(found, archive.infolist(), strict=True):
        assert (each.size, each.packed, each.crc, each.offset, each.method) == (
            info.file_size, info.compress_size, info.CRC, info.header_offset, info.compress_type
        )  # fmt: skip
        start = each.data_start(data[each.offset :])
        assert start == 30 + len(each.name)


@pytest.mark.parametrize(
    "changes",
    [{}, {"offset": WIDE}, {"size": WIDE}, {"size": WIDE, "packed": WIDE, "offset": WIDE},
     {"extra": b"", "packed": 0xFFFFFFFF}, {"comment": b"hello"}],
    ids=str,
)  # fmt: skip
def test_reads_its_own_entries_back(changes):
    made = entry(**changes)

    assert parse_central(made.central_header(), 1, 0) == [made]
    assert made.data_start(made.local_header()) == len(made.local_header())


@pytest.mark.parametrize(
    ("count", "size", "offset"),
    [(2, 100, 50), (65534, 65534 * 46, 9), (65535, 65535 * 46, 9), (1, 100, WIDE), (2, WIDE, 3)],
)
def test_reads_its_own_end_back(count, size, offset):
    data = b"x" * 30 + end_records(count, size, offset, b"comment")

    assert find_end(data) == (30, count, size, offset, b"comment")


def test_what_follows_an_archive_is_tolerated():
    assert find_end(end_records(0, 0, 0, b"") + bytes(40)).entries == 0


def test_generations_tell_values_apart_and_not_places():
    plain = entry()
    same = [entry(offset=7), entry(comment=b"x")]
    other = [entry(crc=8), entry(size=21), entry(packed=11), entry(modified=1), entry(method=0),
             entry(extra=ntfs_times(6))]  # fmt: skip

    assert {each.generation for each in same} == {plain.generation}
    assert len({each.generation for each in (plain, *other)}) == 7


def test_exact_times_are_read_where_they_are():
    assert entry(extra=b"\x99\x99\0\0" + ntfs_times(77)).ticks == 77
    assert entry(extra=b"\x0a\0\5\0\0\0\0\0\1").ticks == 0


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "its end is missing"),
        (b"no archive at all" * 9, "its end is missing"),
        (end_records(3, 200, 0, b"")[:-1], "its end is missing"),
        (end_records(9, 100, 0, b""), "cannot have 9 entries"),
        (end_records(1, 46, WIDE, b"")[56:], "zip64 end record is missing"),
    ],
)
def test_an_end_that_cannot_be_is_refused(data, message):
    with pytest.raises(ts.DataLossError, match=message):
        find_end(data)


def test_parts_of_archives_are_refused():
    end = bytearray(end_records(1, 46, 0, b""))
    struct.pack_into("<H", end, 4, 1)

    with pytest.raises(ts.UnsupportedError, match="one part"):
        find_end(bytes(end))


@pytest.mark.parametrize("cut", [1, 10, 40, 60])
def test_damaged_directories_are_refused(cut):
    data = entry().central_header()

    for bad in (data[:-cut], b"\0" * cut + data[cut:], data):
        with pytest.raises(ts.DataLossError, match="damaged at entry"):
            parse_central(bad, 2, 0)


def test_an_entry_elsewhere_is_refused():
    with pytest.raises(ts.DataLossError, match="no entry begins"):
        entry().data_start(bytes(40))
    with pytest.raises(ts.DataLossError, match="another entry"):
        entry().data_start(entry(name=b"other").local_header())
