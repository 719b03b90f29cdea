"""What users of other libraries, and beginners, type by mistake, and the words that help them."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorstore_py as ts

ZARR3 = {"driver": "zarr3", "kvstore": "memory://"}
ZARR2 = {"driver": "zarr", "kvstore": "memory://"}
PACKAGE = Path(ts.__file__).parent


def made(spec=None, **options):
    given = {"dtype": "uint16", "shape": [64, 32], **options}
    return ts.open(spec or ZARR3, create=True, **given).result()


def labelled():
    return made(shape=None, domain=ts.IndexDomain(shape=[64, 32], labels=["y", "x"]))


def refused(mistake):
    """The words of the error that a mistake ends in."""
    with pytest.raises(Exception) as caught:
        mistake()
    assert isinstance(caught.value, (ts.TensorStoreError, TypeError, ValueError, LookupError,
                                     AttributeError, OverflowError))  # fmt: skip
    return str(caught.value)


INDEXING = [
    (lambda a: a[-1], 'index -1 is outside [0, 64) of dimension 0 ("y"); negative indices do not'),
    (lambda a: a[-1], "count from the end: say 63, that is exclusive_max - 1"),
    (lambda a: a[0, -2], 'index -2 is outside [0, 32) of dimension 1 ("x")'),
    (lambda a: a[-3:], "[-3, 64) is outside [0, 64); negative indices"),
    (lambda a: a[[-1]], "negative indices do not count from the end"),
    (lambda a: a[[1, 99]].read().result(), "index 99 is outside [0, 64) of dimension 0"),
    (lambda a: a[64].read().result(), "index 64 is outside [0, 64) of dimension 0"),
    (lambda a: a[0:99999].read().result(),
     'dimension 0 ("y") ends at 64, but [0, 99999) is asked for'),
    (lambda a: a[5:2], 'slice for dimension 0 ("y"): 5:2 ends before it starts'),
    (lambda a: a[5:-1], "5:-1 ends before it starts; negative indices do not count from the end"),
    (lambda a: a[1, 2, 3], "requires 3 dimensions"),
    (lambda a: a[1.5], "not 1.5"),
    (lambda a: a["x"], 'ts.d["x"][5]'),
    (lambda a: a[ts.d["z"][1]], 'Label "z" does not match one of {"y", "x"}'),
    (lambda a: a.label["", ""][ts.d["z"][1]], 'no dimension is named "z": none has a label'),
    (lambda a: a.vindex[[1, 2], [1, 2, 3]], "{3} vs {2}"),
]  # fmt: skip


@pytest.mark.parametrize(("mistake", "words"), INDEXING)
def test_indexing(mistake, words):
    array = labelled()
    assert words in refused(lambda: mistake(array))


WRITING = [
    (lambda a: a.write(np.zeros((3, 3), np.uint16)).result(), "extent 3, but target dimension 0"),
    (lambda a: a.write(np.zeros((3, 3, 3), np.uint16)).result(), "source has 3 dimensions"),
    (lambda a: a.write(np.zeros((64, 32))).result(), "source.astype('uint16')"),
    (lambda a: a.__setitem__((0, 0), 70000), "cannot write 70000 to an array of uint16"),
    (lambda a: a.__setitem__((0, 0), "x"), "cannot write 'x' to an array of uint16"),
    (lambda a: a.__setitem__((0, 0), None), "cannot write None to an array of uint16"),
    (lambda a: a.write(a.read()).result(), "a Future is no array; call .result() or await it"),
    (lambda a: a.resize([3, 3]).result(), "a new shape is given as exclusive_max="),
    (lambda a: a.append(np.zeros((2, 3), np.uint16)).result(), "but the array has 32"),
    (lambda a: a.append(np.zeros((2, 32), np.uint16), axis="time").result(), '"time"'),
    (lambda a: (a.close(), a.read().result()), "this TensorStore is closed; open it again"),
]


@pytest.mark.parametrize(("mistake", "words"), WRITING)
def test_writing_and_resizing(mistake, words):
    array = labelled()
    assert words in refused(lambda: mistake(array))


OPENING = [
    (lambda: ts.open(ZARR3).shape, "a Future has no attribute 'shape'; call .result() or await it"),  # type: ignore[attr-defined]
    (lambda: ts.open(ZARR3, chunks=[4]), "chunk_layout=ts.ChunkLayout(chunk_shape=[64, 64])"),  # type: ignore[call-arg]
    (lambda: ts.open(ZARR3, mode="r"), 'say read=True for mode "r"'),  # type: ignore[call-arg]
    (lambda: ts.open(ZARR3, compressor="zstd"), 'say codec="zstd"'),  # type: ignore[call-arg]
    (lambda: ts.open(ZARR3, create="w"), "create must be True or False, not 'w'"),  # type: ignore[arg-type]
    (lambda: made(read=True), '"create" needs write access: pass write=True'),
    (lambda: ts.open(ZARR3, delete_existing=True).result(), 'pass "create": true'),
    (lambda: ts.open("memory://x/", delete_existing=True).result(), 'pass "create": true'),
    (lambda: ts.Group.open("memory://", delete_existing=True), 'pass "create": true'),
    (lambda: ts.open("memory://x/", create=True), 'name the driver, for example "zarr3"'),
    (lambda: made(dtype=None), 'e.g. dtype="uint16"'),
    (lambda: made(shape=None), "e.g. shape=[100, 200]"),
    (lambda: made(shape=5), "shape: expected a list of one value per dimension, but found 5"),
    (lambda: made(shape=[4.5, 4]), "shape: expected an integer for dimension 0, but found 4.5"),
    (lambda: made(shape=[4, -1]), "shape: dimension 1 has a negative extent, -1"),
    (lambda: made(chunk_layout=[4, 4]), 'such as {"chunk": {"shape": [64, 64]}}'),
    (lambda: made(chunk_layout={"chunk_shape": [4, 4]}), 'say "chunk": {"shape": [64, 64]}'),
    (lambda: made(chunk_layout={"chunk": {"shape": [4]}}), "Rank specified by chunk_layout (1)"),
    (lambda: made(codec="zsdt"), 'no zarr3 codec is named "zsdt" (did you mean "zstd"?)'),
    (lambda: ts.Schema(codec="zstd"), 'its driver here: {"driver": "zarr3", "codecs": ["zstd"]}'),  # type: ignore[arg-type]
    (lambda: made(fill_value="a"), "fill_value: 'a' is no uint16"),
    (lambda: made(fill_value=70000), "fill_value: 70000 is no uint16"),
    (lambda: made(dtype="flot32"), '(did you mean "float32"?)'),
    (lambda: made(dtype="str"), '(did you mean "ustring"?)'),
    (lambda: made(dimension_units="nm"), "expected a list of one value per dimension"),
    (lambda: ts.open(None), "Expected object, but received: None; give a dict, a URL or"),
    (lambda: ts.open([ZARR3]), "give a dict, a URL or a pathlib.Path"),
    (lambda: ts.open(np.zeros(3)), "by ts.array(...)"),
    (lambda: ts.open(made()), "it is open already"),
    (lambda: ts.open(ts.open(ZARR3)), "a Future is no spec; call .result() or await it"),
    (
        lambda: ts.open(ts.KvStore.Spec("memory://")),
        '{"driver": "zarr3", "kvstore": spec}',
    ),
    (lambda: ts.open("data/x.zarr"), "pathlib.Path('data/x.zarr')"),
    (lambda: ts.open(Path("data/x.zarr")), '{"driver": "zarr3", "kvstore": path}'),
    (lambda: ts.KvStore.open("some/path"), "pathlib.Path"),
    (lambda: ts.open("file://data/x"), "write file:///path for a local path"),
    (lambda: ts.open("fil:///x"), '(did you mean "file"?)'),
    (lambda: ts.open("gcs://b/x/"), '(did you mean "gs"?)'),
    (lambda: ts.open("memory://|zarr33:"), '(did you mean "zarr3"?)'),
    (lambda: ts.open({"driver": "s3", "path": "x/"}), "bucket: this member is required"),
    (lambda: ts.open({"kvstore": "memory://"}), 'member "driver": it is required (one of: "array"'),
    (lambda: ts.open({"driver": "zar3"}), 'no driver is named "zar3" (did you mean "zarr3"?)'),
    (lambda: ts.open({"driver": "hdf5"}), 'no driver is named "hdf5" (one of: "array", "auto"'),
    (lambda: ts.open({**ZARR3, "kvstore": {"driver": "fiel"}}), '(did you mean "file"?)'),
    (lambda: ts.open({**ZARR3, "metdata": {}}), '(did you mean "metadata"?)'),
    (lambda: ts.open({**ZARR3, "metadata": {"chunks": [4]}}), 'say "chunk_grid"'),
    (lambda: ts.open({**ZARR3, "metadata": {"data_type": "<f4"}}), 'say "float32"'),
    (lambda: ts.open({**ZARR2, "metadata": {"dtype": "uint16"}}), 'say "<u2"'),
    (lambda: ts.open({**ZARR2, "metadata": {"data_type": "u"}}), 'say "dtype": "<u2"'),
    (lambda: ts.open(ZARR3, context={"cache_pool": {}}), "use Context("),  # type: ignore[arg-type]
    (lambda: ts.Context({"cache_pol": {}}), '(did you mean "cache_pool"?)'),
    (lambda: ts.Context({"cache_pool": {"total_bytes": 1}}), '(did you mean "total_bytes_limit"?)'),
    (lambda: ts.Group.open("memory://", mode="w"), 'create=True, delete_existing=True for "w"'),  # type: ignore[arg-type]
    (lambda: ts.Group.open("memory://", overwrite=True), "delete_existing=True"),  # type: ignore[arg-type]
    (lambda: ts.open_group, "say ts.Group.open"),  # type: ignore[attr-defined]
    (lambda: ts.zeros, "it is in ts.zarr"),  # type: ignore[attr-defined]
    (lambda: ts.opn, '(did you mean "open"?)'),  # type: ignore[attr-defined]
]


@pytest.mark.parametrize(("mistake", "words"), OPENING)
def test_opening(mistake, words):
    assert words in refused(mistake)


@pytest.mark.parametrize("option", ["chunks", "compressor", "overwrite", "data"])
def test_arrays_of_a_group_lead_from_other_words_too(option):
    group = ts.Group.open("memory://", create=True).result()
    wrong: dict[str, Any] = {option: 1}
    words = refused(lambda: group.create_array("x", dtype="u1", shape=[2], **wrong))
    assert words.startswith(f"{option}: no such argument; ")


@pytest.mark.parametrize(
    "dtype", ["f4", "<f4", ">f4", "float32", np.float32, np.dtype("<f4"), ts.float32]
)
def test_every_spelling_of_a_data_type_is_taken_everywhere(dtype):
    assert made(dtype=dtype).dtype == ts.float32
    assert ts.Schema(dtype=dtype).dtype == ts.float32
    spec = ts.Spec(ZARR3)
    spec.update(dtype=dtype)
    assert spec.dtype == ts.float32
    assert ts.Spec({**ZARR3, "dtype": dtype}).dtype == ts.float32
    assert ts.Spec({**ZARR3, "schema": {"dtype": dtype}}).dtype == ts.float32
    assert made().astype(np.float64).dtype == ts.float64


@pytest.mark.parametrize(
    ("spec", "codec"),
    [
        (ZARR3, "zstd"),
        (ZARR3, ["zstd"]),
        (ZARR3, {"name": "zstd", "configuration": {"level": 3}}),
        (ZARR3, {"codecs": ["zstd"]}),
        (ZARR3, {"driver": "zarr3", "codecs": ["zstd"]}),
        (ZARR2, "zstd"),
        (ZARR2, {"id": "zstd"}),
        (ZARR2, {"compressor": {"id": "zstd"}}),
        ({"driver": "n5", "kvstore": "memory://"}, "zstd"),
        ({"driver": "n5", "kvstore": "memory://"}, {"type": "zstd"}),
        ({"driver": "cast", "dtype": "int64", "base": {**ZARR3, "dtype": "uint16"}}, "zstd"),
    ],
)
def test_a_codec_by_its_name_or_json_is_taken_everywhere(spec, codec):
    opened = made(spec, codec=codec, dtype=None if spec["driver"] == "cast" else "uint16")
    assert "zstd" in json.dumps(opened.codec.to_json())
    asked = ts.Spec(spec, codec=codec)
    assert "zstd" in json.dumps(asked.to_json())
    group = ts.Group.open("memory://", create=True).result()
    if spec is ZARR3:
        array = group.create_array("x", dtype="uint8", shape=[2], codec=codec).result()
        assert array.codec is not None
        assert "zstd" in json.dumps(array.codec.to_json())


def test_a_layout_by_its_json_is_taken_everywhere():
    layout = {"chunk": {"shape": [8, 8]}}
    assert made(chunk_layout=layout).chunk_layout.read_chunk.shape == (8, 8)
    assert ts.Spec(ZARR3, chunk_layout=layout).chunk_layout.read_chunk.shape == (8, 8)
    assert ts.Schema(chunk_layout=layout).chunk_layout.read_chunk.shape == (8, 8)


def test_every_extra_that_is_named_exists():
    declared = tomllib.loads((PACKAGE.parent / "pyproject.toml").read_text())
    extras = declared["project"]["optional-dependencies"]
    named: dict[str, str] = {}
    for source in PACKAGE.rglob("*.py"):
        for extra in re.findall(r"tensorstore-py\[([^\]{]+)\]", source.read_text()):
            named.setdefault(extra, source.name)
    assert "codecs" in named
    assert {name: where for name, where in named.items() if name not in extras} == {}
