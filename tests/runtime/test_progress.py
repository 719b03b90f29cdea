import threading

import pytest

from tensorstore_py._runtime.progress import Progress, Told


def test_a_fraction_and_a_line_of_it():
    progress = Progress(2**20, 4 * 2**20, 1, 4)
    assert progress.fraction == 0.25
    assert str(progress) == "25%: 1.0 of 4.0 MiB, 1 of 4 chunks"


def test_nothing_to_do_is_done():
    assert Progress(0, 0, 0, 0).fraction == 1


def test_nobody_is_told():
    told = Told(None)
    told.begin(5, 1)
    told.advance(5, 1)


def test_calls_come_one_at_a_time_and_figures_only_grow():
    inside, seen = threading.Lock(), []

    def see(progress):
        assert inside.acquire(blocking=False)
        seen.append(progress)
        inside.release()

    told = Told(see)
    told.begin(4000, 400)

    def work():
        for _ in range(100):
            told.advance(10, 1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [Progress(10 * each, 4000, each, 400) for each in range(401)]


def test_what_it_raises_is_passed_on_and_the_next_one_goes_on():
    def refuse(progress):
        raise KeyError(progress.chunks_done)

    told = Told(refuse)
    with pytest.raises(KeyError, match="0"):
        told.begin(2, 2)
    for done in "12":
        with pytest.raises(KeyError, match=done):
            told.advance(1, 1)
