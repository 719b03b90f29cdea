"""Append records to an array as they arrive; shrink it again."""

import numpy as np

import tensorstore_py as ts


def main() -> None:
    """Runs the example."""
    store = ts.open(
        {"driver": "zarr3", "kvstore": "memory://"},
        create=True,
        dtype="float64",
        shape=[0, 4],
        chunk_layout=ts.ChunkLayout(chunk_shape=[100, 4]),
    ).result()
    first = store

    for batch in range(5):
        # Others may append at the same time: each one's records get rows of their own.
        store = store.append(np.full((30, 4), batch, "float64")).result()
        print("after batch", batch, store.domain)
    print("column:", store[20:70:10, 0].read().result())

    # A handle knows the bounds that it last saw; resolve() asks the store.
    print("first handle:", first.domain, "->", first.resolve().result().domain)

    # Shrinking deletes the chunks that are wholly outside, and clears nothing inside.
    store = store.resize(exclusive_max=[45, None]).result()
    assert store.kvstore is not None
    print("shrunk:", store.domain, sorted(store.kvstore.list().result()))


if __name__ == "__main__":
    main()
