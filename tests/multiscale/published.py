"""What others publish of OME-Zarr: JSON schemas, and readers, in an environment of their own.

They want other versions of libraries than the tests have, so they run as a program.
"""

import json
import subprocess
import sys

from tests.servers.installed import Environment

REQUIREMENTS = ["ome-zarr>=0.18", "ngff-zarr>=0.50", "jsonschema>=4.21"]

#: Prints, for each image that it is given as path and version, what both readers find.
PROGRAM = """
import json, pathlib, sys, warnings
warnings.simplefilter("ignore")
import jsonschema, ngff_zarr, referencing, zarr
import numpy as np
from ome_zarr.io import parse_url
from ome_zarr.reader import Reader

SCHEMAS = pathlib.Path(ngff_zarr.__file__).parent / "spec"


def validate(attributes, version, name):
    found = []
    for file in (SCHEMAS / version / "schemas").glob("*.schema"):
        schema = json.loads(file.read_text())
        made = referencing.Resource.from_contents(
            schema, default_specification=referencing.jsonschema.DRAFT202012
        )
        found.append((schema["$id"], made))
    schema = json.loads((SCHEMAS / version / "schemas" / (name + ".schema")).read_text())
    registry = referencing.Registry().with_resources(found)
    jsonschema.Draft202012Validator(schema, registry=registry).validate(attributes)


def look(path, version, schemas):
    attributes = dict(zarr.open_group(path, mode="r").attrs)
    for name in schemas:
        validate(attributes, version, name)
    if "strict_image" not in schemas:
        return {}
    image = ngff_zarr.from_ngff_zarr(path)
    node = next(iter(Reader(parse_url(path))()))
    return {
        "ngff_zarr": {
            "shapes": [list(each.data.shape) for each in image.images],
            "scale": [each.scale for each in image.images],
            "translation": [each.translation for each in image.images],
            "units": image.images[0].axes_units,
            "sums": [int(np.asarray(each.data).sum()) for each in image.images],
        },
        "ome_zarr": {
            "shapes": [list(each.shape) for each in node.data],
            "axes": node.metadata["axes"],
            "transformations": node.metadata["coordinateTransformations"],
            "name": node.metadata.get("name"),
            "channels": node.metadata.get("channel_names"),
            "sums": [int(np.asarray(each).sum()) for each in node.data],
        },
    }


print(json.dumps([look(*each) for each in json.loads(sys.argv[1])]))
"""


def environment() -> Environment:
    """That which fits this interpreter."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    return Environment(f"ome-zarr-{version}", REQUIREMENTS)


def looked_at(asked: list[tuple[object, str, list[str]]]) -> list[dict]:
    """What readers find at each place; schemas of a version by which it is valid.

    Args:
        asked: places, versions, and names of schemas.
    """
    made = environment()
    made.install()
    places = json.dumps([[str(path), version, names] for path, version, names in asked])
    done = subprocess.run(
        [made.program("python"), "-c", PROGRAM, places],
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found: list[dict] = json.loads(done.stdout.splitlines()[-1])
    return found
