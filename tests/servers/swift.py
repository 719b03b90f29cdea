"""OpenStack Swift's S3 API: a production object store that has no conditional writes (501)."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

from tests.servers.installed import Unpacked
from tests.servers.processes import Processes, StartError, answers, free_ports, http_status
from tests.servers.recipe import Recipe, Told

SHARED = """\
[swift-hash]
swift_hash_path_suffix = x
swift_hash_path_prefix = y
[storage-policy:0]
name = default
default = yes
"""
DEFAULT = """\
[DEFAULT]
user = {user}
bind_ip = 127.0.0.1
bind_port = {port}
workers = 0
swift_dir = {where}
log_level = WARNING
"""
STORAGE = """\
devices = {where}/devices
mount_check = false
recon_cache_path = {where}
[pipeline:main]
pipeline = {kind}-server
[app:{kind}-server]
use = egg:swift#{kind}
"""
PROXY = """\
[pipeline:main]
pipeline = catch_errors gatekeeper cache listing_formats bulk s3api tempauth slo dlo proxy-server
[filter:catch_errors]
use = egg:swift#catch_errors
[filter:gatekeeper]
use = egg:swift#gatekeeper
[filter:cache]
use = egg:swift#memcache
memcache_servers = 127.0.0.1:{memcached}
[filter:listing_formats]
use = egg:swift#listing_formats
[filter:bulk]
use = egg:swift#bulk
[filter:s3api]
use = egg:swift#s3api
s3_acl = false
location = us-east-1
auth_pipeline_check = false
[filter:tempauth]
use = egg:swift#tempauth
user_test_tester = testing .admin
[filter:slo]
use = egg:swift#slo
[filter:dlo]
use = egg:swift#dlo
[app:proxy-server]
use = egg:swift#proxy
account_autocreate = true
allow_account_management = true
"""
# One disk in each ring; the builder's own program would be started six times.
RINGS = """\
import sys
from swift.common.ring import RingBuilder

for kind, port in zip(("account", "container", "object"), sys.argv[1:]):
    builder = RingBuilder(6, 1, 1)
    builder.add_dev({
        "region": 1, "zone": 1, "ip": "127.0.0.1", "port": int(port), "device": "sda",
        "weight": 1, "replication_ip": "127.0.0.1", "replication_port": int(port), "meta": "",
    })
    builder.rebalance()
    builder.get_ring().save(kind + ".ring.gz")
"""
# Its own programs insist on /etc/swift/swift.conf.
SERVE = """\
import sys
from swift.common import utils

kind, where = sys.argv[1:]
utils.SWIFT_CONF_FILE = where + "/swift.conf"
from swift.common.wsgi import run_wsgi

sys.exit(run_wsgi(where + "/" + kind + ".conf", kind + "-server"))
"""
# What its servers import, down to the libraries that are no Python.
PROOF = """\
from swift.account import server
from swift.common.middleware.s3api import s3api
from swift.container import server
from swift.obj import server
from swift.proxy import server
"""
KINDS = ("account", "container", "object")


class Swift(Recipe):
    """Debian's Swift: a proxy, one server for each kind of thing, and the cache that it needs."""

    name = "swift"
    front = "swift-proxy"

    def __init__(self) -> None:
        packages = ["swift-proxy", "swift-account", "swift-container", "swift-object", "memcached"]
        proofs = [["memcached", "--version"], ["python3", "-c", PROOF]]
        self._packages = Unpacked("swift", packages, proofs)

    def absent(self) -> str | None:
        return self._packages.absent()

    def torn(self) -> str | None:
        return self._packages.torn()

    def install(self) -> None:
        self._packages.install()

    def start(self, processes: Processes) -> Told:
        where = processes.where
        environment = self._packages.environment()
        python = self._packages.program("python3")
        proxy, memcached, *ports = free_ports(5)
        (where / "devices" / "sda").mkdir(parents=True, exist_ok=True)
        _check_attributes(where)
        user = processes.call(["id", "-un"]).strip()
        (where / "swift.conf").write_text(SHARED, "utf-8")
        processes.call([python, "-c", RINGS, *map(str, ports)], environment)
        cached = [self._packages.program("memcached"), "-u", user, "-l", "127.0.0.1"]
        processes.spawn("memcached", [*cached, "-p", str(memcached)], environment)
        for kind, port in (*zip(KINDS, ports, strict=True), ("proxy", proxy)):
            text = DEFAULT + (PROXY if kind == "proxy" else STORAGE)
            text = text.format(user=user, port=port, where=where, kind=kind, memcached=memcached)
            (where / f"{kind}.conf").write_text(text, "utf-8")
            command = [python, "-c", SERVE, kind, str(where)]
            processes.spawn(f"swift-{kind}", command, environment)
        for kind, port in zip(KINDS, ports, strict=True):
            processes.until(f"swift-{kind}", "it listens", partial(answers, port))
        processes.until(self.front, "it serves", lambda: http_status(proxy, "/info") == 200)
        return {
            "endpoint": f"http://127.0.0.1:{proxy}",
            "access_key": "test:tester",
            "secret_key": "testing",
            "region": "us-east-1",
        }


def _check_attributes(where: Path) -> None:
    """Swift keeps what is said of an object in attributes of its file."""
    try:
        os.setxattr(where, "user.checked", b"")
    except OSError as error:
        message = f"the file system of {where} has no extended attributes ({error}): set TMPDIR"
        raise StartError(message) from None
