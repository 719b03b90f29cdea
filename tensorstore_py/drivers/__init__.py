"""Array formats and views: one file or folder each, found by the registry, never by one another."""
