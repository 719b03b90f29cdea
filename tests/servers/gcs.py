"""The project's own Google Cloud Storage as a program, for examples and for other languages."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

from tests.servers.installed import NotToBeHadError
from tests.servers.processes import Processes, free_ports, http_status
from tests.servers.recipe import Recipe, Told

ROOT = Path(__file__).resolve().parents[2]


class Gcs(Recipe):
    """`gcs_server.py` in a process of its own, with the bucket `bucket`."""

    name = "gcs"
    front = "gcs"

    def absent(self) -> str | None:
        if self._python() is None:
            return "it needs the package's own environment: run scripts/test -- --version"
        return None

    def install(self) -> None:
        absent = self.absent()
        if absent is not None:
            raise NotToBeHadError(absent)

    def start(self, processes: Processes) -> Told:
        (port,) = free_ports(1)
        module = ["-m", "tests.servers.gcs_server", "--port", str(port), "--bucket", "bucket"]
        python = self._python()
        assert python is not None
        processes.spawn(self.front, [python, *module], {"PYTHONPATH": str(ROOT)})
        processes.until(self.front, "it serves", lambda: http_status(port, "/storage/v1/b") == 200)
        return {"endpoint": f"http://127.0.0.1:{port}", "bucket": "bucket"}

    def _python(self) -> str | None:
        """An interpreter that has what the package needs."""
        if all(find_spec(name) for name in ("httptools", "fastcrc", "numpy", "pydantic")):
            return sys.executable
        own = ROOT / ".venv" / "bin" / "python"
        return str(own) if (ROOT / ".venv" / ".installed").exists() else None
