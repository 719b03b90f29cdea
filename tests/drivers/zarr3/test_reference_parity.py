"""The same specs to the reference implementation and to us: the same documents, the same data."""

import json
import math
import shutil
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import tensorstore as reference
import zarr
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import tensorstore_py as ts

DATA_TYPES = [
    "bool", "int2", "int4", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64",
    "uint64", "float8_e3m4", "float8_e4m3fn", "float8_e5m2", "float4_e2m1fn", "float16",
    "bfloat16", "float32", "float64", "complex64", "complex128",
]  # fmt: skip
#: What the reference cannot do although its own documentation says so, or for no reason.
REFUSED_BY_REFERENCE = (
    'Expected "dimension_names" of',
    "does not evenly divide chunk shape",
    "not unique",
    "not compatible with subsequent bytes -> bytes codecs",
)


def named(name: str, **configuration: object) -> dict:
    return {"name": name, "configuration": configuration}


def optional(members: dict[str, st.SearchStrategy]) -> st.SearchStrategy:
    return st.fixed_dictionaries({}, optional=members)


COMPRESSORS = st.one_of(
    st.sampled_from(["gzip", "zstd", "blosc", "crc32c", {"name": "gzip"}]),
    st.builds(lambda level: named("gzip", level=level), st.integers(0, 9)),
    st.builds(
        lambda level, members: named("zstd", level=level, **members),
        st.integers(-5, 22),
        optional({"checksum": st.booleans()}),
    ),
    st.builds(
        lambda members: named("blosc", **members),
        optional(
            {
                "cname": st.sampled_from(["lz4", "zstd", "zlib"]),
                "clevel": st.integers(0, 9),
                "shuffle": st.sampled_from(["noshuffle", "shuffle", "bitshuffle"]),
            }
        ),
    ),
)
SERIALIZERS = st.sampled_from(
    ["bytes", named("bytes", endian="big"), named("bytes", endian="little")]
)


@st.composite
def codec_lists(draw, rank: int, depth: int = 0):
    orders = st.permutations(range(rank)).map(list) | st.sampled_from(["C", "F"])
    codecs = [named("transpose", order=draw(orders))] if draw(st.integers(0, 3)) == 0 else []
    kind = draw(st.sampled_from(["none", "none", "plain", "plain", "shards"]))
    if kind == "shards" and depth < 2:
        inner = {
            "chunk_shape": st.lists(st.sampled_from([1, 2, 3]), min_size=rank, max_size=rank),
            "codecs": codec_lists(rank, depth + 1),
            "index_location": st.sampled_from(["start", "end"]),
            "index_codecs": st.just([named("bytes", endian="big"), "crc32c"]),
        }
        return [*codecs, named("sharding_indexed", **draw(optional(inner)))]
    if kind != "none":
        codecs.append(draw(SERIALIZERS))
    return codecs + draw(st.lists(COMPRESSORS, max_size=2))


def values(data_type: str) -> st.SearchStrategy:
    if data_type == "bool":
        return st.booleans()
    if data_type.startswith("int"):
        half = 2 ** (int(data_type[3:]) - 1)
        return st.integers(-half, half - 1)
    if data_type.startswith("uint"):
        return st.integers(0, 2 ** int(data_type[4:]) - 1)
    reals = st.sampled_from([0, 1, 0.5, -0.0, 0.1, 1e30, "NaN", "Infinity", "-Infinity", "0x7f"])
    return st.tuples(reals, reals).map(list) if data_type.startswith("complex") else reals


def extents(rank: int, choices: list) -> st.SearchStrategy:
    return st.lists(st.sampled_from(choices), min_size=rank, max_size=rank)


def soft_or_hard(members: dict[str, st.SearchStrategy]) -> dict[str, st.SearchStrategy]:
    return members | {f"{name}_soft_constraint": values for name, values in members.items()}


@st.composite
def layouts(draw, rank: int):
    grids = optional(
        soft_or_hard(
            {
                "shape": extents(rank, [1, 2, 4, 6, 10, None, -1]),
                "elements": st.sampled_from([1, 10, 100, 1000]),
                "aspect_ratio": extents(rank, [1, 2, 0.5, None]),
            }
        )
    )
    members = {"chunk": grids, "read_chunk": grids, "write_chunk": grids}
    orders = {"inner_order": st.permutations(range(rank)).map(list)}
    return draw(optional(members | soft_or_hard(orders)))


