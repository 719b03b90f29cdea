from tensorstore_py._plan.share import Share
from tensorstore_py._plan.steps import Stage
from tensorstore_py._runtime.progress import Progress, Told
from tests.plan.test_steps import step


def told_of(stages):
    seen: list[Progress] = []
    told = Told(seen.append)
    told.begin(2 * 2 * 5, 5, 2)
    return Share(stages, told), seen


def test_in_proportion_and_whole_at_the_end():
    share, seen = told_of((Stage((step("a", 3), step("b", 2))),))

    for tasks in (1, 1, 2, 1):
        share.advance(0, tasks)

    assert [each.bytes_done for each in seen] == [0, 4, 8, 16, 20]
    assert seen[-1].chunks_done == 5
    assert seen[-1].arrays_done == 2


def test_what_others_have_done_is_told_at_the_end():
    share, seen = told_of((Stage((step("a", 3),)), Stage((step("b", 2),))))
    share.advance(1, 1)

    share.finish()
    share.finish()

    assert (seen[-1].bytes_done, seen[-1].arrays_done) == (20, 2)


def test_what_is_seen_elsewhere_and_told_here_is_not_counted_twice():
    share, seen = told_of((Stage((step("a", 3), step("b", 2))),))

    share.reach(0, 3)
    share.advance(0, 2)
    share.reach(0, 1)
    share.advance(0, 2)

    assert [each.bytes_done for each in seen] == [0, 12, 16]
