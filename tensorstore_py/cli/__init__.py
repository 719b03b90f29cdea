"""The command line, `tspy`: one file a command, each with `add` (its arguments) and `run`.

A command prints results to standard output and complaints to standard error, and returns its exit
code (`exit_codes`). What commands share: `places` says what their arguments mean, `found` opens
what is there, `output` prints it, `confirm` asks before something is lost.
"""
