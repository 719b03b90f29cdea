"""nginx: files over HTTP, as most of the web's data is served."""

from __future__ import annotations

from tests.servers.installed import Unpacked, program_of_the_machine
from tests.servers.processes import Processes, free_ports, http_status
from tests.servers.recipe import Recipe, Told

CONFIGURATION = """\
daemon off;
master_process off;
worker_processes 1;
pid {where}/nginx.pid;
error_log stderr warn;
events {{ worker_connections 1024; }}
http {{
  access_log off;
  default_type application/octet-stream;
  keepalive_timeout 600s;
  keepalive_requests 1000000;
  client_body_temp_path {where}/temporary;
  proxy_temp_path {where}/temporary;
  fastcgi_temp_path {where}/temporary;
  uwsgi_temp_path {where}/temporary;
  scgi_temp_path {where}/temporary;
  root {where}/files;
  server {{
    listen 127.0.0.1:{port};
    location = /ready {{ return 204; }}
    location /no-ranges/ {{ alias {where}/files/; max_ranges 0; }}
    location /no-etags/ {{ alias {where}/files/; etag off; }}
    location /gzip/ {{ alias {where}/files/; gzip on; gzip_types *; gzip_min_length 1; }}
    location /kept/ {{ alias {where}/files/; add_header Cache-Control max-age=3600; }}
    location /moved/ {{ rewrite ^/moved/(.*)$ /$1 redirect; }}
    location /refused/ {{ return 403; }}
  }}
}}
"""


class Nginx(Recipe):
    """The machine's nginx, or Debian's, over a folder."""

    name = "nginx"
    front = "nginx"

    def __init__(self) -> None:
        self._packages = Unpacked("nginx", ["nginx-light"], [["nginx", "-v"]])

    def absent(self) -> str | None:
        return None if program_of_the_machine("nginx") else self._packages.absent()

    def torn(self) -> str | None:
        return None if program_of_the_machine("nginx") else self._packages.torn()

    def install(self) -> None:
        if program_of_the_machine("nginx") is None:
            self._packages.install()

    def start(self, processes: Processes) -> Told:
        where = processes.where
        (port,) = free_ports(1)
        (where / "files").mkdir(exist_ok=True)
        text = CONFIGURATION.format(where=where, port=port)
        (where / "nginx.conf").write_text(text, "utf-8")
        program, environment = program_of_the_machine("nginx"), {}
        if program is None:
            program, environment = self._packages.program("nginx"), self._packages.environment()
        command = [program, "-p", str(where), "-e", "stderr", "-c", str(where / "nginx.conf")]
        processes.spawn(self.front, command, environment)
        processes.until(self.front, "it serves", lambda: http_status(port, "/ready") == 204)
        return {"endpoint": f"http://127.0.0.1:{port}", "files": str(where / "files")}
