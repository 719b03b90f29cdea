"""Options that are handed on to another library, some of which are secrets.

A library that is wrapped has options of its own, which only it knows. They are a context resource,
so that they can be said once, away from the specs that are stored and shared. The one invariant: a
value goes in and is only printed if its name is known to be harmless: not in JSON, not in a repr,
not in a pickle, and `hidden` takes it out of what the library says.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import ClassVar, Final, Self

from tensorstore_py._spec.json_value import describe, freeze, thaw
from tensorstore_py._spec.model import Field
from tensorstore_py._spec.resource import ResourceModel
from tensorstore_py.errors import SpecError

__all__ = ["OptionsModel"]

_QUERY: Final = re.compile(r"(https?://[^\s?'\"]+)\?[^\s'\">)]+")
#: Also where a `?`, `#` or `@` of the password keeps URL parsers from seeing it.
_PASSWORD: Final = re.compile(r"([A-Za-z][\w+.-]*)://[^/]*:[^/]*@")
#: Shorter ones are no secrets, and taking them out would make nonsense of a message.
_LEAST_SECRET: Final = 4


class OptionsModel(ResourceModel):
    r"""Any JSON object; register with `@context_resource("id")`.

    Attributes:
        values: the options.
        harmless: names, at any depth, whose values may be printed.

    Example:
        >>> class Options(OptionsModel):
        ...     harmless = frozenset({"region"})
        >>> options = Options.parse({"region": "north", "key": "swordfish"})
        >>> options, options.values["key"]
        (Options({'region': 'north'}), 'swordfish')
        >>> options.hidden("no region for swordfish")
        'no region for ...'
    """

    config_only: ClassVar[bool] = True
    json_form: ClassVar[Mapping[str, object] | None] = {"type": "object"}
    harmless: ClassVar[frozenset[str]] = frozenset()

    values: Mapping[str, object] = Field(default_factory=dict)

    @classmethod
    def parse_frozen(cls, json: object) -> Self:
        if isinstance(json, cls):
            return json
        if not isinstance(json, Mapping):
            raise SpecError(f"expected an object, but found {describe(json)}")
        # What is wrong with them, the library says; it is not to be shown here.
        return cls(values=dict(json))

    def to_json(self, include_defaults: bool = False) -> dict[str, object]:
        return _shown(self.values, self.harmless)

    def plain(self) -> dict[str, object]:
        """The options as the library takes them."""
        values = thaw(dict(self.values))
        assert isinstance(values, dict)
        return values

    @staticmethod
    def schemes_with_password(url: str) -> list[str]:
        """Of a URL that is printed: the schemes of its parts (`a::b`) that have a password in them.

        Example:
            >>> OptionsModel.schemes_with_password("zip://a::ftp://me:swordfish#1@host/b")
            ['ftp']
        """
        return _PASSWORD.findall(url)

    def hidden(self, text: str) -> str:
        """A text of the library, without secrets: values of options, and queries of URLs."""
        for secret in sorted(_secrets(self.values, self.harmless), key=len, reverse=True):
            text = text.replace(secret, "...")
        return _QUERY.sub(r"\1?...", text)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.to_json()})"

    __str__ = __repr__

    def __reduce__(self) -> tuple[Callable[[object], Self], tuple[object]]:
        # The process that unpickles it has the secrets; the pickle must not have them.
        return type(self).parse, (self.to_json(),)


def _shown(values: Mapping[str, object], harmless: frozenset[str]) -> dict[str, object]:
    shown: dict[str, object] = {}
    for name in sorted(values):
        value = values[name]
        if isinstance(value, Mapping):
            if inner := _shown(value, harmless):
                shown[name] = inner
        elif name in harmless:
            shown[name] = thaw(freeze(value))
    return shown


def _secrets(values: Mapping[str, object], harmless: frozenset[str]) -> Iterator[str]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _secrets(value, harmless)
        elif name not in harmless:
            for each in value if isinstance(value, tuple) else (value,):
                if isinstance(each, str) and len(each) >= _LEAST_SECRET:
                    yield each
