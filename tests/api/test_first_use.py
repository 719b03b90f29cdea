"""What a fresh process imports and builds when something is used for the first time."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tensorstore_py as ts

#: Of an array's first read: models of its own store, driver, codecs and resources, and no other.
MOST_MODELS = 20

MODELS = """
import pydantic
def models(cls=pydantic.BaseModel):
    for each in cls.__subclasses__():
        yield each
        yield from models(each)
built = [each.__name__ for each in models() if each.__pydantic_complete__]
"""

THREADS = """
import random, sys, threading
sys.setswitchinterval(1e-6)
import tensorstore_py as ts

def array(driver):
    store = ts.open({"driver": driver, "kvstore": "memory://"}, create=True, dtype="uint8",
                    shape=[4]).result()
    store.write(3).result()
    assert store.read().result().tolist() == [3] * 4

def encoded(*codecs):
    ts.open({"driver": "zarr3", "kvstore": "memory://", "metadata": {"codecs": codecs}},
            create=True, dtype="uint8", shape=[4]).result()

work = [
    lambda: array("zarr3"), lambda: array("zarr3"), lambda: array("zarr"), lambda: array("zarr"),
    lambda: array("n5"),
    lambda: encoded("bytes", "zstd"),
    lambda: encoded("bytes", "gzip"),
    lambda: ts.Group.open("memory://", create=True).result().names().result(),
    lambda: ts.Schema(codec={"driver": "zarr3"}).to_json(),
    lambda: ts.Context({"cache_pool": {"total_bytes_limit": 3}})["cache_pool"],
    lambda: ts.KvStore.open("memory://").result().list().result(),
    lambda: ts.Spec({"driver": "zarr3", "kvstore": "s3://bucket/x"}).to_json(),
    lambda: ts.json_schema(),
    lambda: ts.copy, lambda: ts.digest, lambda: ts.multiscale, lambda: ts.pyramid, lambda: ts.zarr,
]
random.Random(SEED).shuffle(work)
barrier = threading.Barrier(len(work))
failed = []

def begin(each):
    barrier.wait()
    try:
        each()
    except BaseException as error:
        failed.append(repr(error))

threads = [threading.Thread(target=begin, args=(each,)) for each in work]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(json.dumps(failed))
"""


def said_by(code: str) -> list[str]:
    """What a fresh process prints last."""
    done = subprocess.run(
        [sys.executable, "-c", f"import json\n{code}"],
        capture_output=True,
        text=True,
        check=True,
        timeout=240,
    )
    said: list[str] = json.loads(done.stdout.splitlines()[-1])
    return said


@pytest.fixture
def array_url(tmp_path: Path) -> str:
    """An array of a few bytes, as a URL that names its format."""
    url = f"file://{tmp_path}/a/|zarr3:"
    ts.open(url, create=True, dtype="uint16", shape=[4]).result().write(np.uint16(7)).result()
    return url


def test_public_names_build_no_model() -> None:
    code = (
        "import tensorstore_py as ts\n"
        "for name in ts._HOMES: getattr(ts, name)\n"
        f"{MODELS}\n"
        "assert next(models())\n"
        "print(json.dumps(built))"
    )

    assert said_by(code) == []


def test_a_read_builds_the_models_that_the_array_names(array_url: str) -> None:
    code = (
        "import tensorstore_py as ts\n"
        f"ts.open({array_url!r}).result().read().result()\n"
        f"{MODELS}\n"
        "print(json.dumps(built))"
    )

    built = said_by(code)

    assert {"Zarr3Spec", "FileSpec", "BytesSpec"} <= set(built)
    assert len(built) <= MOST_MODELS


def test_a_read_imports_what_the_array_names(array_url: str) -> None:
    code = (
        "import sys, tensorstore_py as ts\n"
        f"ts.open({array_url!r}).result().read().result()\n"
        "print(json.dumps(sorted({'.'.join(name.split('.')[1:3]) for name in sys.modules"
        " if name.startswith('tensorstore_py.')})))"
    )

    rooms = said_by(code)

    plugins = {"codecs", "drivers", "kvstores"}
    assert {room for room in rooms if room.partition(".")[0] in plugins} == {
        *plugins, "codecs.bytes", "drivers.zarr3", "kvstores.file",
    }  # fmt: skip
    seldom = {"_compute", "_conversion", "_jobs", "_net", "_plan", "cli", "multiscale", "ocdbt"}
    assert seldom & set(rooms) == set()


@pytest.mark.parametrize("seed", range(3))
def test_threads_may_be_the_first_at_once(seed: int) -> None:
    assert said_by(THREADS.replace("SEED", str(seed))) == []
