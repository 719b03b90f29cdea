import pytest

import tensorstore_py
from tensorstore_py.cli.main import main


def test_version(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["--version"])
    assert caught.value.code == 0
    assert tensorstore_py.__version__ in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [[], ["unheard"], ["validate"], ["schema", "--outptu", "a"]])
def test_wrong_calls_exit_with_2(arguments, capsys):
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert "usage: tspy" in capsys.readouterr().err
