"""Stacks of random layers, and what is done with them, beside the reference's.

One layer is for all keys: of keys in no layer the reference asks a layer that is not for them, and
then crashes.
"""

import tensorstore as reference
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorstore_py as ts

NAMES = st.text("ab/~", max_size=3)
ENDS = ("prefix", "exact", "inclusive_min", "exclusive_max")


def is_no_hole(layer):
    """A layer that is for no key is refused here, and of no use there."""
    return "inclusive_min" not in layer or layer["inclusive_min"] != layer.get("exclusive_max", "")


LAYERS = st.lists(
    st.fixed_dictionaries(
        {"base": st.sampled_from(["x/", "y/", "z", ""]).map(lambda path: f"memory://{path}")},
        optional={**dict.fromkeys(ENDS, NAMES), "strip_prefix": st.integers(0, 2)},
    ).filter(is_no_hole),
    max_size=4,
).map(lambda layers: [{"base": "memory://all/"}, *layers])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), NAMES, NAMES),
        st.tuples(st.just("delete"), NAMES, NAMES),
        st.tuples(st.just("range"), NAMES, NAMES),
        st.tuples(st.just("together"), NAMES, NAMES),
        st.tuples(st.just("list"), NAMES, NAMES),
        st.tuples(st.just("read"), NAMES, NAMES),
    ),
    max_size=8,
)


def outcome(action):
    """What an action gives; of an error, only that there is one."""
    try:
        found = action()
    except (ValueError, ts.TensorStoreError):
        return "refused"
    return sorted(found) if isinstance(found, list) else found


def do(library, kv, step):
    """One step; what is comparable of its result."""
    kind, first, second = step
    if kind == "write":
        return bool(kv.write(first, second.encode()).result().generation)
    if kind == "delete":
        return kv.write(first, None).result() and None
    keys = library.KvStore.KeyRange(first, second)
    if kind == "range":
        return kv.delete_range(keys).result()
    if kind == "list":
        return kv.list(keys).result()
    if kind == "read":
        found = kv.read(first).result()
        return found.state, bytes(found.value)
    with library.Transaction() as transaction:
        staged = kv.with_transaction(transaction)
        staged.write(first, b"1").result()
        staged.write(second, b"2").result()
    return None


def seen(library, layers, steps):
    """All that a library shows of it."""
    context = library.Context()
    spec = {"driver": "kvstack", "layers": layers}
    try:
        parsed = library.KvStore.Spec(spec)
    except ValueError:
        return "no such stack"
    kv = library.KvStore.open(spec, context=context).result()
    memory = library.KvStore.open("memory://", context=context).result()
    found = [parsed.to_json()]
    for step in steps:
        found.append((step, outcome(lambda step=step: do(library, kv, step))))
        found.append({key: memory[key] for key in memory.list().result()})
    return found


@settings(max_examples=3 * settings().max_examples)
@given(LAYERS, STEPS)
def test_a_stack_is_the_references(layers, steps):
    ours, theirs = (seen(library, layers, steps) for library in (ts, reference))

    assert ours == theirs
