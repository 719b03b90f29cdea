"""What shells complete with the scripts of the command line, asked of the shells themselves."""

import shutil
import subprocess
import sys

import pytest

from tensorstore_py.cli.main import COMMANDS, main

NAMES = {name for about in COMMANDS.values() for name in about}


def script(shell, tmp_path, capsys):
    pytest.importorskip("shtab")
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    assert main(["completion", shell]) == 0
    path = tmp_path / f"tspy.{shell}"
    path.write_text(capsys.readouterr().out, "utf-8")
    return path


def answered(command, *arguments, cwd):
    done = subprocess.run(
        [*command, *arguments], capture_output=True, check=True, encoding="utf-8", cwd=cwd,
        timeout=60,
    )  # fmt: skip
    return set(done.stdout.split())


_BASH = """
source "$1"; shift
complete -p tspy > /dev/null || exit 1
COMP_WORDS=(tspy "$@"); COMP_CWORD=$#; COMP_LINE="tspy $*"; COMP_POINT=${#COMP_LINE}
function=$(complete -p tspy | sed 's/.*-F \\([^ ]*\\).*/\\1/')
$function tspy "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture
def bash(tmp_path, capsys):
    path = script("bash", tmp_path, capsys)
    files = tmp_path / "files"
    files.mkdir()
    (files / "image.zarr").mkdir()

    def complete(*words):
        return answered(["bash", "-c", _BASH, "bash", str(path)], *words, cwd=files)

    return complete


class TestBash:
    def test_commands(self, bash):
        assert bash("") == NAMES
        assert bash("cp") == {"cp"}
        assert {"versions", "check", "compact"} <= bash("ocdbt", "")

    def test_options_and_choices(self, bash):
        assert {"--if-exists", "--verify", "--yes", "--json"} <= bash("cp", "--")
        assert bash("cp", "--if-exists", "") == {"raise", "skip", "replace"}
        assert bash("create", "x", "--format", "z") == {"zarr3", "zarr2"}
        assert "--values" in bash("ocdbt", "check", "--")
        assert bash("completion", "") == {"bash", "zsh", "fish"}

    @pytest.mark.parametrize(
        "words", [["cp"], ["cp", "a"], ["rm", "a"], ["info"], ["copy"], ["doctor"],
                  ["ocdbt", "check"], ["create", "--like"]],
    )  # fmt: skip
    def test_files(self, bash, words):
        assert {each.rstrip("/") for each in bash(*words, "im")} == {"image.zarr"}


def test_fish(tmp_path, capsys):
    path = script("fish", tmp_path, capsys)

    def complete(line):
        command = f"source {path}; complete -C '{line}' | string split -f1 \\t"
        return answered(["fish", "--no-config", "-c", command], cwd=tmp_path)

    assert complete("tspy ") == NAMES
    assert complete("tspy cp --if-exists ") == {"raise", "skip", "replace"}
    assert "--verify" in complete("tspy cp --")
    assert "check" in complete("tspy ocdbt ")


def test_zsh_reads_its_script(tmp_path, capsys):
    path = script("zsh", tmp_path, capsys)
    path.rename(tmp_path / "_tspy")
    line = f"fpath=({tmp_path} $fpath); autoload -Uz compinit; compinit -u -D; echo $_comps[tspy]"
    assert answered(["zsh", "-f", "-c", line], cwd=tmp_path) == {"_tspy"}
    assert not answered(["zsh", "-n", str(tmp_path / "_tspy")], cwd=tmp_path)


def test_what_is_missing_is_named(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert main(["completion", "bash"]) == 1
    assert "tensorstore_py[cli]" in capsys.readouterr().err


def test_help_tells_where_scripts_go(capsys):
    with pytest.raises(SystemExit):
        main(["completion", "--help"])
    assert "bash-completion/completions" in capsys.readouterr().out
