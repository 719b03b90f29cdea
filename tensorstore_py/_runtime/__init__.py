"""How work runs: threads, the loop, futures. Standard library only; the sole home of threads.

Three places know that there are two temperaments (inline and loop): `start`, `fan_out` with
`offload`, and `Gate`. Everything above is written once, as coroutines.
"""
