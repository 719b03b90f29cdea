"""A JSON spec checked into a config folder: the format lives there, the place is given here."""

import json
import tempfile
from pathlib import Path

import tensorstore_py as ts

SPEC_FILE = Path(__file__).parent / "config" / "volume.json"


def main() -> None:
    """Runs the example."""
    with tempfile.TemporaryDirectory() as directory:
        place = f"{Path(directory).as_uri()}/volume/"

        # "create" and "open" in the file: made the first time, opened afterwards.
        store = ts.open(SPEC_FILE, kvstore=place).result()
        print("opened", SPEC_FILE.name, "as", store.domain)
        store[10] = 200
        again = ts.open(SPEC_FILE, kvstore=place).result()
        print("kept:", again[9:12, 0, 0].read().result())

        # An open array tells the spec that opens it, place and all.
        complete = Path(directory) / "complete.json"
        complete.write_text(json.dumps(again.spec().to_json()))
        print("reopened:", ts.open(complete).result()[10, 0, 0].read().result())

        # A mistake in a spec is named with its path in the file.
        wrong = Path(directory) / "wrong.json"
        wrong.write_text(SPEC_FILE.read_text().replace("clevel", "level"))
        try:
            ts.open(wrong, kvstore=place)
        except ts.SpecError as error:
            print("wrong:", str(error).replace(directory, "…"))


if __name__ == "__main__":
    main()
