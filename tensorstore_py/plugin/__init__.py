"""The doors of plug-in authors: `plugin.codec`, `plugin.kvstore`, `plugin.driver`, `plugin.http`.

Built-in plug-ins enter by these doors, too: what a guest cannot do, we cannot do.
"""
