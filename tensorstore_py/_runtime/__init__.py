"""How work runs: threads, the event loop, futures. Only the standard library; all threads.

Three modules know that there are two execution modes (inline and loop): `execution`, `fan_out` and
`keyed_lock`. Everything above is written once, as coroutines. When a second thread is used is said
in `interpreter_lock`; when an operation begins, in `submission_queue`; on which threads, in
`executors`; and what it waits for there, in `limiters`.
"""
