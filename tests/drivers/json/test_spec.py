import copy
import json
import pickle
import re
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import tensorstore as reference

import tensorstore_py as ts


def without_addresses(part):
    """The name of a case, the same in every process."""
    return re.sub(r" at 0x[0-9a-f]+", "", str(part))


DOCUMENT = '{"a": {"b": [1, 2, {"c": 3}], "x/y": 4}, "e": null}'


def spec_of(pointer="", **members):
    return {
        "driver": "json", "kvstore": {"driver": "memory", "path": "d.json"},
        **({"json_pointer": pointer} if pointer else {}), **members,
    }  # fmt: skip


class Both:
    """The same document in both libraries, each in a context of its own."""

    def __init__(self):
        self.contexts = {library: library.Context() for library in (ts, reference)}
        for library in self.contexts:
            self.kvstore(library)["d.json"] = DOCUMENT

    def kvstore(self, library):
        return library.KvStore.open("memory://", context=self.contexts[library]).result()

    def open(self, library, spec, **options):
        return library.open(spec, context=self.contexts[library], **options).result()

    def same(self, make):
        ours, theirs = make(ts), make(reference)
        assert str(ours) == str(theirs)
        return ours


@pytest.fixture
def both():
    return Both()


@pytest.fixture
def context():
    context = ts.Context()
    ts.KvStore.open("memory://", context=context).result()["d.json"] = DOCUMENT
    return context


SPECS = [
    spec_of(),
    spec_of("/a/b"),
    spec_of("/a/x~1y", recheck_cached_data=True),
    spec_of("/a", recheck_cached_data="open"),
    spec_of("/a", rank=0, dtype="json"),
    spec_of("/a", schema={"dtype": "json", "rank": 0, "domain": {"shape": []}}),
    spec_of("/a", cache_pool={"total_bytes_limit": 10}),
    {"driver": "json", "kvstore": "memory://d.json"},
    {"driver": "json", "kvstore": "memory://d", "path": "x"},
    {"driver": "json"},
]


@pytest.mark.parametrize("spec", SPECS, ids=without_addresses)
def test_specs_as_the_reference(both, spec):
    both.same(lambda library: library.Spec(spec))
    both.same(lambda library: library.Spec(spec).to_json(include_defaults=True))
    both.same(lambda library: library.Spec(spec).schema)
    both.same(lambda library: library.Spec(spec).domain)
    both.same(lambda library: library.Spec(spec).open_mode)
    both.same(lambda library: library.Spec(spec).kvstore)
    if spec != {"driver": "json"}:
        both.same(lambda library: library.Spec(spec).url)


@pytest.mark.parametrize(
    ("url", "pointer"),
    [
        ("memory://d.json|json:", ""),
        ("memory://d.json|json", ""),
        ("memory://d.json|json:/a/b", "/a/b"),
        ("memory://d.json|json:/a%20b/%C3%BC%7C", "/a b/ü|"),
    ],
)
def test_urls_as_the_reference(both, url, pointer):
    both.same(lambda library: library.Spec(url).url)
    both.same(lambda library: both.open(library, url).spec())
    assert ts.Spec(url) == ts.Spec(spec_of(pointer))


@pytest.mark.parametrize(
    "attribute",
    ["dtype", "rank", "domain", "schema", "chunk_layout", "codec", "fill_value", "dimension_units",
     "mode", "kvstore", "url", "base", "spec()", "spec(minimal_spec=True)",
     "spec(retain_context=True)"],
)  # fmt: skip
def test_handles_as_the_reference(both, attribute):
    both.same(lambda library: eval(f"store.{attribute}", {"store": both.open(library, SPECS[1])}))
    both.same(lambda library: both.open(library, SPECS[1]))


@pytest.mark.parametrize(
    "pointer", ["", "/a", "/a/b", "/a/b/2/c", "/a/x~1y", "/e", "/z", "/a/b/3", "/e/x"]
)
def test_reads_as_the_reference(both, pointer):
    def read(library):
        try:
            return both.open(library, spec_of(pointer)).read().result().item()
        except ValueError:
            return "an error"

    assert read(ts) == read(reference)


@pytest.mark.parametrize(
    ("pointer", "value"),
    [
        ("", [1, 2]),
        ("", None),
        ("/a", {"y": 1, "x": [1.5, True, "ä"]}),
        ("/a/b/-", 5),
        ("/a/b/0", {"z": None}),
        ("/q/r/s", (1, (2,))),
        ("/q", np.int64(3)),
        ("/q", np.arange(3)),
        ("/q", np.array({"a": 1}, object)),
        ("/q", {1: 2}),
        ("/e/x", 1),
        ("/a/b/7", 1),
        ("/q", object()),
        ("/q", {1, 2}),
        ("/q", 2**70),
    ],
    ids=without_addresses,
)
def test_writes_as_the_reference(both, pointer, value):
    def write(library):
        try:
            both.open(library, spec_of(pointer)).write(value).result()
        except (ValueError, TypeError, OverflowError) as error:
            # Errors here may be of ValueError besides, as all errors of specs are.
            kinds = [k for k in (OverflowError, TypeError, ValueError) if isinstance(error, k)]
            return kinds[0], bytes(both.kvstore(library)["d.json"])
        return bytes(both.kvstore(library)["d.json"])

    both.same(write)


