"""The engine: chunked arrays over stores. The only hot path.

`array` is what all of it is about. `selection` and `plan` are pure: a transform becomes a
selection, a selection meets a grid and becomes chunk slices. `read` and `write` serve the slices;
`shard` goes one level down. `format` is what a spec says, `spec` opens it, and `driver` is the open
array, whose document `metadata` keeps. Codecs and stores are known by their promises only.
"""
