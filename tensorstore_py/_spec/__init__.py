"""What was asked: JSON specs as typed, frozen values, before anything is opened.

pydantic lives in this room and nowhere else. Nothing here knows a store, a codec or a driver:
those enter by the registries. No I/O, no threads; parsing is pure, and printing is its inverse.
"""
