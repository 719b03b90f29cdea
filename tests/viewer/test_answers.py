"""What the viewer's server answers: nodes, tiles, texts, maps of chunks; and what it refuses."""

import socket
import threading
from urllib.parse import urlsplit

import numpy as np
import pytest

import tensorstore_py as ts

TILE = 256


def noise(*shape, dtype="uint16", high=5000):
    return np.random.default_rng(0).integers(0, high, size=shape).astype(dtype)


def stored(values, kvstore="memory://", **options):
    spec = {"driver": "zarr3", "kvstore": kvstore}
    made = {"dtype": options.pop("dtype", values.dtype.name), "shape": values.shape}
    store = ts.open(spec, create=True, **made, **options).result()
    store[...] = values
    return store


def chunks(*shape):
    return ts.ChunkLayout(chunk_shape=shape)


# What it lets in.


def test_nothing_is_answered_without_the_token(ask):
    told = ask(ts.array(noise(4, 4)))
    token = urlsplit(told.url).path.strip("/")
    told.url = told.url.replace(token, "x" * len(token))

    for path in ("", "viewer.js", "api/node", "api/tile"):
        assert told.get(path)[0] == 404


def test_what_is_not_below_what_was_asked_for_is_refused(ask, tmp_path):
    outside = tmp_path.as_uri() + "/outside/"
    stored(noise(4, 4), outside)
    group = ts.Group.open(tmp_path / "shown", create=True).result()
    group.create_array("a", dtype="int8", shape=[2]).result()
    told = ask(group)

    for path in ("../outside", "a/../../outside", "/../outside", ".", "a/./../a"):
        status, problem = told.problem("node", path=path)
        assert (status, "name the node itself" in problem) == (400, True), path
    assert told.problem("node", path=outside)[0] in (400, 404)
    assert told.problem("node", path="b")[0] == 404
    assert told.problem("members", path="../")[0] == 400
    assert told.get("../../etc/passwd")[0] == 404
    assert told.json("node", path="a")["kind"] == "array"


def test_the_page_is_closed_to_other_scripts_and_origins(ask):
    status, headers, body = ask(ts.array(noise(4, 4))).get("", {"Origin": "https://example.org"})

    assert status == 200
    assert "default-src 'none'; script-src 'self';" in headers["Content-Security-Policy"]
    assert "unsafe" not in headers["Content-Security-Policy"]
    assert "Access-Control-Allow-Origin" not in headers
    assert b"://" not in body.replace(b"http://www.w3.org", b"")  # nothing comes from elsewhere


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ({"rows": 0, "columns": 1, "at": "0"}, "expected 2 offsets"),
        ({"rows": 0, "columns": 0, "at": "0,0"}, "there are no such dimensions"),
        ({"rows": 7, "columns": 1, "at": "0,0"}, "there are no such dimensions"),
        ({"rows": "x", "columns": 1}, "expected whole numbers for rows"),
        ({"rows": 0, "columns": 1, "tile": "9,0"}, "has no tile 9"),
        ({"rows": 0, "columns": 1, "tile": "0"}, "expected two numbers for tile"),
        ({"rows": 0, "columns": 1, "steps": "0,1"}, "has no tile"),
        ({"columns": 1, "at": "99,0"}, "has 40 elements, none at 99"),
        ({"rows": 0, "columns": 1, "field": "f"}, 'there is no field "f"'),
        ({"rows": 0, "columns": 1, "part": "p"}, 'there is no part "p"'),
        ({"rows": 0, "columns": 1, "colour": 5}, "no such dimensions: [0, 1, 5]"),
        ({"rows": 0, "columns": 1, "colour": 1}, "no such dimensions: [0, 1, 1]"),
    ],
)
def test_wrong_requests_are_refused_by_name(ask, query, says):
    status, problem = ask(ts.array(noise(40, 50))).problem("tile", **query)

    assert status == 400
    assert says in problem


# Tiles.


