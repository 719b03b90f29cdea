"""What callers give, as it is taken: values, sources, keys, ranges, places of groups."""

import asyncio
import math
from pathlib import Path

import numpy as np
import pytest

import tensorstore_py as ts
from tensorstore_py import MismatchError, dtype
from tensorstore_py._api.group_nodes import Members, Tree
from tensorstore_py._api.group_spec import asked_mode, group_model, places
from tensorstore_py._api.kvstore_arguments import (
    KeyRange,
    as_byte_range,
    as_generation,
    as_key,
    as_range,
)
from tensorstore_py._api.kvstore_arguments import as_value as as_bytes
from tensorstore_py._api.source import as_json_array, as_objects, as_source, as_value, taken
from tensorstore_py._interface.byte_range import WHOLE, ByteRange
from tensorstore_py._runtime.execution import start
from tests.display.pages import Page


class TestAssignment:
    @pytest.mark.parametrize(
        ("value", "name", "expected"),
        [
            (1.7, "int32", np.int32(1)),
            ("3", "int32", np.int32(3)),
            ([1.7, 2], "int32", np.array([1, 2], "i4")),
            (np.arange(3.0), "uint8", np.arange(3, dtype="u1")),
            (np.float64(2.5), "int8", np.int8(2)),
            ("longer", "U3", np.str_("lon")),
            ([b"longer"], "S3", np.array([b"lon"])),
            (True, "float32", np.float32(1)),
            (range(3), "int16", np.arange(3, dtype="i2")),
        ],
    )
    def test_are_of_the_type_of_the_array(self, value, name, expected):
        found = as_value(value, ts.dtype(name))
        assert np.asarray(found).dtype == np.asarray(expected).dtype
        np.testing.assert_array_equal(found, expected)

    def test_records_are_tuples(self):
        data_type = ts.dtype([["a", "int32"], ["b", "S2"]])
        found = as_value([(1, b"x"), (2, b"yz")], data_type)
        assert np.asarray(found).tolist() == [(1, b"x"), (2, b"yz")]

    def test_text_of_any_length_is_objects(self):
        found = as_value(np.array(["a", "bc"]), ts.ustring)
        assert np.asarray(found).dtype == object
        assert as_value("abc", ts.ustring) == "abc"

    @pytest.mark.parametrize(
        ("value", "error"),
        [("x", ValueError), (None, TypeError), (2**70, OverflowError), (1 + 2j, TypeError)],
    )
    def test_what_is_no_value_is_refused(self, value, error):
        with pytest.raises(error):
            as_value(value, ts.int32)

    def test_what_has_the_type_is_not_copied(self):
        data = np.arange(3)
        assert as_value(data, ts.int64) is data


UINT8 = dtype("uint8")


def bytearray_view(array):
    return memoryview(bytearray(array))


class TestTaken:
    """What is the caller's memory is copied, or read while its caller waits."""

    def of(self, source, *, lasting=False):
        array = as_source(source, UINT8, (3,))
        return array, *taken(source, array, lasting=lasting)

    @pytest.mark.parametrize("source", [7, [1, 2, 3], np.array([True, False, True])])
    def test_what_was_converted_is_not_shared(self, source):
        array, mine, copying = self.of(source)
        assert mine is array
        assert copying is None

    @pytest.mark.parametrize("make", [np.asarray, memoryview, bytearray_view])
    def test_a_little_is_copied(self, make):
        source = make(np.array([1, 2, 3], "uint8"))
        array, mine, copying = self.of(source)
        assert not np.may_share_memory(mine, array)
        assert mine.tolist() == [1, 2, 3]
        assert copying is None

    def test_in_the_order_that_it_is_in(self):
        source = np.zeros((3, 4), "uint8", order="F")
        mine, _ = taken(source, source, lasting=False)
        assert mine.flags.f_contiguous

    def test_much_is_waited_for(self):
        source = np.zeros(2**17, "uint8")
        mine, copying = taken(source, source, lasting=False)
        assert mine is source
        assert copying is not None

    def test_objects_may_change_themselves(self):
        source = np.array([[], {}], object)
        mine, copying = taken(source, source, lasting=False)
        assert mine is source
        assert copying is not None

    def test_what_lasts_is_used_as_it_is(self):
        source = np.array([1, 2, 3], "uint8")
        array, mine, copying = self.of(source, lasting=True)
        assert mine is array is source
        assert copying is None


