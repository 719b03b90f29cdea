"""The engine: chunked arrays over stores. The only hot path.

`selection` and `plan` are pure: a transform becomes a selection, a selection meets a grid and
becomes steps. `read` and `write` run the steps; `shard` goes one level down; `driver` keeps
the metadata. Codecs and stores are only known by their promises.
"""
