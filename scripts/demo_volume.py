"""The job of scripts/demo: a NIfTI image to sharded zarr3 and to zarr v2, and back, and drawn.

Usage:
    demo_volume.py IMAGE.nii.gz OUTPUT_DIRECTORY
    demo_volume.py --unpack DIRECTORY_OF_WHEELS IMAGE.nii.gz
"""

import asyncio
import gzip
import json
import struct
import sys
import time
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

import tensorstore_py as ts

Volume = npt.NDArray[Any]
Json = dict[str, Any]
# Selects a plane: an index for one of z, y, x, and everything of the other two.
Plane = tuple[int | slice, ...]

SHARD = 128
CHUNK = 32

NIFTI_DTYPES = {2: "u1", 4: "i2", 8: "i4", 16: "f4", 64: "f8", 256: "i1", 512: "u2", 768: "u4"}


def read_nifti(path: Path) -> Volume:
    """Reads a single-file NIfTI-1 image, `[z, y, x]`, as stored (no scaling).

    Raises:
        ValueError: this is no such file, or its voxels are of a kind that the demo does not show.
    """
    data = path.read_bytes()
    if path.suffix == ".gz":
        data = gzip.decompress(data)
    order = "<" if data[:4] == struct.pack("<i", 348) else ">"
    if struct.unpack_from(f"{order}i", data)[0] != 348 or data[344:347] != b"n+1":
        raise ValueError(f"{path} is not a single-file NIfTI-1 image")
    rank, x, y, z = struct.unpack_from(f"{order}4h", data, 40)
    (code,) = struct.unpack_from(f"{order}h", data, 70)
    (offset,) = struct.unpack_from(f"{order}f", data, 108)
    if rank < 3 or code not in NIFTI_DTYPES:
        raise ValueError(f"{path}: rank {rank} and data type code {code} are not shown here")
    voxels = np.frombuffer(data, f"{order}{NIFTI_DTYPES[code]}", x * y * z, int(offset))
    # NIfTI varies x fastest, which is C order with the axes named backwards
    return voxels.reshape(z, y, x).astype(voxels.dtype.newbyteorder("="))


def unpack(wheels: Path, target: Path) -> None:
    """Takes the T1 image out of nilearn's wheel."""
    (wheel,) = wheels.glob("nilearn-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if "icbm152_t1" in Path(name).name)
        target.write_bytes(archive.read(name))


def sharded_spec(place: Path, volume: Volume) -> Json:
    """The spec that the demo saves as a file: zarr3, 128³ shards of 32³ chunks of blosc."""
    little = {"name": "bytes", "configuration": {"endian": "little"}}
    blosc = {
        "name": "blosc",
        "configuration": {"cname": "zstd", "clevel": 5, "shuffle": "shuffle"},
    }
    sharding = {
        "chunk_shape": [CHUNK] * 3,
        "codecs": [little, blosc],
        "index_codecs": [little, {"name": "crc32c"}],
    }
    return {
        "driver": "zarr3",
        "kvstore": {"driver": "file", "path": f"{place}/"},
        "metadata": {
            "shape": list(volume.shape),
            "data_type": volume.dtype.name,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [SHARD] * 3}},
            "codecs": [{"name": "sharding_indexed", "configuration": sharding}],
            "dimension_names": ["z", "y", "x"],
            "attributes": {"description": "a brain, one value a cubic millimetre"},
        },
    }


def copy_spec(place: Path) -> Json:
    """The spec of the copy: zarr v2, 64³ chunks of blosc; shape and dtype come from the source."""
    return {
        "driver": "zarr",
        "kvstore": {"driver": "file", "path": f"{place}/"},
        "metadata": {
            "chunks": [64] * 3,
            "compressor": {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1},
        },
    }


