"""What is to be written, before anything is: groups, arrays, documents, and where values go.

Whatever can be refused is refused here; `plan_groups` changes nothing that is stored. A `Region` is
which part of each dimension is written, said by slices or found by coordinates.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias, cast

import numpy as np
import xarray as xr
from xarray import conventions

import tensorstore_py as ts
from tensorstore_py.integrations.xarray.encoding import (
    Existing,
    array_arguments,
    as_attributes,
    as_existing,
    encoded,
    joined,
)
from tensorstore_py.integrations.xarray.writing_arrays import ArrayTarget, aligned, open_assumed
from tensorstore_py.integrations.xarray.writing_documents import (
    Documents,
    Form,
    Forms,
    Json,
    Node,
    below,
)

__all__ = [
    "ArrayPlan",
    "GroupPlan",
    "Options",
    "Planner",
    "Region",
    "checked_region",
    "stored_name",
]


#: As users say it.
Region: TypeAlias = 'Mapping[Hashable, slice | Literal["auto"]] | Literal["auto"]'


def checked_region(
    dataset: xr.Dataset,
    region: Region,
    *,
    mode: str,
    append_dim: Hashable | None,
    stored: Callable[[Hashable], xr.Variable | None],
) -> dict[Hashable, slice]:
    """The part of each dimension that a Dataset is written to.

    Args:
        dataset: what is written.
        region: slices, or `"auto"` for where its coordinates are.
        mode: of the writing.
        append_dim: the dimension that grows.
        stored: reads the coordinate of a dimension; None: it has none.

    Raises:
        TypeError: it is no mapping of slices.
        ValueError: it does not fit the Dataset, or its coordinates are not in one piece.
        KeyError: a coordinate is not there.
    """
    if isinstance(region, str) and region == "auto":
        region = dict.fromkeys(dataset.dims, "auto")
    if not isinstance(region, Mapping):
        raise TypeError(f"region must be a dict of slices, or 'auto', not {region!r}")
    if "auto" in [each for each in region.values() if isinstance(each, str)]:
        if mode not in ("r+", "a"):
            raise ValueError(f"region='auto' needs mode='r+' or mode='a', not mode={mode!r}")
        region = {
            dim: _found(dataset, dim, stored) if isinstance(each, str) and each == "auto" else each
            for dim, each in region.items()
        }
    found = cast("dict[Hashable, slice]", dict(region))
    _check(dataset, found)
    if append_dim in found:
        raise ValueError(
            f"cannot list the same dimension in both append_dim and region: {append_dim!r}; new "
            "positions are behind all that are there, so leave it out of region"
        )
    return found


def _check(dataset: xr.Dataset, region: Mapping[Hashable, slice]) -> None:
    for dim, part in region.items():
        if dim not in dataset.dims:
            raise ValueError(
                "all keys in ``region`` are not in Dataset dimensions: "
                f"{dim!r} is not in {list(dataset.dims)}"
            )
        if not isinstance(part, slice):
            raise TypeError(f"all values in region must be slice objects, but {dim!r} is {part!r}")
        if part.step not in (1, None):
            raise ValueError(
                f"step on all slices in region must be 1 or None, but {dim!r} is {part!r}"
            )
    apart = [name for name, each in dataset.variables.items() if not set(region) & set(each.dims)]
    if region and apart:
        raise ValueError(
            "with region= all variables in the dataset to write must have at least one dimension "
            f"in common with {list(region)}, since others would be written again and again; leave "
            f"out the others: .drop_vars({apart!r})"
        )


def _found(
    dataset: xr.Dataset, dim: Hashable, stored: Callable[[Hashable], xr.Variable | None]
) -> slice:
    if dim not in dataset.variables:
        return slice(0, dataset.sizes[dim])
    present = stored(dim)
    if present is None:
        raise KeyError(
            f"region='auto' looks for the coordinate {dim!r}, which is not stored; say a slice"
        )
    places = present.to_index().get_indexer(dataset.get_index(dim))
    if (places == -1).any():
        missing = dataset[dim].values[places == -1]
        raise KeyError(
            f"Not all values of coordinate {dim!r} are stored: {missing[:3]} is not; a region is "
            "a part of what is there, append_dim= makes it longer"
        )
    if (np.diff(places) != 1).any():
        raise ValueError(
            f"The auto-detected region of coordinate {dim!r} has non-contiguous indices: {places}; "
            "write each piece by itself"
        )
    return slice(int(places[0]), int(places[-1]) + 1) if len(places) else slice(0, 0)


#: What a variable without a name is stored as; None is no key.
_NAMELESS: Final = "__values__"


@dataclass(frozen=True)
class Options:
    """What was asked for all groups.

    Attributes:
        mode: `w`, `w-`, `a`, `a-` or `r+`.
        append_dim: the dimension that grows.
        region: which part is written.
        write_empty: store chunks that hold nothing but the fill value, too.
        align: cut blocks where chunks end.
    """

    mode: str
    append_dim: Hashable | None = None
    region: Region | None = None
    write_empty: bool | None = None
    align: bool = False

    @property
    def fresh(self) -> bool:
        """Whether nothing is there when values are written."""
        return self.mode in ("w", "w-")


@dataclass
class ArrayPlan:
    """An array that is written to.

    Attributes:
        path: of the array.
        variable: encoded.
        target: where its values go.
        region: the positions, one slice for each dimension.
        new: whether it is not there yet.
        documents: that have to be stored, by key, each with the generation that it rests on.
    """

    path: str
    variable: xr.Variable
    target: ArrayTarget
    region: tuple[slice, ...]
    new: bool
    documents: dict[str, tuple[Json, bytes | None]] = field(default_factory=dict)


@dataclass
class GroupPlan:
    """A group that is written to.

    Attributes:
        path: of the group.
        attributes: of the group, as JSON.
        arrays: in it.
        found: what is stored of it; None: nothing.
    """

    path: str
    attributes: dict[str, Json]
    arrays: list[ArrayPlan]
    found: Node | None


class Planner:
    """Makes plans of groups."""

    def __init__(self, documents: Documents, form: Form, options: Options) -> None:
        self._documents = documents
        self._place = documents.place
        self._form = form
        self._options = options
        self._forms = Forms(form)

    def plan(
        self,
        path: str,
        dataset: xr.Dataset,
        encoding: Mapping[Any, Mapping[str, Any]],
        nodes: Mapping[str, Node],
    ) -> GroupPlan:
        """What is to be written to a group.

        Args:
            path: of the group.
            dataset: what is written.
            encoding: of new variables, by name.
            nodes: what is stored, by path; whatever is not in it is not there.

        Raises:
            ValueError, TypeError, KeyError: it cannot be written; names the variable and why.
        """
        _check_names(dataset)
        options = self._options
        existing = self._existing(path, dataset, nodes)
        for name in encoding:
            if name in existing:
                raise ValueError(
                    f"variable {name!r} already exists, but encoding was provided; what is stored "
                    "says how it is encoded, so leave it out"
                )
        region: dict[Hashable, slice] = {}
        if options.region is not None:
            region = checked_region(
                dataset,
                options.region,
                mode=options.mode,
                append_dim=options.append_dim,
                stored=lambda dim: self._coordinate(existing.get(dim)),
            )
            dataset = dataset.drop_vars(list(dataset.indexes))
        self._check_existing(path, dataset, existing)
        variables, attributes = conventions.encode_dataset_coordinates(dataset)
        arrays = []
        for name, given in _encodings(variables, encoding).items():
            stored = existing.get(name)
            if stored is None:
                strict = name in encoding
                arrays.append(self._new(path, name, given, region, strict=strict))
            elif self._is_written(stored):
                arrays.append(self._joining(path, stored, given, region))
        found = nodes.get(path)
        if found is not None and found.kind == "array":
            raise ts.MismatchError(
                f"there is an array, not a group, at {self._place.describe(path)}; write to "
                "another path"
            )
        plain = as_attributes(attributes, "Dataset.attrs")
        present = found if found is not None and found.kind is not None else None
        return GroupPlan(path, plain, arrays, present)

    def _is_written(self, stored: Existing) -> bool:
        append_dim = self._options.append_dim
        return not (
            self._options.mode == "a-" and append_dim is not None and append_dim not in stored.dims
        )

    # What is there.

    def _existing(
        self, path: str, dataset: xr.Dataset, nodes: Mapping[str, Node]
    ) -> dict[Hashable, Existing]:
        found = {}
        for name in dataset.variables:
            node = nodes.get(below(path, stored_name(name)))
            if node is None or node.kind is None:
                continue
            if node.kind == "group":
                raise ValueError(
                    f"variable {name!r} cannot be stored: a group is at "
                    f"{self._place.describe(node.path)}; rename one of them"
                )
            found[name] = as_existing(stored_name(name), node, ts.zarr.Array(self._opened(node)))
        return found

    def _opened(self, node: Node, metadata: Json = None, **more: Any) -> ts.TensorStore:
        document = node.documents[self._form.array_key].value if metadata is None else metadata
        return open_assumed(self._place, self._form, node.path, document, **more)

    def _coordinate(self, existing: Existing | None) -> xr.Variable | None:
        if existing is None:
            return None
        return existing.decoded(ts.zarr.Array(self._opened(existing.node))[...])

    def _check_existing(
        self, path: str, dataset: xr.Dataset, existing: Mapping[Hashable, Existing]
    ) -> None:
        options = self._options
        new = [name for name in dataset.variables if name not in existing]
        if options.mode == "r+" and new:
            raise ValueError(
                f"dataset contains non-pre-existing variables {new!r}, which mode='r+' does not "
                "make; to make them say mode='a'"
            )
        dim = options.append_dim
        if dim is None or any(dim in each.dims for each in existing.values()):
            return
        if dim not in (dims := self._all_dims(path)):
            raise ValueError(
                f"append_dim={dim!r} does not match any existing dataset dimensions {dims}; make "
                "the first part without append_dim="
            )

    def _all_dims(self, path: str) -> dict[str, int]:
        try:
            group = ts.Group.open(
                self._place.kvstore, path=path, consolidated=False, context=self._place.context
            ).result()
        except ts.NotFoundError:
            return {}
        found: dict[str, int] = {}
        for _, array in group.arrays():
            found.update(zip(array.domain.labels, array.shape, strict=True))
        return found

    # Arrays.

    def _new(
        self,
        path: str,
        name: Hashable,
        given: xr.Variable,
        region: Mapping[Hashable, slice],
        *,
        strict: bool,
    ) -> ArrayPlan:
        form, options = self._form, self._options
        variable = encoded(given, name, form.zarr_format)
        asked = array_arguments(
            variable, name, form.zarr_format, strict=strict, write_empty=options.write_empty
        )
        for dim in variable.dims:
            if not isinstance(dim, str):
                raise TypeError(
                    f"variable {name!r} has the dimension {dim!r}, whose name is not text; rename "
                    "it"
                )
        try:
            metadata = self._forms.metadata(variable.shape, asked.form)
        except (TypeError, ValueError, NotImplementedError) as error:
            kind = TypeError if isinstance(error, TypeError) else ValueError
            raise kind(f"variable {name!r} cannot be stored: {error}") from error
        where = below(path, stored_name(name))
        documents = form.array(metadata, [str(dim) for dim in variable.dims], asked.attributes)
        store = open_assumed(self._place, form, where, metadata, write_empty=asked.write_empty)
        parts = [
            slice(*region.get(dim, slice(None)).indices(size)[:2])
            for dim, size in variable.sizes.items()
        ]
        if any(part != slice(0, size) for part, size in zip(parts, variable.shape, strict=True)):
            raise ValueError(
                f"variable {name!r} is not stored yet, so region= cannot be a part of it; make all "
                "of it first"
            )
        plan = ArrayPlan(
            where,
            variable,
            ArrayTarget(store, variable.ndim),
            tuple(parts),
            new=True,
            documents={below(where, key): (each, None) for key, each in documents.items()},
        )
        return self._aligned(plan, store)

    def _joining(
        self,
        path: str,
        stored: Existing,
        given: xr.Variable,
        region: Mapping[Hashable, slice],
    ) -> ArrayPlan:
        dim = self._options.append_dim
        variable = joined(given, stored, region=region, append_dim=dim)
        shape, parts = [*stored.shape], []
        for axis, (each, size) in enumerate(stored.sizes.items()):
            part = slice(*region.get(each, slice(None)).indices(size)[:2])
            if each == dim:
                part = slice(size, size + variable.sizes[each])
                shape[axis] = part.stop
            parts.append(part)
        key = self._form.array_key
        document = stored.node.documents[key]
        metadata = {**document.value, "shape": shape}
        documents: dict[str, tuple[Json, bytes | None]] = {}
        if shape != [*stored.shape]:
            _check_regular(stored)
            documents[below(stored.node.path, key)] = (metadata, document.generation)
        store = self._opened(stored.node, metadata, write_empty=bool(self._options.write_empty))
        target = ArrayTarget(store, variable.ndim)
        plan = ArrayPlan(
            stored.node.path, variable, target, tuple(parts), new=False, documents=documents
        )
        return self._aligned(plan, store)

    def _aligned(self, plan: ArrayPlan, store: ts.TensorStore) -> ArrayPlan:
        if self._options.align and plan.variable.chunks is not None:
            cells = store.chunk_layout.write_chunk.shape
            if cells is not None:
                rank = len(plan.region)
                sizes = tuple(int(each or 1) for each in cells)[:rank]
                plan.variable = aligned(plan.variable, sizes, plan.region)
        return plan


def _check_regular(stored: Existing) -> None:
    grid = stored.node.documents.get("zarr.json")
    if grid is not None and grid.value["chunk_grid"]["name"] != "regular":
        raise ts.UnsupportedError(
            f"variable {stored.name!r} has chunks of different sizes, which an append cannot go on "
            "with; resize the array first, and write with region="
        )


def _check_names(dataset: xr.Dataset) -> None:
    for name in dataset.variables:
        if name is not None and not isinstance(name, str):
            raise TypeError(
                f"Invalid name {name!r} of a variable: it must be a string or None, not "
                f"{type(name).__name__}"
            )
        if name == "":
            raise ValueError("Invalid name '' of a variable: the string must be length 1 or more")
        if name is not None and "/" in name:
            raise ValueError(
                f"Invalid name {name!r} of a variable: slashes lead to another group; rename it"
            )


def stored_name(name: Hashable) -> str:
    """What a variable is stored as."""
    return _NAMELESS if name is None else str(name)


def _encodings(
    variables: Mapping[Hashable, xr.Variable], encoding: Mapping[Any, Mapping[str, Any]]
) -> dict[Hashable, xr.Variable]:
    """Variables with the encoding that was said of them."""
    found = dict(variables)
    for name, each in encoding.items():
        if name not in found:
            raise KeyError(
                f"encoding names the variable {name!r}, which is not to be written; there are "
                f"{list(found)}"
            )
        found[name] = found[name].copy(deep=False)
        found[name].encoding = each  # which copies it
    return found
