"""What is served, read by other programs: zarr-python, the reference, and plain requests."""

import asyncio
import json
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import numpy as np
import pytest
import tensorstore as reference
import zarr

import tensorstore_py as ts


def numbers(shape, dtype="uint16"):
    return (np.arange(np.prod(shape)) % 251).reshape(shape).astype(dtype)


def make(spec, data, **options: Any):
    array = ts.open(spec, create=True, dtype=data.dtype, shape=data.shape, **options).result()
    array.write(data).result()
    return array


def get(url, **headers):
    with urlopen(Request(url, headers=headers), timeout=60) as answer:
        return answer.status, dict(answer.headers), answer.read()


def status(url, method="GET", **headers):
    try:
        with urlopen(Request(url, headers=headers, method=method), timeout=60) as answer:
            return answer.status
    except HTTPError as error:
        with error:
            body = error.read()
            return json.loads(body)["status"] if body and error.code != 416 else error.code


def by_zarr(url):
    return zarr.open_array(url, mode="r")[...]


def by_reference(url, driver):
    kvstore = {"driver": "http", "base_url": url}
    return reference.open({"driver": driver, "kvstore": kvstore}).result().read().result()


def volume(url):
    """What the reference reads of a precomputed volume, as z, y, x."""
    return by_reference(url, "neuroglancer_precomputed")[..., 0].T


DATA = numbers((5, 30, 40))

STORED = {
    "n5": {"driver": "n5", "kvstore": "memory://"},
    "zarr3": {"driver": "zarr3", "kvstore": "memory://"},
    "zarr2": {"driver": "zarr", "kvstore": "memory://"},
    "sharded": {
        "driver": "zarr3", "kvstore": "memory://",
        "schema": {"chunk_layout": {
            "read_chunk": {"shape": [2, 8, 8]}, "write_chunk": {"shape": [4, 16, 16]}}},
    },
}  # fmt: skip


@pytest.fixture(params=list(STORED))
def stored(request):
    spec: Any = STORED[request.param]
    options = (
        {}
        if request.param == "sharded"
        else {"chunk_layout": ts.ChunkLayout(chunk_shape=[2, 16, 16])}
    )
    return make(spec, DATA, **options)


def test_any_format_is_read_by_all_clients(stored):
    with ts.serve(stored).result() as server:
        assert list(server.urls) == ["zarr3", "zarr2", "precomputed", "stored"]
        for name, driver in (("zarr3", "zarr3"), ("zarr2", "zarr")):
            np.testing.assert_array_equal(by_zarr(server.urls[name]), DATA)
            np.testing.assert_array_equal(by_reference(server.urls[name], driver), DATA)
            np.testing.assert_array_equal(ts.open(server.urls[name]).result(), DATA)
        np.testing.assert_array_equal(volume(server.urls["precomputed"]), DATA)


def test_a_selection_is_all_that_is_served(stored):
    with ts.serve(stored[1, :, 5:37:2]).result() as server:
        wanted = DATA[1, :, 5:37:2]

        assert "stored" not in server.urls
        np.testing.assert_array_equal(by_zarr(server.urls["zarr2"]), wanted)
        np.testing.assert_array_equal(by_reference(server.urls["zarr3"], "zarr3"), wanted)
        np.testing.assert_array_equal(volume(server.urls["precomputed"])[0], wanted)


def test_stored_keys_are_passed_on_as_they_are(stored):
    store = stored.kvstore
    with ts.serve(stored).result() as server:
        driver = stored.spec().to_json()["driver"]
        for key in store.list().result():
            name = key.decode()
            assert get(server.urls["stored"] + name)[2] == store[key]
            if driver in ("zarr", "zarr3"):
                version = "zarr3" if driver == "zarr3" else "zarr2"
                assert get(server.urls[version] + name)[2] == store[key]


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint64", "float16", "float32", "float64", "complex64", ">i4"]
)
def test_data_types(dtype):
    data = numbers((7, 9), dtype)
    with ts.serve(ts.array(data)).result() as server:
        np.testing.assert_array_equal(by_zarr(server.urls["zarr3"]), data)
        np.testing.assert_array_equal(by_zarr(server.urls["zarr2"]), data)
        if "precomputed" in server.urls:
            np.testing.assert_array_equal(volume(server.urls["precomputed"])[0], data)


def test_text_is_served():
    spec = {"driver": "zarr3", "kvstore": "memory://"}
    array = ts.open(spec, create=True, dtype="ustring", shape=[3]).result()
    array.write(np.array(["a", "bc", ""], object)).result()
    with ts.serve(array[1:]).result() as server:
        assert by_zarr(server.urls["zarr3"]).tolist() == ["bc", ""]
        assert by_zarr(server.urls["zarr2"]).tolist() == ["bc", ""]


