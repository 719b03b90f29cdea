"""What metadata writes as `{"name", "configuration"}`: chunk grids and chunk key encodings.

Classes are registered by name; the members of a class are those of its configuration. Whatever
`must_understand` says, nothing can be read without them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Self

from tensorstore_py._spec.json_value import describe
from tensorstore_py._spec.model import Model
from tensorstore_py._spec.registered import parse_known
from tensorstore_py.errors import SpecError, did_you_mean

if TYPE_CHECKING:
    from tensorstore_py._spec.registry import Registry

__all__ = ["NamedConfiguration"]

_MEMBERS = ("configuration", "must_understand", "name")


class NamedConfiguration(Model):
    """See the head of this file.

    Attributes:
        registry: where classes of the kind are found.
        examples: two names, for errors.
    """

    registry: ClassVar[Registry[object]]
    examples: ClassVar[tuple[str, str]]

    @classmethod
    def parse_named(cls, json: object) -> Self:
        """The model for the JSON object.

        Raises:
            SpecError: no class has that name, or a member of the configuration is not possible.
        """
        return parse_known(cls.registry, "named", json, cls._parse_named)

    @classmethod
    def _parse_named(cls, json: object) -> Self:
        if not isinstance(json, Mapping):
            raise SpecError(f"expected an object, but found {describe(json)}")
        for member in sorted(json):
            if member not in _MEMBERS:
                raise SpecError(f"no such member{did_you_mean(member, _MEMBERS)}", (member,))
        if not isinstance(json.get("must_understand", True), bool):
            raise SpecError("expected true or false", ("must_understand",))
        named = cls._class_of(json)
        configuration = json.get("configuration", {})
        if not isinstance(configuration, Mapping):
            found = describe(configuration)
            raise SpecError(f"expected an object, but found {found}", ("configuration",))
        try:
            return named.parse(configuration)
        except SpecError as error:
            raise error.inside("configuration") from None
        except OverflowError as error:
            raise SpecError(str(error), ("configuration",)) from None

    @classmethod
    def _class_of(cls, json: Mapping[str, object]) -> type[Self]:
        name = json.get("name")
        if not isinstance(name, str):
            found = describe(name) if "name" in json else "nothing"
            one, other = cls.examples
            raise SpecError(
                f'expected a name such as "{one}" or "{other}", but found {found}', ("name",)
            )
        try:
            named = cls.registry.get(name)
        except SpecError as error:
            raise error.inside("name") from None
        assert issubclass(named, cls)
        return named

    def named_json(self, include_defaults: bool = False) -> dict[str, object]:
        """The JSON object.

        Args:
            include_defaults: write members that have their default value, too.
        """
        name = getattr(self, self.registry.tag)
        return {"configuration": self.to_json(include_defaults), "name": name}
