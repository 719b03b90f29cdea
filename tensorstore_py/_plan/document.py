"""The document of a plan, and where one is.

It says what was asked for, and each step. A plan that needs what only this process has still has
one, which is enough to go on with here: then steps lack the arguments that others would need.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple

from tensorstore_py._api.kvstore import KvStore
from tensorstore_py._interface.kvstore import KvStoreSpec
from tensorstore_py._plan.steps import Stage, Step
from tensorstore_py._spec.context import bind
from tensorstore_py.errors import FailedPreconditionError, SpecError, UnsupportedError

if TYPE_CHECKING:
    from tensorstore_py._interface.hierarchy import JsonObject
    from tensorstore_py._interface.kvstore import KvStore as KvStorePromise
    from tensorstore_py._plan.call import Call
    from tensorstore_py._spec.context import Context

__all__ = ["DocumentPlace", "check_same", "document", "document_place", "forms_of", "stages_of"]


class DocumentPlace(NamedTuple):
    """Where a document is: the bound spec of the store, with the document's path."""

    spec: KvStoreSpec
    store: KvStorePromise

    @property
    def key(self) -> str:
        """The whole key."""
        return self.spec.path


def document_place(given: object, context: Context) -> DocumentPlace:
    """Where a manifest is: a local path, a URL, a spec or a `KvStore`, with a document's path.

    Raises SpecError: it is no place of one document.
    """
    if isinstance(given, KvStore):
        where, store = given.model, given.store
    else:
        if isinstance(given, str) and "://" not in given:
            raise SpecError(
                f"{given!r} is no URL; pass a local path as pathlib.Path({given!r})", ("manifest",)
            )
        if isinstance(given, os.PathLike):
            given = f"file://{os.path.abspath(given)}"  # noqa: PTH100 - of any path-like
        where = bind(KvStore.Spec(given).model, context)
        store = where.open()
    if not where.path or where.path.endswith("/"):
        raise SpecError(
            "a manifest is one document: give the path of one, such as file:///data/copy.json",
            ("manifest",),
        )
    return DocumentPlace(where, store)


def document(call: Call[Any], stages: tuple[Stage, ...], *, portable: bool = True) -> JsonObject:
    """A plan as JSON, for other processes, or (not `portable`) only to go on in this one.

    Raises UnsupportedError, SpecError: it needs what only this process has, or credentials, and is
        to be portable.
    """
    arguments: JsonObject | None
    try:
        arguments = call.request()
        steps = [[step.to_json() for step in stage.steps] for stage in stages]
    except (SpecError, UnsupportedError):
        if portable:
            raise
        arguments, steps = None, [[step.said() for step in stage.steps] for stage in stages]
    return {
        "tensorstore_py_plan": 1,
        "operation": call.operation,
        "request": {"operation": call.operation, **call.identity()},
        "arguments": arguments,
        "stages": steps,
    }


def stages_of(json: object) -> tuple[Stage, ...]:
    """The stages in a plan's document.

    Raises SpecError: they are something else.
    """
    if not isinstance(json, list) or not all(isinstance(each, list) for each in json):
        raise SpecError("expected lists of steps", ("stages",))
    return tuple(Stage(tuple(Step.from_json(step) for step in each)) for each in json)


def _steps(stored: JsonObject) -> list[JsonObject]:
    stages = stored.get("stages")
    found = (
        [each for stage in stages if isinstance(stage, list) for each in stage]
        if isinstance(stages, list)
        else []
    )
    return [each for each in found if isinstance(each, dict)]


def forms_of(stored: JsonObject) -> dict[str, str]:
    """The form of each step of a stored plan, by its name."""
    return {str(step.get("name")): str(step.get("form")) for step in _steps(stored)}


def check_same(stored: JsonObject, now: JsonObject, where: str) -> None:
    """Refuse to go on with a plan if there are other things to do now.

    Raises FailedPreconditionError: names what has changed.
    """
    before, after = (
        {str(step.get("name")): step for step in _steps(each)} for each in (stored, now)
    )
    for name in sorted({*before, *after}):
        one, other = before.get(name), after.get(name)
        if one is None or other is None:
            what = "is new" if one is None else "is not there any more"
            raise FailedPreconditionError(
                f'"/{name}" {what} since this began; delete the manifest {where} to begin anew'
            )
        if one.get("form") != other.get("form"):
            raise changed(name, where)
        if one.get("blocks") != other.get("blocks"):
            raise FailedPreconditionError(
                f'"/{name}" was cut into other blocks when this began: the limit on memory is '
                f"another; use the same context, or delete the manifest {where} to begin anew"
            )


def changed(name: str, where: str = "") -> FailedPreconditionError:
    """The error for an array that is not what it was."""
    manifest = f"the manifest {where}" if where else "the manifest"
    return FailedPreconditionError(
        f'"/{name}" is not as it was when this began: its form has changed since; plan again, '
        f"or delete {manifest} to begin anew"
    )
