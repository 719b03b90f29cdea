"""What a package brings along for Zarr version 3: one file and one entry point are enough."""

import itertools
import json
import warnings
from collections.abc import Iterator
from pathlib import Path

import numcodecs
import numpy as np
import pytest
from numcodecs.abc import Codec

import tensorstore_py as ts
from tensorstore_py.errors import DataLossError, SpecError
from tests.internals import looks_for_packages_again

VALUES = np.arange(12, dtype="i4").reshape(3, 4)
NUMBERS = itertools.count()

CODEC = '''
from typing import Annotated

import numpy as np

from tensorstore_py.plugin.codec import (
    ArrayToArray,
    ArrayToArraySpec,
    BytesToBytes,
    BytesToBytesSpec,
    codec,
)
from tensorstore_py.plugin.codec import Level
from tensorstore_py.plugin.driver import (
    ChunkGridModel,
    ChunkKeyEncodingModel,
    ChunkKeys,
    IrregularAxis,
    chunk_grid,
    chunk_key_encoding,
)


@codec("{name}.xor", family="zarr3")
class XorSpec(BytesToBytesSpec):
    """Every byte with some bits turned."""

    mask: Annotated[int, Level(0, 255)] = 255

    def bind(self, chunk):
        return Xor(self.mask)


class Xor(BytesToBytes):
    def __init__(self, mask):
        self.mask = mask

    def encode(self, data):
        return (np.frombuffer(data, np.uint8) ^ self.mask).tobytes()

    def decode(self, data, size=None):
        return self.encode(data)

    def encoded_size(self, size):
        return size


@codec("{name}.flip", family="zarr3")
class FlipSpec(ArrayToArraySpec):
    """The first dimension from its end."""

    def bind(self, chunk):
        return Flip(chunk)


class Flip(ArrayToArray):
    def __init__(self, chunk):
        self.encoded = chunk

    def encode(self, array):
        return array[::-1]

    decode = encode


@chunk_grid("{name}.growing")
class GrowingGrid(ChunkGridModel):
    """Chunks of 1, 2, 4 and so on, up to the given number of them; one dimension only."""

    chunks: Annotated[int, Level(1, 60)]

    @property
    def sizes(self):
        return (frozenset(2**number for number in range(self.chunks)),)

    def axes(self, shape):
        return (IrregularAxis(shape[0], [(2**number, 1) for number in range(self.chunks)]),)

    def resized(self, shape, unit):
        return self.replace(chunks=max(self.chunks, shape[0].bit_length()))


@chunk_key_encoding("{name}.suffix")
class SuffixEncoding(ChunkKeyEncodingModel):
    """Chunks with an ending, as files have it."""

    suffix: str = ".bin"

    def bind(self, rank):
        return SuffixKeys(rank, self.suffix)


class SuffixKeys(ChunkKeys):
    def __init__(self, rank, suffix):
        self.rank = rank
        self.suffix = suffix

    def encode(self, cell):
        return "-".join(map(str, cell)) + self.suffix

    def decode(self, name):
        parts = name.removesuffix(self.suffix).split("-")
        if not name.endswith(self.suffix) or len(parts) != self.rank:
            return None
        return tuple(map(int, parts)) if all(part.isdigit() for part in parts) else None
'''


