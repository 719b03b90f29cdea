from tensorstore_py._runtime.work import Attached, Work


def test_work_that_nobody_can_begin_or_stop():
    work = Work()
    assert not work.claim()
    work.stop()
    work.hurry()


def test_work_by_its_functions():
    called: list[str] = []

    def claim() -> bool:
        called.append("claim")
        return True

    work = Attached(claim, lambda: called.append("stop"), lambda: called.append("hurry"))
    assert work.claim()
    work.stop()
    work.hurry()
    assert called == ["claim", "stop", "hurry"]


def test_work_that_only_can_be_stopped():
    called: list[str] = []
    work = Attached(None, lambda: called.append("stop"), None)
    assert not work.claim()
    work.hurry()
    assert called == []
    work.stop()
    assert called == ["stop"]
