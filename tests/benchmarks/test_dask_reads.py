from benchmarks.dask_reads import main


def test_a_small_run_prints_a_line_for_each_program(capsys):
    assert main(["--small"]) == 0

    lines = capsys.readouterr().out.splitlines()
    assert [line.split("  ")[0] for line in lines[2:]] == [
        "chunks, sum", "chunks, read whole", "shards, sum", "shards, read whole",
    ]  # fmt: skip
    assert all(float(line.split()[-1]) > 0 for line in lines[2:])
