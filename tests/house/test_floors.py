"""Who may import whom: import-linter's contracts, and the rules that it has no words for."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.house.sources import ROOT, imported, is_inside, sources

PLUG_INS = ("codecs", "kvstores", "drivers")

# A codec library is known to the one codec that wraps it, so that it can be replaced there. The two
# deflate formats are two codecs over one library, and so are its checksums, and the three kinds of
# objects of variable length. What servers state of their answers is a checksum of its own floor.
# Entries of zip archives are bare streams, which no codec has.
CODEC_LIBRARIES = {
    "bz2": {"codecs/bz2.py", "kvstores/zip/methods.py"},
    "deflate": {"codecs/gzip.py", "codecs/zlib.py"},
    "google_crc32c": {"_net/digests.py", "codecs/crc32c.py"},
    "gzip": {"codecs/gzip.py"},
    "isal": {"codecs/gzip.py", "codecs/zlib.py"},
    "lzma": {"codecs/lzma.py", "kvstores/zip/methods.py"},
    "numcodecs.blosc": {"codecs/blosc/codec.py"},
    "numcodecs.lz4": {"codecs/lz4.py"},
    "numcodecs.zstd": {"_net/unpacking.py", "codecs/zstd.py"},
    "msgpack": {"codecs/msgpack2.py"},
    "numcodecs.jenkins": {"codecs/jenkins_lookup3.py"},
    "numcodecs.registry": {"codecs/numcodecs.py"},
    "numcodecs.vlen": {"codecs/vlen_array.py", "codecs/vlen_bytes.py", "codecs/vlen_utf8.py"},
    "pcodec": {"codecs/pcodec.py"},
    "pickle": {"_compute/block_function.py", "codecs/pickle.py"},
    "zfpy": {"codecs/zfpy.py"},
    "zlib": {
        "_net/unpacking.py",
        "codecs/adler32.py",
        "codecs/crc32.py",
        "codecs/gzip.py",
        "codecs/zlib.py",
        "kvstores/zip/methods.py",
    },
}


# Modules of zarr-python that it says nothing of: they change from one of its releases to the next.
PRIVATE_ZARR = re.compile(r"zarr(\.\w+)*\.(core|_\w+)(\.|$)")
# Values that its documentation gives for the option `codec_pipeline.path`.
DOCUMENTED_ZARR = {f"zarr.core.codec_pipeline.{kind}CodecPipeline" for kind in ("Batched", "Fused")}


def test_imports_go_down_the_floors() -> None:
    # In a process of its own: the linter's own logging set-up switches other loggers off.
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]

    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    assert run.returncode == 0, run.stdout + run.stderr


def test_plug_ins_enter_by_their_door_only() -> None:
    intruders = []
    for source in sources():
        room, _, rest = source.name.partition("/")
        if room not in PLUG_INS or not rest:
            continue
        own = f"tensorstore_py.{room}.{rest.split('/')[0].removesuffix('.py')}"
        allowed = (own, "tensorstore_py.plugin", "tensorstore_py.errors")
        intruders += [
            f"{source.name}:{line} {name}"
            for name, line in source.imports()
            if is_inside(name, "tensorstore_py")
            and not any(is_inside(name, module) for module in allowed)
        ]

    assert intruders == [], "\n".join(intruders)


def test_own_modules_are_imported_at_the_top() -> None:
    hidden = [
        f"{source.name}:{line} {name}"
        for source in sources()
        for function in ast.walk(source.tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(function)
        for name, line in imported(node, source.name)
        if is_inside(name, "tensorstore_py")
    ]

    assert hidden == [], "\n".join(hidden)


def test_each_codec_library_is_known_to_one_codec() -> None:
    strays = [
        f"{source.name}:{line} {name}"
        for source in sources()
        for name, line in source.imports()
        for library, homes in CODEC_LIBRARIES.items()
        if is_inside(name, library) and source.name not in homes
    ]

    assert strays == [], "\n".join(strays)


def test_errors_stand_on_nothing() -> None:
    (errors,) = [source for source in sources() if source.name == "errors.py"]

    own = [name for name, _ in errors.imports() if is_inside(name, "tensorstore_py")]

    assert own == [], "\n".join(own)


def private_names_of_zarr(text: str) -> list[str]:
    """Private modules of zarr-python that a program imports, uses, or names in a string."""
    tree = ast.parse(text)
    said = [name for node in ast.walk(tree) for name, _ in imported(node, "")]
    said += [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    said += [ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    return [one for one in said if PRIVATE_ZARR.match(one) and one not in DOCUMENTED_ZARR]


@pytest.mark.parametrize(
    "text",
    [
        "import zarr.core.array",
        "from zarr.core import chunk_grids",
        "from zarr import _compat",
        "import_module('zarr.core')",
        "import zarr\nzarr.core.sync.sync(1)",
        "from zarr.codecs._v2 import V2Codec",
    ],
)
def test_a_private_module_of_zarr_is_seen(text: str) -> None:
    assert private_names_of_zarr(text)
    assert not private_names_of_zarr("import zarr.registry, zarr.codecs\nfrom zarr import config")


@pytest.mark.parametrize("folder", ["tensorstore_py", "tests", "benchmarks", "examples", "scripts"])
def test_of_zarr_public_modules_are_used_only(folder: str) -> None:
    found = {
        str(path.relative_to(ROOT)): names
        for path in sorted((ROOT / folder).rglob("*.py"))
        if path not in (Path(__file__), ROOT / "benchmarks/faces.py")  # it names zarr's pipelines,
        # which zarr's configuration wants by the places where they are
        and (names := private_names_of_zarr(path.read_text(encoding="utf-8")))
    }

    assert found == {}
