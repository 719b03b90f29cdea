import pytest
from numcodecs.checksum32 import JenkinsLookup3

from tensorstore_py.errors import SpecError
from tensorstore_py.plugin import OPAQUE, parse_codec_json
from tensorstore_py.testing.codecs import CodecSuite


class TestJenkinsLookup3(CodecSuite):
    family = "zarr"
    configurations = (
        {"id": "jenkins_lookup3"},
        {"id": "jenkins_lookup3", "initval": 99, "prefix": [1, 2, 3]},
    )
    detects_corruption = True


@pytest.mark.parametrize(("initval", "prefix"), [(0, None), (2**32 - 1, None), (7, b"ab")])
def test_other_implementations_write_the_same(initval: int, prefix: bytes | None) -> None:
    members = {"initval": initval, "prefix": None if prefix is None else list(prefix)}
    spec = parse_codec_json("zarr", {"id": "jenkins_lookup3", **members})

    encoded = spec.bind(OPAQUE).encode(b"abcdefghijklmn")  # type: ignore[attr-defined]

    assert bytes(encoded) == bytes(JenkinsLookup3(initval, prefix).encode(b"abcdefghijklmn"))


def test_wrong_members_are_named() -> None:
    with pytest.raises(SpecError, match=r"^initval: "):
        parse_codec_json("zarr", {"id": "jenkins_lookup3", "initval": 2**32})
    with pytest.raises(SpecError, match=r"^prefix\[0\]: "):
        parse_codec_json("zarr", {"id": "jenkins_lookup3", "prefix": [256]})
