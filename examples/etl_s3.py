"""ETL from bucket to bucket: read zarr v2, work on it, write zarr3 in shards.

    python examples/etl_s3.py                  on Ceph or, where that is not installed, on moto
    python examples/etl_s3.py --endpoint URL   on a server of yours; keys from the environment

The first form starts a server by scripts/servers, and stops and starts it again in the middle: what
is under way meanwhile is tried again until the server is back. See `scripts/servers install`.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import uuid
from pathlib import Path

import numpy as np

import tensorstore_py as ts

SERVERS = Path(__file__).resolve().parent.parent / "scripts" / "servers"
SHAPE = (96, 128, 128)
SHARD = (32, 64, 64)
AT_A_TIME = 3  # shards in memory


def place(endpoint: str, bucket: str, path: str) -> dict[str, object]:
    """The spec of a place in a bucket."""
    return {
        "driver": "s3",
        "endpoint": endpoint,
        "bucket": bucket,
        "path": path,
        "aws_credentials": {"type": "environment"},
        "s3_request_retries": {"initial_delay": "100ms", "max_delay": "1s"},
    }


async def raw_data(kvstore: dict[str, object]) -> ts.TensorStore:
    """What there is to begin with: a zarr v2 array in small chunks."""
    z, y, x = np.ogrid[: SHAPE[0], : SHAPE[1], : SHAPE[2]]
    volume = (1000 + 500 * np.sin(z / 9) * np.cos(y / 7) + x).astype("uint16")
    raw = await ts.open(
        {"driver": "zarr", "kvstore": kvstore},
        create=True,
        dtype="uint16",
        shape=SHAPE,
        chunk_layout=ts.ChunkLayout(chunk_shape=[16, 64, 64]),
    )
    await raw.write(volume)
    return raw


async def cleaned(raw: ts.TensorStore, kvstore: dict[str, object]) -> ts.TensorStore:
    """An empty zarr3 array of the same domain; a shard is one object of many small chunks."""
    return await ts.open(
        {"driver": "zarr3", "kvstore": kvstore},
        create=True,
        domain=raw.domain,
        dtype=ts.float32,
        chunk_layout=ts.ChunkLayout(write_chunk_shape=SHARD, read_chunk_shape=[16, 16, 16]),
        codec=ts.CodecSpec({"driver": "zarr3", "codecs": ["blosc"]}),
    )


async def etl(raw: ts.TensorStore, clean: ts.TensorStore, server: "Server | None") -> None:
    """Shard by shard: read, work, write. A shard is written whole, so nothing of it is read."""
    corners = list(np.ndindex(*(-(-n // s) for n, s in zip(SHAPE, SHARD, strict=True))))
    done = 0

    async def pump() -> None:
        nonlocal done
        while corners:
            low = [index * side for index, side in zip(corners.pop(), SHARD, strict=True)]
            box = tuple(slice(start, start + side) for start, side in zip(low, SHARD, strict=True))
            data = await raw[box].read()
            await clean[box].write((data.astype("float32") - 1000) / 500)
            done += 1
            if done == AT_A_TIME and server is not None:
                await asyncio.to_thread(server.stop_and_start)

    await asyncio.gather(*(pump() for _ in range(AT_A_TIME)))


class Server:
    """A server that scripts/servers starts."""

    def __init__(self, directory: str, name: str) -> None:
        self._command = [sys.executable, str(SERVERS), "--dir", directory]
        self.name = name

    def call(self, *words: str) -> str:
        """What scripts/servers says."""
        done = subprocess.run([*self._command, *words], check=True, capture_output=True, text=True)
        return done.stdout

    def start(self) -> str:
        """Start it; its endpoint. Its keys are put into the environment."""
        told = json.loads(self.call("start", self.name))[self.name]
        os.environ["AWS_ACCESS_KEY_ID"] = told["access_key"]
        os.environ["AWS_SECRET_ACCESS_KEY"] = told["secret_key"]
        return str(told["endpoint"])

    def stop_and_start(self) -> None:
        """What happens to servers; moto would forget what it stored."""
        if self.name == "moto":
            return
        self.call("down", self.name)
        print(f"{self.name} is down")
        self.call("up", self.name)
        print(f"{self.name} is up again")


async def run(endpoint: str, server: Server | None) -> None:
    """Make the buckets, fill one, work, and compare."""
    import s3fs  # noqa: PLC0415 - of the extra `s3`

    files = s3fs.S3FileSystem(endpoint_url=endpoint, asynchronous=True, skip_instance_cache=True)
    session = await files.set_session()
    source, target = (f"etl-{what}-{uuid.uuid4().hex[:8]}" for what in ("raw", "clean"))
    for bucket in (source, target):
        await files._mkdir(bucket)
    await session.close()

    raw = await raw_data(place(endpoint, source, "raw/"))
    clean = await cleaned(raw, place(endpoint, target, "clean/"))
    await etl(raw, clean, server)

    expected = (np.asarray(await raw.read(), "float32") - 1000) / 500
    np.testing.assert_array_equal(await clean.read(), expected)
    assert clean.kvstore is not None
    objects = await clean.kvstore.list()
    print(f"{clean.domain.shape} in {len(objects)} objects, as expected")


def main() -> None:
    """Runs the example."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--endpoint", help="of a server of yours")
    options = parser.parse_args()
    if options.endpoint:
        asyncio.run(run(options.endpoint, None))
        return
    with tempfile.TemporaryDirectory() as directory:
        said = Server(directory, "").call("status", "rgw", "moto").splitlines()
        there = [line.split(":")[0] for line in said if ": installed" in line]
        if not there:
            print("no server is installed; run scripts/servers install")
            return
        server = Server(directory, there[0])
        try:
            asyncio.run(run(server.start(), server))
        finally:
            server.call("stop", server.name)


if __name__ == "__main__":
    main()
