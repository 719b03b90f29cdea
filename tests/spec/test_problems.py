from enum import Enum
from typing import Annotated

import pytest
from pydantic import ValidationError

from tensorstore_py._spec.model import Field, Model
from tensorstore_py._spec.problems import spec_error


class Colour(Enum):
    RED = "red"


class Part(Model):
    size: Annotated[float, Field(gt=0, le=10)] = 1.0
    name: Annotated[str, Field(min_length=2, pattern="^a")] = "aa"
    colour: Colour = Colour.RED


class Whole(Model):
    part: Part | int | None = None
    parts: dict[str, Part] = Field(default_factory=dict)
    pair: tuple[int, str] = (1, "a")
    few: Annotated[tuple[int, ...], Field(min_length=1, max_length=2)] = (1,)


def problem(json):
    with pytest.raises(ValidationError) as caught:
        Whole.model_validate(json)
    return spec_error(caught.value, json)


@pytest.mark.parametrize(
    ("json", "path", "text"),
    [
        ({"part": {"size": 0}}, ("part", "size"), "expected a number above 0.0, but found 0"),
        ({"part": {"size": 11}}, ("part", "size"), "expected a number not above 10.0"),
        ({"part": {"size": "x"}}, ("part", "size"), 'expected a number, but found "x"'),
        ({"part": {"name": "a"}}, ("part", "name"), "at least 2 characters"),
        ({"part": {"name": "bb"}}, ("part", "name"), 'a string that matches "^a"'),
        ({"part": {"colour": "blue"}}, ("part", "colour"), "expected"),
        ({"part": "x"}, ("part",), 'but found "x"'),
        ({"parts": {"one": {"size": None}}}, ("parts", "one", "size"), "found null"),
        ({"parts": []}, ("parts",), "expected an object, but found []"),
        ({"pair": ("x", "a")}, ("pair", 0), "expected an integer"),
        ({"pair": (1,)}, ("pair", 1), "required"),
        ({"few": ()}, ("few",), "expected at least 1 elements"),
        ({"few": (1, 2, 3)}, ("few",), "expected at most 2 elements"),
    ],
)
def test_the_most_telling_finding(json, path, text):
    error = problem(json)

    assert error.path == path
    assert text in error.problem
