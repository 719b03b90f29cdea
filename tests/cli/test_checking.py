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

    @pytest.fixture
    def shard(self, tmp_path):
        """The first of two shards, of 4 chunks of 8 bytes and a checksum each."""
        shards = {"write_chunk_shape": [4, 4], "read_chunk_shape": [2, 2]}
        codec = {
            "driver": "zarr3",
            "codecs": [
                {
                    "name": "sharding_indexed",
                    "configuration": {
                        "chunk_shape": [2, 2],
                        "codecs": [{"name": "bytes"}, {"name": "crc32c"}],
                        "index_codecs": [{"name": "bytes"}, {"name": "crc32c"}],
                    },
                }
            ],
        }
        data = np.arange(1, 33, dtype="int16").reshape(4, 8)
        made(tmp_path / "a", data, chunk=shards, codec=codec)
        return tmp_path / "a/c/0/0"

    def test_of_a_shard_the_inner_chunks_are_named(self, shard, tmp_path, told):
        data = bytearray(shard.read_bytes())
        for number in (0, 2):
            data[12 * number] ^= 1
        shard.write_bytes(data)
        code, found = told("verify", tmp_path / "a")
        assert code == 1
        problems = found["arrays"][0]["problems"]
        assert [each["bounds"] for each in problems] == [[[0, 2], [0, 2]], [[2, 4], [0, 2]]]
        assert {each["key"] for each in problems} == {str(shard)}
        assert all("c/0/0" in each["problem"] for each in problems)

    def test_a_damaged_index_is_one_problem_of_the_whole_shard(self, shard, tmp_path, told):
        data = bytearray(shard.read_bytes())
        data[-1] ^= 1  # of the checksum of the index
        shard.write_bytes(data)
        code, found = told("verify", tmp_path / "a")
        (problem,) = found["arrays"][0]["problems"]
        assert (code, problem["key"], problem["bounds"]) == (1, str(shard), [[0, 4], [0, 4]])

    def test_a_shard_that_is_cut_short(self, shard, tmp_path, told):
        shard.write_bytes(shard.read_bytes()[:20])
        code, found = told("verify", tmp_path / "a")
        (problem,) = found["arrays"][0]["problems"]
        assert (code, problem["bounds"]) == (1, [[0, 4], [0, 4]])

    def test_views_name_positions_of_the_view(self, shard, tmp_path, told):
        data = bytearray(shard.read_bytes())
        data[24] ^= 1  # of the chunk at [2:4, 0:2]
        shard.write_bytes(data)
        _, found = told("verify", f"{tmp_path / 'a'}[3]")
        (problem,) = found["arrays"][0]["problems"]
        assert (problem["key"], problem["bounds"]) == (str(shard), [[0, 2]])

    @pytest.mark.parametrize(
        ("driver", "key"), [("zarr", "1.0"), ("zarr3", "c/1/0"), ("n5", "1/0")]
    )
    def test_what_is_missing_is_a_problem_if_that_is_said(self, driver, key, tmp_path, told):
        made(tmp_path / "a", np.ones((4, 2), "int16"), driver, {"chunk_shape": [2, 2]})
        (tmp_path / "a" / key).unlink()
        before = told("verify", tmp_path / "a")
        code, found = told("verify", tmp_path / "a", "--complete")
        assert before[0] == 0
        assert code == 1
        (problem,) = found["arrays"][0]["problems"]
        assert problem["bounds"] == [[2, 4], [0, 2]]
        assert problem["key"] == str(tmp_path / "a" / key)
        assert "is missing" in problem["problem"]

    def test_many_arrays_are_read_and_each_is_told(self, tmp_path, told):
        group = ts.Group.open(tmp_path / "g", create=True).result()
        for number in range(40):
            array = group.create_array(f"a{number:02}", dtype="int8", shape=[2]).result()
            array[...] = 1
        for number in (7, 31):
            (tmp_path / f"g/a{number:02}/c/0").write_bytes(b"")
        code, found = told("verify", tmp_path / "g")
        assert (code, len(found["arrays"])) == (1, 40)
        damaged = [each["array"] for each in found["arrays"] if each["problems"]]
        assert damaged == ["a07", "a31"]

    @pytest.mark.parametrize("command", ["digest", "diff", "stats", "hist", "cat"])
    def test_other_readers_say_which_chunk_it_is(self, command, tmp_path, capsys):
        made(tmp_path / "a", np.ones(4, "int32"), chunk={"chunk_shape": [2]}, codec="gzip")
        (tmp_path / "a/c/1").write_bytes(b"")
        places = [str(tmp_path / "a")] * (2 if command == "diff" else 1)
        assert main([command, *places]) == 1
        out, err = capsys.readouterr()
        assert str(tmp_path / "a/c/1") in out + err
        assert "Traceback" not in err

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


class TestUntrusted:
    @pytest.mark.parametrize(
        "command",
        ["info", "ls", "tree", "head", "cat", "attrs", "du", "stats", "hist", "digest", "verify"],
    )
    def test_only_named_stores_are_read(self, command, tmp_path, capsys):
        made(tmp_path / "mine/a", np.ones(4, "int8"))
        made(tmp_path / "other/a", np.ones(4, "int8"))
        may = ["--untrusted", "--store", f"{tmp_path / 'mine'}/"]
        assert main([command, str(tmp_path / "mine/a"), *may]) == 0
        capsys.readouterr()
        other = (tmp_path / "other/a").as_uri()
        for where in (
            str(tmp_path / "other/a"),
            other,
            f'{{"driver": "zarr3", "kvstore": "{other}"}}',
        ):
            assert main([command, where, *may]) == 1
            assert "in none of the stores" in capsys.readouterr().err
        (tmp_path / "mine/spec.json").write_text(f'{{"driver": "zarr3", "kvstore": "{other}"}}')
        assert main([command, str(tmp_path / "mine/spec.json"), *may]) == 1
        assert "in none of the stores" in capsys.readouterr().err

    def test_diff_checks_both_sides(self, tmp_path, capsys):
        made(tmp_path / "mine/a", np.ones(4, "int8"))
        made(tmp_path / "other/a", np.ones(4, "int8"))
        may = ["--untrusted", "--store", f"{tmp_path / 'mine'}/"]
        mine, other = str(tmp_path / "mine/a"), str(tmp_path / "other/a")
        assert main(["diff", mine, mine, *may]) == 0
        assert main(["diff", mine, other, *may]) == 1
        assert main(["diff", other, mine, *may]) == 1
        assert "in none of the stores" in capsys.readouterr().err

    def test_stores_without_untrusted_restrict_nothing_which_is_said(self, tmp_path, capsys):
        assert main(["ls", str(tmp_path), "--store", str(tmp_path)]) == 1
        assert "without --untrusted" in capsys.readouterr().err


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
