"""Stores: one file or folder each, found by the registry and never imported by one another."""
