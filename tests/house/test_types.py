"""Types of public names: every parameter has one, and `Any` only where no type is known."""

import inspect
import re
from collections.abc import Iterator
from typing import Any

import numpy as np

import tensorstore_py as ts

#: Where `Any` is right.
UNKNOWN = {
    "Attributes.__getitem__": "JSON",
    "Attributes.asdict": "JSON",
    "Attributes.change": "JSON",
    "Attributes.get": "JSON",
    "Attributes.items": "JSON",
    "Attributes.read": "JSON",
    "Attributes.values": "JSON",
    "Batch.add": "what a coroutine is sent",
    "Context.__getitem__": "a resource of whichever kind",
    "Group.__getitem__": "an array or a group, whichever is there",
    "Plan.__init__": "what a call gives",
    "Plan.run": "what a call gives",
    "experimental_collect_matching_metrics": "JSON",
    "json_schema": "JSON",
    "plan": "what a call gives",
    "reduce": "scalars, arrays and histograms of whichever type",
}


def functions() -> Iterator[tuple[str, Any]]:
    """Every function, method and property of the door, by name."""
    for name in ts.__all__:
        value = getattr(ts, name)
        if inspect.isclass(value):
            for cls in value.__mro__:
                if cls.__module__.partition(".")[0] == "tensorstore_py":
                    yield from methods(name, cls)
        elif inspect.isroutine(value):
            yield name, value


def methods(name: str, cls: type) -> Iterator[tuple[str, Any]]:
    for each, member in vars(cls).items():
        if each.startswith("_") and each not in ("__init__", "__getitem__", "__call__"):
            continue
        function = member.fget if isinstance(member, property) else member
        function = getattr(function, "__func__", function)
        if inspect.isfunction(function):
            yield f"{name}.{each}", function


def as_numpys(where: str) -> bool:
    """Whether it is a method that NumPy's arrays have, too, with whatever their elements are."""
    name, _, member = where.partition(".")
    return name in ("NumpyView", "TensorStore") and hasattr(np.ndarray, member)


def test_any_is_said_only_where_no_type_is_known():
    said = {
        where
        for where, function in functions()
        if not as_numpys(where)
        and any(re.search(r"\bAny\b", str(each)) for each in function.__annotations__.values())
    }

    assert said == set(UNKNOWN)


def test_every_parameter_has_a_type():
    bare = [
        f"{where}: {parameter.name}"
        for where, function in functions()
        for parameter in inspect.signature(function).parameters.values()
        if parameter.annotation is parameter.empty and parameter.name not in ("self", "cls")
    ]

    assert bare == [], "\n".join(bare)
