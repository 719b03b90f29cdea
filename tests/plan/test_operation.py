import pytest

import tensorstore_py as ts
from tensorstore_py._api.blocks import Blocks
from tensorstore_py._plan.operation import found, open_operation, register
from tensorstore_py._runtime.inline import run_inline


def test_a_kind_is_opened_with_its_arguments():
    seen = []

    async def opener(arguments, context, blocks):
        seen.append((arguments, context, blocks))

    register("tests.kind", opener)
    context = ts.Context()
    blocks = Blocks(ts.IndexTransform(input_shape=[2]), [None], [None], 1, 1)

    run_inline(open_operation("tests.kind", {"a": 1}, context, blocks))

    assert seen == [({"a": 1}, context, blocks)]
    assert found("tests.kind") == (opener, None)


def test_a_kind_that_nobody_knows():
    with pytest.raises(ts.SpecError, match=r"no steps of kind 'copyy' .did you mean \"copy\"?."):
        found("copyy")
