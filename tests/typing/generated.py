"""What scripts/typed_specs.py would write, compared with a module as types, not as text."""

import json
import re
import subprocess
import sys
import types
from functools import cache
from pathlib import Path
from typing import is_typeddict

ROOT = Path(__file__).parents[2]


@cache
def texts():
    """By another process, where no test has registered stores of its own."""
    script = str(ROOT / "scripts/typed_specs.py")
    command = [sys.executable, script, "--print"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def differences(module):
    """Names of classes that differ, or are missing."""
    wanted = types.ModuleType("wanted")
    exec(texts()[module.__name__.rpartition(".")[2]], wanted.__dict__)
    found, expected = hints(module), hints(wanted)
    assert found
    return sorted(key for key in {*found, *expected} if found.get(key) != expected.get(key))


def hints(module):
    """The members of each class, as text."""
    classes = {
        name: value
        for name, value in vars(module).items()
        if is_typeddict(value) and value.__module__ == module.__name__
    }
    return {
        name: {
            member: re.sub(r"ForwardRef\((.*?)(, module=[^)]*)?\)", r"\1", str(hint)).replace(
                f"{module.__name__}.", ""
            )
            for member, hint in value.__annotations__.items()
        }
        for name, value in classes.items()
    }
