"""The viewer: a page that shows arrays and groups, and the server of its tiles.

`server.serve` begins it. `frontend` has the sources of the page, `static` what is built of them.
"""
