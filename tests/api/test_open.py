import json
from pathlib import Path

import numpy as np
import pytest
import tensorstore as wheel

import tensorstore_py as ts
from tensorstore_py.errors import (
    AlreadyExistsError,
    MismatchError,
    NotFoundError,
    PermissionDeniedError,
    SpecError,
)


def spec_at(path, driver="zarr3", **members):
    return {"driver": driver, "kvstore": {"driver": "file", "path": f"{path}/"}, **members}


@pytest.fixture
def stored(tmp_path):
    """A directory that holds an array of twelve numbers."""
    path = tmp_path / "array"
    store = ts.open(spec_at(path), create=True, dtype="int16", shape=[3, 4]).result()
    store[...] = np.arange(12, dtype="int16").reshape(3, 4)
    return path


def holds_the_twelve(store):
    assert store.read().result().tolist() == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]


class TestForms:
    def test_dict(self, stored):
        holds_the_twelve(ts.open(spec_at(stored)).result())

    def test_json_text(self, stored):
        holds_the_twelve(ts.open(json.dumps(spec_at(stored))).result())

    def test_spec(self, stored):
        holds_the_twelve(ts.open(ts.Spec(spec_at(stored))).result())

    def test_url(self, stored):
        holds_the_twelve(ts.open(f"file://{stored}/|zarr3:").result())
        holds_the_twelve(ts.open(f"file://{stored}|zarr3:").result())

    def test_kvstore_url_in_a_dict(self, stored):
        holds_the_twelve(ts.open({"driver": "zarr3", "kvstore": f"file://{stored}/"}).result())

    def test_kvstore_keyword(self, stored):
        opened = ts.open({"driver": "zarr3"}, kvstore=f"file://{stored}/").result()
        holds_the_twelve(opened)

    def test_spec_file(self, stored, tmp_path):
        file = tmp_path / "volume.json"
        file.write_text(json.dumps(spec_at(stored)))
        holds_the_twelve(ts.open(file).result())

    def test_spec_file_with_constraints_and_keywords(self, tmp_path):
        file = tmp_path / "new.json"
        file.write_text(json.dumps(spec_at(tmp_path / "new", dtype="uint8")))
        store = ts.open(file, create=True, shape=[2]).result()
        assert (store.dtype.name, store.shape) == ("uint8", (2,))

    @pytest.mark.parametrize("driver", ["zarr", "zarr3"])
    def test_directory(self, tmp_path, driver):
        made = ts.open(spec_at(tmp_path, driver), create=True, dtype="uint8", shape=[2]).result()
        made[...] = 5
        opened = ts.open(tmp_path).result()
        assert opened.read().result().tolist() == [5, 5]
        assert opened.spec().to_json()["driver"] == driver

    def test_relative_directory(self, stored, monkeypatch):
        monkeypatch.chdir(stored.parent)
        holds_the_twelve(ts.open(Path("array")).result())

    def test_what_a_store_says_of_itself_opens_it_again(self, stored):
        store = ts.open(spec_at(stored)).result()
        holds_the_twelve(ts.open(store.spec()).result())
        holds_the_twelve(ts.open(store.spec().to_json()).result())
        holds_the_twelve(ts.open(store.url).result())

    def test_a_view_says_which_part_it_is(self, stored):
        view = ts.open(spec_at(stored)).result()[1:, 2]
        again = ts.open(view.spec().to_json()).result()
        assert again.domain == view.domain
        assert again.read().result().tolist() == [6, 10]

    def test_a_transform_in_the_spec(self, stored):
        transform = {"input_shape": [4], "output": [{"offset": 2}, {"input_dimension": 0}]}
        opened = ts.open(spec_at(stored, transform=transform)).result()
        assert opened.read().result().tolist() == [8, 9, 10, 11]


class TestWrongForms:
    def test_a_plain_path_as_text_says_what_to_pass(self):
        with pytest.raises(SpecError, match=r"pathlib\.Path\('/data/a'\)"):
            ts.open("/data/a")

    def test_an_empty_directory(self, tmp_path):
        with pytest.raises(
            NotFoundError, match=r"looked for \.zarray, attributes\.json, zarr\.json"
        ):
            ts.open(tmp_path).result()

    def test_no_such_file(self, tmp_path):
        with pytest.raises(NotFoundError, match=r"gone\.json does not exist"):
            ts.open(tmp_path / "gone.json")

    @pytest.mark.parametrize("driver", ["zarr", "zarr3"])
    def test_metadata_is_no_spec(self, tmp_path, driver):
        spec = {"driver": driver, "kvstore": {"driver": "file", "path": f"{tmp_path}/"}}
        ts.open(spec, create=True, dtype="uint8", shape=[3]).result()
        file = tmp_path / (".zarray" if driver == "zarr" else "zarr.json")
        with pytest.raises(SpecError, match="open its directory"):
            ts.open(file)

    def test_broken_json_text(self):
        with pytest.raises(SpecError, match="line 1"):
            ts.open('{"driver": "zarr3",}')

    def test_a_broken_spec_file_is_named(self, tmp_path):
        file = tmp_path / "bad.json"
        file.write_text('{"driver": "zarr3", "kvstor": "memory://"}')
        with pytest.raises(SpecError, match=r'did you mean "kvstore".*bad\.json'):
            ts.open(file)

    def test_a_url_without_a_format_says_how_to_name_one(self, tmp_path):
        with pytest.raises(NotFoundError, match="zarr3"):
            ts.open(f"file://{tmp_path}/").result()

    @pytest.mark.parametrize("spec", [None, 3, 1.5, [], b"{}"])
    def test_what_is_no_spec_at_all(self, spec):
        with pytest.raises((SpecError, TypeError)):
            ts.open(spec)


