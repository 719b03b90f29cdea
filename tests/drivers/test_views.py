"""Drivers made of other arrays, under every kind of view, against NumPy written out by hand.

A view is a random `IndexTransform`. What it shows is looked up position by position, and every
element of a smaller array is made by itself, of a list of Python numbers.
"""

import itertools
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorstore_py as ts
from tests.chunked.views import SHAPES, brute_coordinates, look_up, views
from tests.drivers.elements import elements, same

FEWER = settings(max_examples=settings().max_examples // 2)
METHODS = ["stride", "mean", "median", "mode", "min", "max"]
DATA_TYPE = ts.int32


def in_memory(array):
    return ts.array(array.copy(), DATA_TYPE)


def overlay(data, array):
    """Some of the array, drawn at random, over and over on top of itself."""
    layers = [in_memory(array)]
    for _ in range(data.draw(st.integers(0, 3))):
        lows = [data.draw(st.integers(0, extent)) for extent in array.shape]
        highs = [
            data.draw(st.integers(low, extent))
            for low, extent in zip(lows, array.shape, strict=True)
        ]
        part = in_memory(array[(*map(slice, lows, highs), ...)])
        layers.append(part.translate_to[lows] if lows else part)
    return ts.overlay(layers)


def concat(data, array):
    if not array.ndim:
        return in_memory(array)
    axis = data.draw(st.integers(0, array.ndim - 1))
    cut = data.draw(st.integers(0, array.shape[axis]))
    first, second = np.split(array, [cut], axis)
    return ts.concat([in_memory(first), in_memory(second)], axis=axis)


def stack(data, array):
    if not array.ndim:
        return in_memory(array)
    axis = data.draw(st.integers(0, array.ndim - 1))
    return ts.stack([in_memory(each) for each in np.moveaxis(array, axis, 0)], axis=axis)


def cast(_data, array):
    return ts.cast(ts.array(array.astype(np.float64)), DATA_TYPE)


def virtual(data, array):
    kept = array.copy()
    origin = [data.draw(st.integers(-4, 4)) for _ in array.shape]
    chunk_shape = [data.draw(st.integers(1, 4)) for _ in array.shape]

    def part(domain):
        low, high = np.subtract([domain.inclusive_min, domain.exclusive_max], origin)
        return (*map(slice, low, high), ...)

    def read(domain, chunk, _):
        chunk[...] = kept[part(domain)]

    def write(domain, chunk, _):
        kept[part(domain)] = chunk

    store = ts.virtual_chunked(
        read, write, dtype=DATA_TYPE, chunk_layout=ts.ChunkLayout(read_chunk_shape=chunk_shape),
        domain=ts.IndexDomain(inclusive_min=origin, shape=array.shape),
    )  # fmt: skip
    return store.translate_to[[0] * array.ndim] if origin else store


@pytest.mark.parametrize("made", [overlay, concat, stack, cast, virtual])
@FEWER
@given(data=st.data(), order=st.sampled_from("CF"))
def test_reads_and_writes(made, data, order):
    array = np.arange(1000, 1000 + np.prod(shape := data.draw(SHAPES), dtype=int), dtype=np.int32)
    array = array.reshape(shape)
    store = made(data, array)
    view = data.draw(views(shape))
    assert same(store[view].read(order=order).result(), look_up(array, view))
    target = data.draw(views(shape, distinct=True))
    values = np.arange(np.prod(target.input_shape, dtype=int), dtype=np.int32)
    values = values.reshape(target.input_shape)
    store[target].write(values).result()
    for position, place in zip(
        np.ndindex(*target.input_shape),
        brute_coordinates(target).reshape(values.size, len(shape)).tolist(),
        strict=True,
    ):
        array[tuple(place)] = values[position]
    assert same(store.read().result(), array)


def of_a_group(members, method):
    """One element of a list of Python numbers, which may be complex for some methods."""
    if method == "mean":
        if all(isinstance(each, int) for each in members):
            return round(Fraction(sum(members), len(members)))  # a half to the even one
        return sum(members) / len(members)
    if method == "mode":
        counts = Counter(members)
        most = max(counts.values())
        ties = [each for each, count in counts.items() if count == most]
        return min(ties, key=lambda each: (each.real, each.imag))
    if method == "median":
        return sorted(members)[(len(members) - 1) // 2]
    if method == "stride":
        return members[0]
    return min(members) if method == "min" else max(members)


def made_by_hand(base, below, factors, method, view):
    """What `view` shows of the smaller array, element by element.

    Args:
        base: a NumPy array.
        below: from what is downsampled to `base`.
        factors: of each dimension of what is downsampled.
        method: of downsampling.
        view: from what is shown to the smaller array.
    """
    out = np.empty(view.input_shape, base.dtype)
    origin, shape = below.input_origin, below.input_shape
    shown = brute_coordinates(view).reshape(out.size, len(factors)).tolist()
    for position, cell in zip(np.ndindex(*out.shape), shown, strict=True):
        ranges = [
            range(max(place * factor, low), min((place + 1) * factor, low + extent))
            for place, factor, low, extent in zip(cell, factors, origin, shape, strict=True)
        ]
        if method == "stride":
            ranges = [
                range(place * factor, place * factor + 1)
                for place, factor in zip(cell, factors, strict=True)
            ]
        members = [base[below(place)].item() for place in itertools.product(*ranges)]
        out[position] = of_a_group(members, method)
    return out


@pytest.mark.parametrize("method", METHODS)
@FEWER
@given(data=st.data())
def test_smaller_arrays(method, data):
    shape = data.draw(SHAPES.filter(lambda shape: np.prod(shape) <= 100))
    kinds = ["uint8", "int8", "int64", "uint64", "float32", "float64"]
    kinds += {"stride": ["complex64"], "mode": ["complex64"]}.get(method, ["bool"])
    count = int(np.prod(shape))
    values = data.draw(st.lists(st.integers(0, 5), min_size=count, max_size=count))
    base = np.array(values).reshape(shape).astype(data.draw(st.sampled_from(kinds)))
    below = data.draw(views(shape).filter(lambda view: np.prod(view.input_shape) <= 300))
    factors = [data.draw(st.integers(1, 4)) for _ in below.input_shape]

    smaller = ts.downsample(ts.array(base)[below], factors, method)
    assert smaller.domain.origin == tuple(
        -(-low // factor) if method == "stride" else low // factor
        for low, factor in zip(below.input_origin, factors, strict=True)
    )
    whole = ts.IndexTransform(smaller.domain)
    if whole.input_rank:
        whole = whole.translate_to[[0] * whole.input_rank]
    view = whole[data.draw(views(whole.input_shape, max_steps=2))]
    expected = made_by_hand(base, below, factors, method, view)
    found = smaller[view].read().result()
    assert found.dtype == base.dtype
    np.testing.assert_allclose(found, expected, rtol=1e-6 if base.dtype.kind in "fc" else 0)


@pytest.mark.parametrize("data_type", ["string", "ustring", "char", "byte", "U3", "S3"])
@pytest.mark.parametrize("method", ["stride", "mode"])
def test_smaller_arrays_of_text(data_type, method):
    base = elements(data_type, (7,))
    store = ts.array(base, ts.dtype(data_type)).translate_to[-3]
    smaller = ts.downsample(store, [2], method)[::-1]
    groups = [base[max(low + 3, 0) : low + 5].tolist() for low in range(-4, 4, 2)]
    if method == "stride":
        expected = [base[low + 3 : low + 4].tolist()[0] for low in range(-2, 4, 2)]
    else:
        expected = [min(each) for each in groups]  # each is there once
    assert smaller.read().result().tolist() == expected[::-1]
