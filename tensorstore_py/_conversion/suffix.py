"""What the name of a destination says of its format: `image.n5`, `image.zip`, `image.h5`.

Only names without a format of their own are looked at: local paths, and URLs without `|`. The one
invariant: a name is never given to what is of another format.
"""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath
from typing import Final

from tensorstore_py.errors import SpecError

__all__ = ["by_suffix"]

_FOREIGN: Final = frozenset(
    """
    .csv .h5 .hdf .hdf5 .jpg .json .mat .nc .nc4 .npy .npz .nii .parquet .png .tif .tiff
    """.split()  # noqa: SIM905 - reads better
)


def by_suffix(given: object, zarr_format: int | None) -> object:
    """A destination with the format that its name says; any other is given back as it is.

    Args:
        given: a URL, a local path, or anything else.
        zarr_format: the version of Zarr that is asked for.

    Raises:
        SpecError: the name is that of a format that cannot be written, or contradicts the version.

    Example:
        >>> by_suffix("s3://bucket/image.n5", None), by_suffix("s3://bucket/image.zip", None)
        ({'driver': 'n5', 'kvstore': 's3://bucket/image.n5/'}, 's3://bucket/image.zip|zip:')
        >>> by_suffix("s3://bucket/image.zarr", None)
        's3://bucket/image.zarr'
    """
    local = isinstance(given, os.PathLike)
    if not local and not (isinstance(given, str) and "://" in given and "|" not in given):
        return given
    text = os.fspath(given) if isinstance(given, os.PathLike) else given
    assert isinstance(text, str)
    suffix = PurePosixPath(text.partition("?")[0]).suffix.lower()
    if suffix == ".n5":
        if zarr_format is not None:
            raise SpecError(
                f"{text} is named as an array of n5; name it .zarr, or leave this out",
                ("zarr_format",),
            )
        return {"driver": "n5", "kvstore": given if local else text.rstrip("/") + "/"}
    if suffix == ".zip" and not text.endswith("/"):
        if not local:
            return f"{text}|zip:"
        if not Path(text).is_dir():
            return f"{Path(text).absolute().as_uri()}|zip:"
    if suffix in _FOREIGN:
        raise SpecError(
            f"{text} is named as a file of a format that is not written here; "
            "name it .zarr, .n5 or .zip"
        )
    return given
