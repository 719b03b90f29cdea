"""Arguments of the public calls: which are offered, and what others' words lead to."""

import copy
import inspect
import pickle
from pathlib import Path
from typing import Any

import jedi  # type: ignore[import-untyped]
import pytest

import tensorstore_py as ts
from tensorstore_py import OpenMode
from tensorstore_py._api.group_spec import ArrayOptions
from tensorstore_py._api.options import OPTIONS, Options, SpecOptions
from tensorstore_py._api.views import StackOptions
from tensorstore_py._spec import arguments
from tensorstore_py._spec.chunk_layout import GridArguments, LayoutArguments
from tensorstore_py._spec.schema import SchemaArguments
from tensorstore_py._spec.schema_constraints import SchemaConstraints
from tensorstore_py.zarr.request import ArrayArguments
from tests.display.pages import Page

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


class TestSpelled:
    @pytest.mark.parametrize("call", [call for call in CALLS if not call.startswith(ALIKE)])
    def test_every_keyword_is_offered(self, call):
        _, expected = CALLS[call]
        script = jedi.Script(f"import tensorstore_py as ts\n{call}", project=PROJECT)
        offered = {
            each.name.removesuffix("=") for each in script.complete() if each.name[-1:] == "="
        }

        assert expected - offered == set()

    @pytest.mark.parametrize("call", CALLS)
    def test_every_keyword_is_in_the_signature(self, call):
        function, expected = CALLS[call]

        assert expected - {*inspect.signature(function).parameters} == set()

    def test_a_notebook_offers_them_of_what_it_has_run(self):
        script = jedi.Interpreter("ts.open(", [{"ts": ts}])
        offered = {
            each.name.removesuffix("=") for each in script.complete() if each.name[-1:] == "="
        }

        assert {*Options.__annotations__} <= offered

    def test_help_names_them_and_calls_are_as_before(self):
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


ZARR3 = {"driver": "zarr3", "kvstore": "memory://"}


class TestWords:
    @pytest.mark.parametrize(
        "table",
        [
            arguments.ARGUMENTS,
            arguments.MEMBERS,
            arguments.SCHEMA_MEMBERS,
            arguments.LAYOUT_MEMBERS,
        ],
    )
    def test_each_word_leads_somewhere(self, table):
        assert all(word and phrase for word, phrase in table.items())

    def test_no_argument_that_exists_is_taken_for_another(self):
        assert not OPTIONS & arguments.ARGUMENTS.keys()

    def test_no_member_that_exists_is_taken_for_another(self):
        assert not SchemaConstraints.__dataclass_fields__.keys() & arguments.SCHEMA_MEMBERS.keys()
        with pytest.raises(ts.SpecError) as caught:
            ts.Spec({**ZARR3, "qqq": 1})
        for name in arguments.MEMBERS:
            assert f'"{name}"' not in str(caught.value)

    @pytest.mark.parametrize(
        ("word", "remedy"),
        [
            ("chunks", "chunk_layout=ts.ChunkLayout(chunk_shape="),
            ("shards", "write_chunk_shape="),
            ("mode", 'read=True for mode "r"'),
            ("compressor", 'codec="zstd"'),
            ("compression", 'codec="zstd"'),
            ("fillvalue", "fill_value="),
            ("store", "the first argument"),
            ("path", "the first argument"),
            ("overwrite", "delete_existing=True"),
            ("order", "inner_order="),
            ("zarr_format", '"zarr3"'),
            ("dimension_separator", "chunk_key_encoding"),
            ("dimension_names", "labels="),
            ("attributes", "attrs.update"),
            ("metadata", "in the spec"),
        ],
    )
    def test_arguments_of_other_libraries_lead_to_ours(self, word, remedy):
        wrong: dict[str, Any] = {word: 1}
        for call in (ts.open, ts.Spec):
            with pytest.raises(TypeError) as caught:
                call(ZARR3, **wrong)
            assert f"'{word}'; " in str(caught.value)
            assert remedy in str(caught.value)
        with pytest.raises(TypeError, match=f'Schema has no argument "{word}"; '):
            ts.Schema(**wrong)

    @pytest.mark.parametrize(
        ("spec", "path", "remedy"),
        [
            ({"chunks": [4]}, ("chunks",), '"chunk_layout": {"chunk": {"shape":'),
            ({"shape": [4]}, ("shape",), '"domain": {"shape":'),
            ({"compressor": {}}, ("compressor",), '"codec":'),
            ({"fill_value": 1}, ("fill_value",), 'a member of "schema"'),
            ({"bucket": "b"}, ("bucket",), 'a member of "kvstore"'),
            ({"schema": {"shape": [4]}}, ("schema", "shape"), '"domain": {"shape":'),
            (
                {"schema": {"chunk_layout": {"chunk_shape": [4]}}},
                ("schema", "chunk_layout", "chunk_shape"),
                '"chunk": {"shape":',
            ),
            ({"metadata": {"chunks": [4]}}, ("metadata", "chunks"), '"chunk_grid"'),
            ({"metadata": {"dtype": "<u2"}}, ("metadata", "dtype"), '"data_type"'),
            ({"metadata": {"compressor": None}}, ("metadata", "compressor"), '"codecs"'),
            (
                {"driver": "zarr", "metadata": {"data_type": "uint8"}},
                ("metadata", "data_type"),
                '"dtype"',
            ),
            (
                {"driver": "zarr", "metadata": {"codecs": []}},
                ("metadata", "codecs"),
                '"compressor"',
            ),
            ({"driver": "auto", "chunks": [4]}, ("chunks",), '"chunk_layout"'),
        ],
    )
    def test_members_of_other_libraries_lead_to_ours(self, spec, path, remedy):
        with pytest.raises(ts.SpecError) as caught:
            ts.Spec({**ZARR3, **spec})

        assert caught.value.path == path
        assert remedy in str(caught.value)


