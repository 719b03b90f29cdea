from tensorstore_py._index import Dim, IndexDomain, IndexTransform, OutputIndexMap


def test_domain() -> None:
    domain = IndexDomain([Dim(3, implicit_lower=True), Dim(label='a"b')])

    assert repr(domain) == str(domain) == '{ [0*, 3), "a\\"b": (-inf*, +inf*) }'
    assert repr(IndexDomain(0)) == "{  }"


def test_transform() -> None:
    x = IndexTransform(
        [Dim(3, "x"), Dim(1, 3)],
        [
            OutputIndexMap(4),
            OutputIndexMap(1, 2, -3),
            OutputIndexMap([[1], [2], [3]], 5, index_range=Dim(9)),
        ],
    )

    assert repr(x) == (
        "Rank 2 -> 3 index space transform:\n"
        "  Input domain:\n"
        '    0: [0, 3) "x"\n'
        "    1: [1, 3)\n"
        "  Output index maps:\n"
        "    out[0] = 4\n"
        "    out[1] = 2 + -3 * in[1]\n"
        "    out[2] = 5 + 1 * bounded([0, 9), array(in)), where array =\n"
        "      {{1}, {2}, {3}}\n"
    )
