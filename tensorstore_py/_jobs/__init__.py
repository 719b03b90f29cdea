"""The jobs room: documents that say what is to be done, and how they are planned and run.

A job file names operations by the names of the public functions. A plan of a job is that, with what
was found out about its ends, for any number of processes that run parts of it.
"""