@pytest.mark.parametrize(
    "options",
    [
        {"create": True},
        {"open": True},
        {"create": True, "delete_existing": True},
        {"assume_metadata": True},
        {"dtype": "json"},
        {"rank": 0},
        {"shape": []},
        {"recheck_cached_data": False},
        {"read": True},
        {"write": True},
    ],
    ids=without_addresses,
)
def test_options_as_the_reference(both, options):
    both.same(lambda library: both.open(library, SPECS[1], **options).spec())
    both.same(lambda library: both.open(library, SPECS[1], **options).mode)


@pytest.mark.parametrize(
    "options",
    [{"dtype": "int32"}, {"rank": 1}, {"shape": [1]}, {"fill_value": 3}],
    ids=without_addresses,
)
def test_options_that_contradict(both, options):
    for library in (ts, reference):
        with pytest.raises(ValueError):
            both.open(library, SPECS[1], **options)


def test_views_of_one_value(both):
    def views(library):
        store = both.open(library, spec_of("/a/b"))
        more = both.open(library, spec_of("/a/b", transform={"input_shape": [3], "output": []}))
        found = [store[library.newaxis].read().result(), more.read(order="F").result()]
        more.write([1, 2, 3]).result()
        more[0:0].write([]).result()
        store[library.newaxis].write([{"z": more[1].read().result().item()}]).result()
        return (
            found,
            both.kvstore(library)["d.json"],
            more.spec().to_json(),
            more[0:0].read().result(),
        )

    both.same(views)
    store = ts.open(spec_of(), context=both.contexts[ts]).result()
    assert store[ts.newaxis].schema.rank == 1


def test_every_element_of_a_view_is_the_readers_own(context):
    view = ts.open(
        spec_of("/a/b", transform={"input_shape": [2, 2], "output": []}), context=context
    ).result()
    found = view.read(order="F").result()
    found[0, 0].append("x")
    assert found[1, 1] == found[0, 1] == [1, 2, {"c": 3}]


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        (spec_of("a"), ("json_pointer",)),
        (spec_of("/a~2"), ("json_pointer",)),
        (spec_of(json_pointer=5), ("json_pointer",)),
        (spec_of(dtype="int32"), ("dtype",)),
        (spec_of(rank=1), ("rank",)),
        (spec_of(create=True), ("create",)),
        (spec_of(recheck_cached_metadata=True), ("recheck_cached_metadata",)),
        (spec_of(recheck_cached_data="never"), ("recheck_cached_data",)),
        (spec_of(schema={"fill_value": 1}), ("schema", "fill_value")),
        (spec_of(schema={"codec": {"driver": "zarr3"}}), ("schema", "codec")),
        (spec_of(kvstore=5), ("kvstore",)),
        (spec_of(metadata_cache_pool={}), ("metadata_cache_pool",)),
    ],
    ids=without_addresses,
)
def test_malformed_specs_name_the_place(spec, path):
    with pytest.raises(ts.SpecError) as caught:
        ts.open(spec).result()
    assert caught.value.path == path
    with pytest.raises(ValueError):
        reference.open(spec).result()


@pytest.mark.parametrize("part", ["json:a", "json://a", "json:/a?b", "json:/a#b", "json:/~"])
def test_malformed_urls(part):
    for library in (ts, reference):
        with pytest.raises(ValueError):
            library.Spec(f"memory://d.json|{part}")


def test_a_kvstore_is_required():
    with pytest.raises(ts.SpecError) as caught:
        ts.open({"driver": "json"})
    assert caught.value.path == ("kvstore",)


def test_errors_name_the_document(context):
    with pytest.raises(ts.NotFoundError, match=r'"d\.json".*"/z"'):
        ts.open(spec_of("/z"), context=context).result().read().result()
    with pytest.raises(ts.OutOfRangeError, match=r'Error updating "d\.json".*"/a/b/9"'):
        ts.open(spec_of("/a/b/9"), context=context).result().write(1).result()
    with pytest.raises(ts.NotFoundError, match=r'"none\.json"'):
        ts.open("memory://none.json|json:", context=context).result().read().result()