class TestSource:
    @pytest.mark.parametrize(
        ("source", "expected"),
        [
            (7, 7),
            (True, 1),
            (2.9, 2),
            ([1, 2, 3], [1, 2, 3]),
            (np.array([1, 2, 3], "uint8"), [1, 2, 3]),
            (np.array([True, False, True]), [1, 0, 1]),
            (np.uint8(7), 7),
            (np.int64(7), 7),
            (np.float32(2.9), 2),
            (np.bool_(True), 1),
        ],
    )
    def test_what_fits_is_converted(self, source: object, expected: object) -> None:
        array = as_source(source, UINT8, (3,))

        assert array.dtype == UINT8
        assert array.tolist() == expected

    @pytest.mark.parametrize("source", [300, -1, np.int64(300), np.int8(-1)])
    def test_a_number_that_does_not_fit_is_refused(self, source: object) -> None:
        with pytest.raises(OverflowError, match="out of bounds for uint8"):
            as_source(source, UINT8, ())

    @pytest.mark.parametrize(
        "source",
        [np.arange(3), np.array(3), np.zeros(3, "float32"), np.str_("7"), np.ones(3, ">u2")],
    )
    def test_an_array_that_might_not_survive_is_refused(self, source: object) -> None:
        with pytest.raises(TypeError, match=r"cannot write .* convert it first"):
            as_source(source, UINT8, (3,))

    @pytest.mark.parametrize("source", [np.complex64(1), np.float32("nan")])
    def test_a_number_of_another_kind_is_refused(self, source: object) -> None:
        with pytest.raises((TypeError, ValueError)):
            as_source(source, UINT8, ())

    def test_memory_of_the_right_type_is_not_copied(self) -> None:
        source = np.zeros((3, 4), np.uint8)

        assert np.shares_memory(as_source(source, UINT8, (2, 3, 4)), source)

    def test_extents_that_do_not_broadcast_are_named(self) -> None:
        with pytest.raises(
            MismatchError, match=r"source dimension 1 has extent 2, .*dimension 2 .* 4"
        ):
            as_source(np.zeros((3, 2), np.uint8), UINT8, (5, 3, 4))

    def test_too_many_dimensions_are_counted(self) -> None:
        with pytest.raises(ValueError, match="source has 2 dimensions"):
            as_source([[1]], UINT8, (4,))


