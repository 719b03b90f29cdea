import pytest
import tensorstore as reference

from tensorstore_py._spec.context import Context
from tensorstore_py.errors import SpecError
from tensorstore_py.kvstores.file import FileSpec

MEMBERS = [
    ("file_io_sync", True),
    ("file_io_sync", False),
    ("file_io_sync", 1),
    ("file_io_sync", None),
    ("file_io_sync", "file_io_sync#x"),
    ("file_io_concurrency", {}),
    ("file_io_concurrency", {"limit": "shared"}),
    ("file_io_concurrency", {"limit": 3}),
    ("file_io_concurrency", {"limit": 0}),
    ("file_io_concurrency", {"limit": -1}),
    ("file_io_concurrency", {"limit": "many"}),
    ("file_io_locking", {}),
    ("file_io_locking", {"mode": "os"}),
    ("file_io_locking", {"mode": "lockfile"}),
    ("file_io_locking", {"mode": "none"}),
    ("file_io_locking", {"mode": "non_atomic", "acquire_timeout": "5s"}),
    ("file_io_locking", {"mode": "lockfile", "acquire_timeout": "60s"}),
    ("file_io_locking", {"acquire_timeout": "90s"}),
    ("file_io_locking", {"acquire_timeout": 5}),
    ("file_io_locking", {"acquire_timeout": None}),
    ("file_io_locking", {"mode": "flock"}),
    ("file_io_locking", {"mode": None}),
    ("file_io_locking", True),
    ("file_io_locking", "os"),
    ("file_io_locking", {"timeout": 1}),
    ("file_io_mode", {}),
    ("file_io_mode", {"mode": "default"}),
    ("file_io_mode", {"mode": "memmap"}),
    ("file_io_mode", {"mode": "direct"}),
    ("file_io_mode", {"mode": "other"}),
    ("file_io_mode", "memmap"),
    ("file_io_retries", {}),
    ("file_io_retries", {"max_retries": 0}),
    ("file_io_retries", {"max_retries": 3, "initial_delay": "2s", "max_delay": "100ms"}),
    ("file_io_retries", {"max_retries": -1}),
    ("file_io_retries", {"max_retries": 1.5}),
    ("file_io_retries", {"initial_delay": "soon"}),
]


@pytest.mark.parametrize("include_defaults", [False, True])
@pytest.mark.parametrize(("member", "json"), MEMBERS)
def test_takes_and_prints_what_the_reference_does(member, json, include_defaults):
    spec = {"driver": "file", "path": "/a", member: json}
    try:
        theirs = reference.KvStore.Spec(spec).to_json(include_defaults=include_defaults)
    except ValueError:
        with pytest.raises(SpecError) as caught:
            FileSpec.parse(spec)
        assert caught.value.path[0] == member
    else:
        assert FileSpec.parse(spec).to_json(include_defaults) == theirs


@pytest.mark.parametrize(
    "name",
    ["file_io_concurrency", "file_io_locking", "file_io_mode", "file_io_retries", "file_io_sync"],
)
def test_the_defaults_of_a_context_are_those_of_the_reference(name):
    ours, theirs = Context()[name], reference.Context()[name]

    assert repr(ours) == repr(theirs)
    for include_defaults in (False, True):
        assert ours.to_json(include_defaults) == theirs.to_json(include_defaults)