@pytest.fixture
def guest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Installs a distribution; gives the name that its parts begin with."""
    # Modules and names of a process are for ever, so that each test has its own.
    name = f"guest{next(NUMBERS)}"
    site = tmp_path / "site"
    install(site, name, CODEC.replace("{name}", name))
    monkeypatch.syspath_prepend(str(site))
    registered = looks_for_packages_again(monkeypatch, "zarr3")
    yield name
    for classes in registered:
        for known in [key for key in classes if key.startswith(name)]:
            del classes[known]


def install(site: Path, name: str, source: str) -> None:
    info = site / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (site / f"{name}_for_arrays.py").write_text(source)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        f"[tensorstore_py.plugins]\n{name} = {name}_for_arrays\n"
    )


def create(path: Path, codecs: list, **metadata: object) -> ts.TensorStore:
    grid = {"name": "regular", "configuration": {"chunk_shape": [2, 3]}}
    spec = {
        "driver": "zarr3",
        "kvstore": {"driver": "file", "path": f"{path}/"},
        "metadata": {"codecs": codecs, "chunk_grid": grid, **metadata},
    }
    return ts.open(spec, create=True, dtype="int32", shape=[3, 4]).result()


def test_codecs_come_with_a_package(guest: str, tmp_path: Path) -> None:
    codecs = [f"{guest}.flip", "bytes", {"name": f"{guest}.xor", "configuration": {"mask": 15}}]

    opened = create(tmp_path / "a", codecs)
    opened[...] = VALUES
    opened[2, 1] = 100

    again = ts.open({"driver": "zarr3", "kvstore": f"file://{tmp_path}/a/"}).result()
    assert again.read().result().tolist() == [*VALUES[:2].tolist(), [8, 100, 10, 11]]
    assert (tmp_path / "a/c/0/0").read_bytes()[:8] == bytes(
        [4 ^ 15, 15, 15, 15, 5 ^ 15, 15, 15, 15]
    )
    stored = json.loads((tmp_path / "a/zarr.json").read_text())["codecs"]
    assert stored[2] == {"name": f"{guest}.xor", "configuration": {"mask": 15}}


def test_codecs_of_a_package_work_in_shards(guest: str, tmp_path: Path) -> None:
    inner = [f"{guest}.flip", "bytes", f"{guest}.xor"]
    shards = {"name": "sharding_indexed", "configuration": {"chunk_shape": [2, 1], "codecs": inner}}

    opened = create(tmp_path / "a", [shards])
    opened[...] = VALUES

    assert opened.read().result().tolist() == VALUES.tolist()


def test_their_members_are_checked_like_any_other(guest: str, tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"codecs\[1\]\.configuration\.mask: .*0 to 255"):
        create(tmp_path, ["bytes", {"name": f"{guest}.xor", "configuration": {"mask": 256}}])
    with pytest.raises(SpecError, match=rf'did you mean "{guest}\.xor"'):
        create(tmp_path, ["bytes", "xor"])


def test_a_chunk_key_encoding_comes_with_a_package(guest: str, tmp_path: Path) -> None:
    encoding = {"name": f"{guest}.suffix", "configuration": {"suffix": ".chunk"}}
    opened = create(tmp_path / "a", ["bytes"], chunk_key_encoding=encoding)
    opened[...] = VALUES + 1

    names = {each.name for each in (tmp_path / "a").iterdir()}
    assert names == {"zarr.json", "0-0.chunk", "0-1.chunk", "1-0.chunk", "1-1.chunk"}
    again = ts.open({"driver": "zarr3", "kvstore": f"file://{tmp_path}/a/"}).result()
    assert again.read().result().tolist() == (VALUES + 1).tolist()
    assert json.loads((tmp_path / "a/zarr.json").read_text())["chunk_key_encoding"] == encoding
    again.resize(exclusive_max=[2, 4]).result()
    assert {each.name for each in (tmp_path / "a").iterdir()} == names - {"1-0.chunk", "1-1.chunk"}


def test_a_chunk_grid_comes_with_a_package(guest: str, tmp_path: Path) -> None:
    grid = {"name": f"{guest}.growing", "configuration": {"chunks": 4}}
    where = {"driver": "zarr3", "kvstore": f"file://{tmp_path}/a/"}
    metadata = {"shape": [10], "data_type": "uint8", "chunk_grid": grid, "codecs": ["bytes"]}
    opened = ts.open({**where, "metadata": metadata}, create=True).result()
    opened[...] = np.arange(1, 11, dtype="u1")

    sizes = {each.name: each.stat().st_size for each in (tmp_path / "a" / "c").iterdir()}
    assert sizes == {"0": 1, "1": 2, "2": 4, "3": 8}
    again = ts.open(where).result()
    assert again[::-3].read().result().tolist() == [10, 7, 4, 1]
    said = again.spec().to_json()["metadata"]
    assert isinstance(said, dict)
    assert said["chunk_grid"] == grid
    assert again.chunk_layout.write_chunk.shape == (None,)
    longer = again.resize(exclusive_max=[20]).result()
    stored = json.loads((tmp_path / "a/zarr.json").read_text())["chunk_grid"]
    assert stored["configuration"] == {"chunks": 5}
    longer[15:] = 9
    assert longer.read().result().tolist() == [*range(1, 11), *[0] * 5, *[9] * 5]
    wrong = {"name": f"{guest}.growing", "configuration": {"chunks": 99}}
    with pytest.raises(SpecError, match=r"chunk_grid\.configuration\.chunks: .*1 to 60"):
        ts.Spec({"driver": "zarr3", "metadata": {"chunk_grid": wrong}})


def test_a_package_that_cannot_be_imported_stops_no_other(guest: str, tmp_path: Path) -> None:
    install(tmp_path / "site", f"{guest}broken", "import no_such_module_at_all\n")

    with pytest.warns(RuntimeWarning, match=f'plug-in "{guest}broken" .* cannot be loaded: Module'):
        opened = create(tmp_path / "a", ["bytes", f"{guest}.xor"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        opened[...] = VALUES

    assert opened.read().result().tolist() == VALUES.tolist()


class Pressed(Codec):  # type: ignore[misc]  # the library has no types
    """A codec of numcodecs' registry, of arrays or bytes."""

    codec_id = "test-pressed"

    def __init__(self, level: int = 1) -> None:
        self.level = level

    def encode(self, buf):
        return numcodecs.Zlib(self.level).encode(np.ascontiguousarray(buf).tobytes())

    def decode(self, buf, out=None):
        return numcodecs.Zlib(self.level).decode(bytes(buf))


