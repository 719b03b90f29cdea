"""Which modules may import which: the rules that import-linter's contracts have no words for."""

import ast
import re
from pathlib import Path

import grimp
import pytest

from tests.house.sources import ROOT, imported, is_inside, sources

PLUG_INS = ("codecs", "kvstores", "drivers")

# A codec library is known to the one file that wraps it, so that it can be replaced there. zlib has
# checksums besides deflate. What servers state of their answers is a checksum of its own floor.
# Entries of zip archives are bare streams, which no codec has, and old checkpoints of Orbax are
# msgpack files.
CODEC_LIBRARIES = {
    "bz2": {"codecs/bzip2_xz.py", "kvstores/zip/methods.py"},
    "deflate": {"codecs/deflate.py"},
    "fastcrc": {"_interface/crc32c.py"},
    "lzma": {"codecs/bzip2_xz.py", "kvstores/zip/methods.py"},
    "numcodecs.blosc": {"codecs/blosc/__init__.py"},
    "numcodecs.lz4": {"codecs/lz4.py"},
    "numcodecs.zstd": {"_net/content_encoding.py", "codecs/zstd.py"},
    "msgpack": {"codecs/objects.py", "orbax/documents.py"},
    "numcodecs.fletcher32": {"codecs/checksums.py"},
    "numcodecs.jenkins": {"codecs/checksums.py"},
    "numcodecs.registry": {"codecs/numcodecs.py"},
    "numcodecs.vlen": {"codecs/vlen.py"},
    "pcodec": {"codecs/pcodec_zfpy.py"},
    "pickle": {"_compute/block_function.py", "codecs/objects.py"},
    "zfpy": {"codecs/pcodec_zfpy.py"},
    "zlib": {
        "_net/content_encoding.py",
        "codecs/checksums.py",
        "codecs/deflate.py",
        "kvstores/zip/methods.py",
    },
}

# How many modules of each room import each other in circles; what is imported for types alone
# counts, too. Only the index algebra's own circle is meant to stay: a domain is indexed by what
# makes a transform of it.
MODULES_IN_CIRCLES = {"_index": 3}

# Test files (and helpers of tests) that import private modules: an upper bound, to be lowered as
# tests come to speak through public doors. What tests want from inside is in tests/internals.py.
FILES_THAT_KNOW_PRIVATE_MODULES = 55

# Modules of zarr-python that it says nothing of: they change from one of its releases to the next.
PRIVATE_ZARR = re.compile(r"zarr(\.\w+)*\.(core|_\w+)(\.|$)")
# Values that its documentation gives for the option `codec_pipeline.path`.
DOCUMENTED_ZARR = {f"zarr.core.codec_pipeline.{kind}CodecPipeline" for kind in ("Batched", "Fused")}


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


def circles() -> list[list[str]]:
    """The groups of modules that import each other, directly or through others (Tarjan's)."""
    graph = grimp.build_graph("tensorstore_py", cache_dir=None)
    numbers: dict[str, int] = {}
    path: list[str] = []
    found = []

    def lowest_from(module: str) -> int:
        lowest = numbers[module] = len(numbers)
        path.append(module)
        for other in graph.find_modules_directly_imported_by(module):
            if other not in numbers:
                lowest = min(lowest, lowest_from(other))
            elif other in path:
                lowest = min(lowest, numbers[other])
        if lowest == numbers[module]:
            start = path.index(module)
            found.append(sorted(path[start:]))
            del path[start:]
        return lowest

    for module in sorted(graph.modules):
        if module not in numbers:
            lowest_from(module)
    return [circle for circle in found if len(circle) > 1]


def test_no_room_has_more_modules_in_circles_of_imports() -> None:
    by_room: dict[str, list[list[str]]] = {}
    for circle in circles():
        rooms = {module.split(".")[1] if "." in module else "" for module in circle}
        by_room.setdefault(" and ".join(sorted(rooms)), []).append(circle)

    grown = {
        room: found
        for room, found in by_room.items()
        if sum(map(len, found)) > MODULES_IN_CIRCLES.get(room, 0)
    }

    assert grown == {}


def test_few_tests_know_private_modules() -> None:
    pattern = re.compile(r"tensorstore_py\._[a-z]|from tensorstore_py import [^#\n]*\b_[a-z]")
    knowing = [
        str(path.relative_to(ROOT))
        for path in sorted((ROOT / "tests").rglob("*.py"))
        if path != Path(__file__) and pattern.search(path.read_text(encoding="utf-8"))
    ]

    assert len(knowing) <= FILES_THAT_KNOW_PRIVATE_MODULES, "\n".join(knowing)


def private_names_of_zarr(text: str) -> list[str]:
    """Private modules of zarr-python that a program imports, uses, or names in a string."""
    if not re.search(r"\bfrom zarr\b|\bzarr(\.\w+)*\.(core|_)", text):
        return []  # without parsing the many files that cannot name one
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