@pytest.mark.parametrize("dims", [(0, 1), (1, 0), (0, 2), (2, 1)])
@pytest.mark.parametrize("steps", [(1, 1), (2, 4), (1, 8)])
def test_a_tile_is_what_is_stored(ask, dims, steps):
    values = noise(300, 270, 310)
    told = ask(ts.array(values))
    offsets = (7, 11, 13)
    rows, columns = dims
    index = [slice(None) if dim in dims else at for dim, at in enumerate(offsets)]
    plane = values[tuple(index)]
    plane = plane if rows < columns else plane.T

    for tile in ((0, 0), (1, 0), (0, 1)):
        first = [number * TILE * step for number, step in zip(tile, steps, strict=True)]
        if any(low >= size for low, size in zip(first, plane.shape, strict=True)):
            continue
        _, found = told.tile(rows=rows, columns=columns, at=offsets, steps=steps, tile=tile)
        cut = tuple(
            slice(low, low + TILE * step, step) for low, step in zip(first, steps, strict=True)
        )
        assert np.array_equal(found, plane[cut])


def test_origins_of_views_do_not_matter(ask):
    values = noise(100, 120)
    view = ts.array(values)[20:90, 5:115:3]

    _, found = ask(view).tile(rows=0, columns=1, steps=(2, 1))

    assert np.array_equal(found, values[20:90:2, 5:115:3])


@pytest.mark.parametrize(
    ("dtype", "wire"),
    [
        ("bool", "u1"), ("int8", "i1"), ("uint16", "u2"), ("int32", "i4"), ("uint64", "u8"),
        ("int64", "i8"), ("float16", "f4"), ("bfloat16", "f4"), ("float8_e5m2", "f4"),
        ("float32", "f4"), ("float64", "f8"), ("int4", "i1"),
    ],
)  # fmt: skip
def test_types_on_the_wire(ask, dtype, wire):
    values = (noise(9, 7, dtype="int64") % 2).astype(ts.dtype(dtype).numpy_dtype)

    header, found = ask(ts.array(values, dtype=dtype)).tile(rows=0, columns=1)

    assert header["type"] == wire
    assert np.array_equal(found.astype("f8"), values.astype("f8"))
    assert (header["low"], header["high"]) == (0, 1)


def test_whole_numbers_of_64_bits_are_exact(ask):
    values = 2**63 + np.arange(12, dtype="uint64").reshape(3, 4)
    told = ask(ts.array(values))

    _, found = told.tile(rows=0, columns=1)

    assert np.array_equal(found, values)
    assert told.json("cells", rows=0, columns=1, at=(1, 1), counts=(1, 2))["cells"] == [
        [str(2**63 + 5), str(2**63 + 6)]
    ]


def test_parts_of_complex_numbers_and_fields_of_records(ask):
    numbers = np.array([[1 + 1j, -2j], [3, 0]], "complex64")
    told = ask(ts.array(numbers))
    found = {
        part: told.tile(rows=0, columns=1, part=part)[1]
        for part in ("magnitude", "phase", "real", "imaginary")
    }
    assert np.allclose(found["magnitude"], np.abs(numbers))
    assert np.allclose(found["phase"], np.angle(numbers))
    assert np.array_equal(found["real"], numbers.real)
    assert np.array_equal(found["imaginary"], numbers.imag)

    records = np.zeros((2, 3), [("a", "u2"), ("b", "f8")])
    records["a"], records["b"] = noise(2, 3), 0.5
    told = ask(stored(records, dtype=[["a", "uint16"], ["b", "float64"]]))
    assert np.array_equal(told.tile(rows=0, columns=1, field="a")[1], records["a"])
    assert told.json("node")["fields"][1]["name"] == "b"
    assert "b: 0.5" in told.json("cells", rows=0, columns=1)["cells"][0][0]
    assert "look at the table" in told.problem("tile", rows=0, columns=1)[1]


