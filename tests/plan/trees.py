"""A small tree in files, and pools of processes, for tests of plans."""

import multiprocessing
from concurrent.futures import ProcessPoolExecutor

import numpy as np

import tensorstore_py as ts

IMAGE = np.arange(12 * 14, dtype="uint16").reshape(12, 14)
#: A task is of one chunk or of a few.
SMALL = {"memory_limit": {"limit_bytes": 256}}


def tree(where, context=None):
    """A group of an array of 12 x 14 in chunks of 4 x 5, and a small one of 6."""
    group = ts.Group.open(where, create=True, attributes={"a": 1}, context=context).result()
    layout = ts.ChunkLayout(chunk_shape=[4, 5])
    group.create_array(
        "raw/image", dtype="uint16", shape=IMAGE.shape, chunk_layout=layout
    ).result()[...] = IMAGE
    group.create_array("mask", dtype="int8", shape=[6]).result()[...] = 3
    return group


def check(where, context=None):
    """See that a copy of that tree is whole."""
    group = ts.Group.open(where, context=context).result()
    np.testing.assert_array_equal(group["raw/image"].read().result(), IMAGE)
    assert group["mask"].read().result().tolist() == [3] * 6
    assert dict(group.attrs) == {"a": 1}


def processes(count):
    """A pool of processes that begin anew, as those on other machines do."""
    return ProcessPoolExecutor(count, mp_context=multiprocessing.get_context("spawn"))
