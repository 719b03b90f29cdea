from pathlib import Path

import pytest

from scripts.check_docs import PageError, blocks, run_page


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path / "page.md"


def test_blocks_of_a_page_share_names_and_files(page: Path) -> None:
    page.write_text(
        'Text.\n\n```json title="spec.json"\n{"a": 1}\n```\n\n'
        "```python\nimport asyncio, json\nfrom pathlib import Path\n"
        'a = json.loads(Path("spec.json").read_text())["a"]\nawait asyncio.sleep(0)\n```\n\n'
        "```python\n>>> a + 1\n2\n```\n"
    )

    run_page(page)

    assert (page.parent / "spec.json").read_text() == '{"a": 1}\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("```python\nx = 1\nx / 0\n```\n", "line 3, in <module>"),
        ("```python\n>>> 1 + 1\n3\n```\n", "Expected"),
        ("```python\nif\n```\n", "line 2"),
        ("```json\n{,}\n```\n", "no JSON"),
        ("```python\nx = 1\n", "never closed"),
        ("See [the page](absent.md).\n", "leads nowhere"),
        ("<!-- not run: -->\n```python\nboom\n```\n", "needs its reason"),
    ],
)
def test_a_broken_promise_is_reported(page: Path, text: str, message: str) -> None:
    page.write_text(text)

    with pytest.raises(PageError, match=message):
        run_page(page)


def test_an_exempt_block_does_not_run(page: Path) -> None:
    page.write_text("<!-- not run: needs a bucket -->\n```python\nboom\n```\n")

    run_page(page)


def test_a_block_knows_its_line_and_loses_its_indent() -> None:
    (block,) = blocks("- item\n\n  ```python\n  x = 1\n  ```\n")

    assert (block.line, block.language, block.text) == (3, "python", "x = 1\n")
