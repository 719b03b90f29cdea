import pytest
from numcodecs.checksum32 import Adler32

from tensorstore_py.errors import SpecError
from tensorstore_py.plugin import OPAQUE, parse_codec_json
from tensorstore_py.testing.codecs import CodecSuite


class TestAdler32(CodecSuite):
    family = "zarr"
    configurations = ({"id": "adler32"}, {"id": "adler32", "location": "end"})
    detects_corruption = True


@pytest.mark.parametrize("location", ["start", "end"])
def test_other_implementations_write_the_same(location: str) -> None:
    spec = parse_codec_json("zarr", {"id": "adler32", "location": location})

    encoded = spec.bind(OPAQUE).encode(b"abcdef")  # type: ignore[attr-defined]

    assert bytes(encoded) == bytes(Adler32(location).encode(b"abcdef"))


def test_the_default_location_is_the_start() -> None:
    stated = parse_codec_json("zarr", {"id": "adler32", "location": "start"})

    assert stated == parse_codec_json("zarr", {"id": "adler32"})
    with pytest.raises(SpecError, match=r"^location: "):
        parse_codec_json("zarr", {"id": "adler32", "location": "middle"})
