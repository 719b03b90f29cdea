"""A page: what a notebook shows of one thing, with its style.

Colours are those of JupyterLab's or VS Code's theme where there is one, else those for a light or
dark screen, whichever the reader prefers. The class is named twice: a notebook's own rules for
tables and lists must not win. Where a notebook is not trusted its style is dropped, so
pages read well without.
"""

from __future__ import annotations

from typing import Final

from tensorstore_py._display.markup import Markup, element, join

__all__ = ["folded", "page"]

_STYLE: Final = Markup(
    """
.tsv{--tsv-fg0:#1f2328;--tsv-muted0:#59636e;--tsv-line0:#d1d9e0;--tsv-accent0:#0969da;
--tsv-fg:var(--jp-content-font-color1,var(--vscode-editor-foreground,var(--tsv-fg0)));
--tsv-muted:var(--jp-content-font-color2,var(--vscode-descriptionForeground,var(--tsv-muted0)));
--tsv-line:var(--jp-border-color2,var(--vscode-editorWidget-border,var(--tsv-line0)));
--tsv-accent:var(--jp-brand-color1,var(--vscode-textLink-foreground,var(--tsv-accent0)));
color:var(--tsv-fg);font-size:13px;line-height:1.45;max-width:60em}
@media(prefers-color-scheme:dark){.tsv{--tsv-fg0:#e6edf3;--tsv-muted0:#9198a1;
--tsv-line0:#3d444d;--tsv-accent0:#4493f8}}
.tsv.tsv .tsv-head{border-bottom:1px solid var(--tsv-line);padding:2px 0 4px;margin-bottom:6px}
.tsv.tsv .tsv-head b{margin-right:.6em}
.tsv.tsv code,.tsv.tsv .tsv-mono{font-family:var(--jp-code-font-family,ui-monospace,monospace);
font-size:12px;background:none;color:inherit;padding:0;overflow-wrap:anywhere}
.tsv.tsv .tsv-muted,.tsv.tsv .tsv-head code{color:var(--tsv-muted)}
.tsv.tsv .tsv-row{display:flex;flex-wrap:wrap;gap:10px 32px;align-items:flex-start}
.tsv.tsv .tsv-row>div{min-width:0}
.tsv.tsv table{border-collapse:collapse;border:0;margin:0 0 6px;font-size:13px;display:table;
width:auto;table-layout:auto}
.tsv.tsv tbody tr:nth-child(n),.tsv.tsv tr:nth-child(n):hover{background:none;border:0}
.tsv.tsv th,.tsv.tsv td{text-align:left;vertical-align:top;padding:1px 16px 1px 0;border:0;
color:var(--tsv-fg);white-space:normal;max-width:27em;overflow-wrap:anywhere}
.tsv.tsv th{font-weight:400;color:var(--tsv-muted);white-space:nowrap}
.tsv.tsv .tsv-grid td,.tsv.tsv .tsv-grid thead th{text-align:right}
.tsv.tsv .tsv-grid thead th:first-child{text-align:left}
.tsv.tsv .tsv-grid td,.tsv.tsv .tsv-grid thead th{white-space:nowrap}
.tsv.tsv details{margin:1px 0}
.tsv.tsv summary{cursor:pointer;color:var(--tsv-fg);list-style-position:outside;margin-left:1.1em}
.tsv.tsv summary:focus-visible{outline:2px solid var(--tsv-accent)}
.tsv.tsv ul,.tsv.tsv ul ul{list-style:none;margin:0 0 0 .35em;padding:0 0 0 .85em;
border-left:1px solid var(--tsv-line)}
.tsv.tsv li{margin:0;padding:0 0 0 .25em}
.tsv.tsv li.tsv-leaf{padding-left:1.35em}
.tsv.tsv svg{display:block;max-width:100%;height:auto}
.tsv.tsv svg text{fill:var(--tsv-muted);font:11px var(--jp-ui-font-family,system-ui,sans-serif)}
.tsv-face{fill:var(--tsv-accent);fill-opacity:.07;stroke:var(--tsv-muted);stroke-width:1.2;
stroke-linejoin:round}
.tsv-side{fill-opacity:.16}
.tsv-open{stroke-dasharray:4 3}
.tsv-thin{fill:none;stroke:var(--tsv-muted);stroke-width:.5;stroke-opacity:.65}
.tsv-bold{fill:none;stroke:var(--tsv-muted);stroke-width:1.2}
.tsv-cell{fill:var(--tsv-accent);fill-opacity:.75;stroke:none}
.tsv-shard{fill:var(--tsv-accent);fill-opacity:.22;stroke:var(--tsv-accent);stroke-width:1.2}
""".replace("\n", "")
)


def page(title: str, name: object = "", *sections: object) -> str:
    """The HTML of one thing, with Markup sections one below the other; None is left out.

    Example:
        >>> page("KvStore", "memory://a&b").endswith("<code>memory://a&amp;b</code></div></div>")
        True
    """
    shown = element("code", name) if str(name) else None
    head = element("div", element("b", title), shown, class_="tsv-head")
    return str(element("div", element("style", _STYLE), head, *sections, class_="tsv"))


def folded(summary: object, *content: object, open_: bool = False) -> Markup:
    """What opens and closes."""
    return element("details", element("summary", summary), join(*content), open=open_)
