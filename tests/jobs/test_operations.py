import pytest

import tensorstore_py as ts
from tensorstore_py._jobs.operations import operations


def test_are_public_functions_with_their_arguments():
    known = operations()
    for name, operation in known.items():
        assert callable(getattr(ts, name, None) or getattr(ts.multiscale, name, None))
        assert operation.text.endswith(".")
        assert {"executor", "manifest", "progress", "context"} & set(operation.members) == set()
    copy = known["copy"].members
    assert (copy["source"].kind, copy["source"].required) == ("read", True)
    assert (copy["dest"].kind, copy["chunks"].kind) == ("write", "data")
    assert copy["if_exists"].default == "raise"
    assert copy["excludes"].text == "Patterns of what is left out."


def test_every_argument_is_known_to_editors_and_explained():
    unknown = [
        f"{operation.name}.{member.name}"
        for operation in operations().values()
        for member in operation.members.values()
        if member.kind == "other" or not member.text
    ]
    assert unknown == ["map_blocks.function"]  # which is code, and so not for everybody


def test_a_function_whose_docstring_refers_to_another_has_that_ones_texts():
    known = operations()
    assert known["rechunk"].members["shards"].text == known["copy"].members["shards"].text != ""


def test_checks_what_a_step_says():
    members = operations()["copy"].members
    members["dtype"].check("uint8")
    members["chunk_layout"].check({"chunk": {"shape": [3]}})
    members["chunks"].check({"x": 3})
    for name, value, problem in (
        ("dtype", "unt8", 'did you mean "uint8"'),
        ("dtype", 5, "expected a data type"),
        ("chunk_layout", {"chnk": 1}, "no such member"),
        ("chunks", "3", "expected an integer or a list of integers"),
        ("zarr_format", 4, "one of 2, 3"),
        ("if_exists", "skp", 'did you mean "skip"'),
    ):
        with pytest.raises(ts.SpecError, match=problem):
            members[name].check(value)


def test_a_schema_has_the_text_and_the_default():
    schema = operations()["copy"].members["if_exists"].schema()
    assert schema["enum"] == ["raise", "skip", "replace"]
    assert schema["default"] == "raise"
    assert schema["description"].startswith("What to do about arrays that are at the destination")