def three_planes(shape: tuple[int, ...]) -> list[Plane]:
    """An axial, a coronal and a sagittal plane through the middle."""
    z, y, x = (length // 2 for length in shape)
    everything = slice(None)
    return [(z, everything, everything), (everything, y, everything), (everything, everything, x)]


async def read_from_a_loop(store: ts.TensorStore, planes: list[Plane]) -> list[Volume]:
    """What a program with an event loop of its own does: all reads at once, awaited."""
    return list(await asyncio.gather(*(store[plane].read() for plane in planes)))


def draw(planes: list[Volume], path: Path) -> None:
    """Draws the planes side by side, the head up."""
    height = max(plane.shape[0] for plane in planes)
    width = sum(plane.shape[1] for plane in planes)
    low = min(float(plane.min()) for plane in planes)
    high = max(float(plane.max()) for plane in planes)
    canvas = np.zeros((height, width), dtype=np.uint8)
    left = 0
    for plane in planes:
        rows, columns = plane.shape
        top = (height - rows) // 2
        shade = np.clip((plane[::-1] - low) * (255.0 / max(high - low, 1e-9)), 0, 255)
        canvas[top : top + rows, left : left + columns] = shade.astype(np.uint8)
        left += columns
    Image.fromarray(canvas).save(path)


class Report:
    """Prints what happened, and remembers whether anything differed."""

    def __init__(self) -> None:
        self.wrong = 0
        self.began = time.perf_counter()

    def step(self, text: str) -> None:
        """Prints a line with the seconds since the last one."""
        now = time.perf_counter()
        print(f"  {now - self.began:7.3f} s  {text}", flush=True)
        self.began = time.perf_counter()

    def compare(self, what: str, found: list[Volume], expected: list[Volume]) -> None:
        """Tells whether every array is the expected one."""
        same = all(np.array_equal(*pair) for pair in zip(found, expected, strict=True))
        self.wrong += not same
        self.step(f"{what}: {'equal to the source' if same else 'DIFFERENT from the source'}")


def stored_line(name: str, place: Path, store: ts.TensorStore) -> str:
    """One line of the summary."""
    files = [path for path in place.rglob("*") if path.is_file()]
    stored_bytes = sum(path.stat().st_size for path in files)
    raw_bytes = store.size * store.dtype.numpy_dtype.itemsize
    layout = store.chunk_layout
    return (
        f"  {name:<9} {store.shape} {store.dtype.name}, {layout.write_chunk.shape} a file, "
        f"{layout.read_chunk.shape} a chunk,\n"
        f"{'':12}{len(files)} files, {stored_bytes:,} bytes, ratio {raw_bytes / stored_bytes:.2f}"
    )


def run(image: Path, output: Path) -> int:
    """Does the whole job; returns the exit code."""
    output = output.resolve()
    output.mkdir(parents=True, exist_ok=True)
    report = Report()
    volume = read_nifti(image)
    planes = three_planes(volume.shape)
    expected = [volume[plane] for plane in planes]
    report.step(f"read {image.name}: {volume.shape} {volume.dtype}, {volume.nbytes:,} bytes")

    spec_file = output / "volume.json"
    spec_file.write_text(json.dumps(sharded_spec(output / "volume.zarr3", volume), indent=2))
    store = ts.open(spec_file, create=True, delete_existing=True).result()
    report.step(f"opened {spec_file.name}: an empty zarr3 array")
    store.write(volume).result()
    report.step("wrote the volume")

    copy = ts.open(
        copy_spec(output / "volume.zarr"),
        dtype=store.dtype,
        shape=store.shape,
        create=True,
        delete_existing=True,
    ).result()
    copy.write(store).result()
    report.step("copied it to zarr v2")

    for name, array in (("zarr3", store), ("zarr v2", copy)):
        found = [array[plane].read().result() for plane in planes]
        report.compare(f"{name}, three planes, .result()", found, expected)
        found = asyncio.run(read_from_a_loop(array, planes))
        report.compare(f"{name}, three planes, await", found, expected)
        report.compare(f"{name}, everything", [array.read().result()], [volume])

    picture = output / "planes.png"
    draw([store[plane].read().result() for plane in planes], picture)
    report.step(f"drew {picture.name}")

    print()
    print(stored_line("zarr3", output / "volume.zarr3", store))
    print(stored_line("zarr v2", output / "volume.zarr", copy))
    print(f"\nSee {spec_file} and {picture}")
    print("demo: FAILED" if report.wrong else "demo: passed")
    return 1 if report.wrong else 0


def main(arguments: list[str]) -> int:
    """Reads the command line."""
    if len(arguments) == 3 and arguments[0] == "--unpack":
        unpack(Path(arguments[1]), Path(arguments[2]))
        return 0
    if len(arguments) != 2:
        print(__doc__)
        return 2
    return run(Path(arguments[0]), Path(arguments[1]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
