import json

import pytest

import tensorstore_py as ts
from tensorstore_py.errors import DataLossError, SpecError

LABELS = {"_ARRAY_DIMENSIONS": ["y", "x"]}


def open_(context: ts.Context, *, labels: bool = True, **options: object) -> ts.TensorStore:
    spec = {"driver": "zarr", "kvstore": "memory://a/", "array_dimensions": labels}
    return ts.open(spec, context=context, **options).result()  # type: ignore[arg-type]


def store(context: ts.Context) -> ts.KvStore:
    return ts.KvStore.open("memory://a/", context=context).result()


@pytest.fixture
def context() -> ts.Context:
    context = ts.Context()
    open_(context, labels=False, create=True, dtype="uint8", shape=[2, 3])
    return context


def test_labels_are_read_only_if_asked_for(context: ts.Context) -> None:
    store(context)[".zattrs"] = json.dumps({"units": "m", **LABELS})

    assert open_(context, labels=False).domain.labels == ("", "")
    opened = open_(context)
    assert opened.domain.labels == ("y", "x")
    assert opened.spec().to_json()["array_dimensions"] is True
    assert ts.open(opened.spec(), context=context).result().domain.labels == ("y", "x")


def test_labels_serve_to_index_and_survive_a_resize(context: ts.Context) -> None:
    store(context)[".zattrs"] = json.dumps(LABELS)
    opened = open_(context)

    opened[ts.d["x"][1]] = 7
    assert opened.read().result().tolist() == [[0, 7, 0]] * 2

    resized = opened.resize([None, None], [4, None]).result()
    assert resized.domain == ts.IndexDomain(
        shape=[4, 3], labels=["y", "x"], implicit_upper_bounds=[True, True]
    )


@pytest.mark.parametrize("attributes", [None, {}, {"a": 1}])
def test_without_labels_there_are_none(context: ts.Context, attributes: object) -> None:
    if attributes is not None:
        store(context)[".zattrs"] = json.dumps(attributes)

    assert open_(context).domain.labels == ("", "")


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ("{", r'"a/\.zattrs": this is no JSON'),
        ("[" * 100_000, r'"a/\.zattrs": this is no JSON'),
        ("[]", r'"a/\.zattrs": expected an object'),
        ('{"_ARRAY_DIMENSIONS": "yx"}', r"_ARRAY_DIMENSIONS: expected an array of names"),
        ('{"_ARRAY_DIMENSIONS": ["y", 1]}', r"_ARRAY_DIMENSIONS: expected an array of names"),
        ('{"_ARRAY_DIMENSIONS": ["y", "y"]}', r"_ARRAY_DIMENSIONS: names a dimension twice"),
        ('{"_ARRAY_DIMENSIONS": ["y"]}', r"there are 1 dimension labels, \['y'\], but 2"),
    ],
)
def test_wrong_labels_are_named_with_their_key(
    context: ts.Context, data: str, problem: str
) -> None:
    store(context)[".zattrs"] = data

    with pytest.raises(DataLossError, match=problem):
        open_(context)
    assert open_(context, labels=False).rank == 2


def test_labels_of_a_new_array_are_stored() -> None:
    context = ts.Context()
    domain = ts.IndexDomain(labels=["y", "x"], shape=[2, 3])

    created = open_(context, create=True, dtype="uint8", domain=domain)

    assert created.domain.labels == ("y", "x")
    assert json.loads(bytes(store(context)[".zattrs"])) == LABELS
    assert open_(context).domain.labels == ("y", "x")


def test_dimensions_inside_an_element_have_no_label_there() -> None:
    context = ts.Context()
    metadata = {"dtype": "|S4", "shape": [2]}
    spec = {"driver": "zarr", "kvstore": "memory://a/", "array_dimensions": True}
    domain = ts.IndexDomain(labels=["y", "letter"], shape=[2, 4])

    ts.open({**spec, "metadata": metadata}, create=True, domain=domain, context=context).result()

    assert json.loads(bytes(store(context)[".zattrs"])) == {"_ARRAY_DIMENSIONS": ["y"]}
    assert open_(context).domain.labels == ("y", "")


def test_an_array_that_is_there_keeps_its_attributes(context: ts.Context) -> None:
    domain = ts.IndexDomain(labels=["y", "x"], shape=[2, 3])

    opened = open_(context, open=True, create=True, domain=domain)

    assert opened.domain.labels == ("y", "x")
    assert ".zattrs" not in {bytes(key).decode() for key in store(context).list().result()}


def test_labels_that_differ_are_a_contradiction(context: ts.Context) -> None:
    store(context)[".zattrs"] = json.dumps(LABELS)

    with pytest.raises(ts.MismatchError, match="domain"):
        open_(context, domain=ts.IndexDomain(labels=["a", "b"]))


def test_an_array_that_replaces_another_has_its_own_labels(context: ts.Context) -> None:
    store(context)[".zattrs"] = json.dumps(LABELS)
    domain = ts.IndexDomain(labels=["a"], shape=[2])

    opened = open_(context, create=True, delete_existing=True, dtype="uint8", domain=domain)

    assert opened.domain.labels == ("a",)
    assert json.loads(bytes(store(context)[".zattrs"])) == {"_ARRAY_DIMENSIONS": ["a"]}


def test_assumed_metadata_asks_for_nothing() -> None:
    domain = ts.IndexDomain(labels=["a"], shape=[2])

    opened = open_(ts.Context(), assume_metadata=True, dtype="uint8", domain=domain)

    assert opened.domain.labels == ("a",)


def test_the_member_is_true_or_false() -> None:
    for value in ("x", 1, None, ["y", "x"]):
        with pytest.raises(SpecError, match=r"^array_dimensions: "):
            ts.Spec({"driver": "zarr", "kvstore": "memory://", "array_dimensions": value})
