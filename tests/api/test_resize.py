"""Resizing through views, next to the reference: what is allowed, and what it comes to."""

import pytest
import tensorstore as wheel
from hypothesis import given, note
from hypothesis import strategies as st

import tensorstore_py as ts
from tensorstore_py.errors import FailedPreconditionError, OutOfRangeError

SPEC = {"driver": "zarr3", "kvstore": "memory://"}


@st.composite
def one_term(draw, size):
    low = draw(st.integers(0, size - 1))
    high = draw(st.integers(low + 1, size))
    return draw(
        st.sampled_from(
            [":", ":", "0:", f"0:{high}", f"{low}:", f"{low}:{high}", f"{low}", "::-1", "::2"]
        )
    )


@st.composite
def view_programs(draw):
    """A shape, and a piece of text in `s` and `ts` that makes a view."""
    shape = draw(st.lists(st.sampled_from([1, 2, 4, 5]), min_size=1, max_size=2))
    steps = f"s[{', '.join(draw(one_term(size)) for size in shape)}]"
    if len(shape) == 2:
        odd = ["s[ts.d[0, 1].diagonal]", "s.vindex[[0, 0], [0, 0]]", "s.oindex[[0, 0]]"]
        steps = draw(st.sampled_from([steps, steps, steps, *odd]))
    steps += draw(st.sampled_from(["", "", "[None]"]))
    steps += draw(st.sampled_from(["", "", ".translate_by[2]", ".translate_by[-3]", ".T"]))
    return shape, steps


def bound_near(draw, bound):
    return draw(st.sampled_from([None, None, bound, bound + 1, bound - 1, 0, 7]))


@st.composite
def requests(draw):
    shape, steps = draw(view_programs())
    view = ts.IndexDomain(shape=shape, implicit_upper_bounds=[True] * len(shape))
    domain = eval(steps, {"s": ts.IndexTransform(view), "ts": ts}).domain
    options = {
        name: draw(st.booleans()) and draw(st.booleans())
        for name in ("resize_tied_bounds", "expand_only", "shrink_only")
    }
    if draw(st.booleans()):
        options["inclusive_min"] = [bound_near(draw, low) for low in domain.inclusive_min]
    options["exclusive_max"] = [bound_near(draw, high) for high in domain.exclusive_max]
    return shape, steps, options


def outcome(library, shape, steps, options):
    whole = library.open(
        SPEC, create=True, dtype="uint8", shape=shape, context=library.Context()
    ).result()
    view = eval(steps, {"s": whole, "ts": library})
    try:
        resized = view.resize(**options).result()
    except Exception as error:
        return error
    return str(resized.domain), whole.resolve().result().shape


@given(requests())
def test_a_view_is_resized_as_by_the_reference(request_):
    mine, theirs = (outcome(library, *request_) for library in (ts, wheel))
    note(f"ours: {mine!r}\nreference: {theirs!r}")
    if isinstance(theirs, Exception):
        assert isinstance(mine, ValueError)
    elif "negative extent" in str(mine):
        # the reference makes it an empty array
        assert 0 in theirs[1]
    else:
        assert mine == theirs


def asked(view, low, high, *, tied=False):
    """The shape that an array of 10 x 20 has when a view of it has been resized."""
    whole = ts.open(SPEC, create=True, dtype="uint8", shape=[10, 20], context=ts.Context()).result()
    resized = view(whole)
    resized.resize(inclusive_min=low, exclusive_max=high, resize_tied_bounds=tied).result()
    return whole.resolve().result().shape


class TestRequests:
    @pytest.mark.parametrize(
        ("view", "high", "expected"),
        [
            (lambda t: t, [12, None], (12, 20)),
            (lambda t: t.T, [12, None], (10, 12)),
            (lambda t: t.translate_by[5, -3], [12, 3], (7, 6)),
            (lambda t: t[None], [1, 12, 4], (12, 4)),
            (lambda t: t, [None, None], (10, 20)),
        ],
        ids=["whole", "transposed", "translated", "new axis", "nothing"],
    )
    def test_bounds_of_a_view_become_bounds_of_the_array(self, view, high, expected):
        if len(high) == 3:
            high = [None, *high[1:]]
        assert asked(view, None, high) == expected

    def test_a_reversed_view_grows_at_its_lower_end(self):
        assert asked(lambda t: t[::-1], [-11, None], None) == (12, 20)

    def test_tied_bounds_go_together(self):
        view = lambda t: t[ts.d[0, 1].diagonal]  # noqa: E731  # names what the test is about
        assert asked(view, None, [12], tied=True) == (12, 12)
        with pytest.raises(FailedPreconditionError, match=r"diagonal.*resize_tied_bounds=True"):
            asked(view, None, [12])

    @pytest.mark.parametrize(
        ("view", "high", "expected"),
        [
            (lambda t: t[3], [25], (10, 25)),
            (lambda t: t[2:], [12, None], (12, 20)),
            (lambda t: t[:, 4:5], [12, None], (12, 20)),
        ],
        ids=["integer", "lower part left out", "part of the other dimension"],
    )
    def test_what_the_view_does_not_show_changes_only_if_that_is_meant(self, view, high, expected):
        with pytest.raises(FailedPreconditionError, match="resize_tied_bounds=True"):
            asked(view, None, high)
        assert asked(view, None, high, tied=True) == expected


class TestErrors:
    @pytest.mark.parametrize("name", ["inclusive_min", "exclusive_max"])
    def test_a_list_of_the_wrong_length(self, name):
        bounds = [[5], None] if name == "inclusive_min" else [None, [5]]
        with pytest.raises(ValueError, match=f"{name} has 1 elements.*rank 2"):
            asked(lambda t: t, *bounds)

    def test_an_explicit_bound_is_named_whatever_else_is_asked(self):
        with pytest.raises(FailedPreconditionError, match=r"dimension 1.*upper bound 5"):
            asked(lambda t: t[:, :5], None, [12, 5], tied=True)
        with pytest.raises(FailedPreconditionError, match=r"dimension 0.*lower bound 0"):
            asked(lambda t: t, [0, None], [12, None])

    def test_bounds_in_the_wrong_order(self):
        with pytest.raises(OutOfRangeError, match=r"dimension 0 to \[5, 4\)"):
            asked(lambda t: t, [5, None], [4, None])

    def test_a_view_that_steps_over_positions(self):
        with pytest.raises(FailedPreconditionError, match=r"steps over dimension 0 .* by 2"):
            asked(lambda t: t[::2], None, [8, None], tied=True)
