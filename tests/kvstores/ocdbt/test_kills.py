"""A writer is killed at each step of a commit: what is there is the old version, or the new one."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import tensorstore as reference

import tensorstore_py as ts
from tests.kvstores.ocdbt.databases import contents, open_anew
from tests.kvstores.ocdbt.killed_writer import commit, contents_after

PROGRAM = Path(__file__).with_name("killed_writer.py")
ROOT = Path(__file__).parents[3]
SMALL = {"max_decoded_node_bytes": 600, "max_inline_value_bytes": 20}
#: Members, how many turns were committed before, and how many kills there are at least.
COMMITS = {
    "first": ({"config": SMALL, "target_data_file_size": 1000}, 0, 20),
    "assumed": ({"config": SMALL, "assume_config": True}, 0, 8),
    "first_numbered": ({"config": {**SMALL, "manifest_kind": "numbered"}}, 0, 12),
    "several_files": ({"config": SMALL, "target_data_file_size": 1000}, 2, 12),
    "version_tree": (
        {
            "config": {**SMALL, "version_tree_arity_log2": 1},
            "version_tree_node_data_prefix": "versions/",
            "btree_node_data_prefix": "keys/",
        },
        8,
        12,
    ),
    "numbered": (
        {"config": {"manifest_kind": "numbered", "version_tree_arity_log2": 1}}, 4, 8,
    ),
}  # fmt: skip
#: By how many kills two commits may differ.
JITTER = 8


def spec_of(folder, members):
    quick = {"context": {"file_io_sync": False}}
    return {"driver": "ocdbt", "base": f"file://{folder}/", **quick, **members}


@pytest.mark.skipif(sys.platform == "win32", reason="processes are forked")
@pytest.mark.parametrize("name", COMMITS)
def test_a_killed_commit_is_made_or_not_made(tmp_path, name):
    members, turns, fewest = COMMITS[name]
    template = tmp_path / "template"
    template.mkdir()
    for turn in range(1, turns + 1):
        commit(ts, spec_of(template, members), turn)
    done = subprocess.run(
        [sys.executable, str(PROGRAM), json.dumps(spec_of("", members)), str(template),
         str(tmp_path), str(turns + 1)],
        cwd=ROOT, env={"PYTHONPATH": str(ROOT), "PATH": ""}, capture_output=True, text=True,
        timeout=240, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    kills = int(done.stdout)
    old, new = contents_after(turns), contents_after(turns + 1)
    seen = []
    for number in range(kills + 1):
        spec = spec_of(tmp_path / str(number), members)
        found = contents(open_anew(ts, spec))
        assert found in (old, new)
        assert contents(open_anew(reference, spec)) == found
        seen.append(found == new)
        one, other = ((ts, reference), (reference, ts))[number % 2]
        commit(one, spec, turns + 2)
        assert contents(open_anew(other, spec)) == contents_after(turns + 2, found)

    assert kills >= fewest
    assert (seen[0], seen[-1]) == (False, True)
    # Of each step there are two kills, and once the version is there it stays. Two threads may both
    # make a directory, so that one commit takes a step or two more than another.
    last_without = max(number for number, is_new in enumerate(seen) if not is_new)
    assert last_without - seen.index(True) < JITTER
