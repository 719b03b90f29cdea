import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorstore_py._conversion.member_paths import MemberPaths
from tensorstore_py.errors import NotFoundError, SpecError

PATHS = ["a", "a/b", "a/b/c", "a/x.y", "b", "b/c", "c", "ab"]


@pytest.mark.parametrize(
    ("includes", "meant"),
    [
        (None, PATHS),
        ("a", ["a", "a/b", "a/b/c", "a/x.y"]),
        ("/a/b/", ["a/b", "a/b/c"]),
        ("*", PATHS),
        ("*/c", ["b/c"]),
        ("**/c", ["a/b/c", "b/c", "c"]),
        ("a/**", ["a/b", "a/b/c", "a/x.y"]),
        ("a/?.?", ["a/x.y"]),
        ("[!a]", ["b", "b/c", "c"]),
        ("a/x?y", ["a/x.y"]),
        (["c", "ab"], ["c", "ab"]),
    ],
)
def test_patterns_match_whole_paths(includes, meant):
    paths = MemberPaths.of(includes, None)

    assert [path for path in PATHS if paths.means(path)] == meant


def test_what_is_excluded_stays_out():
    paths = MemberPaths.of(["a", "b/c"], ["a/b", "**/c"])

    assert [path for path in PATHS if paths.means(path)] == ["a", "a/x.y"]


def test_groups_above_come_along():
    paths = MemberPaths.of("a/b/c", None)

    assert paths.among(["", *PATHS]) == {"", "a", "a/b", "a/b/c"}


def test_a_pattern_that_means_nothing_is_a_mistake():
    with pytest.raises(NotFoundError, match="nothing matches 'd'"):
        MemberPaths.of(["a", "d"], None).among(PATHS)


def test_refuses_what_is_no_pattern():
    with pytest.raises(SpecError, match="empty"):
        MemberPaths.of("", None)
    with pytest.raises(TypeError, match="excludes"):
        MemberPaths.of(None, [1])  # type: ignore[list-item]


names = st.text("ab.*?[]", min_size=1, max_size=3)
some_paths = st.lists(names, min_size=1, max_size=3).map("/".join)


@given(some_paths, st.lists(some_paths, max_size=4))
def test_a_star_for_each_name_means_what_is_as_deep_or_deeper(pattern, paths):
    stars = MemberPaths.of("/".join("*" for _ in pattern.split("/")), None)

    for path in paths:
        assert stars.means(path) == (path.count("/") >= pattern.count("/"))


@given(st.lists(some_paths, max_size=6), st.lists(some_paths, max_size=2))
def test_everything_is_either_included_or_excluded(paths, patterns):
    excluding = MemberPaths.of(None, patterns)
    including = MemberPaths.of(patterns or None, None)

    for path in paths:
        if patterns:
            assert excluding.means(path) != including.means(path)
        else:
            assert excluding.means(path)
