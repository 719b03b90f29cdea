"""Bytes over HTTP, for the stores that live behind it."""