@st.composite
def specs(draw):
    rank = draw(st.sampled_from([0, 1, 2, 2, 3]))
    shape = draw(extents(rank, [0, 1, 5, 10, 16, 60]))
    data_type = draw(st.sampled_from(DATA_TYPES))
    names = st.permutations(["x", "y", "", ""]).map(lambda labels: labels[:rank])
    units = st.lists(st.sampled_from(["4nm", None, "m"]), min_size=rank, max_size=rank)
    metadata = {
        "shape": st.just(shape),
        "data_type": st.just(data_type),
        "dimension_names": names.map(lambda labels: [label or None for label in labels]),
        "codecs": codec_lists(rank),
        "chunk_grid": extents(rank, [1, 2, 4, 6]).map(lambda s: named("regular", chunk_shape=s)),
        "chunk_key_encoding": st.sampled_from(
            [{"name": "default"}, {"name": "v2"}, named("v2", separator="/")]
        ),
        "attributes": st.sampled_from([{}, {"a": 1}, {"a": {"b": [1, None]}}])
        | units.map(lambda texts: {"dimension_units": texts}),
    }
    schema = {
        "domain": names.map(lambda labels: {"shape": shape, "labels": labels}),
        "codec": codec_lists(rank).map(lambda codecs: {"driver": "zarr3", "codecs": codecs}),
        "chunk_layout": layouts(rank),
        "dimension_units": units,
    }
    spec = {"metadata": draw(optional(metadata)), "schema": draw(optional(schema))}
    if "data_type" in spec["metadata"] and draw(st.booleans()):
        spec["metadata"]["fill_value"] = draw(values(data_type))
    if "data_type" not in spec["metadata"] or draw(st.booleans()):
        spec["dtype"] = data_type
    if "domain" not in spec["schema"]:
        spec["metadata"]["shape"] = shape
    both = [spec["metadata"].get("codecs", []), spec["schema"].get("codec", {})]
    if all(both) and "sharding_indexed" in json.dumps(both):
        del spec["schema"]["codec"]  # the reference merges two lists with shards in its own ways
    return spec


def comparable(json_value: object) -> object:
    """With NaN as something that equals itself."""
    if isinstance(json_value, float) and math.isnan(json_value):
        return "nan"
    if isinstance(json_value, list | tuple):
        return [comparable(inner) for inner in json_value]
    if isinstance(json_value, dict):
        return {name: comparable(inner) for name, inner in json_value.items()}
    return json_value


def created(module, spec: dict) -> object:
    """The document, the schema and the spec of a new array, or what was raised."""
    context = module.Context()
    try:
        full = {"driver": "zarr3", "kvstore": "memory://", "create": True, **spec}
        store = module.open(full, context=context).result()
    except ValueError as error:
        return error
    kvstore = module.KvStore.open("memory://", context=context).result()
    document = json.loads(kvstore.read("zarr.json").result().value)
    return comparable([document, store.schema.to_json(), store.spec().to_json()])


@settings(max_examples=3 * settings().max_examples)
@given(specs())
def test_new_arrays_are_the_same(spec: dict) -> None:
    expected = created(reference, spec)
    if isinstance(expected, ValueError):
        assume(not any(text in str(expected) for text in REFUSED_BY_REFERENCE))

    found = created(ts, spec)

    if isinstance(expected, ValueError):
        assert isinstance(found, ValueError), f"{spec}\n{expected}\n{found}"
    else:
        assert found == expected, spec


def described(module, spec: dict) -> object:
    try:
        found = module.Spec({"driver": "zarr3", "kvstore": "memory://", **spec})
        return found.to_json(), found.schema.to_json()
    except ValueError as error:
        return error


def reference_is_careless(spec: dict) -> bool:
    """Whether it knows less than is said (sub-chunk shapes), or labels two dimensions alike."""
    metadata = spec["metadata"]
    shards = "sharding_indexed" in json.dumps(metadata.get("codecs", []))
    return shards or ("dimension_names" in metadata and "domain" in spec["schema"])


@given(specs())
def test_specs_say_the_same(spec: dict) -> None:
    assume(not reference_is_careless(spec))
    expected, found = described(reference, spec), described(ts, spec)

    if isinstance(expected, ValueError):
        assert isinstance(found, ValueError), f"{spec}\n{expected}\n{found}"
    else:
        assert comparable(found) == comparable(expected), spec


SHAPE = (5, 7)
CODECS: list[list] = [
    [],
    [named("bytes", endian="big")],
    [named("transpose", order=[1, 0]), "gzip"],
    ["blosc", "crc32c"],
    [named("blosc", cname="zstd", shuffle="bitshuffle")],
    [named("zstd", level=1, checksum=True)],
    [named("sharding_indexed", chunk_shape=[2, 3], codecs=["gzip"], index_location="start")],
    [named("sharding_indexed", chunk_shape=[2, 3], codecs=[named("transpose", order="F")])],
    [
        named(
            "sharding_indexed",
            chunk_shape=[4, 3],
            codecs=[named("sharding_indexed", chunk_shape=[2, 3], codecs=["crc32c"])],
        )
    ],
]


