"""The records of the zip format, parsed and made. Pure: bytes in, values out, and back.

An archive ends with a directory of its entries and a record that says where that begins. In large
archives a second such record with wider numbers (zip64) stands before the last. Nothing here knows
where the bytes come from; errors say what is wrong and leave it to the caller to name the archive.

Names are UTF-8 where they say so (bit 11), or where they happen to be: the reference writes UTF-8
and does not say so. All others are in code page 437, as the format's own specification has it.
"""

from __future__ import annotations

import struct
from binascii import crc32
from hashlib import blake2b
from typing import Final, NamedTuple

from tensorstore_py.errors import DataLossError, SpecError, UnsupportedError

__all__ = [
    "LOCAL_SIZE",
    "TAIL_SIZE",
    "UTF8",
    "End",
    "Entry",
    "encode_name",
    "end_records",
    "find_end",
    "key_of",
    "parse_central",
]

#: The flag of names in UTF-8.
UTF8: Final = 0x800
_UNICODE_PATH: Final = 0x7075
_LONGEST: Final = 0xFFFF


def key_of(name: bytes, flags: int, extra: bytes) -> str:
    r"""The key that a name stands for.

    Args:
        name: as stored.
        flags: of the entry.
        extra: its extra fields, one of which may have the name once more, in UTF-8.

    Example:
        >>> key_of("é".encode(), 0, b""), key_of(b"\x82", 0, b"")
        ('é', 'é')
    """
    if name.isascii():
        return name.decode("ascii")
    if flags & UTF8:
        return name.decode("utf-8", "surrogateescape")
    for kind, data in fields(extra):
        belongs = data[1:5] == crc32(name).to_bytes(4, "little")
        if kind == _UNICODE_PATH and data[:1] == b"\1" and belongs:
            return data[5:].decode("utf-8", "surrogateescape")
    try:
        return name.decode("utf-8")
    except UnicodeDecodeError:
        return name.decode("cp437")


def encode_name(key: str) -> tuple[bytes, int]:
    r"""The name for a new entry, and its flags.

    Raises:
        SpecError: no entry can have that name; names the key.

    Example:
        >>> encode_name("a/b"), encode_name("é")
        ((b'a/b', 0), (b'\xc3\xa9', 2048))
    """
    if not key or key.endswith("/"):
        raise SpecError(
            f'a zip archive has no value under the key "{key}": names that are empty or end in "/" '
            "are directories; use another key"
        )
    try:
        name = key.encode("utf-8")
    except UnicodeEncodeError:
        shown = key.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
        raise SpecError(
            f'a zip archive cannot have the key "{shown}": names are text; use another key'
        ) from None
    if "\0" in key or len(name) > _LONGEST:
        raise SpecError(
            f'a zip archive cannot have the key "{key[:80]}": names have no NUL and at most '
            f"{_LONGEST} bytes; use another key"
        )
    return name, 0 if name.isascii() else UTF8


def fields(extra: bytes) -> list[tuple[int, bytes]]:
    """The extra fields by their numbers, as far as they are well-formed."""
    found, position = [], 0
    while position + 4 <= len(extra):
        kind, size = struct.unpack_from("<HH", extra, position)
        position += 4
        if position + size > len(extra):
            break
        found.append((kind, extra[position : position + size]))
        position += size
    return found


_END: Final = struct.Struct("<4s4H2IH")
_LOCATOR: Final = struct.Struct("<4sIQI")
_END64: Final = struct.Struct("<4sQ2H2I4Q")
_CENTRAL: Final = struct.Struct("<4s6H3I5H2I")
_LOCAL: Final = struct.Struct("<4s5H3I2H")
LOCAL_SIZE: Final = _LOCAL.size
#: Where the end must be, however long the comment is.
TAIL_SIZE: Final = 0xFFFF + _END.size + _LOCATOR.size + _END64.size
_WORD: Final = 0xFFFF
_LONG: Final = 0xFFFFFFFF
_ZIP64: Final = 1
_NTFS: Final = 10
_ENCRYPTED: Final = 0x1
_DESCRIBED_LATER: Final = 0x8
#: What a reader must know: the format as such, wide numbers, the newer methods.
_NEEDS_BASIC, _NEEDS_WIDE, _NEEDS_METHODS = 20, 45, 63


