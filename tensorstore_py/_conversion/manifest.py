"""The manifest of a copy: a JSON document that tells which arrays are begun, and which blocks done.

It is replaced as a whole, on the condition that it is still what this copy stored last, so that two
copies never share one. Who has done a block waits until that is stored, together with what others
have done meanwhile; so what a crash can cost is the blocks that were under way, which are copied
again. The one invariant: an array is in it before anything of it is in the destination, and a block
only after.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tensorstore_py._hierarchy.document import parse_document
from tensorstore_py._interface.generation import NO_VALUE, UNKNOWN
from tensorstore_py._plan.task_numbers import TaskNumbers
from tensorstore_py._runtime.fan_out import within
from tensorstore_py._runtime.gate import Gate, Mutex
from tensorstore_py._spec.json_value import describe
from tensorstore_py.errors import (
    AbortedError,
    DataLossError,
    FailedPreconditionError,
    SpecError,
)

if TYPE_CHECKING:
    from tensorstore_py._interface.hierarchy import JsonObject
    from tensorstore_py._interface.kvstore import KvStore

__all__ = ["ArrayRecord", "Manifest"]

_VERSION = "tensorstore_py_copy"


class ArrayRecord:
    """What is known of one array.

    Args:
        form: a digest of what is copied, and how.
        blocks: how it is cut into blocks, see `Blocks.cut`; None: not known yet.
        done: which are done.

    Attributes:
        complete: whether all of them are.
    """

    __slots__ = ("blocks", "complete", "done", "form")

    def __init__(
        self,
        form: str,
        blocks: str | None = None,
        done: TaskNumbers | None = None,
        *,
        complete: bool = False,
    ) -> None:
        self.form = form
        self.blocks = blocks
        self.done = TaskNumbers() if done is None else done
        self.complete = complete

    def to_json(self) -> JsonObject:
        """Its JSON form."""
        done = "all" if self.complete else str(self.done)
        return {"form": self.form, "blocks": self.blocks, "done": done}

    @classmethod
    def parse(cls, json: object) -> ArrayRecord:
        """Raises SpecError if it is of another form."""
        if not isinstance(json, dict):
            raise SpecError(f"expected an object, but found {describe(json)}")
        form, blocks, done = json.get("form"), json.get("blocks"), json.get("done")
        if not isinstance(form, str) or not isinstance(blocks, str | None):
            raise SpecError('expected the members "form", "blocks" and "done"')
        if done == "all":
            return cls(form, blocks, complete=True)
        return cls(form, blocks, TaskNumbers.parse(done))


class Manifest:
    """See the head of this file.

    Args:
        store: where it is.
        key: the whole key.
        inline: the temperament of the copy.
        request: what is copied to where, and how; a later copy must be asked for the same.
    """

    def __init__(self, store: KvStore, key: str, inline: bool, request: JsonObject) -> None:
        self._place = store
        self._key = key
        self._inline = inline
        self._request = request
        self._arrays: dict[str, ArrayRecord] = {}
        self._texts: dict[str, str] = {}
        self._changed: set[str] = set()  # about which their text does not tell yet
        self._generation = NO_VALUE
        self._known = 0  # counts what was said
        self._stored = 0  # as much of that is stored
        self._gate = Gate(inline=inline)
        self._mutex = Mutex()

    @property
    def where(self) -> str:
        """How to name it to a person."""
        return self._place.describe_key(self._key)

    async def load(self) -> None:
        """Read what an earlier copy left.

        Raises:
            FailedPreconditionError: that was another copy.
            DataLossError: it is no manifest.
        """
        store, key = self._place, self._key
        found = await within(self._inline, store.inline, lambda: store.read(key))
        if found.state != "value":
            return
        document = parse_document(found.value, self.where)
        if document.get(_VERSION) != 1:
            raise DataLossError(
                f"Error reading {self.where}: this is no manifest of a copy; name another place"
            )
        request, arrays = document.get("request"), document.get("arrays")
        if not isinstance(request, dict) or not isinstance(arrays, dict):
            raise DataLossError(f'Error reading {self.where}: "request" and "arrays" are missing')
        wanted = json.loads(json.dumps(self._request))
        for name in sorted({*request, *wanted}):
            if request.get(name) != wanted.get(name):
                raise FailedPreconditionError(
                    f"the manifest {self.where} is that of another copy: {name} was "
                    f"{json.dumps(request.get(name))}, and is {json.dumps(wanted.get(name))} now; "
                    "ask for the same, or delete the manifest to begin anew"
                )
        for path, each in arrays.items():
            try:
                self._arrays[path] = ArrayRecord.parse(each)
            except SpecError as error:
                raise DataLossError(
                    f"Error reading {self.where}: arrays.{path}: {error}"
                ) from error
        self._changed.update(self._arrays)
        self._generation = found.stamp.generation

    def record(self, path: str) -> ArrayRecord | None:
        """What is known of an array; None if it was not begun."""
        return self._arrays.get(path)

    async def change(self, path: str, record: ArrayRecord, block: int | None = None) -> None:
        """Say something of an array, and wait until that is stored.

        Args:
            path: of the array.
            record: what is known of it now.
            block: one that is done.
        """
        with self._mutex:
            if block is not None:
                record.done.add(block)
            self._arrays[path] = record
            self._changed.add(path)
            self._known += 1
            mine = self._known
        await self._store(mine)

    async def begin(self, records: dict[str, ArrayRecord]) -> None:
        """Say that arrays are begun, and wait until that is stored."""
        with self._mutex:
            self._arrays.update(records)
            self._changed.update(records)
            self._known += 1
            mine = self._known
        await self._store(mine)

    async def _store(self, mine: int) -> None:
        """See that what was said so far is stored, by whoever comes first."""
        store, key = self._place, self._key
        async with self._gate.hold(key):
            if self._stored >= mine:
                return
            with self._mutex:
                known, data = self._known, self._serialized()
            before = self._generation
            stamp = await within(
                self._inline, store.inline, lambda: store.write(key, data, if_equal=before)
            )
            if stamp.generation == UNKNOWN:
                raise AbortedError(
                    f"the manifest {self.where} was changed by somebody else: another copy uses "
                    "it; wait for that, or give each its own"
                )
            self._generation, self._stored = stamp.generation, known

    def _serialized(self) -> bytes:
        """The document. Arrays about which nothing is new are not turned into text again."""
        for path in self._changed:
            self._texts[path] = f"{json.dumps(path)}: {json.dumps(self._arrays[path].to_json())}"
        self._changed.clear()
        arrays = ",\n".join(self._texts.values())
        head = f'{{"{_VERSION}": 1, "request": {json.dumps(self._request)}'
        return f'{head}, "arrays": {{\n{arrays}}}}}\n'.encode()
