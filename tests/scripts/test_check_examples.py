from pathlib import Path

import pytest

from scripts.check_examples import complaint


def test_a_sound_example_has_no_complaint(tmp_path: Path) -> None:
    example = tmp_path / "sound.py"
    example.write_text("open('here', 'w').close()\n")

    assert complaint(example) is None
    assert not (tmp_path / "here").exists()


@pytest.mark.parametrize(
    "text", ["import warnings\nwarnings.warn('careful')\n", "raise SystemExit('careful')\n"]
)
def test_a_warning_or_a_failure_is_a_complaint(tmp_path: Path, text: str) -> None:
    example = tmp_path / "unsound.py"
    example.write_text(text)

    assert "careful" in (complaint(example) or "")