class End(NamedTuple):
    """What the end of an archive says.

    Attributes:
        position: where the directory ends, in the bytes that were searched.
        entries: how many there are.
        size: of the directory, in bytes.
        offset: of the directory, from the first byte of the archive.
        comment: of the archive.
    """

    position: int
    entries: int
    size: int
    offset: int
    comment: bytes


class Entry(NamedTuple):
    """What the directory says of one entry.

    Attributes:
        name: as stored.
        flags: see the format.
        method: the number of the compression.
        modified: date and time as two words in one, to 2 s.
        crc: of the value.
        packed: size of the data, in bytes.
        size: of the value, in bytes.
        extra: fields, without the one for wide numbers.
        attributes: internal and external ones, and the version that made it.
        comment: of the entry.
        offset: of the local header, in the stored value.
    """

    name: bytes
    flags: int
    method: int
    modified: int
    crc: int
    packed: int
    size: int
    extra: bytes
    attributes: tuple[int, int, int]
    comment: bytes
    offset: int

    @property
    def key(self) -> str:
        """The key that it is the value of; a directory's ends with a `/`."""
        return key_of(self.name, self.flags, self.extra)

    @property
    def encrypted(self) -> bool:
        return bool(self.flags & _ENCRYPTED)

    @property
    def described_later(self) -> bool:
        """Whether sizes and checksum are behind the data, too."""
        return bool(self.flags & _DESCRIBED_LATER)

    @property
    def ticks(self) -> int:
        """When it was modified, in 100 ns since 1601; 0 if it does not say so exactly."""
        for kind, data in fields(self.extra):
            if kind == _NTFS and len(data) >= 32 and data[4:8] == b"\1\0\x18\0":
                return int.from_bytes(data[8:16], "little")
        return 0

    @property
    def generation(self) -> bytes:
        """Made from all that tells one value from another: checksum, sizes, times.

        Not from where it is: an archive that is packed anew has the same values.
        """
        facts = struct.pack("<HIIQQ", self.method, self.modified, self.crc, self.packed, self.size)
        return blake2b(facts + self.extra, digest_size=16).digest()

    def local_header(self) -> bytes:
        """What stands before the data."""
        wide = self.size >= _LONG or self.packed >= _LONG
        extra, sizes = self.extra, (self.packed, self.size)
        if wide:
            extra = struct.pack("<2H2Q", _ZIP64, 16, self.size, self.packed) + extra
            sizes = (_LONG, _LONG)
        return (
            _LOCAL.pack(
                b"PK\3\4", self._needs(wide), self.flags, self.method, self.modified & _WORD,
                self.modified >> 16, self.crc, *sizes, len(self.name), len(extra),
            )
            + self.name
            + extra
        )  # fmt: skip

    def central_header(self) -> bytes:
        """What stands in the directory."""
        wide = [number for number in (self.size, self.packed, self.offset) if number >= _LONG]
        extra = self.extra
        if wide:
            extra = struct.pack(f"<2H{len(wide)}Q", _ZIP64, 8 * len(wide), *wide) + extra
        internal, external, made = self.attributes
        return (
            _CENTRAL.pack(
                b"PK\1\2", made, self._needs(bool(wide)), self.flags, self.method,
                self.modified & _WORD, self.modified >> 16, self.crc, min(self.packed, _LONG),
                min(self.size, _LONG), len(self.name), len(extra), len(self.comment), 0, internal,
                external, min(self.offset, _LONG),
            )
            + self.name
            + extra
            + self.comment
        )  # fmt: skip

    def _needs(self, wide: bool) -> int:
        if self.method > 12:
            return _NEEDS_METHODS
        return _NEEDS_WIDE if wide else _NEEDS_BASIC

    def data_start(self, head: bytes) -> int:
        """Where the data begins, seen from the local header.

        Args:
            head: begins with that header, and has all of its name.

        Raises:
            DataLossError: it is not the header of this entry.
        """
        if len(head) < LOCAL_SIZE or head[:4] != b"PK\3\4":
            raise DataLossError("no entry begins where the directory says")
        name_size, extra_size = struct.unpack_from("<2H", head, 26)
        if head[LOCAL_SIZE : LOCAL_SIZE + name_size] != self.name:
            raise DataLossError("another entry begins where the directory says")
        return LOCAL_SIZE + int(name_size) + int(extra_size)


def ntfs_times(ticks: int) -> bytes:
    """The extra field of exact times: modified, accessed, created."""
    return struct.pack("<2HI2H3Q", _NTFS, 32, 0, 1, 24, ticks, ticks, ticks)


