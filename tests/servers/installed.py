"""Where the servers are installed, and how: below a cache directory, and nowhere else.

Debian's packages are fetched with all the packages that they need and unpacked there, so that no
root is needed and no service is started, and what the machine has installed, or will remove,
changes nothing. Only the C library is the machine's own. Packages of Python go into an environment
of their own.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.servers.alone import alone

_APT = ("apt-get", "apt-cache", "dpkg-deb")
#: What starts any program is the machine's, and the C library has to be of the same version.
_OF_THE_MACHINE = {"libc6", "libc-bin"}


class NotToBeHadError(Exception):
    """A server cannot run here; says why, and the remedy."""


def cache() -> Path:
    """The directory that holds what is installed."""
    named = os.environ.get("TENSORSTORE_PY_SERVERS")
    if named:
        return Path(named).absolute()
    return (
        Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tensorstore_py-servers"
    )


def run(
    *command: str | Path, cwd: Path | None = None, environment: Mapping[str, str] | None = None
) -> str:
    """What a command prints; its complaints when it fails."""
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=None if environment is None else os.environ | dict(environment),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()[-3:]
        raise NotToBeHadError(f"{' '.join(map(str, command[:3]))} ...: {' | '.join(said)}")
    return done.stdout


def program_of_the_machine(name: str) -> str | None:
    """The path of a program, also of one that only the administrator has on the `PATH`."""
    return shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/bin:/usr/sbin:/bin:/sbin")


class Unpacked:
    """Some of Debian's packages with all that they need.

    Args:
        name: of the directory that they are unpacked in.
        packages: their names.
        proofs: commands that succeed where nothing is missing, each a program and its arguments.
    """

    def __init__(
        self, name: str, packages: Sequence[str], proofs: Sequence[Sequence[str]] = ()
    ) -> None:
        self.name = name
        self.packages = list(packages)
        self.proofs = [list(proof) for proof in proofs]

    @property
    def root(self) -> Path:
        """What would be `/` if they were installed."""
        return cache() / "debian" / self.name

    def absent(self) -> str | None:
        """Why they are not here; None if they are."""
        if self._manifest().get("of") == self._of():
            return None
        return "not installed: run scripts/servers install"

    def torn(self) -> str | None:
        """What is missing of them; None if they are complete and their programs start."""
        files = self._manifest().get("files", {})
        for name, size in files.items():
            path = self.root / name
            if not path.is_file() or path.stat().st_size != size:
                return f"{path} is missing or not what was unpacked: run scripts/servers install"
        try:
            for program, *arguments in self.proofs:
                run(self.program(program), *arguments, environment=self.environment())
        except NotToBeHadError as error:
            return f"{error}: run scripts/servers install"
        return None

    def install(self) -> None:
        """Fetch and unpack them, unless they are here and complete.

        Raises:
            NotToBeHadError: they cannot be fetched, or do not start on this machine.
        """
        with alone(self.root.with_suffix(".lock")):
            if self.absent() is not None or self.torn() is not None:
                self._install()
                problem = self.torn()
                if problem is not None:
                    (self.root / ".installed").unlink()
                    raise NotToBeHadError(problem)

    def _install(self) -> None:
        missing = [tool for tool in _APT if program_of_the_machine(tool) is None]
        if missing:
            message = (
                f"{', '.join(self.packages)}: only to be had on Debian ({missing[0]} is missing)"
            )
            raise NotToBeHadError(message)
        shutil.rmtree(self.root, ignore_errors=True)
        archives = self.root / "archives"
        archives.mkdir(parents=True)
        try:
            chosen = self._needed()
        except NotToBeHadError:
            self._update()
            chosen = self._needed()
        run("apt-get", *self._options(), "download", *chosen, cwd=archives)
        for archive in sorted(archives.glob("*.deb")):
            run("dpkg-deb", "-x", archive, self.root)
        shutil.rmtree(archives)
        files = {}
        for path in _files_below(self.root):
            # nothing in a cache may run as another user than the one that starts it
            path.chmod(stat.S_IMODE(path.stat().st_mode) & ~(stat.S_ISUID | stat.S_ISGID))
            files[str(path.relative_to(self.root))] = path.stat().st_size
        libraries = self.root / "usr" / "lib" / "python3" / "dist-packages"
        if libraries.exists():
            # whoever starts them need not compile them; files for other versions may not compile
            subprocess.run([self.program("python3"), "-m", "compileall", "-q", libraries],
                           env=os.environ | self.environment(),
                           capture_output=True, check=False)  # fmt: skip
        text = json.dumps({"of": self._of(), "packages": chosen, "files": files})
        (self.root / ".installed").write_text(text, "utf-8")

    def environment(self) -> dict[str, str]:
        """The variables by which unpacked programs find each other and their libraries."""
        lib = self.root / "usr" / "lib"
        folders = list(lib.glob("*-linux-gnu"))
        # whose libraries are found by a path that begins at the machine's own root
        folders += [*lib.glob("*-linux-gnu/ceph"), *lib.glob("*-linux-gnu/pulseaudio")]
        folders += self.root.glob("lib/*-linux-gnu")
        programs = [self.root / "usr" / name for name in ("bin", "sbin")]
        return {
            "PATH": os.pathsep.join(
                [*map(str, programs), "/usr/bin", "/usr/sbin", "/bin", "/sbin"]
            ),
            "LD_LIBRARY_PATH": os.pathsep.join(map(str, folders)),
            "PYTHONPATH": str(lib / "python3" / "dist-packages"),
            "PYTHONNOUSERSITE": "1",
        }

    def program(self, name: str) -> str:
        """The path of one of their programs, or of the machine's own."""
        for folder in ("usr/bin", "usr/sbin"):
            if (self.root / folder / name).exists():
                return str(self.root / folder / name)
        # not by the PATH: another Python may come first there, which knows nothing of the packages
        found = shutil.which(name, path="/usr/bin:/usr/sbin:/bin:/sbin")
        if found is None:
            raise NotToBeHadError(f"{name} is not in {', '.join(self.packages)}")
        return found

    def _of(self) -> list[str]:
        """What decides what is unpacked: the packages, and whose they are."""
        try:
            system = platform.freedesktop_os_release()
        except OSError:
            system = {}
        return [*self.packages, system.get("VERSION_CODENAME", ""), platform.machine()]

    def _manifest(self) -> dict[str, Any]:
        """What is said of what was unpacked; empty if it did not come to its end."""
        try:
            manifest = json.loads((self.root / ".installed").read_text("utf-8"))
        except (OSError, ValueError):
            return {}
        return manifest if isinstance(manifest, dict) else {}

    def _needed(self) -> list[str]:
        """The packages and all that they need, as for a machine that has nothing installed."""
        nothing = self.root / "archives" / "status"
        nothing.touch()
        told = run(
            "apt-get", *self._options(), "-o", f"Dir::State::status={nothing}",
            "install", "--simulate", "--no-install-recommends", *self.packages,
        )  # fmt: skip
        lines = [line.split() for line in told.splitlines()]
        needed = {*self.packages, *(line[1] for line in lines if line[:1] == ["Inst"])}
        return sorted(needed - _OF_THE_MACHINE)

    def _options(self) -> list[str]:
        """Lists of our own where the machine has none; they need no root."""
        lists = cache() / "apt" / "lists"
        if not lists.exists():
            return []
        return ["-o", f"Dir::State::Lists={lists}", "-o", f"Dir::Cache={lists.parent}"]

    def _update(self) -> None:
        lists = cache() / "apt" / "lists"
        for folder in (lists / "partial", lists.parent / "archives" / "partial"):
            folder.mkdir(parents=True, exist_ok=True)
        run("apt-get", *self._options(), "-o", "APT::Sandbox::User=root", "update")