class TestJsonSource:
    @pytest.mark.parametrize(
        ("source", "rank", "expected"),
        [
            ([1, 2], 0, [1, 2]),
            ((1, (2, 3)), 0, [1, [2, 3]]),
            ([1, [2, 3]], 1, [1, [2, 3]]),
            ([[1, 2], [3, 4]], 2, [[1, 2], [3, 4]]),
            (np.arange(3), 0, [0, 1, 2]),
            (np.arange(3), 1, [0, 1, 2]),
            (np.array([1.5, True], object), 1, [1.5, True]),
            ([np.float32(2), np.str_("a"), np.bool_(True)], 1, [2.0, "a", True]),
            ({"a": (1,)}, 2, {"a": [1]}),
            ("abc", 1, "abc"),
            (None, 3, None),
            (np.array({"a": np.int8(1)}, object), 0, {"a": 1}),
        ],
        ids=repr,
    )
    def test_values(self, source, rank, expected):
        found = as_json_array(source, rank)
        assert found.dtype == object
        assert found.tolist() == expected

    @pytest.mark.parametrize(
        ("source", "rank", "shape"),
        [
            ([[1, 2], [3, 4]], 0, ()),
            ([[1, 2], [3, 4]], 1, (2,)),
            ([[1, 2], [3, 4]], 2, (2, 2)),
            ([[1, 2], [3, 4]], None, (2, 2)),
            ([[1, 2], [3]], 2, (2,)),
            ([], 1, (0,)),
            ([], 5, (0,)),
            ([[], []], None, (2, 0)),
            (np.zeros((2, 0)), 2, (2, 0)),
        ],
        ids=str,
    )
    def test_lists_are_taken_apart_as_deep_as_they_can(self, source, rank, shape):
        assert as_json_array(source, rank).shape == shape

    def test_nothing_is_kept_by_reference(self):
        element = {"a": [1]}
        found = as_json_array([element, 2], 1)
        element["a"].append(2)
        assert found[0] == {"a": [1]}
        assert math.isnan(as_json_array([math.nan], 1)[0])  # in memory it does no harm

    @pytest.mark.parametrize("element", [object(), {1}, b"a", 1j])
    def test_what_is_not_json(self, element):
        with pytest.raises(TypeError):
            as_json_array([element], 1)

    def test_numbers_have_64_bits(self):
        assert as_json_array(2**64 - 1).item() == 2**64 - 1
        with pytest.raises(OverflowError):
            as_json_array(2**64)


class TestObjectSource:
    @pytest.mark.parametrize(
        ("source", "rank", "shape"),
        [
            (5, 2, ()),
            ([1, 2], 0, ()),
            ([1, 2], 1, (2,)),
            ([[1, 2], [3, 4]], 1, (2,)),
            ([[1, 2], [3, 4]], 2, (2, 2)),
            ([[1, 2], [3]], 2, (2,)),
            (np.zeros((2, 3)), 0, ()),
            (np.zeros((2, 3)), 1, (2,)),
            (np.zeros((2, 3)), 2, (2, 3)),
            ([np.zeros(3), np.zeros(3)], 1, (2,)),
            ("text", 1, ()),
            ([], 1, (0,)),
        ],
    )
    def test_the_rank_decides_what_is_an_element(
        self, source: object, rank: int, shape: tuple[int, ...]
    ) -> None:
        assert as_objects(source, rank).shape == shape

    def test_an_array_of_objects_is_taken_as_it_is(self) -> None:
        array = np.array([{1}, {2}], object)

        assert as_objects(array, 1) is array
        assert as_objects(array, 0).item() is array

    def test_ragged_arrays_are_written_element_by_element(self) -> None:
        metadata = {"filters": [{"id": "vlen-array", "dtype": "<f8"}]}
        spec = {"driver": "zarr", "kvstore": "memory://", "metadata": metadata}
        store = ts.open(spec, create=True, dtype="object", shape=[3]).result()

        store[0] = np.arange(3.0)
        store[1:] = [np.arange(1.0), np.arange(1.0)]

        assert [each.tolist() for each in store.read().result()] == [[0.0, 1.0, 2.0], [0.0], [0.0]]


