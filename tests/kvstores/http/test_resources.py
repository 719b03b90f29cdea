import tensorstore_py as ts


def test_shared_limits_are_one_for_the_process():
    first, second = ts.Context(), ts.Context()
    name = "http_request_concurrency"
    assert first[name].value is second[name].value
    assert first[name].value.limit == 32
    assert ts.Context({name: {"limit": 3}})[name].value.limit == 3
    assert ts.Context()["http_request_retries"].value.max_retries == 32
