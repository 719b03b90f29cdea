"""Transforms: what they are made of, what maps do, where they lead, how they compose."""

import copy
import pickle

import numpy as np
import pytest

from tensorstore_py import (
    Dim,
    Indexable,
    IndexDomain,
    IndexTransform,
    OutOfRangeError,
    OutputIndexMap,
    OutputIndexMethod,
    inf,
)


class TestTransform:
    def test_forms_of_the_domain(self) -> None:
        expected = IndexTransform(input_shape=[3], input_labels=["x"])

        assert IndexTransform(IndexDomain([Dim(3, "x")])) == expected
        assert IndexTransform([Dim(3, "x")]) == IndexTransform(domain=(Dim(3, "x"),)) == expected
        assert IndexTransform(2) == IndexTransform(input_rank=2)
        assert IndexTransform([Dim(3)], [OutputIndexMap(1)]).output_rank == 1

    @pytest.mark.parametrize(
        ("args", "named"),
        [
            ((1, 2), {}),
            (([Dim()],), {"input_shape": [3]}),
            ((1,), {"input_rank": 1}),
            ((), {"shape": [3]}),
            (([Dim()], [], 3), {}),
            ((3.5,), {}),
        ],
    )
    def test_arguments_that_fit_no_form(self, args, named) -> None:
        with pytest.raises(TypeError):
            IndexTransform(*args, **named)

    def test_messages_name_the_keywords_of_a_transform(self) -> None:
        with pytest.raises(ValueError, match="Must specify `input_rank`"):
            IndexTransform()
        with pytest.raises(ValueError, match=r"`input_shape` \(1\) .* `input_rank` \(2\)"):
            IndexTransform(2, input_shape=[3])

    def test_what_the_engine_reads(self) -> None:
        x = IndexTransform([Dim(1, 5, label="x"), Dim(0, 6, implicit_upper=True)])[:, 2]

        assert (x.input_rank, x.output_rank) == (1, 2)
        assert x.input_origin == x.input_inclusive_min == (1,)
        assert (x.input_shape, x.input_exclusive_max, x.input_inclusive_max) == ((4,), (5,), (4,))
        assert x.input_labels == ("x",)
        assert (x.implicit_lower_bounds, x.implicit_upper_bounds) == ((False,), (False,))
        assert x.maps == (OutputIndexMap(0, 0), OutputIndexMap(2))
        assert list(x.output) == list(x.maps)

    def test_infinite_bounds(self) -> None:
        x = IndexTransform(1)

        assert (x.input_exclusive_max, x.input_shape) == ((inf + 1,), (2 * inf + 1,))

    def test_values(self) -> None:
        x = IndexTransform([Dim(4, "x"), Dim(5)]).vindex[[1, 2], [3, 4]]
        other = pickle.loads(pickle.dumps(x))

        assert x == other == copy.copy(x) == copy.deepcopy(x)
        assert not other.maps[0].index_array.flags.writeable
        assert x != IndexTransform(1)
        assert x != 3
        with pytest.raises(TypeError):
            hash(x)
        with pytest.raises(TypeError):
            len(x)  # type: ignore[arg-type]
        assert isinstance(x, Indexable)


