"""What a spec may say of a zip archive as a store; the store itself is to come."""

from tensorstore_py.kvstores.zip.spec import ZipSpec

__all__ = ["ZipSpec"]
