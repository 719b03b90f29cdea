import pytest

from tensorstore_py._net.paging import Paging
from tensorstore_py.errors import DataLossError


def test_a_long_listing_goes_on():
    paging = Paging("here")

    for number in range(1000):
        paging.page([f"{number}", f"{number}x"], f"token {number}")
    paging.page(["last"], None)


def test_the_last_page_may_be_anything():
    paging = Paging("here")
    paging.page(["a"], "1")

    paging.page(["a"], "")


@pytest.mark.parametrize(
    ("names", "token"), [(["b"], "1"), (["a"], "2")], ids=["token again", "page again"]
)
def test_what_came_before_ends_it(names, token):
    paging = Paging("here")
    paging.page(["a"], "1")

    with pytest.raises(DataLossError, match=r"cannot list here: .*2 pages"):
        paging.page(names, token)


def test_names_in_between_begin_the_count_of_empty_pages_anew():
    paging = Paging("here")
    for number in range(3):
        for each in range(Paging.MOST_EMPTY):
            paging.page([], f"{number} {each}")
        paging.page([f"{number}"], f"{number}")
    for each in range(Paging.MOST_EMPTY):
        paging.page([], f"last {each}")
    with pytest.raises(DataLossError):
        paging.page([], "one more")
