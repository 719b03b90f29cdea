"""Promises: what a store, a codec and a driver owe to the engine, and nothing else.

Each module here states one promise as a small abstract class or a frozen value. The engine
(`_chunked`) talks to these only; plug-ins implement them. No I/O and no policy lives here.
"""
