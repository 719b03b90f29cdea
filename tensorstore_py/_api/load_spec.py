"""`ts.load_spec`: the Spec in a file.

What a file may hold besides plain JSON is `spec_file`'s business.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tensorstore_py._api.spec import Spec
from tensorstore_py._api.spec_file import in_file, load_json
from tensorstore_py.errors import SpecError

if TYPE_CHECKING:
    from tensorstore_py._spec.trust import Trust

__all__ = ["load_spec"]


def load_spec(
    path: str | os.PathLike[str], *, env: bool = False, trust: Trust | None = None
) -> Spec:
    """The Spec in a file.

    Args:
        path: a JSON file, UTF-8.
        env: replace `${NAME}` in strings by the environment variable of that name, and
            `${NAME:-text}` by `text` if there is none; `$${` stands for `${`. Off by default:
            then strings are taken as they are. Not together with `trust`: the environment holds
            what such a file is not to know.
        trust: what the spec may do, if somebody else wrote the file; by default whatever it says.

    Raises:
        NotFoundError: there is no such file.
        SpecError: not JSON, a wrong spec, a variable that is not set, or more than it is trusted
            with; the message names the file, and the error has the path to the member.
        ValueError: both `env` and `trust`.

    Example:
        >>> import pathlib, tempfile
        >>> import tensorstore_py as ts
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = pathlib.Path(folder, "volume.json")
        ...     _ = file.write_text('{"driver": "zarr3", "kvstore": "memory://${NAME:-a}/"}')
        ...     ts.load_spec(file, env=True).kvstore.url
        'memory://a/'
    """
    if env and trust is not None:
        raise ValueError(
            "env=True would tell a spec that is not trusted what is in the environment"
        )
    json = load_json(path, env=env)
    try:
        return Spec(json, trust=trust)
    except SpecError as error:
        raise in_file(error, path) from None
