"""What is printed is what the reference prints, of each kind of object.

Left out is `ChunkLayout.Grid`, of which the reference prints no more than the address.
"""

import numpy as np
import pytest
import tensorstore as reference

import tensorstore_py as ts

EXPRESSIONS = [
    # Index space.
    "ts.Dim()",
    "ts.Dim(5)",
    "ts.Dim(5, label='x')",
    "ts.Dim(inclusive_min=3, exclusive_max=10)",
    "ts.Dim(inclusive_min=3, exclusive_max=10, label='y', implicit_lower=True)",
    "ts.IndexDomain(rank=3)",
    "ts.IndexDomain(shape=[4, 6], labels=['x', ''])",
    "ts.IndexDomain(labels=['x', 'y', 'z'])",
    "ts.IndexDomain(inclusive_min=[1, 2], exclusive_max=[5, 9], implicit_upper_bounds=[1, 0])",
    "ts.IndexTransform(3)",
    (
        "ts.IndexTransform(input_shape=[3, 2], output=["
        "ts.OutputIndexMap(offset=7, input_dimension=1),"
        "ts.OutputIndexMap([[1, 2]], offset=1, stride=-1)])"
    ),
    "ts.IndexTransform(input_labels=['x', 'y'])[ts.d['y', 'x'].transpose[:]]",
    "ts.OutputIndexMap(offset=3)",
    "ts.OutputIndexMap(input_dimension=2, stride=-1)",
    "ts.OutputIndexMap(offset=1, index_array=[[1, 2], [3, 4]], index_range=ts.Dim(8))",
    "ts.IndexTransform(2).output",
    "ts.d[2]",
    "ts.d['x', 3:5].translate_by[1].label['a', 'b', 'c']",
    "ts.d[:].vindex[5, [1, 2]]",
    "ts.d['a'].stride[2].mark_bounds_implicit[True].diagonal",
    "ts.newaxis",
    # Constraints.
    "ts.Schema()",
    "ts.Schema(rank=3)",
    "ts.Schema(dtype=ts.uint8, shape=[100, 200], dimension_units=['4nm', None])",
    "ts.Schema(dtype=ts.float32, fill_value=42, domain=ts.IndexDomain(labels=['x', 'y']))",
    "ts.Schema(codec=ts.CodecSpec({'driver': 'zarr3', 'codecs': ['gzip']}))",
    "ts.ChunkLayout()",
    "ts.ChunkLayout(inner_order=[0, 2, 1])",
    "ts.ChunkLayout(chunk_shape=[100, 200], chunk_elements_soft_constraint=5)",
    "ts.ChunkLayout({'write_chunk': {'shape': [4, 5]}, 'grid_origin': [0, 7]})",
    "ts.CodecSpec({'driver': 'zarr', 'compressor': None})",
    "ts.CodecSpec({'driver': 'n5', 'compression': {'type': 'gzip', 'level': 3}})",
    "ts.Unit('4nm')",
    "ts.Unit(5.5, 'um')",
    "ts.Unit('')",
    "[ts.uint8, ts.float32, ts.bfloat16, ts.json, ts.ustring, ts.int4, ts.bool]",
    "ts.dtype('complex64')",
    # Specs.
    "ts.OpenMode(open=True, create=True)",
    "ts.OpenMode()",
    "ts.Spec({'driver': 'n5', 'kvstore': {'driver': 'memory'}})",
    "ts.Spec({'driver': 'zarr', 'kvstore': 'memory://a/', 'dtype': 'int16', 'create': True})",
    "ts.Spec({'driver': 'zarr3', 'kvstore': 'memory://', 'metadata': {'shape': [3, 4]}})[1:, ::2]",
    (
        "ts.Spec({'driver': 'cast', 'dtype': 'int8', 'base': {'driver': 'zarr3', 'dtype': 'int32',"
        " 'kvstore': 'memory://'}})"
    ),
    "ts.KvStore.Spec('memory://a/b')",
    "ts.KvStore.Spec({'driver': 'file', 'path': '/tmp/data/'})",
    "ts.KvStore.open('memory://a/').result()",
    "ts.KvStore.KeyRange()",
    "ts.KvStore.KeyRange('a', 'b')",
    "ts.KvStore.KeyRange(exclusive_max='b')",
    "ts.KvStore.TimestampedStorageGeneration(b'x', 5)",
    "ts.KvStore.ReadResult('value', b'v', ts.KvStore.TimestampedStorageGeneration(b'g', 1.5))",
    "ts.KvStore.ReadResult('missing')",
    "ts.Context.Spec({'cache_pool': {'total_bytes_limit': 5}})",
    "ts.Context()['cache_pool']",
    "ts.TensorStore.StorageStatistics(not_stored=True)",
    # Open arrays.
    "ts.array([1, 2, 3])",
    "ts.array(np.zeros((2, 3), 'float32'))[1, ::2]",
    (
        "ts.open({'driver': 'zarr', 'kvstore': 'memory://'}, create=True, dtype='int16', "
        "shape=[5, 6], chunk_layout=ts.ChunkLayout(chunk_shape=[2, 3])).result()[1:3]"
    ),
    (
        "ts.open({'driver': 'n5', 'kvstore': 'memory://'}, create=True, dtype=ts.uint8,"
        " shape=[5, 6]).result().schema"
    ),
    "ts.cast(ts.array([1, 2]), ts.float32)",
]


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_the_text_is_the_reference_s(expression):
    ours = eval(expression, {"ts": ts, "np": np})
    theirs = eval(expression, {"ts": reference, "np": np})

    assert repr(ours) == repr(theirs)
    assert str(ours) == str(theirs)