@pytest.mark.parametrize("shape", [(), (0,), (3, 0)])
def test_arrays_without_dimensions_or_elements(shape):
    data = np.ones(shape, "int16")
    with ts.serve(ts.array(data)).result() as server:
        np.testing.assert_array_equal(by_zarr(server.urls["zarr3"]), data)
        np.testing.assert_array_equal(by_zarr(server.urls["zarr2"]), data)


def test_a_large_virtual_array_is_computed_where_it_is_asked_for():
    asked = []

    def function(domain, array, _):
        asked.append(array.size)
        array[...] = domain.inclusive_min[0] % 256

    array = ts.virtual_chunked(function, dtype="uint8", domain=ts.IndexDomain(shape=[2**40, 2**20]))
    with ts.serve(array).result() as server:
        found: Any = zarr.open_array(server.urls["zarr3"], mode="r")
        assert found.shape == (2**40, 2**20)
        low, high = 2**39, 2**39 + 3
        assert found[low:high, 5:7].shape == (3, 2)

    assert 0 < sum(asked) < 2**24


def test_an_array_without_bounds_is_refused():
    spec = {"driver": "array", "array": [1], "dtype": "int8"}
    ts.serve(spec).result().close()
    array = ts.virtual_chunked(lambda *_: None, dtype="uint8", rank=1)
    with pytest.raises(ts.SpecError, match="without bounds"):
        ts.serve(array).result()


@pytest.mark.parametrize("version", [2, 3])
def test_groups_are_walked_by_other_programs(version, tmp_path):
    place = tmp_path / "a.zarr"
    units: Any = {"dimension_units": ["3nm"]} if version == 3 else {}
    group = ts.Group.open(
        place, create=True, attributes={"title": "t"}, zarr_format=version
    ).result()
    array: Any = group.create_array("x/y", dtype="int16", shape=[4], attributes={"k": 1}, **units)
    array.result()[:] = 3
    group.create_group("empty", attributes={"n": 1}).result()
    with ts.serve(group).result() as server:
        for name in ("zarr3", "zarr2"):
            found: Any = zarr.open_group(server.urls[name], mode="r")
            assert found.attrs["title"] == "t"
            assert sorted(path for path, _ in found.members(None)) == ["empty", "x", "x/y"]
            assert found["x/y"][:].tolist() == [3] * 4
            assert found["x/y"].attrs["k"] == 1
        assert server.arrays == ["x/y"]
        assert server.array_url("x/y").endswith("/zarr3/x/y/")


def test_many_arrays_are_said_in_another_format_when_that_is_asked_for():
    group = ts.Group.open("memory://", create=True).result()
    made = [group.create_array(f"a{number}", dtype="int8", shape=[1]) for number in range(101)]
    for each in made:
        each.result()
    with ts.serve(group).result() as server:
        assert list(server.urls) == ["zarr3", "zarr2", "precomputed", "stored"]
        found: Any = zarr.open_group(server.urls["zarr2"], mode="r")
        assert len(list(found.members())) == 101
        assert found["a100"][:].tolist() == [0]


def test_several_are_served_by_path():
    one, other = ts.array(numbers((3, 4))), ts.array(numbers((2,), "float64"))
    with ts.serve({"images/one": one, "other": other}).result() as server:
        found: Any = zarr.open_group(server.urls["zarr3"], mode="r")
        np.testing.assert_array_equal(found["images/one"][:], one)
        np.testing.assert_array_equal(found["other"][:], other)
        assert "float64" in server.left_out["precomputed"]["other"]
    with pytest.raises(ts.SpecError, match='"/a" cannot'):
        ts.serve({"a": one, "a/b": other}).result()
    with pytest.raises(ts.SpecError, match="nothing to serve"):
        ts.serve({}).result()


def test_an_image_of_several_levels_is_one_volume(tmp_path):
    data = numbers((3, 64, 64))
    image = ts.pyramid(
        data, tmp_path / "i.zarr", axes="zyx", levels=2, pixel_size=[2, 0.5, 0.5], units="um"
    ).result()
    with ts.serve(image.group).result() as server:
        info = json.loads(get(server.urls["precomputed"] + "info")[2])
        assert [scale["resolution"] for scale in info["scales"]] == [
            [500.0, 500.0, 2000.0],
            [1000.0, 1000.0, info["scales"][1]["resolution"][2]],
        ]
        np.testing.assert_array_equal(volume(server.urls["precomputed"]), data)
        layers: Any = server.neuroglancer_state()["layers"]
        assert [each["type"] for each in layers] == ["image"]
        assert (server.vizarr() or "").endswith("zarr3")
        old = ts.multiscale.open(server.urls["zarr2"]).result()
        assert (old.version, len(old)) == ("0.4", 2)


