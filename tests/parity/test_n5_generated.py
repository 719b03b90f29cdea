"""n5 arrays created from random specs, and read and written in random parts, in both libraries.

Each is a pure function of its number, so that a failure can be looked at again.
"""

import json
import random
from typing import Any

import numpy as np
import pytest

from tests.parity import generated_specs
from tests.parity.libraries import ours, same, sample, wheel

COUNT, BATCH = 400, 20
DATA_TYPES = [
    "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float32", "float64",
]  # fmt: skip
COMPRESSIONS = [
    {"type": "raw"},
    {"type": "gzip"},
    {"type": "gzip", "level": 0, "useZlib": True},
    {"type": "bzip2", "blockSize": 2},
    {"type": "xz", "preset": 0},
    {"type": "zstd", "level": 1},
    {"type": "blosc", "cname": "lz4hc", "clevel": 2, "shuffle": 0},
    {"type": "blosc", "cname": "zlib", "clevel": 1, "shuffle": 2, "blocksize": 32},
]


def spec(number: int) -> dict[str, Any]:
    """The spec of an array to create, over a memory store."""
    dice = random.Random(number)
    shape = [dice.choice([0, 1, 2, 7, 30, 100, 1000, 5000]) for _ in range(dice.randint(0, 4))]
    schema: dict[str, Any] = {}
    metadata: dict[str, Any] = {}
    for place, name in ((schema, "dtype"), (metadata, "dataType")):
        if dice.random() < 0.7:
            place[name] = dice.choice(DATA_TYPES) if dice.random() < 0.05 else "uint16"
    ask_schema(schema, dice, shape)
    if "domain" not in schema or dice.random() < 0.2:
        metadata["dimensions"] = shape
    if "codec" not in schema and dice.random() < 0.5:
        metadata["compression"] = dice.choice(COMPRESSIONS)
    ask_metadata(metadata, dice, shape, schema.get("domain", {}).get("labels"))
    return {"driver": "n5", "kvstore": "memory://a/", "create": True,
            "schema": schema, "metadata": metadata}  # fmt: skip


def ask_schema(schema: dict[str, Any], dice: random.Random, shape: list[int]) -> None:
    """Asks for some of it by a schema."""
    if dice.random() < 0.7:
        schema["domain"] = {"shape": shape}
        if dice.random() < 0.3:
            schema["domain"]["labels"] = labels(dice, shape)
    if dice.random() < 0.5:
        schema["chunk_layout"] = generated_specs._layout(dice, "n5", shape)
        if dice.random() < 0.7:
            for name in ("inner_order", "codec_chunk"):
                schema["chunk_layout"].pop(name, None)
    if dice.random() < 0.3:
        schema["dimension_units"] = [dice.choice(generated_specs.UNITS) for _ in shape]
    if dice.random() < 0.3:
        schema["codec"] = {"driver": "n5", "compression": dice.choice(COMPRESSIONS)}


def ask_metadata(
    metadata: dict[str, Any], dice: random.Random, shape: list[int], labelled: list[str] | None
) -> None:
    """Asks for some of it by metadata."""
    if dice.random() < 0.3:
        metadata["blockSize"] = [dice.choice([1, 3, 10, 64]) for _ in shape]
    if dice.random() < 0.2:
        # The reference merges labels and axes that have gaps, and then refuses what it made.
        metadata["axes"] = labelled or labels(dice, shape)
    if dice.random() < 0.2:
        metadata["units"] = [dice.choice(["nm", "", "s"]) for _ in shape]
    if dice.random() < 0.2:
        metadata["resolution"] = [dice.choice([1, 4, 0.5]) for _ in shape]
    if dice.random() < 0.2:
        metadata["note"] = {"a": [1, {"b": None}]}


def labels(dice: random.Random, shape: list[int]) -> list[str]:
    return [dice.choice(["", f"d{dim}"]) for dim in range(len(shape))]


def created(library: Any, number: int) -> Any:
    """Everything that can be found out about the array; "refused" if it cannot be had."""
    context = library.Context()
    try:
        array = library.open(spec(number), context=context).result()
    except ValueError:
        return "refused"
    return {
        "document": json.loads(bytes(array.kvstore["attributes.json"])),
        "spec": array.spec().to_json(),
        "minimal": array.spec(minimal_spec=True).to_json(),
        "schema": array.schema.to_json(),
        "domain": str(array.domain),
        "codec": array.codec.to_json(),
        "units": str(array.dimension_units),
    }


@pytest.mark.parametrize("first", range(0, COUNT, BATCH))
def test_created_alike(first):
    for number in range(first, first + BATCH):
        assert created(ours, number) == created(wheel, number), (number, spec(number))


def test_most_are_created():
    made = sum(created(ours, number) != "refused" for number in range(COUNT))
    assert COUNT // 2 <= made < COUNT


@pytest.mark.parametrize("number", range(40))
def test_written_in_turn(tmp_path, number):
    dice = random.Random(number)
    dtype = dice.choice(DATA_TYPES)
    shape = [dice.randint(1, 12) for _ in range(dice.randint(1, 3))]
    asked = {
        "dimensions": shape, "dataType": dtype, "compression": dice.choice(COMPRESSIONS),
        "blockSize": [dice.randint(1, 5) for _ in shape],
    }  # fmt: skip
    place = {"driver": "file", "path": f"{tmp_path}/", "file_io_sync": False}
    opened = [
        library.open({"driver": "n5", "kvstore": place, "metadata": asked, "create": True,
                      "open": True}).result()
        for library in (ours, wheel)
    ]  # fmt: skip
    expected = np.zeros(shape, dtype)
    for turn in range(6):
        region = []
        for size in shape:
            low = dice.randint(0, size - 1)
            region.append(slice(low, dice.randint(low + 1, size)))
        values = sample(dtype, expected[tuple(region)].shape, turn)
        expected[tuple(region)] = values
        opened[dice.randint(0, 1)][tuple(region)] = values
        for array in opened:
            same(array.read().result(), expected)