class TestParts:
    @pytest.mark.parametrize(
        ("named", "text"),
        [
            ({"rank": 1}, "{ (-inf*, +inf*) }"),
            ({"inclusive_min": [1]}, "{ [1, +inf*) }"),
            ({"exclusive_max": [1]}, "{ (-inf*, 1) }"),
            ({"inclusive_max": [1]}, "{ (-inf*, 2) }"),
            ({"shape": [2]}, "{ [0, 2) }"),
            ({"shape": [2 * inf + 1]}, "{ [0, +inf) }"),
            ({"shape": np.array([2]), "inclusive_min": (np.int8(3),)}, "{ [3, 5) }"),
            ({"labels": ["x", None]}, '{ "x": (-inf*, +inf*), (-inf*, +inf*) }'),
            ({"implicit_upper_bounds": [False]}, "{ (-inf*, +inf) }"),
            ({"shape": [2], "implicit_lower_bounds": [1]}, "{ [0*, 2) }"),
            ({"rank": 0}, "{  }"),
        ],
    )
    def test_defaults(self, named, text) -> None:
        assert repr(IndexDomain(**named)) == text

    @pytest.mark.parametrize(
        ("named", "message"),
        [
            ({}, "Must specify `rank`"),
            ({"rank": -1}, "Invalid rank: -1"),
            ({"rank": 33}, "Invalid rank: 33"),
            ({"inclusive_min": [1] * 33}, r"`inclusive_min` \(33\) exceeds maximum rank of 32"),
            ({"rank": 2, "shape": [1]}, r"`shape` \(1\) does not match .* `rank` \(2\)"),
            (
                {"shape": [1], "labels": ["x", "y"]},
                r"`labels` \(2\) does not match .* `shape` \(1\)",
            ),
            ({"shape": [1], "inclusive_max": [1]}, "both `inclusive_max` and `shape`"),
            ({"labels": ["x", "x"]}, '"x" not unique'),
            ({"shape": [-1]}, "sized index interval"),
            ({"inclusive_min": [3], "exclusive_max": [1]}, "half-open index interval"),
        ],
    )
    def test_arguments_that_contradict(self, named, message) -> None:
        with pytest.raises(ValueError, match=message):
            IndexDomain(**named)

    @pytest.mark.parametrize(
        "named",
        [
            {"shape": 5},
            {"shape": ["a"]},
            {"shape": "ab"},
            {"labels": [3]},
            {"rank": 1.0},
            {"colour": 1},
        ],
    )
    def test_arguments_of_another_kind(self, named) -> None:
        with pytest.raises(TypeError):
            IndexDomain(**named)

    @pytest.mark.parametrize("dims", [[3], "ab", 1.5, [Dim(3), 4]])
    def test_a_domain_is_made_of_dims(self, dims) -> None:
        with pytest.raises(TypeError, match="sequence of Dim"):
            IndexDomain(dims)

    def test_dims_are_checked_together(self) -> None:
        with pytest.raises(ValueError, match="not unique"):
            IndexDomain([Dim("x"), Dim("x")])
        with pytest.raises(ValueError, match="maximum rank"):
            IndexDomain([Dim()] * 33)

    @pytest.mark.parametrize(
        ("domain", "output", "message"),
        [
            ([Dim()], OutputIndexMap(input_dimension=1), r"Input dimension 1 .* range \[0, 1\)"),
            ([Dim()], OutputIndexMap(input_dimension=-1), "Input dimension -1"),
            ([Dim(2)], OutputIndexMap([[1, 2]]), "has rank 2 but must have rank 1"),
            ([Dim(2)], OutputIndexMap([1, 2, 3]), r"shape \{3\} which does not match .* \{2\}"),
            ([Dim(2, implicit_lower=True)], OutputIndexMap([1, 2]), "0 with implicit bounds"),
        ],
    )
    def test_outputs_that_do_not_fit(self, domain, output, message) -> None:
        with pytest.raises(ValueError, match=message):
            IndexTransform(domain, [output])

    def test_output_is_a_sequence_of_maps(self) -> None:
        with pytest.raises(TypeError, match="OutputIndexMap"):
            IndexTransform(1, output=[3])  # type: ignore[list-item]
        with pytest.raises(TypeError, match="OutputIndexMap"):
            IndexTransform(1, output=5)  # type: ignore[call-overload]
        with pytest.raises(ValueError, match=r"\(33\) exceeds maximum rank"):
            IndexTransform(1, output=[OutputIndexMap()] * 33)

    def test_maps_are_simplified(self) -> None:
        stride_zero = OutputIndexMap(0, offset=3, stride=0)

        assert IndexTransform([Dim(2)], [stride_zero]).output == [OutputIndexMap(3)]
        assert IndexTransform([Dim(2)], [OutputIndexMap([1, 2], 4, 0)]).output == [
            OutputIndexMap(4)
        ]
        assert IndexTransform([Dim(0, 0)], [OutputIndexMap([])]).output == [OutputIndexMap(0)]


