"""The command line, `tspy`: one file a command, each with `add` (its arguments) and `run`.

A command prints results to standard output and complaints to standard error, and returns its exit
code: 0, 1 if it found something wrong, 2 if it was called wrongly.
"""
