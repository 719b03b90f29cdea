"""Door 3, for test authors: what every plug-in must keep, as test classes to inherit.

The suites are part of the product: the built-in plug-ins pass them, and guests may inherit them.
This package needs pytest, which the rest of the package does not.
"""

from tensorstore_py.testing.codecs import CodecSuite

__all__ = ["CodecSuite"]