class TestKvstoreArguments:
    @pytest.mark.parametrize(
        ("given", "expected"),
        [
            (None, WHOLE),
            (slice(None), WHOLE),
            (slice(2, 5), ByteRange(2, 5)),
            (slice(-3, None), ByteRange(-3)),
            (slice(None, 4), ByteRange(0, 4)),
        ],
    )
    def test_byte_ranges(self, given, expected):
        assert as_byte_range(given) == expected

    @pytest.mark.parametrize(
        ("given", "error"),
        [(5, TypeError), (slice(0, 9, 2), TypeError), (slice(3, 2), ValueError),
         (slice(-3, 2), ValueError), (slice(0, -1), ValueError)],
    )  # fmt: skip
    def test_what_is_no_byte_range(self, given, error):
        with pytest.raises(error):
            as_byte_range(given)

    def test_values_are_copied_unless_they_cannot_change(self):
        kept, changing = b"1", bytearray(b"1")

        assert as_bytes(kept) is kept
        assert type(as_bytes(changing)) is bytes
        assert (as_bytes("é"), as_bytes(None)) == ("é".encode(), None)
        with pytest.raises(TypeError, match="not int"):
            as_bytes(5)

    def test_generations_and_ranges(self):
        assert as_generation("a", "x") == as_generation(b"a", "x") == b"a"
        with pytest.raises(TypeError, match="x must be a generation"):
            as_generation(5, "x")
        assert as_range(KeyRange("a", "b")).exclusive_max == b"b"
        with pytest.raises(TypeError, match="range must be"):
            as_range("a")

    def test_bytes_that_are_no_text_are_kept(self):
        assert as_key(b"a\xff").encode("utf-8", "surrogateescape") == b"a\xff"


def found(spec, zarr_format=None):
    return places(group_model(spec), ts.Context(), zarr_format)


CREATE = {"driver": "zarr3", "kvstore": "memory://", "create": True}


class TestGroupSpec:
    @pytest.mark.parametrize(
        "spec",
        [
            "memory://data/",
            "memory://data",
            {"driver": "memory", "path": "data"},
            {"driver": "auto", "kvstore": "memory://data/"},
            '{"driver": "memory", "path": "data/"}',
            ts.KvStore.Spec("memory://data"),
            ts.KvStore.open("memory://data/").result(),
            ts.Spec("memory://data/"),
        ],
    )
    def test_a_place_may_be_of_any_format(self, spec):
        all_of_them = found(spec)

        versions = [place.form.zarr_format for place in all_of_them if place.form.zarr_format]
        assert versions[:2] == [3, 2]
        assert {place.where.path for place in all_of_them} == {"data/"}
        assert {place.where.driver for place in all_of_them} == {"memory"}

    @pytest.mark.parametrize(
        ("spec", "driver"),
        [
            ("memory://data/|zarr2:", "zarr"),
            ({"driver": "zarr3", "kvstore": "memory://data/", "create": True}, "zarr3"),
        ],
    )
    def test_a_driver_is_a_format(self, spec, driver):
        (place,) = found(spec)

        assert place.arrays.driver == driver
        assert place.array("a/b").store_spec().path == "data/a/b/"
        assert place.array("").store_spec().path == "data/"
        assert not place.array("a").open_mode().create

    def test_a_local_path_is_a_directory(self, tmp_path: Path):
        assert found(tmp_path / "x")[0].where.path == f"{tmp_path.as_posix()}/x/"

    def test_a_version_is_a_format(self):
        (place,) = found("memory://", 2)

        assert place.form.format_id == "zarr2"

    def test_caching_is_for_the_arrays(self):
        spec = {
            "driver": "auto",
            "kvstore": "memory://",
            "recheck_cached_data": False,
            "cache_pool": {"total_bytes_limit": 1000},
        }

        arrays = found(spec)[0].arrays

        assert arrays.recheck_cached_data is False
        assert arrays.cache_pool.value.limit_bytes == 1000

    @pytest.mark.parametrize(
        ("spec", "error", "message"),
        [
            ("data/x", ts.SpecError, "pathlib.Path"),
            (
                {"driver": "zarr3", "kvstore": "memory://", "dtype": "int8"},
                ts.SpecError,
                "dtype: an",
            ),
            (
                {"driver": "zarr3", "kvstore": "memory://", "rank": 2},
                ts.SpecError,
                "rank: an array",
            ),
            ({"driver": "zarr3"}, ts.SpecError, "kvstore: this member is required"),
            (
                {"driver": "json", "kvstore": "memory://a.json"},
                ts.UnsupportedError,
                '"json" has no groups',
            ),
            ("nowhere://", ts.SpecError, "nowhere"),
            (1, ts.SpecError, "1"),
        ],
    )
    def test_what_is_no_place_is_refused(self, spec, error, message):
        with pytest.raises(error, match=message):
            found(spec)

    def test_versions_that_are_not(self):
        with pytest.raises(ts.SpecError, match="zarr_format must be 2 or 3 here, not 4"):
            found("memory://", 4)
        with pytest.raises(ts.SpecError, match="zarr_format must be 3 here, not 2"):
            found("memory://|zarr3:", 2)

    @pytest.mark.parametrize(
        ("spec", "flags", "mode"),
        [
            ("memory://", (None, None, None), ts.OpenMode(open=True)),
            ("memory://", (None, True, None), ts.OpenMode(create=True)),
            ("memory://", (True, True, None), ts.OpenMode(open=True, create=True)),
            ("memory://", (None, True, True), ts.OpenMode(create=True, delete_existing=True)),
            (CREATE, (None, None, None), ts.OpenMode(create=True)),
            ({**CREATE, "open": True}, (None, None, None), ts.OpenMode(open=True, create=True)),
            (CREATE, (True, False, None), ts.OpenMode(open=True)),
        ],
    )
    def test_modes(self, spec, flags, mode):
        assert asked_mode(group_model(spec), *flags) == mode

    @pytest.mark.parametrize("flags", [(None, None, True), (True, True, True), (False, None, None)])
    def test_modes_that_exclude_each_other(self, flags):
        with pytest.raises(ts.SpecError):
            asked_mode(group_model("memory://"), *flags)