class TestOutputMaps:
    @pytest.mark.parametrize(
        ("index_map", "text"),
        [
            (OutputIndexMap(), "OutputIndexMap(offset=0)"),
            (OutputIndexMap(7), "OutputIndexMap(offset=7)"),
            (OutputIndexMap(np.array(5)), "OutputIndexMap(offset=5)"),
            (OutputIndexMap(3, 4), "OutputIndexMap(offset=4, stride=1, input_dimension=3)"),
            (OutputIndexMap(3, stride=2), "OutputIndexMap(offset=0, stride=2, input_dimension=3)"),
            (
                OutputIndexMap([[1, 2]], 2, 3, Dim(0, 3)),
                "OutputIndexMap(offset=2, stride=3, index_array={{1, 2}}, index_range=[0, 3))",
            ),
            (
                OutputIndexMap(index_array=[1], offset=2),
                "OutputIndexMap(offset=2, stride=1, index_array={1}, index_range=(-inf, +inf))",
            ),
        ],
    )
    def test_forms(self, index_map, text) -> None:
        assert repr(index_map) == text
        assert pickle.loads(pickle.dumps(index_map)) == index_map

    @pytest.mark.parametrize(
        ("args", "named"),
        [
            ((["a"],), {}),
            ((np.array([2**63], dtype=np.uint64),), {}),
            (([1.5],), {}),
            ((), {"stride": 2}),
            ((), {"input_dimension": 0, "index_array": [1]}),
            ((1,), {"offset": 1, "input_dimension": 2}),
            (([1],), {"index_range": 3}),
            ((1, "a"), {}),
            ((1, 2, 3, 4, 5), {}),
        ],
    )
    def test_arguments_that_fit_no_form(self, args, named) -> None:
        with pytest.raises(TypeError, match="OutputIndexMap"):
            OutputIndexMap(*args, **named)

    def test_attributes_tell_the_method(self) -> None:
        maps = [OutputIndexMap(1), OutputIndexMap(0, 1, 2), OutputIndexMap([4], index_range=Dim(9))]

        assert [m.method for m in maps] == list(OutputIndexMethod)
        assert [m.stride for m in maps] == [None, 2, 1]
        assert [m.input_dimension for m in maps] == [None, 0, None]
        assert [m.index_array is None for m in maps] == [True, True, False]
        assert [m.index_range for m in maps] == [None, None, Dim(9)]
        assert [m.value_range for m in maps] == [(-inf, inf + 1), (-inf, inf + 1), (0, 9)]

    def test_the_index_array_is_a_frozen_copy(self) -> None:
        source = np.array([1, 2], dtype=np.int32)
        frozen = OutputIndexMap(source).index_array
        source[0] = 9

        assert frozen is not None
        assert frozen.tolist() == [1, 2]
        assert frozen.dtype == np.int64
        with pytest.raises(ValueError, match="read-only"):
            frozen[0] = 3

    def test_equality_looks_at_all_parts(self) -> None:
        base = OutputIndexMap([1, 2], 3, 4, Dim(9))

        assert base == OutputIndexMap([1, 2], 3, 4, Dim(9, implicit_upper=True))
        for other in (
            OutputIndexMap([1, 3], 3, 4, Dim(9)),
            OutputIndexMap([[1, 2]], 3, 4, Dim(9)),
            OutputIndexMap([1, 2], 0, 4, Dim(9)),
            OutputIndexMap([1, 2], 3, 0, Dim(9)),
            OutputIndexMap([1, 2], 3, 4),
            OutputIndexMap(3),
            3,
        ):
            assert base != other
        with pytest.raises(TypeError):
            hash(base)

    def test_method_is_the_reference_enumeration(self) -> None:
        assert [int(m) for m in OutputIndexMethod] == [0, 1, 2]
        assert repr(OutputIndexMethod(2)) == "<OutputIndexMethod.array: 2>"
        assert list(OutputIndexMethod.__members__) == [
            "constant",
            "single_input_dimension",
            "array",
        ]
        assert [10, 20, 30][OutputIndexMethod.array] == 30

    def test_maps_are_a_sequence(self) -> None:
        output = IndexTransform(3).output

        assert output.rank == len(output) == 3
        assert output[-1] == OutputIndexMap(2, 0)
        assert output[::-1] == list(reversed(output))
        assert output == [OutputIndexMap(i, 0) for i in range(3)]
        assert output != [OutputIndexMap(i, 0) for i in range(2)]
        assert repr(output[:1]) == "[OutputIndexMap(offset=0, stride=1, input_dimension=0)]"
        with pytest.raises(IndexError, match=r"Index 3 is outside valid range \[-3, 3\)"):
            output[3]

    def test_large_index_arrays_print_short(self) -> None:
        assert repr(OutputIndexMap(np.arange(1000))).count(", ") == 1003
        assert "{0, 1, 2, ..., 998, 999, 1000}" in repr(OutputIndexMap(np.arange(1001)))
        matrix = repr(OutputIndexMap(np.arange(2400).reshape(600, 4)))
        assert "{8, 9, 10, 11}, ..., {2388, 2389, 2390, 2391}" in matrix