def _files_below(root: Path) -> Iterator[Path]:
    for folder, _, names in os.walk(root):
        for name in names:
            path = Path(folder, name)
            if path.is_file() and not path.is_symlink():
                yield path


class Environment:
    """A Python environment with packages of its own.

    Args:
        name: of its directory.
        requirements: what is installed into it.
    """

    def __init__(self, name: str, requirements: Sequence[str]) -> None:
        self.name = name
        self.requirements = list(requirements)

    @property
    def root(self) -> Path:
        """Its directory."""
        return cache() / self.name

    def absent(self) -> str | None:
        """Why it is not here; None if it is."""
        stamp = self.root / ".installed"
        # the interpreter is a link to one that may be gone
        whole = Path(self.program("python")).exists() and stamp.exists()
        if whole and stamp.read_text("utf-8") == self._stamp():
            return None
        return "not installed: run scripts/servers install"

    def install(self) -> None:
        """Make it, unless it is here."""
        with alone(cache() / f"{self.name}.lock"):
            if self.absent() is not None:
                run(sys.executable, "-m", "venv", "--clear", self.root)
                run(self.program("python"), "-m", "pip", "install", "--quiet", *self.requirements)
                (self.root / ".installed").write_text(self._stamp(), "utf-8")

    def program(self, name: str) -> str:
        """The path of one of its programs."""
        return str(self.root / ("Scripts" if os.name == "nt" else "bin") / name)

    def _stamp(self) -> str:
        return " ".join(self.requirements)