def members(batches):
    """Members of some batches, and the list of those that were asked for."""
    asked = []

    def steps():
        left = list(batches)

        async def step():
            asked.append(1)
            return left.pop(0) if left else None

        return step

    return Members(lambda body: start(True, body), steps), asked


class TestMembers:
    def test_nothing_is_asked_before_it_is_wanted(self):
        found, asked = members([[("a", 1), ("b", 2)], [], [("c", 3)]])

        iterator = iter(found)
        assert asked == []
        assert next(iterator) == ("a", 1)
        assert len(asked) == 1
        assert list(iterator) == [("b", 2), ("c", 3)]

    async def test_all_ways_give_the_same(self):
        found, _ = members([[("a", 1)], [("b", 2)]])
        expected = [("a", 1), ("b", 2)]

        assert list(found) == expected
        assert list(found) == expected
        assert [pair async for pair in found] == expected
        assert await found == expected
        assert found.result() == found.read().result() == expected

    async def test_a_group_is_walked_on_any_loop(self):
        group = await ts.Group.open("memory://", create=True)
        await asyncio.gather(*(group.create_group(f"g{n}") for n in range(5)))

        assert [path async for path, _ in group.members()] == ["g0", "g1", "g2", "g3", "g4"]

    def test_a_transaction_that_is_over_shows_nothing(self):
        transaction = ts.Transaction()
        group = ts.Group.open("memory://", create=True, transaction=transaction).result()
        found = group.members()
        transaction.abort()

        with pytest.raises(ts.FailedPreconditionError):
            list(found)


class TestTree:
    def test_it_is_drawn(self):
        tree = Tree(
            "/", [("b", ""), ("a/y", "(2,) int8"), ("a", ""), ("a/x/z", "<i>"), ("a/x", "")]
        )

        assert str(tree) == repr(tree) == (
            "/\n"
            "├── a\n"
            "│   ├── x\n"
            "│   │   └── z <i>\n"
            "│   └── y (2,) int8\n"
            "└── b"
        )  # fmt: skip

    def test_nothing_is_a_name(self):
        assert str(Tree("/a", [])) == "/a"

    def test_it_is_html_for_notebooks(self):
        page = Page(Tree("/", [("a", ""), ("a/b", "<i>")])._repr_html_())

        assert page.text.split() == ["Tree", "/", "a/", "1", "b", "<i>"]
        assert page.elements.count("details") == 1
