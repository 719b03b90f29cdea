"""Built-in codecs, one file a family; the registry imports them all when it looks for a name.

Importing one must cost nothing: the compression library behind it is imported when a codec is
bound for the first time. Codecs import nothing else of the package than `plugin.codec`.
"""
