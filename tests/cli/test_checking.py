"""`tspy verify`, `stats`, `hist`, `digest` and `diff`."""

import json

import numpy as np
import pytest

import tensorstore_py as ts
from tensorstore_py.cli.main import main


@pytest.fixture
def told(capsys):
    def run(*arguments):
        code = main([*map(str, arguments), "--json"])
        return code, json.loads(capsys.readouterr().out)

    return run


def made(path, data, driver="zarr3", chunk=None, **options):
    layout = None if chunk is None else ts.ChunkLayout(**chunk)
    array = ts.open(
        {"driver": driver, "kvstore": path}, create=True, dtype=data.dtype.name, shape=data.shape,
        chunk_layout=layout, **options,
    ).result()  # fmt: skip
    array[...] = data
    return array


class TestVerify:
    def test_what_is_whole(self, tmp_path, capsys):
        made(tmp_path / "a", np.ones((4, 4), "int16"), chunk={"chunk_shape": [2, 2]})
        made(tmp_path / "b", np.ones(4, "int16"), "n5")
        assert main(["verify", str(tmp_path)]) == 0
        assert capsys.readouterr().out == "nothing is damaged, in 5 chunks of 2 arrays\n"

    @pytest.mark.parametrize("driver", ["zarr", "zarr3", "n5"])
    def test_each_damaged_chunk_is_named_and_where_it_is(self, driver, tmp_path, told):
        codec = "gzip"
        data = np.arange(36, dtype="int32").reshape(6, 6)
        made(tmp_path / "a", data, driver, {"chunk_shape": [2, 6]}, codec=codec)
        chunks = sorted(each for each in (tmp_path / "a").rglob("*")
                        if each.is_file() and each.name[-1].isdigit())  # fmt: skip
        assert len(chunks) == 3
        for chunk in chunks[1:]:
            chunk.write_bytes(chunk.read_bytes()[:-5])
        code, found = told("verify", tmp_path / "a")
        assert (code, found["damaged"]) == (1, True)
        (array,) = found["arrays"]
        assert len(array["problems"]) == 2
        for chunk, problem in zip(chunks[1:], array["problems"], strict=True):
            assert str(chunk) in problem["problem"]
            assert len(problem["bounds"]) == 2

    def test_of_a_shard_the_inner_chunk_is_named(self, tmp_path, told):
        shards = {"write_chunk_shape": [4, 4], "read_chunk_shape": [2, 2]}
        made(tmp_path / "a", np.arange(16, dtype="int32").reshape(4, 4), chunk=shards)
        file = tmp_path / "a/c/0/0"
        data = bytearray(file.read_bytes())
        data[-1] ^= 1  # of the checksum of the index
        file.write_bytes(data)
        code, found = told("verify", tmp_path / "a")
        assert (code, len(found["arrays"][0]["problems"])) == (1, 1)
        assert "c/0/0" in found["arrays"][0]["problems"][0]["problem"]

    def test_damaged_metadata_is_damage(self, tmp_path, told):
        group = ts.Group.open(tmp_path / "g", create=True).result()
        group.create_array("a", dtype="int8", shape=[2]).result()
        (tmp_path / "g/a/zarr.json").write_text("{")
        code, found = told("verify", tmp_path / "g")
        assert code == 1
        assert "a/zarr.json" in found["arrays"][0]["problems"][0]["problem"]

    def test_a_selection_is_all_that_is_read(self, tmp_path, told):
        made(tmp_path / "a", np.ones(4, "int32"), chunk={"chunk_shape": [2]}, codec="gzip")
        (tmp_path / "a/c/1").write_bytes(b"")
        assert told("verify", tmp_path / "a")[0] == 1
        assert told("verify", f"{tmp_path / 'a'}[:2]") == (
            0,
            {"damaged": False, "arrays": [{"array": "", "chunks": 1, "problems": []}]},
        )