def test_channels_come_last_in_volumes():
    data = numbers((2, 5, 6, 7))
    array = ts.array(data)[ts.d[:].label["c", "z", "y", "x"]]
    with ts.serve(array).result() as server:
        found = by_reference(server.urls["precomputed"], "neuroglancer_precomputed")
        np.testing.assert_array_equal(found, data.transpose(3, 2, 1, 0))


def test_what_a_format_cannot_express_is_said():
    array = ts.array(numbers((3,), "float64"))
    with ts.serve(array).result() as server:
        assert "precomputed" not in server.urls
        assert "cast" in server.left_out["precomputed"][""]
    with pytest.raises(ts.UnsupportedError, match="float64"):
        ts.serve(array, formats=["precomputed"]).result()
    with pytest.raises(ts.SpecError, match="hdf5"):
        ts.serve(array, formats=["hdf5"])


def test_an_archive_a_database_and_a_cast(tmp_path):
    data = numbers((6, 7))
    make(f"{(tmp_path / 'a.zip').as_uri()}|zip:|zarr3:", data)
    make({"driver": "zarr", "kvstore": f"{(tmp_path / 'db').as_uri()}/|ocdbt:a/"}, data)
    for spec in (
        tmp_path / "a.zip",
        f"{(tmp_path / 'db').as_uri()}/|ocdbt:a/|zarr2:",
        {
            "driver": "cast",
            "dtype": "float64",
            "base": f"{(tmp_path / 'a.zip').as_uri()}|zip:|zarr3:",
        },
    ):
        with ts.serve(spec).result() as server:
            np.testing.assert_array_equal(by_zarr(server.urls["zarr3"]), data)


def test_a_checkpoint_is_served_by_the_names_of_its_arrays(tmp_path):
    tree: Any = {"params": {"w": numbers((3, 4), "float32")}, "name": "run"}
    ts.orbax.save(tree, tmp_path / "checkpoint").result()
    for given in (tmp_path / "checkpoint", ts.orbax.open(tmp_path / "checkpoint").result()):
        with ts.serve(given).result() as server:
            assert server.arrays == ["params.w"]
            found = by_zarr(server.urls["zarr2"] + "params.w")
            np.testing.assert_array_equal(found, tree["params"]["w"])


def test_keys_alone_are_served():
    store = ts.KvStore.open("memory://a/").result()
    store["b/c"] = b"123"
    with ts.serve(store).result() as server:
        assert list(server.urls) == ["stored"]
        assert server.arrays == []
        assert get(server.urls["stored"] + "b/c")[2] == b"123"
        assert ts.KvStore.open(server.urls["stored"]).result()["b/c"] == b"123"


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    tmp_path = tmp_path_factory.mktemp("served")
    array = make(
        {"driver": "zarr3", "kvstore": tmp_path / "a.zarr"},
        numbers((4, 4)),
        chunk_layout=ts.ChunkLayout(chunk_shape=[4, 4]),
    )
    array.kvstore["big"] = bytes(range(250)) * 100_000
    (tmp_path / "secret").write_text("secret")
    with ts.serve(array).result() as server:
        yield server


def test_ranges(served):
    value = bytes(range(250)) * 100_000
    url = served.urls["stored"] + "big"

    code, headers, body = get(url)
    assert (code, body) == (200, value)
    assert headers["Accept-Ranges"] == "bytes"
    for asked, start, stop in (
        ("bytes=10-19", 10, 20),
        ("bytes=24999990-", 24_999_990, len(value)),
        ("bytes=24999990-99999999", 24_999_990, len(value)),
        ("bytes=-7", len(value) - 7, len(value)),
        ("bytes=-99999999", 0, len(value)),
        ("bytes=5-20000000", 5, 20_000_001),
    ):
        code, headers, body = get(url, Range=asked)
        assert (code, body) == (206, value[start:stop])
        assert headers["Content-Range"] == f"bytes {start}-{stop - 1}/{len(value)}"
        assert int(headers["Content-Length"]) == stop - start
    assert status(url, Range="bytes=25000000-") == 416
    assert status(url, Range="bytes=-0") == 416
    for ignored in ("bytes=5-2", "lines=1-2", "bytes=0-1,5-6", "bytes=a-b"):
        assert get(url, Range=ignored)[0] == 200