PRESSED = {"name": "numcodecs.test-pressed", "configuration": {"level": 2}}


@pytest.mark.parametrize(
    "codecs",
    [
        [PRESSED],
        ["bytes", PRESSED],
        ["bytes", "gzip", PRESSED, "crc32c"],
        ["numcodecs.delta", PRESSED, PRESSED],
        [
            {
                "name": "sharding_indexed",
                "configuration": {"chunk_shape": [1, 3], "codecs": [PRESSED]},
            }
        ],
        [{"name": "sharding_indexed", "configuration": {"chunk_shape": [1, 3]}}, PRESSED],
    ],
    ids=["elements", "bytes", "among_others", "twice", "in_shards", "around_shards"],
)
def test_any_codec_of_numcodecs_may_be_used(
    codecs: list, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(numcodecs.registry.codec_registry, "test-pressed", Pressed)
    opened = create(tmp_path, codecs)

    opened[...] = VALUES
    opened[0, 3] = 50

    expected = VALUES.copy()
    expected[0, 3] = 50
    assert opened.read().result().tolist() == expected.tolist()
    again = ts.open({"driver": "zarr3", "kvstore": f"file://{tmp_path}/"}).result()
    assert again.codec == opened.codec
    (tmp_path / "c/0/1").write_bytes(b"damaged")
    with pytest.raises(DataLossError, match="c/0/1"):
        again.read().result()
    assert again[:, :3].read().result().tolist() == expected[:, :3].tolist()


def test_a_codec_of_numcodecs_is_refused_where_arrays_must_come() -> None:
    with pytest.raises(SpecError, match=r"codecs\[0\]\.name: no zarr3 codec is named"):
        ts.CodecSpec({"driver": "zarr3", "codecs": [{"name": "numcodecs.test-nothing"}]})
