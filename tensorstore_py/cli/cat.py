"""Print the elements of an array or of a selection, or write them to a file.

A file is put in place when it is complete: what fails leaves what was there.
"""

from __future__ import annotations

import argparse
import io
import sys
from contextlib import suppress
from pathlib import Path
from tempfile import NamedTemporaryFile

from tensorstore_py._api.tensorstore import TensorStore
from tensorstore_py.cli.elements import BINARY, FORMATS, write_elements
from tensorstore_py.cli.exit_codes import CALLED_WRONGLY, DONE
from tensorstore_py.cli.found import add_trusted_target, one_array, trusted
from tensorstore_py.cli.output import add_json, examples, tried

__all__ = ["add", "print_elements", "run"]

_MANY = 1_000_000


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_trusted_target(parser)
    parser.add_argument("-f", "--format", choices=tuple(FORMATS),
                        help="by default what the suffix of FILE says, or text")  # fmt: skip
    parser.add_argument("-o", "--output", type=Path, metavar="FILE",
                        help="write a local file, which must not be there yet")  # fmt: skip
    parser.add_argument("--replace", action="store_true", help="replace FILE if it is there")
    parser.add_argument("--all", action="store_true",
                        help=f"print more than {_MANY:,} elements")  # fmt: skip
    add_json(parser)
    examples(
        parser,
        "  tspy cat 'image.zarr[0, :5, :5]'\n  tspy cat 'image.zarr[t=0]' -o frame.png\n"
        "  tspy cat table.zarr -f csv > table.csv\n",
    )


def run(options: argparse.Namespace) -> int:
    """Print or write the elements."""
    form = _format(options)
    wrong = _problem(options, form)
    if wrong:
        sys.stderr.write(f"{wrong}\n")
        return CALLED_WRONGLY

    def work() -> int:
        array = one_array(trusted(options.target, options), "tspy cat")
        if options.output is not None:
            _write(array, form, options.output)
            return DONE
        if array.size > _MANY and not options.all:
            sys.stderr.write(
                f"{array.size:,} elements; select fewer ({options.target.text}[...]), "
                "write a file with -o, or say --all\n"
            )
            return CALLED_WRONGLY
        print_elements(array, form or "text")
        return DONE

    return tried(work)


def _format(options: argparse.Namespace) -> str | None:
    """The format that is asked for; None: the suffix says none."""
    if options.format or options.json:
        return str(options.format or "json")
    if options.output is None:
        return "text"
    return _suffix_format(options.output)


def _suffix_format(file: Path) -> str | None:
    """The format that the suffix of a file says; None: it says none."""
    suffix = file.suffix.lower().lstrip(".")
    return {"txt": "text"}.get(suffix, suffix if suffix in FORMATS else None)


def _problem(options: argparse.Namespace, form: str | None) -> str:
    if options.json and options.format not in (None, "json"):
        return f"--json and --format {options.format} exclude each other"
    suffix = "" if options.output is None else _suffix_format(options.output)
    if options.format and suffix and suffix != options.format:
        return (
            f"{options.output} is named as {suffix}, and --format is {options.format}; "
            "drop --format, or name the file otherwise"
        )
    if form is None:
        return f"{options.output}: say --format, or a suffix: .txt .csv .json .npy .png"
    if options.output is None:
        if form in BINARY and sys.stdout.isatty():
            return f"{form} is no text; say -o FILE, or pipe it"
    elif options.output.exists() and not options.replace:
        return f"{options.output} is there; say --replace to replace it"
    return ""


def print_elements(array: TensorStore, form: str) -> None:
    """Write elements to standard output."""
    sys.stdout.flush()
    binary = getattr(sys.stdout, "buffer", None)
    if binary is not None:
        write_elements(array, form, binary)
        binary.flush()
        return
    text = io.BytesIO()  # standard output has been replaced by what takes text
    write_elements(array, form, text)
    sys.stdout.write(text.getvalue().decode())


def _write(array: TensorStore, form: str | None, file: Path) -> None:
    assert form is not None
    temporary = NamedTemporaryFile(dir=file.absolute().parent, prefix=".", delete=False)  # noqa: SIM115 - it is renamed
    try:
        with temporary:
            write_elements(array, form, temporary.file)
        Path(temporary.name).replace(file)
    except BaseException:
        with suppress(OSError):
            Path(temporary.name).unlink()
        raise