@pytest.mark.parametrize(
    "key", ["zarr3/c/0/0", "zarr3/zarr.json", "zarr2/.zarray", "zarr2/0.0", "stored/big",
            "precomputed/info", "precomputed/full/0-4_0-4_0-1", ""]
)  # fmt: skip
def test_tags_heads_and_conditions(served, key):
    url = served.url + key

    _, headers, body = get(url)
    tag = headers["ETag"]

    assert get(url)[1]["ETag"] == tag
    assert status(url, **{"If-None-Match": tag}) == 304
    assert status(url, **{"If-None-Match": f'"x", W/{tag}'}) == 304
    assert status(url, **{"If-None-Match": '"x"'}) == 200
    assert get(url, **{"Range": "bytes=0-0", "If-Range": tag})[0] == 206
    assert get(url, **{"Range": "bytes=0-0", "If-Range": '"x"'})[0] == 200
    assert get(url, Range="bytes=1-2")[2] == body[1:3]
    with urlopen(Request(url, method="HEAD"), timeout=60) as answer:
        assert answer.headers["ETag"] == tag
        assert int(answer.headers["Content-Length"]) == len(body)
        assert answer.read() == b""


@pytest.mark.parametrize(
    "path",
    ["../secret", "%2e%2e/secret", "..%2fsecret", "a/../../secret", "/etc/passwd", "%2Fetc",
     "a//b", "./big", "%00", "..\\secret", "%ff", "c", "c/", "", "nothing"],
)  # fmt: skip
@pytest.mark.parametrize("form", ["stored", "zarr3", "zarr2", "precomputed"])
def test_paths_lead_nowhere_else(served, form, path):
    from http.client import HTTPConnection

    connection = HTTPConnection("127.0.0.1", served.port, timeout=60)
    connection.putrequest("GET", f"/{served.token}/{form}/{path}", skip_accept_encoding=True)
    connection.endheaders()
    answer = connection.getresponse()
    body = answer.read()
    connection.close()

    assert answer.status in (400, 404), body
    assert b"secret" not in body
    assert b"/tmp" not in body


def test_links_out_of_the_place_are_not_followed(tmp_path):
    place = tmp_path / "a.zarr"
    make({"driver": "zarr3", "kvstore": place}, numbers((2,)))
    (tmp_path / "secret").write_text("secret")
    (place / "out").symlink_to(tmp_path / "secret")
    (place / "folder").symlink_to(tmp_path)
    (place / "in").symlink_to(place / "zarr.json")
    with ts.serve(place).result() as server:
        for form in ("stored", "zarr3"):
            assert status(server.urls[form] + "out") == 404
            assert status(server.urls[form] + "folder/secret") == 404
            assert get(server.urls[form] + "in")[2] == (place / "zarr.json").read_bytes()


@pytest.mark.parametrize("method", ["PUT", "POST", "DELETE", "PATCH"])
def test_nothing_can_be_changed(served, method):
    for form in served.urls.values():
        assert status(f"{form}zarr.json", method) == 405


def test_chunks_that_are_missing_and_those_that_are_broken(tmp_path, caplog):
    place = tmp_path / "a.n5"
    array = make({"driver": "n5", "kvstore": place}, numbers((4, 4)), codec="gzip",
                 chunk_layout=ts.ChunkLayout(chunk_shape=[2, 2]))  # fmt: skip
    array[2:, 2:].write(0).result()
    (place / "0" / "1").write_bytes(b"broken")
    with ts.serve(array).result() as server:
        for form, name in (("zarr3", "c/{}/{}"), ("zarr2", "{}.{}")):
            assert status(server.urls[form] + name.format(1, 1)) == 404  # the fill value
            assert status(server.urls[form] + name.format(2, 0)) == 404  # no such chunk
            assert status(server.urls[form] + name.format(0, 0)) == 200
            broken = server.urls[form] + name.format(0, 1)
            with pytest.raises(HTTPError) as caught:
                get(broken)
            body = caught.value.read().decode()
            caught.value.close()
            assert caught.value.code == 502
            assert "DataLossError" in body
            assert str(tmp_path) not in body
    assert str(place) in caplog.text
    assert server.token not in caplog.text


def test_what_is_written_meanwhile_is_served(stored):
    with ts.serve(stored).result() as server:
        before = by_zarr(server.urls["zarr3"])
        stored[0, 0, 0] = 99
        assert by_zarr(server.urls["zarr3"])[0, 0, 0] == 99 != before[0, 0, 0]


async def test_many_ask_at_once(stored):
    with ts.serve(stored, memory_limit=2**20).result() as server:
        urls = [server.urls["zarr3"], server.urls["zarr2"]] * 4
        for found in await asyncio.gather(*(asyncio.to_thread(by_zarr, url) for url in urls)):
            np.testing.assert_array_equal(found, DATA)


def test_what_is_served_is_told(served):
    told = json.loads(get(served.url)[2])

    assert told["formats"] == list(served.urls)
    assert told["arrays"][""]["shape"] == [4, 4]
    assert served.token not in json.dumps(told)