HOSTILE = "<script>alert('x')</script>"


class TestSpecPage:
    @pytest.mark.parametrize(
        "shown",
        [
            ts.Schema(),
            ts.Schema(rank=3),
            ts.Schema(dtype="uint8", shape=[]),
            ts.Schema(dtype="float32", domain=ts.IndexDomain(rank=2), fill_value=5),
            ts.ChunkLayout(),
            ts.ChunkLayout(rank=0),
            ts.ChunkLayout(rank=32),
            ts.ChunkLayout(read_chunk_elements=1000),
            ts.CodecSpec({"driver": "zarr3"}),
            ts.CodecSpec({"driver": "n5", "compression": {"type": "gzip"}}),
            ts.Spec("memory://"),
            ts.Spec({"driver": "zarr"}),
            ts.KvStore.Spec("memory://a/"),
            ts.KvStore.Spec({"driver": "zip", "base": "memory://a.zip"}),
        ],
        ids=repr,
    )
    def test_whatever_is_left_open_is_not_shown(self, shown):
        page = Page(shown._repr_html_())

        assert type(shown).__name__.rpartition(".")[2] in page.text
        assert "None" not in page.text

    def test_a_schema_says_what_it_asks_for(self):
        schema = ts.Schema(
            dtype="uint16",
            domain=ts.IndexDomain(shape=[100, 200], labels=["y", HOSTILE]),
            chunk_layout=ts.ChunkLayout(read_chunk_shape=[10, 20], write_chunk_shape=[50, 100]),
            codec={"driver": "zarr3", "codecs": ["zstd"]},
            dimension_units=["4nm", None],
            fill_value=7,
        )
        page = Page(schema._repr_html_())

        for word in ("uint16", "10 × 20", "50 × 100", "zstd", "4 nm, none", "7", "[0, 100)"):
            assert word in page.text
        assert "svg" in page.elements

    def test_secrets_stay_secret(self):
        spec = {
            "driver": "http",
            "base_url": "https://me:secret@host?key=secret",
            "headers": ["Cookie: secret"],
        }
        for shown in (ts.KvStore.Spec(spec), ts.Spec({"driver": "zarr3", "kvstore": spec})):
            assert "secret" not in shown._repr_html_()

    def test_a_layout_has_a_line_for_each_dimension(self):
        page = Page(ts.ChunkLayout(chunk_shape=[4, None, 6], inner_order=[2, 1, 0])._repr_html_())

        assert page.rows() == 1 + 3 + 1
        assert "2, 1, 0" in page.text

    def test_codecs_have_a_line_each(self):
        codecs = [{"name": "bytes"}, {"name": "zstd", "configuration": {"level": 3}}]
        page = Page(ts.CodecSpec({"driver": "zarr3", "codecs": codecs})._repr_html_())

        assert page.rows() == 2
        assert "level 3" in page.text

    def test_a_hostile_path_is_text(self):
        spec = ts.Spec({"driver": "zarr3", "kvstore": {"driver": "memory", "path": HOSTILE}})

        assert HOSTILE in Page(spec._repr_html_()).text
        assert HOSTILE in Page(spec.kvstore._repr_html_()).text  # type: ignore[union-attr]


class TestOpenMode:
    def test_flags(self):
        mode = OpenMode(open=True)

        assert repr(mode) == "OpenMode(open=True)"
        assert repr(OpenMode()) == "OpenMode()"

        mode.delete_existing = True

        assert repr(mode) == "OpenMode(open=True, delete_existing=True)"
        assert mode == copy.copy(mode) == pickle.loads(pickle.dumps(mode))
        assert mode != OpenMode(open=True)
        assert mode != 5
        with pytest.raises(TypeError, match="unhashable"):
            hash(mode)
        with pytest.raises(TypeError):
            OpenMode(True)  # type: ignore[call-arg]
