"""What makes other libraries at home with this package, one module or folder a library.

Each is written on the public door alone (`import tensorstore_py as ts`), as a guest's would be, and
imports its library when it is imported itself; nothing imports it unasked. Each belongs to an extra
of the same name.
"""