def test_bounds_leave_out_what_is_no_number(ask):
    values = np.array([[np.nan, 2.5], [np.inf, -1.0]])

    header, found = ask(ts.array(values)).tile(rows=0, columns=1)

    assert (header["low"], header["high"]) == (-1, 2.5)
    assert np.isnan(found[0, 0])
    nothing, _ = ask(ts.array(np.full((2, 2), np.nan))).tile(rows=0, columns=1)
    assert (nothing["low"], nothing["high"]) == (None, None)


def test_text_bytes_and_dates_are_told_as_text(ask):
    words = np.array([["a\nb", 'say "x"'], ["", "ü" * 500]], object)
    told = ask(stored(words, dtype="ustring"))
    assert told.json("node")["form"]["wire"] == ""
    cells = told.json("cells", rows=0, columns=1, counts=(2, 2))["cells"]
    assert cells[0] == ["a\\nb", 'say "x"']
    assert len(cells[1][1]) == 200

    day = np.array([["2024-02-29", "NaT"]], "datetime64[D]")
    told = ask(stored(day, dtype="datetime64[D]"))
    assert told.json("cells", rows=0, columns=1, counts=(1, 2))["cells"] == [["2024-02-29", "NaT"]]

    assert "at most 4096" in told.problem("cells", rows=0, columns=1, counts=(999, 999))[1]
    alone = ask(ts.array(np.float32(0.1)))
    assert alone.json("cells")["cells"] == [["0.1"]]


# How much is read.


