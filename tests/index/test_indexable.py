from dataclasses import dataclass, field

import pytest

from tensorstore_py._index import (
    Dim,
    Indexable,
    IndexDomain,
    IndexTransform,
    apply_index,
    d,
    propagate_bounds,
)


@dataclass(frozen=True, eq=False)
class View(Indexable):
    """The smallest thing that can be indexed: it notes what is assigned."""

    transform: IndexTransform
    written: list = field(default_factory=list)

    def _get_transform(self):
        return self.transform

    def _with_transform(self, transform):
        return View(transform, self.written)

    def __setitem__(self, index, source):
        self._assign_index(index, "default", source)

    def _assign(self, transform, source):
        self.written.append((transform, source))


@pytest.fixture
def view():
    return View(IndexTransform([Dim(1, 5, label="x"), Dim(0, 6, label="y")]))


def test_the_face_of_a_view(view) -> None:
    assert (view.rank, view.ndim, view.origin, view.shape, view.size) == (2, 2, (1, 0), (4, 6), 24)
    assert view.domain == view.transform.domain
    with pytest.raises(TypeError):
        iter(view)


@pytest.mark.parametrize(
    "operation",
    [
        lambda x: x[2, 1:3],
        lambda x: x[IndexDomain([Dim(2, 3, label="y")])],
        lambda x: x[IndexTransform(2)],
        lambda x: x[d["y"].translate_to[7]],
        lambda x: x.oindex[[1, 2], [0]],
        lambda x: x.vindex[[1, 2], [0]],
        lambda x: x.translate_to[0],
        lambda x: x.translate_by[1, None],
        lambda x: x.translate_backward_by[1],
        lambda x: x.label["a", "b"],
        lambda x: x.mark_bounds_implicit[:True],
        lambda x: x.transpose(["y", 0]),
        lambda x: x.T,
    ],
)
def test_every_operation_gives_a_new_view(view, operation) -> None:
    result = operation(view)

    assert type(result) is View
    assert result.transform == operation(view.transform) != view.transform


def test_assignment_gets_the_transform_that_the_index_means(view) -> None:
    view[2, 1:3] = "a"
    view.oindex[[1, 2], 0] = "b"
    view.vindex[[1, 2], [0, 3]] = "c"

    x = view.transform
    expected = [x[2, 1:3], x.oindex[[1, 2], 0], x.vindex[[1, 2], [0, 3]]]
    assert view.written == list(zip(expected, "abc", strict=True))


def test_what_cannot_be_written_says_so() -> None:
    with pytest.raises(TypeError, match="'IndexTransform' object does not support item assignment"):
        IndexTransform(1).oindex[0] = 1


@pytest.mark.parametrize("axes", [[0], [0, 0], ["y"], 0, [0, 1, 1]])
def test_axes_must_be_a_permutation(view, axes) -> None:
    with pytest.raises(ValueError, match="is not a valid dimension permutation for rank 2"):
        view.transpose(axes)


@pytest.mark.parametrize("mode", ["default", "oindex", "vindex"])
def test_apply_index_is_the_door_for_subclasses(view, mode) -> None:
    x = view.transform
    expected = {"default": x, "oindex": x.oindex, "vindex": x.vindex}[mode][[1, 2], [0, 3]]

    assert apply_index(x, ([1, 2], [0, 3]), mode) == expected


def test_a_view_resolves_against_what_it_is_a_view_of(view) -> None:
    shrunk = IndexDomain([Dim(1, 3), Dim(0, 6)])

    assert propagate_bounds(shrunk, view[1:3].transform).domain == view[1:3].domain
