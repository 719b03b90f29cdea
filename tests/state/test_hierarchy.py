"""Random changes of a tree, through any handle of it, against a dictionary that does the same."""

import copy
import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorstore_py as ts

NAMES = st.sampled_from(["a", "b", "c", "ab"])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("group"), PATHS, st.booleans()),
        st.tuples(st.just("array"), PATHS, st.booleans()),
        st.tuples(st.just("delete"), PATHS),
        st.tuples(st.just("move"), PATHS, PATHS),
        st.tuples(st.just("attribute"), PATHS, st.integers(0, 3)),
        st.tuples(st.just("consolidate")),
        st.tuples(st.just("reopen")),
    ),
    max_size=14,
)


class Model:
    """What should be there: kind and attributes by path."""

    def __init__(self):
        self.nodes = {}

    def below(self, path):
        return [each for each in self.nodes if each == path or each.startswith(f"{path}/")]

    def above(self, path):
        parts = path.split("/")
        return ["/".join(parts[:count]) for count in range(1, len(parts))]

    def make(self, kind, path, may_exist):
        for above in self.above(path):
            if self.nodes.get(above, ("group",))[0] == "array":
                return ts.FailedPreconditionError
        if path in self.nodes:
            if not may_exist:
                return ts.AlreadyExistsError
            return None if self.nodes[path][0] == kind else ts.MismatchError
        for above in self.above(path):
            self.nodes.setdefault(above, ("group", {}))
        self.nodes[path] = (kind, {})
        return None

    def delete(self, path):
        if path not in self.nodes:
            return ts.NotFoundError
        for each in self.below(path):
            del self.nodes[each]
        return None

    def move(self, source, target):
        if target == source or target.startswith(f"{source}/"):
            return ts.SpecError
        if source not in self.nodes:
            return ts.NotFoundError
        if target in self.nodes:
            return ts.AlreadyExistsError
        if any(self.nodes.get(above, ("group",))[0] == "array" for above in self.above(target)):
            return ts.FailedPreconditionError
        for above in self.above(target):
            self.nodes.setdefault(above, ("group", {}))
        for each in self.below(source):
            self.nodes[target + each[len(source) :]] = self.nodes.pop(each)
        return None


def done(operation, expected):
    """Run an operation that should end so."""
    if expected is None:
        operation().result()
        return
    with pytest.raises(expected):
        operation().result()


def apply(root, model, step):
    kind, *arguments = step
    if kind == "group":
        path, may_exist = arguments
        make = root.require_group if may_exist else root.create_group
        done(lambda: make(path), model.make("group", path, may_exist))
    elif kind == "array":
        path, may_exist = arguments
        make = root.require_array if may_exist else root.create_array
        done(lambda: make(path, dtype="int8", shape=[2]), model.make("array", path, may_exist))
    elif kind == "delete":
        done(lambda: root.delete(*arguments), model.delete(*arguments))
    elif kind == "move":
        done(lambda: root.move(*arguments), model.move(*arguments))
    elif kind == "attribute":
        path, value = arguments
        if path in model.nodes:
            root[path].attrs["x"] = value
            model.nodes[path][1]["x"] = value
    elif kind == "consolidate":
        root.consolidate().result()
    else:
        root = ts.Group.open(root.kvstore, consolidated=root.consolidated).result()
    return root


def fails(model, step):
    """Whether it should."""
    kind, *arguments = step
    trial = copy.deepcopy(model)
    if kind in ("group", "array"):
        return trial.make(kind, *arguments) is not None
    return kind in ("delete", "move") and getattr(trial, kind)(*arguments) is not None


def told(root):
    found = {}
    for path, node in root.members(None):
        assert path in root
        found[path] = ("group" if isinstance(node, ts.Group) else "array", dict(node.attrs))
    return found


@pytest.mark.parametrize("zarr_format", [2, 3])
@settings(max_examples=settings().max_examples // 4)
@given(steps=STEPS)
def test_a_tree_is_what_was_made_of_it(zarr_format, steps):
    root = ts.Group.open("memory://t/", create=True, zarr_format=zarr_format).result()
    model = Model()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        for step in steps:
            root = apply(root, model, step)
            assert told(root) == model.nodes
    assert sorted(root) == sorted(path for path in model.nodes if "/" not in path)
    assert told(ts.Group.open(root.kvstore, consolidated=False).result()) == model.nodes


@pytest.mark.parametrize("zarr_format", [2, 3])
@settings(max_examples=settings().max_examples // 4)
@given(before=STEPS, steps=STEPS)
def test_a_transaction_does_all_of_it_at_the_end(zarr_format, before, steps):
    root = ts.Group.open("memory://t/", create=True, zarr_format=zarr_format).result()
    model = Model()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        for step in before:
            root = apply(root, model, step)
        outside = dict(told(root))
        with ts.Transaction() as transaction:
            inside = root.with_transaction(transaction)
            for step in steps:
                if step[0] in ("consolidate", "reopen") or fails(model, step):
                    continue  # what fails in a transaction is the end of it
                inside = apply(inside, model, step)
                assert told(inside) == model.nodes
            fresh = ts.Group.open(root.kvstore, consolidated=False).result()
            assert told(fresh) == outside
    assert told(fresh) == model.nodes
