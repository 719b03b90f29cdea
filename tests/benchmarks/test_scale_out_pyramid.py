from benchmarks.scale_out_pyramid import main


def test_a_small_run_prints_a_line_for_each_library(capsys):
    main(["--shape", "16", "100", "120", "--rounds", "1", "--libraries", "ours"])

    first, head, last = capsys.readouterr().out.splitlines()
    assert "(16, 100, 120), (8, 50, 60)" in first
    assert "time / ours" in head
    assert last.split()[-2:] == ["1.00", "1.00"]
