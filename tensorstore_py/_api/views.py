"""Arrays over others: `ts.cast`, `ts.downsample`, `ts.overlay`, `ts.stack` and `ts.concat`.

Each makes a spec of the driver that does the work and hands it the open arrays as they are, so
nothing has to be awaited. The stacks differ only in where the layers are put.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict, TypeVar, Unpack, overload

from tensorstore_py._api.array import in_memory_context
from tensorstore_py._api.begin import as_context, as_transaction
from tensorstore_py._api.open import open_now
from tensorstore_py._api.options import updated
from tensorstore_py._api.spec import Spec, parse_spec
from tensorstore_py._api.tensorstore import TensorStore, as_spec
from tensorstore_py._index import IndexTransform, OutputIndexMap
from tensorstore_py._interface.driver import DriverSpec
from tensorstore_py._spec.arguments import spelled_out
from tensorstore_py._spec.context import bind
from tensorstore_py._spec.dtype import DTypeLike
from tensorstore_py._spec.dtype import dtype as DType  # noqa: N812
from tensorstore_py._spec.registry import drivers
from tensorstore_py.errors import SpecError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tensorstore_py._interface.transaction import Transaction
    from tensorstore_py._spec.context import Context
    from tensorstore_py._spec.schema import DomainLike, SchemaLike, ShapeLike, UnitsLike


__all__ = ["DownsampleMethod", "cast", "concat", "downsample", "overlay", "stack"]


@overload
def cast(base: TensorStore, dtype: DTypeLike) -> TensorStore: ...
@overload
def cast(base: Spec, dtype: DTypeLike) -> Spec: ...
def cast(base: TensorStore | Spec, dtype: DTypeLike) -> TensorStore | Spec:
    """`base` with its elements converted to another data type, both ways.

    Args:
        base: an open array, or a Spec.
        dtype: the data type to read and write as.

    Raises:
        SpecError: no such data type, or no conversion to or from it.

    Example:
        >>> import tensorstore_py as ts
        >>> ts.cast(ts.array([0, 1, 2], dtype="uint8"), "bool").read().result()
        array([False,  True,  True])
    """
    if isinstance(base, TensorStore):
        return base.astype(dtype)
    json = {"driver": "cast", "base": base.model, "dtype": DType(dtype)}
    return Spec.of(parse_spec(json))


DownsampleMethod: TypeAlias = Literal["stride", "mean", "median", "mode", "min", "max"]


@overload
def downsample(
    base: TensorStore, downsample_factors: Iterable[int], method: DownsampleMethod
) -> TensorStore: ...
@overload
def downsample(base: Spec, downsample_factors: Iterable[int], method: DownsampleMethod) -> Spec: ...
def downsample(
    base: TensorStore | Spec, downsample_factors: Iterable[int], method: DownsampleMethod
) -> TensorStore | Spec:
    """A smaller view, for reading: one element for each block of elements.

    Element `i` of a dimension with factor `f` stands for positions `[i * f, (i + 1) * f)`, as far
    as the array has them. What is read is made block by block, along the chunks of the array.

    Args:
        base: an open array, or a Spec. What is made of one that is seen through a transaction is
            seen through it, too.
        downsample_factors: for each dimension, at least 1.
        method: `"stride"` takes the element at `i * f`, `"mean"` rounds to the nearest (a half to
            the even one), `"median"` takes the lower one of two, `"mode"` the least of several
            that are as frequent, `"min"` and `"max"` pass over NaN.

    Raises:
        SpecError: not one factor a dimension, or the method is not for the data type.
        PermissionDeniedError: the array cannot be read.
        TypeError: `base` is neither an open array nor a Spec.

    Example:
        >>> import tensorstore_py as ts
        >>> store = ts.array([[1, 2, 3], [5, 6, 7]], dtype="uint8")
        >>> ts.downsample(store, [2, 2], "mean").read().result()
        array([[4, 5]], dtype=uint8)
    """
    if not isinstance(base, TensorStore | Spec):
        raise TypeError(f"expected a TensorStore or a Spec, but found {base!r}")
    model = as_spec(base) if isinstance(base, TensorStore) else base.model
    members = {
        "driver": "downsample",
        "base": model,
        "downsample_factors": list(downsample_factors),
        "downsample_method": method,
    }
    spec = parse_spec(members)
    if isinstance(base, TensorStore):
        return open_now(spec, None, None, base.transaction)
    return Spec.of(spec)


Layer = TensorStore | Spec
T = TypeVar("T")


class StackOptions(TypedDict, total=False):
    """The keyword arguments of all three; None means that nothing is said."""

    read: bool | None
    write: bool | None
    context: Context | None
    transaction: Transaction | None
    rank: int | None
    dtype: DTypeLike | None
    domain: DomainLike | None
    shape: ShapeLike | None
    dimension_units: UnitsLike | None
    schema: SchemaLike | None


def _given(
    *,
    read: bool | None = None,
    write: bool | None = None,
    context: Context | None = None,
    transaction: Transaction | None = None,
    rank: int | None = None,
    dtype: DTypeLike | None = None,
    domain: DomainLike | None = None,
    shape: ShapeLike | None = None,
    dimension_units: UnitsLike | None = None,
    schema: SchemaLike | None = None,
    **unknown: object,
) -> dict[str, Any]:  # Any: values of every kind
    """The arguments, named one by one for editors (see `spelled`)."""
    found = locals()
    return {**found.pop("unknown"), **found}


@spelled_out(StackOptions)
def overlay(layers: Iterable[Layer], **options: Unpack[StackOptions]) -> TensorStore:
    """Arrays where they are, later ones over earlier ones.

    Args:
        layers: open arrays, or Specs whose domain and data type are known; of one data type and
            rank. Specs are opened when they are needed.
        **options: `read` and `write` (by default whatever the layers can), `context` (for Specs),
            and constraints: `rank`, `dtype`, `domain`, `shape`, `dimension_units`, `schema`. The
            domain is by default the least one that holds all layers. `transaction` is by default
            the one that the open layers are seen through, which must be the same for all.

    Returns:
        The open stack. Positions that no layer has cannot be read or written.

    Raises:
        SpecError: layers that do not go together; names the first such.
        PermissionDeniedError: what was asked for by `read` or `write` no layer can.
        TypeError: a layer that is neither, or an option that does not exist.

    Example:
        >>> import tensorstore_py as ts
        >>> low, high = ts.array([1, 2, 3, 4]), ts.array([7, 8])
        >>> ts.overlay([low, high.translate_to[3]]).read().result()
        array([1, 2, 3, 7, 8])
    """
    layers = _listed(layers)
    found = [_transformed(number, layer) for number, layer in enumerate(layers)]
    return _stacked(found, _through(layers, _given(**options)))


@spelled_out(StackOptions)
def stack(layers: Iterable[Layer], axis: int = 0, **options: Unpack[StackOptions]) -> TensorStore:
    """Arrays one after the other along a new dimension.

    Args:
        layers: see `overlay`; at least one. Their domains should be the same.
        axis: which dimension of the result the new one is; negative ones count from the end.
        **options: see `overlay`.

    Raises:
        SpecError: layers that do not go together, or an axis that does not exist.
        PermissionDeniedError, TypeError: see `overlay`.

    Example:
        >>> import tensorstore_py as ts
        >>> ts.stack([ts.array([1, 2]), ts.array([3, 4])], axis=1).read().result()
        array([[1, 3],
               [2, 4]])
    """
    layers = _listed(layers)
    found = _some([_transformed(number, layer) for number, layer in enumerate(layers)], "stack")
    rank = _rank(found[0]) + 1
    place = _dimension(axis, rank)

    def put(number: int, transform: IndexTransform) -> IndexTransform:
        return transform[_without(transform, place, number)]

    return _stacked(_moved(found, put), _through(layers, _given(**options)))


@spelled_out(StackOptions)
def concat(
    layers: Iterable[Layer], axis: int | str, **options: Unpack[StackOptions]
) -> TensorStore:
    """Arrays one behind the other along a dimension that they have.

    Args:
        layers: see `overlay`; at least one. The first stays where it is.
        axis: the dimension, by number or by label; negative numbers count from the end.
        **options: see `overlay`.

    Raises:
        SpecError: layers that do not go together, or an axis that does not exist.
        PermissionDeniedError, TypeError: see `overlay`.

    Example:
        >>> import tensorstore_py as ts
        >>> ts.concat([ts.array([[1, 2]]), ts.array([[3]])], axis=1).read().result()
        array([[1, 2, 3]])
    """
    layers = _listed(layers)
    found = _some([_transformed(number, layer) for number, layer in enumerate(layers)], "concat")
    dim = _labelled(axis, found) if isinstance(axis, str) else _dimension(axis, _rank(found[0]))
    ends: list[int] = []

    def put(_: int, transform: IndexTransform) -> IndexTransform:
        low, extent = transform.input_origin[dim], transform.input_shape[dim]
        begin = ends[-1] if ends else low
        ends.append(begin + extent)
        origin = list(transform.input_origin)
        origin[dim] = begin
        return transform.translate_to[tuple(origin)]

    return _stacked(_moved(found, put), _through(layers, _given(**options)))


def _transformed(number: int, layer: object) -> DriverSpec:
    """The layer as a spec with a transform.

    Raises:
        TypeError: it is neither an open array nor a Spec.
        SpecError: its domain is not known.
    """
    if isinstance(layer, TensorStore):
        return as_spec(layer)
    if not isinstance(layer, Spec):
        raise TypeError(f"layer {number} must be a TensorStore or a Spec, not {layer!r}")
    transform = layer.transform
    if transform is None:
        raise SpecError(
            "the domain must be specified; open the layer first, or give its schema a domain",
            ("layers", number),
        )
    return layer.model.replace(transform=transform)


def _through(layers: Sequence[object], options: dict[str, Any]) -> dict[str, Any]:
    """The options with the transaction that open layers are seen through.

    Raises:
        SpecError: one is seen through another transaction than the rest.
        TypeError: what is asked for is no transaction.
    """
    asked = as_transaction(options.get("transaction"))
    seen = [
        (number, layer.transaction)
        for number, layer in enumerate(layers)
        if isinstance(layer, TensorStore)
    ]
    wanted = asked if asked is not None or not seen else seen[0][1]
    for number, transaction in seen:
        # An array that is seen through none can be seen through what is asked for.
        if transaction is not wanted and (transaction is not None or asked is None):
            raise SpecError(
                "the layer is seen through another transaction than the stack, or through none; "
                "write layer.with_transaction(transaction), with the same one for all layers",
                ("layers", number),
            )
    return {**options, "transaction": wanted}


def _listed(layers: Iterable[Layer]) -> list[Layer]:
    """Refuse one layer by itself, which would be read when it is iterated."""
    if isinstance(layers, TensorStore):
        raise TypeError("layers must be a sequence of arrays, not one TensorStore: write [layer]")
    return list(layers)


def _some(layers: list[DriverSpec], name: str) -> list[DriverSpec]:
    if not layers:
        raise SpecError(f"{name} needs at least one layer", ("layers",))
    rank = _rank(layers[0])
    for number, layer in enumerate(layers):
        if _rank(layer) != rank:
            raise SpecError(
                f"the layer has {_rank(layer)} dimensions, but the first one {rank}",
                ("layers", number),
            )
    return layers


def _rank(layer: DriverSpec) -> int:
    assert layer.transform is not None
    return layer.transform.input_rank


def _dimension(axis: int, rank: int) -> int:
    if not -rank <= axis < rank:
        raise SpecError(f"dimension {axis} is outside [{-rank}, {rank})", ("axis",))
    return axis % rank


def _labelled(label: str, layers: list[DriverSpec]) -> int:
    """The dimension that has a label in any layer."""
    labels: set[str] = set()
    for layer in layers:
        assert layer.transform is not None
        labels.update(filter(None, layer.transform.input_labels))
        if label and label in layer.transform.input_labels:
            return layer.transform.input_labels.index(label)
    known = ", ".join(f'"{each}"' for each in sorted(labels)) or "none"
    raise SpecError(f'no layer has a dimension "{label}"; the labels are {known}', ("axis",))


def _without(transform: IndexTransform, place: int, number: int) -> IndexTransform:
    """From positions with one more dimension, only `number` along it, to those of `transform`."""
    domain = transform.domain
    kept = [dim for dim in range(domain.rank + 1) if dim != place]

    def with_new(values: Sequence[T], new: T) -> list[T]:
        return [*values[:place], new, *values[place:]]

    return IndexTransform(
        input_inclusive_min=with_new(domain.inclusive_min, number),
        input_exclusive_max=with_new(domain.exclusive_max, number + 1),
        implicit_lower_bounds=with_new(domain.implicit_lower_bounds, False),
        implicit_upper_bounds=with_new(domain.implicit_upper_bounds, False),
        input_labels=with_new(domain.labels, ""),
        output=[OutputIndexMap(input_dimension=dim) for dim in kept],
    )


def _moved(
    layers: list[DriverSpec], put: Callable[[int, IndexTransform], IndexTransform]
) -> list[DriverSpec]:
    moved = []
    for number, layer in enumerate(layers):
        assert layer.transform is not None
        moved.append(layer.replace(transform=put(number, layer.transform)))
    return moved


def _stacked(layers: list[DriverSpec], options: dict[str, Any]) -> TensorStore:
    options = options.copy()
    transaction = as_transaction(options.pop("transaction", None))
    read, write = options.pop("read", None), options.pop("write", None)
    asked = options.pop("context", None)
    given = {name: value for name, value in options.items() if value is not None}
    unknown = given.keys() - StackOptions.__annotations__.keys()
    if unknown:
        raise TypeError(f"got an unexpected keyword argument {min(unknown)!r}")
    members: dict[str, object] = {"layers": tuple(layers)}
    if asked is None:
        members["data_copy_concurrency"] = in_memory_context()["data_copy_concurrency"]
    found = drivers.get("stack").parse_frozen(members)  # type: ignore[attr-defined]
    assert isinstance(found, DriverSpec)
    model = bind(updated(found, given), as_context(asked))
    return open_now(model, read, write, transaction)
