"""What JSON and URLs say of an OCDBT database.

Specification: https://google.github.io/tensorstore/kvstore/ocdbt/
"""
