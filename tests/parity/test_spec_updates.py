"""Random updates of specs, on the reference and on ours: the same specs, the same refusals."""

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

from tests.parity.libraries import ours, wheel

MEMORY = "memory://a/"
SPECS: list[dict[str, object]] = [
    {"driver": "zarr3", "kvstore": MEMORY},
    {"driver": "zarr3"},
    {"driver": "zarr", "kvstore": MEMORY, "create": True},
    {"driver": "zarr", "kvstore": MEMORY, "open": True, "create": True, "dtype": "uint8"},
    {"driver": "zarr3", "kvstore": MEMORY, "create": True, "delete_existing": True},
    {"driver": "zarr3", "kvstore": MEMORY, "open": True, "assume_metadata": True, "rank": 2},
    {"driver": "zarr3", "kvstore": MEMORY, "open": False, "assume_cached_metadata": True,
     "create": True},
    {"driver": "zarr", "kvstore": MEMORY, "schema": {"dtype": "int8", "domain": {"shape": [4, 5]}}},
    {"driver": "zarr", "kvstore": MEMORY, "schema": {"domain": {"shape": [4, 5]}}},
    {"driver": "zarr3", "kvstore": MEMORY,
     "transform": {"input_inclusive_min": [2], "input_shape": [3]}},
    {"driver": "zarr3", "kvstore": MEMORY, "recheck_cached_data": False,
     "metadata": {"shape": [10, 20], "data_type": "uint16"}},
    {"driver": "zarr", "kvstore": MEMORY, "recheck_cached_metadata": 5.5,
     "metadata": {"shape": [10, 20], "dtype": "<u2", "chunks": [3, 4]},
     "context": {"cache_pool": {"total_bytes_limit": 100}}},
]  # fmt: skip

MODES = [
    "OpenMode()", "OpenMode(open=True)", "OpenMode(create=True)",
    "OpenMode(open=True, create=True)", "OpenMode(create=True, delete_existing=True)",
    "OpenMode(delete_existing=True)", "OpenMode(open=True, assume_metadata=True)",
    "OpenMode(assume_metadata=True, assume_cached_metadata=True)",
]  # fmt: skip
FLAGS = ["open", "create", "delete_existing", "assume_metadata", "assume_cached_metadata"]
OPTIONS = {
    **{flag: ["True", "False"] for flag in FLAGS},
    "open_mode": [f"ts.{mode}" for mode in MODES],
    "recheck_cached_metadata": ["True", "False", "'open'", "17.0"],
    "recheck_cached_data": ["True", "False", "'open'", "17.5"],
    "recheck_cached": ["True", "False", "'open'", "3"],
    "rank": ["2"],
    "dtype": ["'uint8'", "'uint16'"],
    "dimension_units": ["['nm', None]"],
    "schema": ["ts.Schema(rank=2)", "ts.Schema(dtype='uint16')"],
    "chunk_layout": ["ts.ChunkLayout(grid_origin=[0, 0])"],
    "strip_context": ["True"],
    "unbind_context": ["True"],
    "context": ["ts.Context({'cache_pool': {'total_bytes_limit': 5}})"],
}

OPTION = st.sampled_from(sorted(OPTIONS)).flatmap(
    lambda name: st.tuples(st.just(name), st.sampled_from(OPTIONS[name]))
)
UPDATE = st.lists(OPTION, min_size=1, max_size=2, unique_by=lambda option: option[0]).map(
    lambda options: f"s.update({', '.join(f'{name}={value}' for name, value in options)})"
)


def shown(spec):
    """What a spec says of itself."""
    parts = [spec.domain, spec.transform, spec.schema, spec.codec, spec.chunk_layout]
    return (
        [part and part.to_json() for part in parts],
        spec.to_json(),
        repr(spec),
        repr(spec.open_mode),
        spec.rank,
        str(spec.dtype),
    )


def run(library, json, updates):
    """What the spec says after each update; one that is refused may leave half of itself."""
    spec = library.Spec(json)
    outcomes = [shown(spec)]
    for update in updates:
        try:
            eval(update, {"s": spec, "ts": library})
        except Exception as error:
            return [*outcomes, error]
        outcomes.append(shown(spec))
    return outcomes


@settings(max_examples=3 * settings().max_examples)
@given(st.sampled_from(SPECS), st.lists(UPDATE, max_size=3))
def test_updates(json, updates):
    for mine, theirs in zip(run(ours, json, updates), run(wheel, json, updates), strict=True):
        note(f"ours:      {mine!r}\nreference: {theirs!r}")
        if isinstance(theirs, Exception):
            assert isinstance(mine, type(theirs))
        else:
            assert mine == theirs


@pytest.mark.parametrize("json", SPECS, ids=str)
def test_minimal(json):
    printed = []
    for library in (ours, wheel):
        spec = library.Spec(json)
        spec.update(minimal_spec=True)
        printed.append(spec.to_json())
    assert printed[0] == printed[1]