def sample(data_type: str) -> np.ndarray:
    rng = np.random.default_rng(7)
    native = ts.dtype(data_type).numpy_dtype
    if data_type in ("bool", "int2", "int4"):
        return rng.integers(0, 2, SHAPE).astype(native)
    if native.kind in "iu":
        limits = np.iinfo(native.name)
        return rng.integers(limits.min, limits.max, SHAPE, dtype=native, endpoint=True)
    if native.kind == "c":
        return (rng.normal(size=SHAPE) + 1j * rng.normal(size=SHAPE)).astype(native)
    return np.abs(rng.normal(size=SHAPE)).astype(native)


def same_bits(found: np.ndarray, expected: np.ndarray) -> bool:
    return found.dtype == expected.dtype and found.tobytes() == expected.tobytes()


def spec_for(folder: Path, **metadata: object) -> dict:
    kvstore = {"driver": "file", "path": f"{folder}/"}
    spec: dict[str, object] = {"driver": "zarr3", "kvstore": kvstore}
    return spec | ({"metadata": metadata} if metadata else {})


def files(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.mark.parametrize("data_type", DATA_TYPES)
def test_data_of_every_type_is_read_by_both(tmp_path: Path, data_type: str) -> None:
    data = sample(data_type)
    for writer, reader in ((ts, reference), (reference, ts)):
        shutil.rmtree(tmp_path)
        spec = spec_for(tmp_path, shape=SHAPE, data_type=data_type, codecs=["zstd"])
        store = writer.open(spec, create=True).result()
        store[1:4, 2:7].write(data[1:4, 2:7]).result()

        found = reader.open(spec_for(tmp_path)).result().read().result()

        assert same_bits(found, store.read().result())
        assert same_bits(np.ascontiguousarray(found[1:4, 2:7]), data[1:4, 2:7].copy())


@pytest.mark.parametrize("codecs", CODECS, ids=str)
def test_chunks_in_every_encoding_are_read_by_both(tmp_path: Path, codecs: list) -> None:
    data = sample("uint16")
    written = []
    for writer, reader in ((ts, reference), (reference, ts)):
        folder = tmp_path / writer.__name__
        grid = named("regular", chunk_shape=[4, 6])
        spec = spec_for(folder, shape=SHAPE, data_type="uint16", codecs=codecs, chunk_grid=grid)
        writer.open(spec, create=True).result().write(data).result()
        written.append(files(folder))

        found = reader.open(spec_for(folder)).result().read().result()

        assert same_bits(found, data)
    assert written[0].keys() == written[1].keys()
    assert json.loads(written[0]["zarr.json"]) == json.loads(written[1]["zarr.json"])


@pytest.mark.parametrize("codecs", CODECS, ids=str)
def test_zarr_reads_ours(tmp_path: Path, codecs: list) -> None:
    data = sample("float32")
    grid = named("regular", chunk_shape=[4, 6])
    spec = spec_for(tmp_path, shape=SHAPE, data_type="float32", codecs=codecs, chunk_grid=grid)
    ts.open(spec, create=True).result().write(data).result()

    found = zarr.open_array(tmp_path, mode="r")[:]

    assert same_bits(np.ascontiguousarray(found), data)


@pytest.mark.parametrize(
    ("data_type", "shards", "fill_value"),
    [
        *product(["bool", "int8", "uint64"], [None, (4, 6)], [0, 1]),
        *product(["float16", "float64"], [None, (4, 6)], [0, math.nan, -math.inf]),
        *product(["complex64"], [None], [0, complex(1, math.nan)]),
    ],
)
def test_we_read_and_update_what_zarr_wrote(
    tmp_path: Path, data_type: str, shards: tuple | None, fill_value: complex
) -> None:
    data = sample(data_type)
    array = zarr.create_array(
        tmp_path,
        shape=SHAPE,
        chunks=(2, 3),
        shards=shards,
        dtype=data_type,
        fill_value=fill_value,
        dimension_names=["y", None],
        attributes={"a": [1, {"b": None}]},
        overwrite=True,
    )
    array[1:4, 2:7] = data[1:4, 2:7]

    store = ts.open(spec_for(tmp_path)).result()
    expected = np.ascontiguousarray(array[:])
    assert same_bits(store.read().result(), expected)
    assert store.domain.labels == ("y", "")
    store[0:2].write(data[0:2]).result()
    store.resize(exclusive_max=[6, 7]).result()

    expected[0:2] = data[0:2]
    again = zarr.open_array(tmp_path, mode="r")
    assert same_bits(np.ascontiguousarray(again[:5]), expected)
    assert again.shape == (6, 7)
    assert again.attrs.asdict() == {"a": [1, {"b": None}]}
