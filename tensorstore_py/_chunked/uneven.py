"""Arrays whose chunks differ in shape: a codec chain for each shape, bound when it is met.

To a reader or a writer all chunks are of one shape. Here each step of a plan is given to the one
for the shape of its chunk, so that nothing else needs to know; arrays with chunks of one shape,
which is nearly all of them, never come here.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from tensorstore_py._chunked.layout import Remembered

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Any

    from tensorstore_py._chunked.array import ChunkedArray
    from tensorstore_py._chunked.plan import Step
    from tensorstore_py._interface.codec_chain import CodecChain

    Work = Callable[[Step], Coroutine[Any, Any, None]]

__all__ = ["ArraysByShape", "ChainsByShape", "EachShape"]

#: How many shapes are remembered; there may be as many as there are chunks.
_SHAPES: Final = 1024


class ChainsByShape:
    """The codecs of an array, bound to each shape of chunk.

    Args:
        bind: makes the chain of chunks of a shape.

    Example:
        >>> import numpy as np
        >>> from tensorstore_py._interface.bind_chain import bind_chain
        >>> from tensorstore_py._interface.codec import ChunkType
        >>> zero = np.zeros((), "uint16")
        >>> chains = ChainsByShape(lambda shape: bind_chain((), ChunkType(shape, zero.dtype, zero)))
        >>> chains.of((2, 3)).encoded_size(), chains.of((4, 3)).encoded_size()
        (12, 24)
    """

    __slots__ = ("_bind", "_chains")

    def __init__(self, bind: Callable[[tuple[int, ...]], CodecChain]) -> None:
        self._bind = bind
        self._chains: Remembered[CodecChain] = Remembered(_SHAPES)

    def of(self, shape: tuple[int, ...]) -> CodecChain:
        """The chain of chunks of that shape.

        Raises:
            SpecError: a codec does not fit them; the path starts with `("codecs", position)`.
        """
        return self._chains.get(shape, lambda: self._bind(shape))


class ArraysByShape:
    """An array as chunks of each shape see it: all are of that shape.

    Whoever asks for one shape gets the same array, so parts of a chunk can be written together.

    Args:
        chains: their chains.
    """

    __slots__ = ("_arrays", "_chains")

    def __init__(self, chains: ChainsByShape) -> None:
        self._chains = chains
        self._arrays: Remembered[ChunkedArray] = Remembered(_SHAPES)

    def of(self, array: ChunkedArray, shape: tuple[int, ...]) -> ChunkedArray:
        """The one for chunks of a shape of `array`, which has this as its `shapes`."""
        limit = array.chain.unpacked_bytes
        return self._arrays.get(
            shape,
            lambda: replace(array, chain=self._chains.of(shape).unpacking(limit), shapes=None),
        )


class EachShape:
    """The body of a step of an operation on an array whose chunks differ in shape.

    Args:
        array: what is read or written.
        work_of: makes the body for the array as chunks of one shape see it.
    """

    __slots__ = ("_array", "_work_of", "_works")

    def __init__(self, array: ChunkedArray, work_of: Callable[[ChunkedArray], Work]) -> None:
        self._array = array
        self._work_of = work_of
        self._works: Remembered[Work] = Remembered(_SHAPES)

    def step(self, step: Step) -> Coroutine[Any, Any, None]:
        """Work on one chunk."""
        array = self._array
        shape = array.chunk_shape(step.cell)
        work = self._works.get(shape, lambda: self._work_of(array.at(step.cell)))
        return work(step)
