"""Random specs of arrays to create: as many members as there are, combined without much sense.

Each is a pure function of its number, so that a failure can be looked at again.
"""

import random
from typing import Any

__all__ = ["COUNT", "options", "spec"]

COUNT = 800

PLAIN = [
    *("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"),
    *("float32", "float64", "complex64"),
]
SMALL = [
    *("int2", "int4", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "float4_e2m1fn"),
    "complex128",
]
UNITS = ["nm", [4, "nm"], "4.5 s", None, 3]
V2 = {"bool": "|b1", "int8": "|i1", "uint16": "<u2", "int32": ">i4", "float32": "<f4"}


def spec(number: int) -> dict[str, Any]:
    """The spec, over a memory store."""
    dice = random.Random(number)
    driver = dice.choice(["zarr", "zarr3", "zarr3"])
    rank = dice.randint(0, 4)
    shape = [dice.choice([0, 1, 2, 7, 30, 100, 1000, 5000]) for _ in range(rank)]
    found: dict[str, Any] = {"driver": driver, "kvstore": "memory://a/", "create": True}
    dtype = dice.choice(PLAIN if dice.random() < 0.8 else SMALL)
    if driver == "zarr":
        _v2(dice, found, dtype, shape)
    else:
        _v3(dice, found, dtype, shape)
    return found


def _schema(dice: random.Random, driver: str, dtype: str, shape: list[int]) -> dict[str, Any]:
    schema: dict[str, Any] = {"dtype": dtype}
    domain: dict[str, Any] = {"shape": [[size] if dice.random() < 0.5 else size for size in shape]}
    if driver == "zarr3" and dice.random() < 0.4:
        domain["labels"] = [dice.choice(["", f"d{dim}"]) for dim in range(len(shape))]
    schema["domain"] = domain
    if dice.random() < 0.7:
        schema["chunk_layout"] = _layout(dice, driver, shape)
    if dice.random() < 0.3 and not dtype.startswith("complex"):
        schema["fill_value"] = (
            dice.choice([True, False]) if dtype == "bool" else dice.choice([0, 1])
        )
    if driver == "zarr3" and dice.random() < 0.3:
        schema["dimension_units"] = [dice.choice(UNITS) for _ in shape]
    if dice.random() < 0.4:
        schema["codec"] = _codec(dice, driver)
    return schema


def _layout(dice: random.Random, driver: str, shape: list[int]) -> dict[str, Any]:
    rank = len(shape)
    soft = lambda name: name + dice.choice(["", "_soft_constraint"])  # noqa: E731
    layout: dict[str, Any] = {}
    for part in dice.sample(["chunk", "read_chunk", "write_chunk", "codec_chunk"], 2):
        grid: dict[str, Any] = {}
        if dice.random() < 0.5:
            grid[soft("elements")] = dice.choice([1, 10, 1000, 10**6])
        if dice.random() < 0.4:
            grid[soft("shape")] = [dice.choice([None, 0, -1, 1, 5, 10, 64]) for _ in range(rank)]
        if dice.random() < 0.4:
            grid[soft("aspect_ratio")] = [dice.choice([None, 1, 2, 0.5]) for _ in range(rank)]
        if grid and (part != "codec_chunk" or dice.random() < 0.2):
            layout[part] = grid
    if dice.random() < 0.3:
        order = list(range(rank))
        dice.shuffle(order)
        layout[soft("inner_order")] = order
    if dice.random() < 0.2:
        layout[soft("grid_origin")] = [dice.choice([0, None]) for _ in range(rank)]
    if driver == "zarr3" and dice.random() < 0.3:
        inner = [dice.choice([1, 2, 5]) for _ in range(rank)]
        layout["read_chunk"] = {"shape": inner}
        layout["write_chunk"] = {"shape": [size * dice.choice([1, 2, 3]) for size in inner]}
        layout.pop("chunk", None)
    return layout


def _codec(dice: random.Random, driver: str) -> dict[str, Any]:
    if driver == "zarr":
        return {"driver": "zarr", "compressor": dice.choice(_compressors(dice))}
    codecs = dice.choice([["gzip"], ["bytes", "zstd"], ["blosc"], ["crc32c"], ["bytes"]])
    return {"driver": "zarr3", "codecs": codecs}


def _compressors(dice: random.Random) -> list[Any]:
    return [
        None,
        {"id": "zlib"},
        {"id": "gzip", "level": dice.randint(0, 9)},
        {"id": "bz2"},
        {"id": "zstd", "level": 3},
        {"id": "blosc", "cname": "zstd", "shuffle": dice.choice([-1, 0, 1, 2])},
    ]


def _v2(dice: random.Random, found: dict[str, Any], dtype: str, shape: list[int]) -> None:
    found["schema"] = _schema(dice, "zarr", dtype, shape)
    metadata: dict[str, Any] = {}
    if dice.random() < 0.4:
        metadata["compressor"] = dice.choice(_compressors(dice))
    if dice.random() < 0.3:
        metadata["chunks"] = [dice.choice([1, 3, 10, 64]) for _ in shape]
    if dice.random() < 0.2:
        # The reference refuses what it has just made of "F" and fewer than two dimensions.
        metadata["order"] = dice.choice(["C", "F"]) if len(shape) > 1 else "C"
    if dice.random() < 0.2:
        metadata["dimension_separator"] = dice.choice([".", "/"])
    if dtype in V2 and dice.random() < 0.4:
        metadata["dtype"] = V2[dtype]
        if dice.random() < 0.5 and "fill_value" not in found["schema"]:
            metadata["fill_value"] = dice.choice([None, False if dtype == "bool" else 1])
    if metadata:
        found["metadata"] = metadata


def _v3(dice: random.Random, found: dict[str, Any], dtype: str, shape: list[int]) -> None:
    found["schema"] = _schema(dice, "zarr3", dtype, shape)
    metadata: dict[str, Any] = {}
    if dice.random() < 0.3:
        metadata["codecs"] = dice.choice(
            [
                ["bytes"],
                [{"name": "bytes", "configuration": {"endian": "big"}}, "gzip"],
                [{"name": "transpose", "configuration": {"order": "F"}}, "bytes"],
                [{"name": "sharding_indexed", "configuration": {
                    "chunk_shape": [1] * len(shape), "codecs": ["gzip"]}}],
                ["blosc"],
            ]
        )  # fmt: skip
    if dice.random() < 0.3:
        sizes = [dice.choice([1, 3, 10, 64]) for _ in shape]
        metadata["chunk_grid"] = {"name": "regular", "configuration": {"chunk_shape": sizes}}
    if dice.random() < 0.2:
        metadata["chunk_key_encoding"] = {"name": dice.choice(["v2", "default"])}
    if dice.random() < 0.2:
        metadata["attributes"] = {"a": [1, {"b": None}]}
    if dice.random() < 0.2:
        metadata["dimension_names"] = [dice.choice([None, f"d{dim}"]) for dim in range(len(shape))]
    if dice.random() < 0.2:
        metadata["data_type"] = dtype
    if dice.random() < 0.1:
        metadata["shape"] = shape
    if metadata:
        found["metadata"] = metadata


def options(number: int) -> dict[str, Any]:
    """Options of `ts.open` for the spec."""
    dice = random.Random(-number)
    found: dict[str, Any] = {}
    if dice.random() < 0.2:
        found["recheck_cached_data"] = dice.choice([True, False, "open"])
    if dice.random() < 0.1:
        found["open"] = True
    return found
