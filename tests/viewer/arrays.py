"""Arrays that tests of the viewer look at, and how they are drawn."""

import numpy as np

import tensorstore_py as ts

NO_PANELS = {"size": (700, 560)}  # where the settings are closed at first


def gray(values, low, high):
    """The levels of gray, or places in a colour map, that values are drawn with."""
    scaled = np.floor((values.astype("f8") - low) * (255 / (high - low)) + 0.5)
    return scaled.clip(0, 255).astype("u1")


def stored(values, **options):
    store = ts.open(
        {"driver": "zarr3", "kvstore": "memory://"},
        create=True,
        dtype=options.pop("dtype", values.dtype.name),
        domain=ts.IndexDomain(shape=values.shape, labels=options.pop("labels", None)),
        **options,
    ).result()
    store[...] = values
    return store


def noise(*shape, dtype="uint16", high=5000):
    return np.random.default_rng(0).integers(0, high, size=shape).astype(dtype)


LINK = "dims=1,2,&centre=300,400&scale=1&contrast=0,5000&map="
