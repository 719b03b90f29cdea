import subprocess
import sys

import tensorstore_py


def test_the_package_runs_as_a_program():
    done = subprocess.run(
        [sys.executable, "-m", "tensorstore_py", "--version"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == f"tensorstore_py {tensorstore_py.__version__}\n"
