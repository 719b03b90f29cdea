from tensorstore_py._conversion.summary import CopiedMember, CopySummary

MEMBERS = [
    CopiedMember("", "group", "keep", ""),
    CopiedMember("a", "group", "create", ""),
    CopiedMember("a/x", "array", "create", "chunks as they are", 3 * 2**20, 4),
    CopiedMember("a/y", "array", "skip", "it is there"),
]


def test_sums():
    summary = CopySummary.of(MEMBERS, dry_run=False)

    assert summary[:5] == (1, 1, 3 * 2**20, 4, 1)
    assert repr(summary) == ("CopySummary(arrays=1, groups=1, bytes=3145728, chunks=4, skipped=1)")


def test_text_has_a_line_for_each_member():
    assert str(CopySummary.of(MEMBERS, dry_run=False)).split("\n") == [
        "copied 1 array (3.0 MiB in 4 chunks) and 1 group; 1 skipped",
        "   keep group /",
        " create group /a",
        " create array /a/x, 3.0 MiB: chunks as they are",
        "   skip array /a/y: it is there",
    ]


def test_a_long_text_is_cut():
    summary = CopySummary.of(MEMBERS[1:2] * 100, dry_run=True)

    lines = str(summary).split("\n")

    assert lines[0] == "would copy 0 arrays (0.0 MiB) and 100 groups"
    assert len(lines) == 42
    assert lines[-1].strip() == "and 60 more"
    assert repr(summary).endswith("dry_run=True)")
