"""`tspy ls`, `tree`, `du`, `verify`, `stats`, `info` of a bucket: how often its server is asked.

A round trip to a bucket takes some 50 ms: what is not needed is not asked for, and what is needed
is asked for together.
"""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

import tensorstore_py as ts

#: So many arrays there are in each of so many groups.
ARRAYS, GROUPS = 6, 4
ALL = ARRAYS * GROUPS

#: Runs a command, and says how many requests it made, and how many were under way at a time.
_COUNTED = """
import sys
import tensorstore_py as ts
from tensorstore_py.cli.main import main
code = main(sys.argv[1:])
found = {each["name"]: each["values"][0]
         for each in ts.experimental_collect_matching_metrics("/tensorstore/http/")}
counts = (found["/tensorstore/http/request_started"]["value"],
          found["/tensorstore/http/active"]["max_value"])
print(*counts, file=sys.stderr)
sys.exit(code)
"""


@pytest.fixture(scope="module")
def bucket(moto_s3):
    """The specs of places in a bucket with a tree of small arrays, and how to ask of them."""
    name = moto_s3.make_bucket()
    keys = {"type": "static", "access_key_id": moto_s3.access_key,
            "secret_access_key": moto_s3.secret_key}  # fmt: skip
    store = {"driver": "s3", "bucket": name, "endpoint": moto_s3.endpoint,
             "aws_credentials": keys}  # fmt: skip
    root = ts.Group.open({**store, "path": "run.zarr/"}, create=True).result()
    for group in range(GROUPS):
        for number in range(ARRAYS):
            array = root.create_array(f"g{group}/a{number}", dtype="int8", shape=[4]).result()
            array[...] = np.arange(4, dtype="int8")
    moto_s3.put(name, "notes/a.txt", b"12")

    def ask(command, path, *options, code=0):
        where = json.dumps({**store, "path": path})
        done = subprocess.run(
            [sys.executable, "-c", _COUNTED, command, where, *options, "--json"],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            check=False,
        )
        assert done.returncode == code, done.stderr
        requests, most = map(int, done.stderr.split()[-2:])
        return json.loads(done.stdout), requests, most

    return ask


#: What is asked at first: is it an array, is it a group, and if it is one what is in it.
FIRST = 3


@pytest.mark.parametrize(
    ("command", "requests"),
    [
        ("ls", FIRST + GROUPS),
        ("tree", FIRST + 2 * GROUPS + ALL),
        ("du", FIRST + 2 * GROUPS + 2 * ALL),
        ("verify", FIRST + 2 * GROUPS + 2 * ALL),
        ("stats", FIRST + 2 * GROUPS + 3 * ALL),
        ("info", FIRST + 2 * GROUPS + ALL + 1),
    ],
)
def test_a_group_is_asked_for_what_is_needed_and_together(command, requests, bucket):
    found, made, most = bucket(command, "run.zarr/")
    assert made <= requests
    assert most >= min(GROUPS, 4)
    if command in ("du", "verify"):
        assert len(found["arrays"]) == ALL
    if command == "stats":
        assert {each["max"] for each in found} == {3}


def test_a_directory_of_a_bucket_too(bucket):
    found, _, most = bucket("tree", "", "--keys")
    assert [each["name"] for each in found["members"]] == ["notes", "run.zarr"]
    assert sum(len(group["members"]) for group in found["members"][1]["members"]) == ALL
    assert most >= GROUPS
    (entry,), made, _ = bucket("ls", "notes/", "-l")
    assert (entry["name"], entry["bytes"]) == ("a.txt", 2)
    assert made <= 20
