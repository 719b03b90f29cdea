"""Views: indexing reads nothing, keeps coordinates, and knows dimensions by name."""

import numpy as np

import tensorstore_py as ts


def main() -> None:
    """Runs the example."""
    values = np.arange(6 * 8 * 10, dtype=np.int32).reshape(6, 8, 10)
    store = ts.open(
        {"driver": "zarr3", "kvstore": "memory://"},
        create=True,
        dtype=ts.int32,
        domain=ts.IndexDomain(shape=values.shape, labels=["z", "y", "x"]),
    ).result()
    store[...] = values
    print("the array   ", store.domain)

    # A slice keeps the array's coordinates, so views of one array agree on where things are.
    view = store[2:5, 3, 4:8]
    print("a view      ", view.domain)
    print("a view of it", view[3, 5:7].domain, view[3, 5:7].read().result())
    print("from zero   ", view.translate_to[0].domain)

    # By name, in any order.
    print("by name     ", store[ts.d["x", "z"][1:3, 5]].domain)
    print("transposed  ", store.T.domain)

    # oindex: each list selects along its dimension; vindex: lists are positions.
    print("outer       ", store.oindex[[0, 5], [1, 1, 2], 0].read().result().tolist())
    print("pointwise   ", store.vindex[[0, 5], [1, 2], [3, 4]].read().result().tolist())

    # A view can be written like the array itself.
    view[ts.d["x"][::2]] = -1
    print("written     ", store[2, 3, 3:9].read().result().tolist())

    # Outside is an error that says where.
    try:
        store[0, 0, 10].read().result()
    except IndexError as error:
        print("outside     ", type(error).__name__, "-", error)


if __name__ == "__main__":
    main()
