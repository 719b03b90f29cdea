"""Workers and callers killed at random: all is done, once, and the target is whole."""

import json
import subprocess
import sys
from pathlib import Path

from tests.plan.killed_workers import SIZE, TASKS
from tests.plan.killing import Killing

PROGRAM = Path(__file__).with_name("killed_workers.py")


ROOT = PROGRAM.parents[2]


KILLS = 10


class TestKills:
    def test_no_task_is_run_again_unless_its_process_was_killed(self, tmp_path):
        (tmp_path / "ran").mkdir()
        # numpy may have begun threads, of which a forked worker knows nothing
        python = [sys.executable, "-W", "ignore::DeprecationWarning"]
        done = subprocess.run(
            [*python, str(PROGRAM), str(tmp_path), "1", f"{KILLS}"],
            cwd=ROOT, env={"PYTHONPATH": str(ROOT), "PATH": ""}, capture_output=True, text=True,
            timeout=240, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        reporter = json.loads(done.stdout)
        killed = set(map(str, reporter["killed"]))
        ran = [(tmp_path / "ran" / f"{task}").read_text().split() for task in range(TASKS)]

        assert not done.stderr
        assert set(reporter["statuses"]) == {0}
        assert len(killed) == KILLS
        for runs in ran:
            assert len([pid for pid in runs if pid not in killed]) <= 1
        again = sum(map(len, ran)) - TASKS
        assert again <= len(killed) * 2 * SIZE


class TestKilledCopies:
    def test_killed_at_random_the_target_is_bit_equal(self, tmp_path):
        trial = Killing(tmp_path, seed=7, kills=6)

        trial.run()

        assert trial.killed == 6
        trial.check()
