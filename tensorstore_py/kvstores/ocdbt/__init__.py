"""The `ocdbt` store: a versioned tree of keys in the files of another store."""