@pytest.mark.parametrize("value", [b"abc", [b"abc"], {1, 2}, float("nan")])
def test_what_is_not_json_is_refused(context, value):
    store = ts.open(spec_of("/q"), context=context).result()
    with pytest.raises((TypeError, ts.SpecError)):
        store.write(value).result()


def test_bounds_and_statistics_are_not_to_be_had(both):
    for library in (ts, reference):
        store = both.open(library, SPECS[0])
        assert store.resolve().result().rank == 0
        for attempt in (store.resize, store.storage_statistics):
            with pytest.raises(NotImplementedError):
                attempt().result()


def test_writers_of_different_values_lose_nothing(tmp_path):
    where = {"driver": "file", "path": f"{tmp_path}/d.json", "file_io_sync": False}

    def write(place):
        spec = {"driver": "json", "kvstore": where, "json_pointer": f"/{place}"}
        ts.open(spec).result().write(place).result()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(24)))
    found = ts.open({"driver": "json", "kvstore": where}).result().read().result().item()
    assert found == {str(place): place for place in range(24)}


def test_handles_travel(tmp_path):
    store = ts.open(f"file://{tmp_path}/d.json|json:/a").result()
    store.write([1]).result()
    for again in (pickle.loads(pickle.dumps(store)), copy.copy(store), copy.deepcopy(store)):
        assert again.read().result().item() == [1]
    assert np.asarray(store).item() == [1]


def test_cast(both):
    def convert(library):
        number = library.cast(both.open(library, spec_of("/q")), "int32")
        number.write(7).result()
        return number.read().result(), both.kvstore(library)["d.json"]

    both.same(convert)


async def test_in_an_event_loop(context):
    store = await ts.open(spec_of("/n"), context=context)
    await store.write({"deep": [1]})
    assert (await store.read()).item() == {"deep": [1]}


def test_members_set_in_a_transaction_make_one_document(monkeypatch):
    """What a transaction sets costs as much as what it sets, and not all of the document again."""
    both = Both()
    whole = {f"name {number}": {"value": [number]} for number in range(300)}
    texts = []
    dumps = json.dumps

    def counted(*arguments, **options):
        texts.append(dumps(*arguments, **options))
        return texts[-1]

    for library in (reference, ts):
        transaction = library.Transaction()
        monkeypatch.setattr(json, "dumps", counted)
        for name, value in whole.items():
            array = both.open(library, spec_of(f"/{name}"))
            array.with_transaction(transaction).write(value).result()
        transaction.commit_sync()
        monkeypatch.undo()
    stored = {library: both.kvstore(library)["d.json"] for library in (ts, reference)}
    assert stored[ts] == stored[reference]
    assert json.loads(stored[ts]) == {**json.loads(DOCUMENT), **whole}
    assert sum(map(len, texts)) < 3 * len(stored[ts])


def test_a_value_set_in_a_transaction_is_the_one_of_then():
    both = Both()
    value = {"a": [1]}
    for library in (ts, reference):
        transaction = library.Transaction()
        array = both.open(library, spec_of("/new")).with_transaction(transaction)
        array.write(value).result()
        both.open(library, spec_of("/new/b")).with_transaction(transaction).write(2).result()
        transaction.commit_sync()
        assert both.open(library, spec_of("/new")).read().result()[()] == {"a": [1], "b": 2}
    assert value == {"a": [1]}


def test_changes_of_a_transaction_are_made_to_what_others_store_meanwhile():
    both = Both()
    with ts.Transaction() as transaction:
        both.open(ts, spec_of("/a/b/-")).with_transaction(transaction).write(4).result()
        both.open(ts, spec_of("/other")).write(8).result()
        array = both.open(ts, spec_of("/n")).with_transaction(transaction)
        array.write(7).result()
        assert array.read().result()[()] == 7
        both.open(ts, spec_of("/o")).with_transaction(transaction).write(9).result()
    document = json.loads(both.kvstore(ts)["d.json"])
    assert document["a"]["b"] == [1, 2, {"c": 3}, 4]
    assert (document["n"], document["other"], document["o"]) == (7, 8, 9)


@pytest.mark.parametrize("first", ["/n", ""], ids=["member", "whole"])
def test_a_change_that_cannot_be_made_fails_at_once(first):
    both = Both()
    transaction = ts.Transaction()
    before = both.kvstore(ts)["d.json"]
    value = [1] if first else {"n": [1]}
    both.open(ts, spec_of(first)).with_transaction(transaction).write(value).result()
    with pytest.raises(ts.FailedPreconditionError, match='"/n/x" is no position'):
        both.open(ts, spec_of("/n/x")).with_transaction(transaction).write(2).result()
    with pytest.raises(ts.AbortedError, match="nothing was stored"):
        transaction.commit_sync()
    assert both.kvstore(ts)["d.json"] == before
