"""Print one JSON Schema of every spec, for editors and validators.

Name it in a spec file, and the editor completes and checks the file:
`{"$schema": "tensorstore.schema.json", "driver": ...}`.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import tensorstore_py
from tensorstore_py.cli.output import examples

__all__ = ["add", "run"]


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    examples(parser, "  tspy schema > tensorstore.schema.json\n  tspy schema --output specs.json\n")
    parser.add_argument("--output", type=Path, help="write to this file instead of the terminal")


def run(options: argparse.Namespace) -> int:
    """Print the schema, or write it."""
    text = json.dumps(tensorstore_py.json_schema(), indent=2, ensure_ascii=False) + "\n"
    if options.output is None:
        sys.stdout.write(text)
    else:
        options.output.write_text(text, encoding="utf-8")
    return 0
