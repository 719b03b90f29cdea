from tensorstore_py._interface.resize_request import ResizeRequest


def test_by_default_bounds_may_grow_and_shrink_and_chunks_go():
    request = ResizeRequest((None,), (5,))

    assert request[2:] == (False, False, False)
