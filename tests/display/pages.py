"""HTML as a browser sees it: elements, their text, and whether they are closed."""

from html.parser import HTMLParser

ALLOWED = {
    "b", "br", "code", "details", "div", "li", "path", "polygon", "rect", "span", "style",
    "summary", "svg", "table", "tbody", "td", "text", "th", "thead", "title", "tr", "ul",
}  # fmt: skip


class Page(HTMLParser):
    def __init__(self, html):
        super().__init__()
        self.elements: list[str] = []
        self.open: list[str] = []
        self.text = ""
        self.size = len(html)
        self.feed(html)
        self.close()
        assert self.open == []
        assert set(self.elements) <= ALLOWED

    def handle_starttag(self, tag, attrs):
        self.elements.append(tag)
        self.open.append(tag)
        assert not [name for name, _ in attrs if name.startswith("on")]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1:] != ["style"]:
            self.text += data + " "

    def rows(self):
        return self.elements.count("tr")
