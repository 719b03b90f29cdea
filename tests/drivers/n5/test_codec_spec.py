import pytest

from tensorstore_py.drivers.n5.codec_spec import N5CodecSpec, compression_json, parse_compression
from tensorstore_py.errors import MismatchError, SpecError
from tensorstore_py.plugin.driver import CodecSpec

BLOSC = {"type": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1}


@pytest.mark.parametrize(
    ("given", "written"),
    [
        ({"type": "raw"}, {"type": "raw"}),
        ({"type": "gzip"}, {"level": -1, "type": "gzip", "useZlib": False}),
        ({"type": "gzip", "level": 3.0}, {"level": 3, "type": "gzip", "useZlib": False}),
        ({"type": "bzip2"}, {"blockSize": 9, "type": "bzip2"}),
        ({"type": "xz"}, {"preset": 6, "type": "xz"}),
        ({"type": "zstd"}, {"level": 0, "type": "zstd"}),
        (BLOSC, {**BLOSC, "blocksize": 0}),
    ],
)
def test_every_member_is_written(given: dict, written: dict) -> None:
    codec = parse_compression(given)

    assert compression_json(codec) == written
    assert list(compression_json(codec)) == sorted(written)
    assert parse_compression(written) == codec
    assert CodecSpec({"driver": "n5", "compression": given}).to_json() == {
        "compression": written,
        "driver": "n5",
    }


def test_nothing_need_be_said() -> None:
    assert CodecSpec({"driver": "n5"}).to_json() == {"driver": "n5"}


def test_what_is_not_said_agrees_with_anything() -> None:
    silent = CodecSpec({"driver": "n5"})
    xz = CodecSpec({"driver": "n5", "compression": {"type": "xz"}})

    assert silent.merged(xz) == xz
    assert xz.merged(silent) == xz
    assert xz.merged(CodecSpec({"driver": "n5", "compression": {"type": "xz", "preset": 6}})) == xz


def test_contradictions_show_both() -> None:
    xz = CodecSpec({"driver": "n5", "compression": {"type": "xz"}})
    raw = CodecSpec({"driver": "n5", "compression": {"type": "raw"}})

    with pytest.raises(MismatchError, match=r'"compression" is both .*"xz".* and {"type":"raw"}'):
        xz.merged(raw)
    with pytest.raises(MismatchError, match="Cannot merge codec spec"):
        xz.merged(CodecSpec({"driver": "zarr"}))


@pytest.mark.parametrize(
    ("compression", "problem"),
    [
        ("gzip", "^compression: expected a codec"),
        ({}, r"^compression\.type: this member is required"),
        ({"type": "gz"}, r'^compression\.type: .*did you mean "gzip"'),
        ({"id": "gzip"}, r"^compression\.type: this member is required"),
        ({"type": "gzip", "lvl": 1}, r"^compression\.lvl: no such member"),
        ({"type": "zip"}, r'did you mean "gzip"'),
    ],
)
def test_mistakes_are_named(compression: object, problem: str) -> None:
    with pytest.raises(SpecError, match=problem):
        N5CodecSpec.parse({"compression": compression})