MODES = [
    {},
    {"open": True},
    {"create": True},
    {"open": True, "create": True},
    {"create": True, "delete_existing": True},
    {"open": False, "create": True},
    {"delete_existing": True},
    {"open": True, "delete_existing": True, "create": True},
    {"assume_metadata": True},
    {"open": True, "assume_metadata": True},
    {"open": True, "assume_cached_metadata": True},
    {"create": True, "assume_metadata": True},
]


class TestModes:
    """Each mode on an array that is there and one that is not, next to the reference."""

    @pytest.mark.parametrize("as_json", [False, True])
    @pytest.mark.parametrize("mode", MODES, ids=str)
    @pytest.mark.parametrize("there", [False, True])
    @pytest.mark.parametrize("driver", ["zarr", "zarr3"])
    def test_mode(self, tmp_path, driver, there, mode, as_json):
        outcome = []
        for library, name in ((ts, "mine"), (wheel, "theirs")):
            spec = spec_at(tmp_path / name, driver)
            if there:
                made = library.open(spec, create=True, dtype="uint8", shape=[3]).result()
                made[...] = 7
            keywords = {} if as_json else mode
            spec = {**spec, **mode} if as_json else spec
            try:
                store = library.open(spec, dtype="uint8", shape=[3], **keywords).result()
                outcome.append(store.read().result().tolist())
            except Exception as error:
                outcome.append(error)
        mine, theirs = outcome
        if isinstance(theirs, Exception):
            assert isinstance(mine, type(theirs)), mine
        else:
            assert mine == theirs

    def test_an_absent_array_says_how_to_create_it(self, tmp_path):
        with pytest.raises(NotFoundError, match="create=True") as caught:
            ts.open(spec_at(tmp_path / "none")).result()
        assert f"{tmp_path}/none/zarr.json" in str(caught.value)

    def test_a_present_array_says_how_to_open_it(self, stored):
        with pytest.raises(AlreadyExistsError, match="open=True"):
            ts.open(spec_at(stored), create=True, dtype="int16", shape=[3, 4]).result()

    def test_one_of_many_creators_creates_and_the_others_open(self, tmp_path):
        futures = [
            ts.open(spec_at(tmp_path), create=True, open=True, dtype="uint8", shape=[n + 1])
            for n in range(8)
        ]
        shapes: list[object] = []
        for future in futures:
            try:
                shapes.append(future.result().shape)
            except MismatchError:
                shapes.append(None)
        assert len({shape for shape in shapes if shape}) == 1

    def test_open_mode_keyword(self, stored):
        holds_the_twelve(ts.open(spec_at(stored), open_mode=ts.OpenMode(open=True)).result())
        with pytest.raises(AlreadyExistsError):
            ts.open(
                spec_at(stored), open_mode=ts.OpenMode(create=True), dtype="int16", shape=[3, 4]
            ).result()


class TestAccess:
    def test_by_default_both(self, stored):
        assert ts.open(spec_at(stored)).result().mode == "rw"

    def test_read_only(self, stored):
        store = ts.open(spec_at(stored), read=True).result()
        assert (store.mode, store.readable, store.writable) == ("r", True, False)
        with pytest.raises(PermissionDeniedError, match="write=True"):
            store[0] = 1
        with pytest.raises(PermissionDeniedError):
            store.resize(exclusive_max=[1, 1])

    def test_write_only(self, stored):
        store = ts.open(spec_at(stored), write=True).result()
        assert store.mode == "w"
        store[0] = 1
        with pytest.raises(PermissionDeniedError, match="read=True"):
            store.read()

    def test_views_keep_it(self, stored):
        view = ts.open(spec_at(stored), read=True).result()[0].translate_to[5]
        assert view.mode == "r"


class TestConstraints:
    @pytest.mark.parametrize(
        ("options", "named"),
        [
            ({"dtype": "uint8"}, "dtype|data_type|data type"),
            ({"shape": [3, 5]}, "shape|domain|dimension 1"),
            ({"rank": 3}, "rank"),
            ({"fill_value": 9}, "fill_value|fill value"),
            ({"chunk_layout": ts.ChunkLayout(chunk_shape=[2, 2])}, "chunk"),
        ],
        ids=lambda case: next(iter(case)) if isinstance(case, dict) else "",
    )
    def test_what_is_stored_contradicts_what_was_asked(self, stored, options, named):
        import re

        with pytest.raises(ValueError) as caught:
            ts.open(spec_at(stored), **options).result()
        assert re.search(named, str(caught.value)), caught.value

    def test_metadata_that_contradicts(self, stored):
        with pytest.raises(MismatchError, match="shape"):
            ts.open(spec_at(stored, metadata={"shape": [9, 9]})).result()

    def test_keywords_and_json_contradict_each_other(self, tmp_path):
        with pytest.raises(ValueError, match="dtype"):
            ts.open(spec_at(tmp_path, dtype="uint8"), dtype="int8", shape=[1], create=True)

    def test_creating_without_a_shape_or_a_type_says_what_is_missing(self, tmp_path):
        with pytest.raises(SpecError, match="dtype"):
            ts.open(spec_at(tmp_path), create=True, shape=[1]).result()
        with pytest.raises(SpecError, match=r"shape|domain|rank"):
            ts.open(spec_at(tmp_path), create=True, dtype="uint8").result()

    def test_an_unknown_keyword_names_the_nearest(self, tmp_path):
        with pytest.raises(TypeError, match='did you mean "create"'):
            ts.open(spec_at(tmp_path), crate=True)  # type: ignore[call-arg]
