"""What is computed of arrays block by block: reductions, digests, differences.

Each has two parts: what is known of a block, a small state that merges with those of other blocks
in any order, and the operation that reads blocks and makes such states of them. The one invariant:
however an array is cut, and in whichever order states are merged, the result is the same (of
floating-point sums, up to the last bits).
"""
