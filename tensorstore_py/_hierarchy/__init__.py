"""The hierarchy room: groups over any store, of any format that says what its documents mean.

Opening, creating, listing, moving and deleting nodes; attributes; consolidated metadata. It knows
stores and the promise of `HierarchyFormat`, and nothing of arrays: what an array's document means
is its driver's matter.
"""