def counted(**options):
    made = []

    def fill(domain, chunk, _):
        made.append(domain.origin)
        chunk[...] = (domain.inclusive_min[0] // 64) % 100

    return made, ts.virtual_chunked(fill, dtype="uint8", **options)


def test_tiles_of_one_chunk_make_it_once(ask):
    made, store = counted(shape=[1024, 1024], chunk_layout=chunks(1024, 1024))
    told = ask(store)

    for tile in ((0, 0), (0, 3), (3, 3)):
        told.tile(rows=0, columns=1, tile=tile)

    assert len(made) == 1
    assert 2**20 <= told.json("status")["cached_bytes"] < 2**20 + 10_000


def test_a_tile_that_passes_over_chunks_reads_few_of_them_and_says_so(ask):
    made, store = counted(shape=[2**20, 2**20, 64], chunk_layout=chunks(64, 64, 64))
    told = ask(store)

    header, found = told.tile(rows=0, columns=1, at=(0, 0, 5), steps=(4096, 4096))

    assert header["sampled"]
    assert len(made) <= 2**26 // 64**3
    assert found.shape[0] == found.shape[1] >= 8
    # each pixel is an element of its own part of the tile
    parts = (np.arange(found.shape[0]) + 0.5) / found.shape[0] * 256
    assert np.array_equal(found[:, 0], (parts.astype(int) * 4096 // 64 % 100))

    whole, _ = told.tile(rows=0, columns=1, at=(0, 0, 5), steps=(1, 1))
    assert not whole["sampled"]


def test_a_coarser_level_is_read_where_there_is_one(ask):
    pixels = noise(600, 500)
    image = ts.pyramid(
        pixels, ts.KvStore.open("memory://").result(), axes="yx", levels=3, method="mean"
    ).result()
    told = ask(image.group)
    levels = [level.read().result() for level in image.levels]

    node = told.json("node")
    assert (node["kind"], [level["factors"] for level in node["levels"]]) == (
        "image", [[1, 1], [2, 2], [4, 4]],
    )  # fmt: skip
    for steps, number in (((1, 1), 0), ((2, 2), 1), ((4, 4), 2), ((2, 4), 1)):
        header, found = told.tile(rows=0, columns=1, steps=steps)
        assert header["level"] == number
        stride = tuple(slice(0, 256 * step, step) for step in (
            steps[0] // 2**number, steps[1] // 2**number))  # fmt: skip
        assert np.array_equal(found, levels[number][stride])


def test_a_client_that_goes_away_is_not_worked_for(ask):
    go_on = threading.Event()

    def slow(_domain, chunk, _):
        go_on.wait(60)
        chunk[...] = 1

    told = ask(ts.virtual_chunked(slow, dtype="uint8", shape=[64, 64]))
    asked = urlsplit(told.url)
    request = f"GET {asked.path}api/tile?rows=0&columns=1 HTTP/1.1\r\nHost: {asked.netloc}\r\n\r\n"
    try:
        with socket.create_connection((asked.hostname, asked.port)) as one:
            one.sendall(request.encode())
            told.until(lambda tiles: tiles["under_way"] == 1)
        told.until(lambda tiles: tiles["cancelled"] == 1)
    finally:
        go_on.set()

    assert told.tiles()["under_way"] == 0


# Maps of chunks, and trees.


def test_the_map_has_the_sizes_of_what_is_stored(ask, tmp_path):
    values = noise(4, 90, 100)
    store = stored(values, f"{tmp_path.as_uri()}/a/", chunk_layout=chunks(2, 40, 30))
    (tmp_path / "a" / "c" / "1" / "0" / "2").unlink()
    told = ask(store)

    found = told.json("chunks", rows=1, columns=2, at=(3, 0, 0))

    sizes = {(row // 40, column // 30): size for row, column, size in found["cells"]}
    folder = tmp_path / "a" / "c" / "1"
    assert sizes == {
        (int(path.parent.name), int(path.name)): path.stat().st_size
        for path in folder.rglob("*") if path.is_file()
    }  # fmt: skip
    assert (found["total"], found["complete"], found["extent"]) == (12, True, [40, 30])
    assert (0, 2) not in sizes

    view = ask(store[3, 40:])
    cells = view.json("chunks", rows=0, columns=1, at=(0, 0))["cells"]
    assert sorted(cell[:2] for cell in cells) == [[y, x] for y in (0, 40) for x in (0, 30, 60, 90)]


def test_what_has_no_map_says_why(ask):
    assert "chunks of its own" in ask(ts.array(noise(4, 4))).problem("chunks", rows=0, columns=1)[1]
    strided = ask(stored(noise(8, 8), chunk_layout=chunks(2, 2))[::2])
    assert "every so many-th" in strided.problem("chunks", rows=0, columns=1)[1]


def test_members_are_listed_in_natural_order_and_a_damaged_one_hides_no_other(ask, tmp_path):
    group = ts.Group.open(tmp_path / "g", create=True).result()
    for name in ("a10", "a9", "b"):
        group.create_array(name, dtype="int8", shape=[2, 3]).result()
    group.create_group("inner").result()
    told = ask(group)
    found = told.json("members")
    names = [member["name"] for member in found["members"]]
    assert (names, found["complete"]) == (["a9", "a10", "b", "inner"], True)
    assert found["members"][0]["summary"] == "(2, 3) int8"

    (tmp_path / "g" / "b" / "zarr.json").write_text("{torn", "utf-8")
    found = {each["name"]: each for each in told.json("members")["members"]}
    assert found["b"]["kind"] == "unreadable"
    assert "b/zarr.json" in found["b"]["summary"]
    assert found["a9"]["kind"] == "array"


def test_an_array_that_grew_is_seen_when_it_is_looked_at_again(ask):
    store = stored(noise(10, 10))
    told = ask(store)
    assert told.json("node")["axes"][0]["size"] == 10

    store.resize(exclusive_max=[30, 10]).result()

    assert told.json("node")["axes"][0]["size"] == 30
    assert told.tile(rows=0, columns=1)[1].shape == (30, 10)


def test_an_array_without_bounds_says_what_to_do(ask):
    made, store = counted(rank=2)
    assert "choose a part of it first" in ask(store).problem("node")[1]
    assert ask(store[0:10, 0:10]).json("node")["axes"][0]["size"] == 10
    assert made == []


def test_errors_of_functions_are_told(ask):
    def broken(_domain, _chunk, _):
        raise RuntimeError("no such sensor")

    store = ts.virtual_chunked(broken, dtype="uint8", shape=[4, 4])

    status, problem = ask(store).problem("tile", rows=0, columns=1)

    assert (status, problem) == (502, "RuntimeError: no such sensor")