class TestEvaluation:
    def test_position(self) -> None:
        x = IndexTransform(
            [Dim(2, 5, label="x"), Dim(0, 3)],
            [
                OutputIndexMap(7),
                OutputIndexMap(0, 1, -2),
                OutputIndexMap([[4], [5], [6]], 100, 10),
            ],
        )

        assert x([3, 0]) == (7, -5, 150)
        assert x((np.int64(4), 2)) == (7, -7, 160)

    def test_positions_that_do_not_fit(self) -> None:
        x = IndexTransform([Dim(2, 5, label="x")])

        with pytest.raises(ValueError, match=r"length 2 .* input rank 1"):
            x([2, 3])
        with pytest.raises(
            OutOfRangeError, match=r'Index 5 .* \[2, 5\) for input dimension 0 \("x"\)'
        ):
            x([5])
        with pytest.raises(TypeError, match="64-bit integers"):
            x([1.5])  # type: ignore[list-item]
        with pytest.raises(OutOfRangeError, match="Index 9 is outside valid range"):
            IndexTransform([Dim(2)], [OutputIndexMap([1, 9], index_range=Dim(5))])([1])
        assert IndexTransform([Dim(2, implicit_upper=True)])([7]) == (7,)

    def test_an_array_that_repeats_equals_one_that_does_not_vary(self) -> None:
        domain = [Dim(3), Dim(2)]
        short = IndexTransform(domain, [OutputIndexMap([[1, 2]])])
        long = IndexTransform(domain, [OutputIndexMap([[1, 2]] * 3)])

        assert short == long
        assert short != IndexTransform(domain, [OutputIndexMap([[1, 2], [1, 2], [1, 3]])])
        assert short == IndexTransform(domain, [OutputIndexMap([[1, 2]], index_range=Dim(9))])
        assert short != IndexTransform(domain, [OutputIndexMap([[1, 2]], index_range=Dim(2))])
        assert short != IndexTransform(domain, [OutputIndexMap(1)])
        assert short != IndexTransform(domain, [OutputIndexMap([[1, 2]]), OutputIndexMap(1)])

    def test_users_see_no_elements_where_the_domain_has_none(self) -> None:
        x = IndexTransform([Dim(0, 0, implicit_upper=True), Dim(2)], [OutputIndexMap([[3, 4]])])

        assert x.output[0] == OutputIndexMap(np.empty((0, 2), dtype=np.int64))
        assert x.to_json()["output"] == [{"index_array": [[3, 4]]}]


class TestText:
    def test_domain(self) -> None:
        domain = IndexDomain([Dim(3, implicit_lower=True), Dim(label='a"b')])

        assert repr(domain) == str(domain) == '{ [0*, 3), "a\\"b": (-inf*, +inf*) }'
        assert repr(IndexDomain(0)) == "{  }"

    def test_transform(self) -> None:
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


def values(index_map):
    return index_map.index_array.tolist()