class TestStats:
    def test_figures_are_those_of_numpy(self, tmp_path, told):
        data = np.random.default_rng(7).normal(size=(30, 40)).astype("float32")
        data[3, 4] = np.nan
        made(tmp_path / "a", data, chunk={"chunk_shape": [7, 9]})
        code, (found,) = told("stats", tmp_path / "a", "--quantiles")
        assert code == 0
        assert (found["elements"], found["nan"]) == (1200, 1)
        for name in ("min", "max", "mean", "std"):
            expected = getattr(np, f"nan{name}")(data.astype("float64"))
            assert found[name] == pytest.approx(expected, rel=1e-6)
        assert found["quantiles"]["0.5"] == pytest.approx(np.nanmedian(data), rel=1e-3)

    @pytest.mark.parametrize(
        "dtype", ["bool", "int64", "complex64", "bfloat16", "string", "float16"]
    )
    def test_data_types(self, dtype, tmp_path, told):
        spec = {"driver": "zarr3", "kvstore": tmp_path / "a"}
        array = ts.open(spec, create=True, dtype=dtype, shape=[3]).result()
        array[...] = b"a" if dtype == "string" else np.ones(3, array.dtype.numpy_dtype)
        code, (found,) = told("stats", tmp_path / "a", "--quantiles")
        assert (code, found["elements"], found["nan"]) == (0, 3, 0)
        if dtype not in ("string", "complex64"):
            assert found["max"] == 1

    def test_no_elements_and_trees(self, tmp_path, capsys):
        made(tmp_path / "a", np.ones((0, 3)))
        made(tmp_path / "b", np.ones(3))
        assert main(["stats", str(tmp_path)]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert [line.split()[:2] for line in lines[1:]] == [["a", "0"], ["b", "3"]]


class TestHist:
    def test_counts_are_those_of_numpy(self, tmp_path, told):
        data = np.random.default_rng(7).normal(size=1000)
        made(tmp_path / "a", data)
        counts, edges = np.histogram(data, 8)
        assert told("hist", tmp_path / "a", "-b", 8) == (
            0,
            {"elements": 1000, "outside": 0, "edges": edges.tolist(), "counts": counts.tolist()},
        )
        _, found = told("hist", tmp_path / "a", "-b", 2, "--range", 0, 1)
        assert found["counts"] == np.histogram(data, 2, (0, 1))[0].tolist()
        assert found["outside"] == 1000 - sum(found["counts"])

    def test_bars_are_as_long_as_counts(self, tmp_path, capsys):
        made(tmp_path / "a", np.array([0, 0, 0, 0, 1, 1], "uint8"))
        assert main(["hist", str(tmp_path / "a"), "-b", "2"]) == 0
        long, short = (line.count("█") for line in capsys.readouterr().out.splitlines())
        assert 0 < short == long // 2

    def test_what_has_no_range_says_so(self, tmp_path, capsys):
        made(tmp_path / "a", np.array([1, np.inf]))
        made(tmp_path / "b", np.ones(0))
        assert main(["hist", str(tmp_path / "a")]) == 1
        assert "say --range" in capsys.readouterr().err
        assert main(["hist", str(tmp_path / "b")]) == 1
        assert "no elements" in capsys.readouterr().err


class TestDigestAndDiff:
    def test_equal_elements_have_one_digest_and_no_difference(self, tmp_path, told):
        data = np.arange(12, dtype="int16").reshape(3, 4)
        made(tmp_path / "a", data)
        made(tmp_path / "b", data, "n5", {"chunk_shape": [2, 2]})
        code, found = told("digest", tmp_path / "a", tmp_path / "b", f"{tmp_path / 'a'}[0]")
        assert code == 0
        assert found[0]["digest"] == found[1]["digest"] != found[2]["digest"]
        assert found[0]["digest"] == ts.digest(tmp_path / "a").result()
        assert told("diff", tmp_path / "a", tmp_path / "b")[0] == 0

    def test_differences_are_told_with_exit_code_1(self, tmp_path, told, capsys):
        made(tmp_path / "a", np.array([1.0, 2.0, 3.0]))
        made(tmp_path / "b", np.array([1.0, 2.5, 3.0]))
        places = [str(tmp_path / "a"), str(tmp_path / "b")]
        assert main(["diff", *places]) == 1
        assert "1 of 3 elements differs" in capsys.readouterr().out
        code, found = told("diff", *places)
        assert (code, found["differs"], found["blocks"][0]["values"]) == (1, True, [2.0, 2.5])
        assert main(["diff", *places, "--atol", "0.6"]) == 0
        assert main(["diff", *(f"{place}[2:]" for place in places)]) == 0
        capsys.readouterr()
        assert main(["diff", places[0], str(tmp_path / "nowhere")]) == 1
        assert "nowhere" in capsys.readouterr().err
