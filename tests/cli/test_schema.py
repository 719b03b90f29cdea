import json

import tensorstore_py as ts
from tensorstore_py.cli.main import main


def test_prints_the_schema(capsys):
    assert main(["schema"]) == 0
    assert json.loads(capsys.readouterr().out) == ts.json_schema()


def test_writes_the_schema(tmp_path, capsys):
    file = tmp_path / "tensorstore.schema.json"
    assert main(["schema", "--output", str(file)]) == 0
    assert json.loads(file.read_text("utf-8")) == ts.json_schema()
    assert capsys.readouterr().out == ""
