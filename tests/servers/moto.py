"""moto: S3 in a Python process; quick, right about conditions, and trusting: any key will do."""

from __future__ import annotations

from tests.servers.installed import Environment
from tests.servers.processes import Processes, free_ports, http_status
from tests.servers.recipe import Recipe, Told

# moto looks at a condition and stores after that: of two threads both may find that it holds (5 of
# 16,000 updates were lost that way), which S3 does not allow.
APPLICATION = """\
from threading import Lock

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app

moto = DomainDispatcherApplication(create_backend_app)
one_at_a_time = Lock()


def app(environ, start_response):
    if environ["REQUEST_METHOD"] in ("GET", "HEAD"):
        return moto(environ, start_response)
    with one_at_a_time:
        return moto(environ, start_response)
"""


class Moto(Recipe):
    """moto under gunicorn, which keeps connections alive as S3 does; moto's own server does not."""

    name = "moto"
    front = "gunicorn"

    def __init__(self) -> None:
        self._environment = Environment(
            "moto", ["moto[s3]>=5.1,<6", "flask<4", "flask-cors<7", "gunicorn>=22,<26"]
        )

    def absent(self) -> str | None:
        return self._environment.absent()

    def install(self) -> None:
        self._environment.install()

    def start(self, processes: Processes) -> Told:
        (port,) = free_ports(1)
        (processes.where / "application.py").write_text(APPLICATION, "utf-8")
        command = [
            self._environment.program("gunicorn"),
            *("--worker-class", "gthread", "--workers", "1", "--threads", "32"),
            *("--keep-alive", "600", "--bind", f"127.0.0.1:{port}", "application:app"),
        ]
        processes.spawn(self.front, command)
        processes.until(
            self.front, "it serves", lambda: http_status(port, "/moto-api/data.json") == 200
        )
        return {
            "endpoint": f"http://127.0.0.1:{port}",
            "access_key": "test",
            "secret_key": "testsecret",
            "region": "us-east-1",
        }