def find_end(tail: bytes) -> End:
    """The end of an archive.

    Args:
        tail: its last `TAIL_SIZE` bytes, or all of them.

    Raises:
        DataLossError: these are not the last bytes of an archive.
        UnsupportedError: it is one part of several.
    """
    position = _position_of_end(tail)
    _, disk, disk_of_directory, here, count, size, offset, length = _END.unpack_from(tail, position)
    comment = tail[position + _END.size : position + _END.size + length]
    if _WORD in (disk, here, count) or _LONG in (size, offset):
        before = position - _LOCATOR.size
        if before >= 0 and tail[before : before + 4] == b"PK\6\7":
            position = tail.rfind(b"PK\6\6", 0, before)
            if position < 0 or position + _END64.size > before:
                raise DataLossError("the zip64 end record is missing")
            _, _, _, _, disk, disk_of_directory, here, count, size, offset = _END64.unpack_from(
                tail, position
            )
    if disk or disk_of_directory or here != count:
        raise UnsupportedError("it is one part of an archive of several parts; join them")
    if size < count * _CENTRAL.size:
        raise DataLossError(f"a directory of {size} bytes cannot have {count} entries")
    return End(position, count, size, offset, comment)


def _position_of_end(tail: bytes) -> int:
    position = len(tail)
    lenient = -1
    while (position := tail.rfind(b"PK\5\6", 0, position)) >= 0:
        if position + _END.size <= len(tail):
            length = int.from_bytes(tail[position + 20 : position + 22], "little")
            if position + _END.size + length == len(tail):
                return position
            if position + _END.size + length < len(tail) and lenient < 0:
                lenient = position  # followed by what does not belong to the archive
    if lenient < 0:
        raise DataLossError(
            "its end is missing: it is truncated, still being written, or no zip archive"
        )
    return lenient


def parse_central(data: bytes, count: int, shift: int) -> list[Entry]:
    """The entries of a directory.

    Args:
        data: the directory.
        count: how many entries it must have.
        shift: how many bytes stand before the archive.

    Raises:
        DataLossError: it is damaged.
    """
    entries, position = [], 0
    for number in range(count):
        if data[position : position + 4] != b"PK\1\2" or position + _CENTRAL.size > len(data):
            raise DataLossError(f"the directory is damaged at entry {number} of {count}")
        (
            _, made, _, flags, method, time, date, crc, packed, size, name_size, extra_size,
            comment_size, _, internal, external, offset,
        ) = _CENTRAL.unpack_from(data, position)  # fmt: skip
        name_end = position + _CENTRAL.size + name_size
        extra_end = name_end + extra_size
        if extra_end + comment_size > len(data):
            raise DataLossError(f"the directory is damaged at entry {number} of {count}")
        name = data[position + _CENTRAL.size : name_end]
        extra = data[name_end:extra_end]
        if _LONG in (packed, size, offset):
            extra, (size, packed, offset) = _widened(extra, (size, packed, offset))
        position = extra_end + comment_size
        entries.append(
            Entry(
                name, flags, method, date << 16 | time, crc, packed, size, extra,
                (internal, external, made), data[extra_end:position], offset + shift,
            )
        )  # fmt: skip
    return entries


def _widened(extra: bytes, numbers: tuple[int, int, int]) -> tuple[bytes, tuple[int, ...]]:
    """The extra fields without the one for wide numbers, and the numbers with what it says."""
    others, wide = b"", b""
    for kind, data in fields(extra):
        if kind == _ZIP64:
            wide = data
        else:
            others += struct.pack("<2H", kind, len(data)) + data
    result = []
    for number in numbers:
        if number == _LONG and len(wide) >= 8:
            number, wide = int.from_bytes(wide[:8], "little"), wide[8:]
        result.append(number)
    return others, tuple(result)


def end_records(count: int, size: int, offset: int, comment: bytes) -> bytes:
    """What stands behind a directory."""
    wide = b""
    if count >= _WORD or size >= _LONG or offset >= _LONG:
        wide = _END64.pack(
            b"PK\6\6", _END64.size - 12, _NEEDS_WIDE, _NEEDS_WIDE, 0, 0, count, count, size, offset
        ) + _LOCATOR.pack(b"PK\6\7", 0, offset + size, 1)
    return wide + _END.pack(
        b"PK\5\6", 0, 0, min(count, _WORD), min(count, _WORD), min(size, _LONG),
        min(offset, _LONG), len(comment),
    ) + comment  # fmt: skip
