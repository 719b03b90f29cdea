"""Ceph's RGW: a production object store on one disk in memory; real signatures, skew, and races.

One monitor, one OSD that keeps everything in memory, one gateway. The monitor decides things by
votes that wait for more votes; alone, it need not wait, which is what makes it start in a second.
"""

from __future__ import annotations

import uuid
from pathlib import Path

from tests.servers.installed import Unpacked
from tests.servers.processes import Processes, free_ports, http_status
from tests.servers.recipe import Recipe, Told

CONFIGURATION = """\
[global]
fsid = {fsid}
mon host = v2:127.0.0.1:{monitor_port}
public addr = 127.0.0.1
cluster addr = 127.0.0.1
keyring = {where}/keyring
run dir = {where}
admin socket =
pid file =
log file =
log to stderr = true
debug rocksdb = 0
plugin dir = {libraries}/ceph
erasure code dir = {libraries}/ceph/erasure-code
osd class dir = {libraries}/rados-classes
osd class load list = *
osd class default list = *
osd objectstore = memstore
memstore device bytes = 4294967296
osd crush chooseleaf type = 0
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 1
osd pool default pgp num = 1
osd pool default pg autoscale mode = off
mon allow pool size one = true
mon max pg per osd = 1000
mon tick interval = 1
paxos propose interval = 0.05
paxos min wait = 0.01
mon data = {where}/mon
osd data = {where}/osd
rgw data = {where}/rgw
rgw frontends = beast endpoint=127.0.0.1:{port}
rgw thread pool size = 64
rgw relaxed s3 bucket names = true
rgw dynamic resharding = false
"""

# The accounts, and what each may do.
CLIENTS = {
    "mon.": ["mon", "allow *"],
    "client.admin": ["mon", "allow *", "osd", "allow *"],
    "client.rgw": ["mon", "allow *", "osd", "allow *"],
    "osd.0": ["mon", "allow profile osd", "osd", "allow *"],
}
ACCESS_KEY = "test"
SECRET_KEY = "testsecret"


class Rgw(Recipe):
    """Debian's radosgw, with the cluster that it needs."""

    name = "rgw"
    front = "radosgw"

    def __init__(self) -> None:
        self._packages = Unpacked(
            "ceph",
            ["radosgw", "ceph-mon", "ceph-osd", "ceph-common"],
            [
                *([name, "--version"] for name in ("radosgw", "ceph-mon", "ceph-osd")),
                ["radosgw-admin", "--version"],
                ["python3", "-c", "import ceph_argparse, rados"],
            ],
        )

    def absent(self) -> str | None:
        return self._packages.absent()

    def torn(self) -> str | None:
        return self._packages.torn()

    def install(self) -> None:
        self._packages.install()

    def start(self, processes: Processes) -> Told:
        where, port = processes.where, self._configured(processes)
        common: list[str | Path] = ["-c", where / "ceph.conf", "--keyring", where / "keyring"]
        environment = self._packages.environment()
        program = self._packages.program

        def call(name: str, *arguments: str | Path) -> str:
            return processes.call([program(name), *arguments], environment)

        def spawn(name: str, *arguments: str | Path) -> None:
            processes.spawn(name, [program(name), "-f", *common, *arguments], environment)

        call("ceph-mon", "--mkfs", "-i", "a", "--monmap", where / "monmap", *common)
        spawn("ceph-mon", "-i", "a")
        disk = str(uuid.uuid4())
        # a script of the machine's Python, whose first line names another one than is unpacked
        call("python3", program("ceph"), *common, "osd", "new", disk)
        call("ceph-osd", "-i", "0", "--mkfs", "--osd-uuid", disk, *common)
        spawn("ceph-osd", "-i", "0")
        keys = [f"--access-key={ACCESS_KEY}", f"--secret-key={SECRET_KEY}"]
        user = ["--uid=test", "--display-name=test", *keys]
        call("radosgw-admin", *common, "user", "create", *user)
        spawn("radosgw", "-n", "client.rgw")
        processes.until(self.front, "it serves", lambda: http_status(port) == 200)
        return {
            "endpoint": f"http://127.0.0.1:{port}",
            "access_key": ACCESS_KEY,
            "secret_key": SECRET_KEY,
            "region": "us-east-1",
        }

    def _configured(self, processes: Processes) -> int:
        """Write the files that the cluster starts from, and return the gateway's port."""
        where = processes.where
        environment = self._packages.environment()
        port, monitor_port = free_ports(2)
        fsid = str(uuid.uuid4())
        (libraries,) = (self._packages.root / "usr" / "lib").glob("*-linux-gnu")
        for name in ("mon", "osd", "rgw"):
            (where / name).mkdir(exist_ok=True)
        text = CONFIGURATION.format(
            fsid=fsid, monitor_port=monitor_port, port=port, where=where, libraries=libraries
        )
        (where / "ceph.conf").write_text(text, "utf-8")
        new = ["--create-keyring"]
        for client, may in CLIENTS.items():
            command = [self._packages.program("ceph-authtool"), *new, str(where / "keyring")]
            command += ["--gen-key", "-n", client]
            for what, how in zip(may[::2], may[1::2], strict=True):
                command += ["--cap", what, how]
            processes.call(command, environment)
            new = []
        monitor = ["--addv", "a", f"[v2:127.0.0.1:{monitor_port}]"]
        processes.call(
            [
                self._packages.program("monmaptool"),
                *("--create", "--clobber", "--fsid", fsid, *monitor),
                str(where / "monmap"),
            ],
            environment,
        )
        return port