class TestComposition:
    def test_composition_goes_through_the_inner_transform_first(self) -> None:
        outer = IndexTransform(
            [Dim(0, 20)], [OutputIndexMap(0, offset=5, stride=2), OutputIndexMap(9)]
        )
        inner = IndexTransform([Dim(1, 4)], [OutputIndexMap(0, offset=1, stride=3)])

        both = outer[inner]

        assert both.output == [OutputIndexMap(0, offset=7, stride=6), OutputIndexMap(9)]
        assert [both([i]) for i in range(1, 4)] == [outer(inner([i])) for i in range(1, 4)]

    def test_implicit_bounds_follow_the_outer_domain(self) -> None:
        outer = IndexTransform(IndexDomain([Dim(2, 9), Dim(0, 6, implicit_upper=True)]))
        inner = IndexTransform(2)

        assert outer[inner].domain == outer.domain

    def test_several_outer_dimensions_bound_one_inner_dimension(self) -> None:
        outer = IndexTransform(IndexDomain([Dim(0, 9), Dim(4, 20)]))
        diagonal = IndexTransform(1, output=[OutputIndexMap(0, 0), OutputIndexMap(0, 1)])

        assert outer[diagonal].domain == IndexDomain([Dim(3, 9)])

    def test_explicit_bounds_must_lie_inside(self) -> None:
        outer = IndexTransform(IndexDomain([Dim(0, 9, label="x")]))
        inner = IndexTransform([Dim(5, 12)])

        with pytest.raises(
            OutOfRangeError, match=r"dimension 0.* ends at 9, but \[5, 12\) is asked for"
        ):
            outer[inner]

    def test_constants_must_lie_inside(self) -> None:
        outer = IndexTransform(IndexDomain([Dim(0, 9, label="x")]))

        with pytest.raises(
            OutOfRangeError, match=r'index 9 is outside \[0, 9\) of dimension 0 \("x"\)'
        ):
            outer[IndexTransform(0, output=[OutputIndexMap(9)])]

    def test_an_empty_domain_is_not_checked(self) -> None:
        outer = IndexTransform(IndexDomain([Dim(0, 9)]))
        nowhere = IndexTransform([Dim(3, 3)], [OutputIndexMap(100)])

        assert outer[nowhere].output == [OutputIndexMap(100)]

    def test_ranks_must_match(self) -> None:
        with pytest.raises(IndexError, match="Rank 2 -> 2 transform cannot be composed"):
            IndexTransform(2)[IndexTransform(3)]

    def test_index_arrays_pass_through_and_are_indexed(self) -> None:
        inner = IndexTransform(2).vindex[[7, 5, 3], [1, 2, 4]]
        outer = IndexTransform([Dim(0, 8), Dim(0, 5)], [OutputIndexMap(1, offset=10, stride=-2)])

        assert outer[inner].output == [
            OutputIndexMap([1, 2, 4], offset=10, stride=-2, index_range=Dim(0, 5))
        ]
        assert values(inner[1:].output[0]) == [5, 3]
        assert values(inner[::-1].output[0]) == [3, 5, 7]
        assert values(inner[[2, 2]].output[1]) == [4, 4]
        assert inner[2].output == [OutputIndexMap(3), OutputIndexMap(4)]

    def test_an_array_indexed_along_several_dimensions(self) -> None:
        table = IndexTransform([Dim(1, 3), Dim(2, 5)], [OutputIndexMap([[0, 1, 2], [3, 4, 5]])])

        assert values(table.T.output[0]) == [[0, 3], [1, 4], [2, 5]]
        assert values(table[2].output[0]) == [3, 4, 5]
        assert values(table.vindex[[1, 2], [4, 2]].output[0]) == [2, 3]
        assert values(table.oindex[[2, 1], [3]].output[0]) == [[4], [1]]
        assert table[IndexTransform([Dim(4)], [OutputIndexMap(1), OutputIndexMap(2)])].output == [
            OutputIndexMap(0)
        ]

    def test_values_that_index_an_array_are_checked(self) -> None:
        view = IndexTransform(1)[[7, 5, 3]]

        with pytest.raises(OutOfRangeError, match=r"index 3 is outside \[0, 3\)"):
            view[[0, 3]]
        with pytest.raises(OutOfRangeError, match="index -1"):
            view[[0, -1]]

    def test_an_array_of_one_value_becomes_a_constant(self) -> None:
        bounded = IndexTransform([Dim(1)], [OutputIndexMap([5], index_range=Dim(5))])

        assert IndexTransform(1)[[5]].output == [OutputIndexMap(5)]
        with pytest.raises(OutOfRangeError, match=r"index 5 is outside \[0, 5\)"):
            bounded[:]

    def test_overflow_is_refused(self) -> None:
        huge = IndexTransform(1, output=[OutputIndexMap(0, 0, 2**40)])

        with pytest.raises(IndexError, match="overflow computing stride"):
            huge[huge]
