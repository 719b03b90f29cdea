import numpy as np
import pytest

import tensorstore_py as ts
from tensorstore_py._jobs.job import Job


@pytest.fixture
def values():
    return np.arange(40 * 30, dtype=np.int16).reshape(40, 30)


@pytest.fixture
def source(tmp_path, values):
    """An array whose copies have four tasks, with the memory that `job` allows."""
    layout = ts.ChunkLayout(chunk_shape=[10, 10])
    array = ts.open(
        {"driver": "zarr3", "kvstore": tmp_path / "a.zarr"},
        create=True,
        dtype="int16",
        shape=[40, 30],
        chunk_layout=layout,
    ).result()
    array[...] = values
    return tmp_path / "a.zarr"


@pytest.fixture
def job(source):
    """A job in two steps: a to b, b to c."""

    def made(*steps, **members):
        json = {
            "tensorstore_py_job": 1,
            "steps": list(steps)
            or [
                {"operation": "copy", "source": "a.zarr", "dest": "b.zarr", "chunks": [5, 30]},
                {"operation": "rechunk", "source": "b.zarr", "dest": "c.zarr", "chunks": [40, 3]},
            ],
            "context": {"memory_limit": {"limit_bytes": 4800}},
            **members,
        }
        return Job.parse(json, source.parent)

    return made
