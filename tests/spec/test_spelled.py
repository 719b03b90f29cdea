"""Keyword arguments are offered one by one: by consoles, and by editors with jedi."""

import inspect
from pathlib import Path
from typing import Any

import jedi  # type: ignore[import-untyped]
import pytest

import tensorstore_py as ts
from tensorstore_py._api.group_arrays import ArrayOptions
from tensorstore_py._api.options import Options, SpecOptions
from tensorstore_py._api.stack import StackOptions
from tensorstore_py._spec.chunk_grid import GridArguments
from tensorstore_py._spec.chunk_layout import LayoutArguments
from tensorstore_py._spec.schema import SchemaArguments
from tensorstore_py.zarr.arguments import ArrayArguments

PROJECT = jedi.Project(Path(ts.__file__).parents[1])

#: How a call begins, what is called, and which keywords must be offered.
CALLS: dict[str, tuple[Any, set[str]]] = {
    "ts.open(": (ts.open, {*Options.__annotations__, "read", "write", "context", "batch"}),
    'ts.Spec("memory://", ': (ts.Spec, {*SpecOptions.__annotations__, "trust"}),
    'ts.Spec("memory://").update(': (ts.Spec.update, {*SpecOptions.__annotations__}),
    "ts.TensorStore.spec(": (ts.TensorStore.spec, {*SpecOptions.__annotations__}),
    'ts.open("").result().read(': (ts.TensorStore.read, {"order", "batch", "progress"}),
    'ts.KvStore.open("", ': (ts.KvStore.open, {"context", "transaction"}),
    'ts.Group.open("", ': (
        ts.Group.open,
        {"path", "create", "delete_existing", "zarr_format", "attributes", "consolidated"},
    ),
    'ts.Group.open("").result().open("a", ': (
        ts.Group.open("memory://", create=True).result().open,
        {*Options.__annotations__},
    ),
    'ts.Group.open("").result().create_array("a", ': (
        ts.Group.create_array,
        {*ArrayOptions.__annotations__, "attributes", "delete_existing"},
    ),
    'ts.Group.open("").result().require_array("a", ': (
        ts.Group.require_array,
        {*ArrayOptions.__annotations__, "attributes"},
    ),
    "ts.overlay([], ": (ts.overlay, {*StackOptions.__annotations__}),
    "ts.stack([], ": (ts.stack, {*StackOptions.__annotations__, "axis"}),
    "ts.concat([], 0, ": (ts.concat, {*StackOptions.__annotations__}),
    "ts.Schema(": (ts.Schema, {*SchemaArguments.__annotations__}),
    "ts.Schema().update(": (ts.Schema.update, {*SchemaArguments.__annotations__}),
    "ts.ChunkLayout(": (ts.ChunkLayout, {*LayoutArguments.__annotations__}),
    "ts.ChunkLayout().update(": (ts.ChunkLayout.update, {*LayoutArguments.__annotations__}),
    "ts.ChunkLayout.Grid(": (ts.ChunkLayout.Grid, {*GridArguments.__annotations__}),
    'ts.copy("", "", ': (ts.copy, {"includes", "chunks", "codec", "manifest", "progress"}),
    'ts.rechunk("", "", ': (ts.rechunk, {"chunks", "shards", "chunk_layout", "progress"}),
    'ts.migrate("", ': (ts.migrate, {"to", "dry_run", "dest", "keep", "progress"}),
    "ts.virtual_chunked(read, ": (ts.virtual_chunked, {"dtype", "domain", "schema"}),
    "ts.zarr.create(": (ts.zarr.create, {*ArrayArguments.__annotations__, "store", "path"}),
    "ts.zarr.zeros(5, ": (ts.zarr.zeros, {*ArrayArguments.__annotations__, "store", "path"}),
}


#: These are made like others, or have no `**`: asking jedi takes a second each.
ALIKE = ("ts.zarr.zeros", "ts.Schema().", "ts.ChunkLayout().", "ts.copy", "ts.rechunk",
         "ts.migrate", "ts.overlay", "ts.concat", "ts.virtual", "ts.TensorStore.spec")  # fmt: skip


@pytest.mark.parametrize("call", [call for call in CALLS if not call.startswith(ALIKE)])
def test_every_keyword_is_offered(call):
    _, expected = CALLS[call]
    script = jedi.Script(f"import tensorstore_py as ts\n{call}", project=PROJECT)
    offered = {each.name.removesuffix("=") for each in script.complete() if each.name[-1:] == "="}

    assert expected - offered == set()


@pytest.mark.parametrize("call", CALLS)
def test_every_keyword_is_in_the_signature(call):
    function, expected = CALLS[call]

    assert expected - {*inspect.signature(function).parameters} == set()


def test_a_notebook_offers_them_of_what_it_has_run():
    script = jedi.Interpreter("ts.open(", [{"ts": ts}])
    offered = {each.name.removesuffix("=") for each in script.complete() if each.name[-1:] == "="}

    assert {*Options.__annotations__} <= offered


def test_help_names_them_and_calls_are_as_before():
    text = str(inspect.signature(ts.open))

    assert "dtype: " in text
    assert "**" not in text
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'dtpe' \(did you mean"):
        ts.open("memory://|zarr3:", dtpe="int8")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="chunk_layout"):
        ts.open("memory://|zarr3:", chunks=5)  # type: ignore[call-arg]
    for call in (ts.Schema, ts.ChunkLayout, ts.ChunkLayout.Grid):
        with pytest.raises(TypeError, match="rnk"):
            call(rnk=5)  # type: ignore[call-arg]
