"""The base of every JSON object that a user may write: frozen, strict, and printed minimally.

A `Model` subclass lists its members as typed fields. `parse` takes JSON in and raises one
`SpecError` that names the member; `to_json` gives JSON out, leaving out what equals its default.
Unknown members are errors, except `$schema` and `$comment`, which editors and people put in files.
Everything plug-ins need of pydantic is exported from here, so that they never import it.

Field rules: arrays are `tuple[...]`; a Python name that pydantic or the language reserves gets an
underscore and an alias (`schema_` with `Field(alias="schema")`); `None` as value *and* default is
"absent" and never printed; where JSON `null` means something use `Unset.UNSET` as the default.

pydantic reports every branch that failed and names its own plumbing in the locations; `spec_error`
makes one `SpecError` of it: the one member that is wrong, what was found and what is allowed. The
path is found by walking the input along the location, keeping only the steps that exist there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import NoneType
from typing import (
    TYPE_CHECKING,
    Annotated,
    ClassVar,
    NamedTuple,
    Self,
    TypeVar,
    Union,
    get_args,
    get_origin,
)

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    PlainValidator,
    ValidationError,
    create_model,
    field_validator,
    model_validator,
)
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined, core_schema

from tensorstore_py._spec.json_value import PLAIN, Unset, describe, freeze, thaw
from tensorstore_py._spec.pretty import shown_member
from tensorstore_py.errors import SpecError, did_you_mean

if TYPE_CHECKING:
    from pydantic import GetJsonSchemaHandler
    from pydantic_core import ErrorDetails

__all__ = [
    "AfterValidator",
    "Annotated",
    "BeforeValidator",
    "Field",
    "JsonForm",
    "Level",
    "MemberType",
    "Model",
    "NonNegativeInt",
    "PlainValidator",
    "PositiveInt",
    "Rank",
    "Unset",
    "ValidationError",
    "field_validator",
    "integral",
    "model_validator",
    "spec_error",
]

Path = tuple[str | int, ...]

_NOWHERE = object()

#: pydantic's error types to what was expected; a template's fields come from the error's context.
_EXPECTED = {
    "bool_type": "true or false",
    "dataclass_type": "an object",
    "dict_type": "an object",
    "enum": "one of {expected}",
    "finite_number": "a finite number",
    "float_type": "a number",
    "greater_than": "a number above {gt}",
    "greater_than_equal": "a number not below {ge}",
    "int_from_float": "an integer",
    "int_type": "an integer",
    "is_instance_of": "{class}",
    "less_than": "a number below {lt}",
    "less_than_equal": "a number not above {le}",
    "list_type": "an array",
    "literal_error": "{expected}",
    "mapping_type": "an object",
    "model_type": "an object",
    "multiple_of": "a multiple of {multiple_of}",
    "none_required": "null",
    "string_pattern_mismatch": 'a string that matches "{pattern}"',
    "string_too_long": "a string of at most {max_length} characters",
    "string_too_short": "a string of at least {min_length} characters",
    "string_type": "a string",
    "too_long": "at most {max_length} elements",
    "too_short": "at least {min_length} elements",
    "tuple_type": "an array",
}


def spec_error(error: ValidationError, json: object) -> SpecError:
    """The most telling of pydantic's findings about `json`."""
    best: tuple[tuple[int, int], Path, ErrorDetails] | None = None
    for details in error.errors(include_url=False):
        path = _path(details, json)
        # An inner finding is closer to the cause; a typed one comes from our own validators.
        weight = (len(path), int(_cause(details) is not None))
        if best is None or weight > best[0]:
            best = (weight, path, details)
    assert best is not None
    _, path, details = best
    cause = _cause(details)
    if isinstance(cause, SpecError):
        return SpecError(cause.problem, path)
    return SpecError(_problem(details, cause), path)


def _path(details: ErrorDetails, json: object) -> Path:
    path: list[str | int] = []
    found: object = json
    for step in details["loc"]:
        inner = _step(found, step)
        if inner is not _NOWHERE:
            found = inner
        elif step != details["loc"][-1] or details["type"] not in ("missing", "extra_forbidden"):
            continue
        path.append(step)
    cause = _cause(details)
    if isinstance(cause, SpecError):
        path.extend(cause.path)
    return tuple(path)


def _step(found: object, step: str | int) -> object:
    """The member or element of the input that a step of a location names, or `_NOWHERE`."""
    if isinstance(found, dict):
        return found.get(step, _NOWHERE)
    if isinstance(found, tuple | list) and isinstance(step, int) and step < len(found):
        return found[step]
    return _NOWHERE


def _cause(details: ErrorDetails) -> Exception | None:
    cause = details.get("ctx", {}).get("error")
    return cause if isinstance(cause, Exception) else None


def _problem(details: ErrorDetails, cause: Exception | None) -> str:
    kind = details["type"]
    if cause is not None:
        return str(cause)
    if kind == "missing":
        return "this member is required"
    if kind == "extra_forbidden":
        return "no such member"
    context: Mapping[str, object] = details.get("ctx", {})
    template = _EXPECTED.get(kind)
    if template is None:
        return f"{details['msg']}, but found {describe(details['input'])}"
    expected = template.format(**context)
    if kind == "literal_error" and isinstance(details["input"], str):
        allowed = [word.strip("' ") for word in expected.replace(" or ", ", ").split(",")]
        found = details["input"]
        return f"{describe(found)} is not possible here{did_you_mean(found, allowed)}"
    return f"expected {expected.replace(chr(39), chr(34))}, but found {describe(details['input'])}"


_IGNORED = ("$schema", "$comment")


M = TypeVar("M", bound="Model")


class _Member(NamedTuple):
    """How one field is printed."""

    json_name: str
    attribute: str
    default: object


class Model(BaseModel):
    """A frozen JSON object.

    Example:
        >>> class Gzip(Model):
        ...     level: Annotated[int, Level(0, 9)] = 6
        >>> Gzip.parse({"level": 9}).to_json()
        {'level': 9}
        >>> Gzip().to_json(), Gzip().to_json(include_defaults=True)
        ({}, {'level': 6})
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        arbitrary_types_allowed=True,
        populate_by_name=True,
        defer_build=True,
        ser_json_inf_nan="constants",
        protected_namespaces=(),
    )

    #: JSON member that names the class, such as `"driver"`, and is printed first of all.
    json_tag: ClassVar[str | None] = None
    #: Names that other libraries have for members, and what to say instead.
    words: ClassVar[Mapping[str, str]] = {}
    #: What a spec that is not trusted may say, see `trust`: of the members that the class itself
    #: adds, those that are mere data. None: such a spec may not name the class.
    data_members: ClassVar[frozenset[str] | None] = None
    #: Of some of them the only values that such a spec may give.
    data_values: ClassVar[Mapping[str, frozenset[object]]] = {}
    #: Members that make or delete what is stored, in a store that such a spec may use.
    writing_members: ClassVar[frozenset[str]] = frozenset()
    #: Whether it stands for a store: such a spec may only use those that were named.
    is_store: ClassVar[bool] = False
    #: Members whose own members stand beside it in the JSON.
    spread_members: ClassVar[frozenset[str]] = frozenset()
    _printing: ClassVar[tuple[_Member, ...] | None] = None
    _known: ClassVar[frozenset[str] | None] = None

    @model_validator(mode="before")
    @classmethod
    def _check_members(cls, json: object) -> object:
        if not isinstance(json, dict):
            return json
        known = cls.__dict__.get("_known") or cls._learn()
        unknown = json.keys() - known
        if unknown:
            for name in _IGNORED:
                unknown.discard(name)
            if unknown:
                name = min(unknown)
                hint = did_you_mean(name, cls.member_names(), cls.words)
                raise SpecError(f"no such member{hint}", (name,))
            json = {name: value for name, value in json.items() if name not in _IGNORED}
        if any(value is None for value in json.values()):
            cls._refuse_null(json)
        return json

    @classmethod
    def _refuse_null(cls, json: dict[str, object]) -> None:
        """None stands for "absent", which JSON says by leaving a member out."""
        for name, field in cls.model_fields.items():
            json_name = field.alias or name
            if field.default is None and json.get(json_name, Unset) is None:
                raise SpecError("null is not possible here: leave the member out", (json_name,))

    @classmethod
    def parse(cls, json: object) -> Self:
        """The model for a JSON object.

        Args:
            json: a mapping (or an instance of this class, which is returned as it is).

        Raises:
            SpecError: a member is unknown, missing, of the wrong type or out of range; the
                error has the path to it.
        """
        return cls.parse_frozen(freeze(json))

    @classmethod
    def parse_frozen(cls, json: object) -> Self:
        """`parse` for JSON that went through `freeze` already."""
        if isinstance(json, cls):
            return json
        tag = cls.json_tag
        if tag is not None and isinstance(json, dict) and tag in json:
            json = {name: value for name, value in json.items() if name != tag}
        try:
            return cls.model_validate(json)
        except ValidationError as error:
            raise spec_error(error, json) from None
        except UnicodeEncodeError as error:
            raise SpecError(f"{error.object!a} is no text: {error.reason}") from None

    def to_json(self, include_defaults: bool = False) -> dict[str, object]:
        """The JSON object, members sorted by name.

        Args:
            include_defaults: print members that equal their default, too.
        """
        json: dict[str, object] = {}
        cls = type(self)
        if cls.json_tag is not None:
            json[cls.json_tag] = getattr(cls, cls.json_tag)
        for json_name, attribute, default in cls.__dict__.get("_printing") or cls._members():
            value = getattr(self, attribute)
            if value is Unset.UNSET or (value is None and default is None):
                continue
            shown = include_defaults and not getattr(value, "is_unseen", False)
            if shown or (value is not default and not _same(value, default)):
                plain = type(value) in PLAIN
                json[json_name] = value if plain else thaw(value, include_defaults)
        self.add_json(json, include_defaults)
        return dict(sorted(json.items()))

    def add_json(self, json: dict[str, object], include_defaults: bool) -> None:
        """Change what `to_json` prints; for members that are not simply a field."""

    def canonical(self) -> Self:
        """The form that says what other members imply: equal models print the same in it."""
        return self

    def spec_json(self, include_defaults: bool) -> object:
        """`to_json`, where this model is a member of another."""
        return self.to_json(include_defaults)

    @classmethod
    def adapt_json_schema(cls, properties: dict[str, object]) -> None:
        """Change the members' JSON Schema; for those that are not simply a field."""

    def __repr_args__(self) -> Iterator[tuple[str | None, object]]:
        """What a repr shows of the members; no secrets."""
        for name, value in super().__repr_args__():
            yield name, shown_member(str(name), value) if type(value) in (str, tuple) else value

    def replace(self, **members: object) -> Self:
        """A copy with some fields replaced, by Python name, without validating again."""
        copy = self.__class__.__new__(self.__class__)
        # What `model_copy` does, without its generality: binding does this for every open.
        object.__setattr__(copy, "__dict__", {**self.__dict__, **members})
        known = self.__pydantic_fields_set__  # which nothing changes, so that copies share it
        fields = known if known.issuperset(members) else {*known, *members}
        object.__setattr__(copy, "__pydantic_fields_set__", fields)
        object.__setattr__(copy, "__pydantic_extra__", None)
        object.__setattr__(copy, "__pydantic_private__", None)
        return copy

    @classmethod
    def variant(cls, members: Mapping[str, object], *, without: Iterable[str] = ()) -> type[Self]:
        """A subclass with some members declared differently.

        Args:
            members: by Python name, a default, a `Field` that says more than that (no default: the
                member is required), or `Annotated[type, Field(...)]` where the type differs. A name
                that is no member's is a class attribute.
            without: members that the subclass does not have; they keep their default.

        Example:
            >>> class Gzip(Model):
            ...     level: Annotated[int, Level(0, 9)] | None = None
            >>> Gzip.variant({"level": 1})().level
            1
            >>> Gzip.variant({"level": Field(default=5, alias="Level")}).parse({"Level": 2}).level
            2
        """
        declared: dict[str, object] = {}
        for name in without:
            declared[name] = (ClassVar[object], cls.model_fields[name].default)
        for name, member in members.items():
            if get_origin(member) is Annotated:
                declared[name] = member
                continue
            if name not in cls.model_fields:
                declared[name] = (ClassVar[object], member)
                continue
            default = member.default if isinstance(member, FieldInfo) else member
            annotation = cls.model_fields[name].rebuild_annotation()
            if default is not None and NoneType in get_args(annotation):
                kept = tuple(each for each in get_args(annotation) if each is not NoneType)
                annotation = Union[kept]  # noqa: UP007 - of as many types as there are
            declared[name] = (annotation, member)
        made: type[Self] = create_model(  # type: ignore[call-overload]
            cls.__name__, __base__=cls, __module__=cls.__module__, __doc__=cls.__doc__, **declared
        )
        # JSON says a renamed member by its new name only: the other is one of another format.
        made._known = made._learn() - {
            name for name, field in made.model_fields.items() if field.alias
        }
        return made

    @classmethod
    def harmless_members(cls) -> frozenset[str] | None:
        """`data_members` of this class and its bases; None if this class declares none itself.

        So a class that derives from one that is mere data has to say it again.
        """
        if cls.__dict__.get("data_members") is None:
            return None
        declared = [each.__dict__.get("data_members") or () for each in cls.__mro__]
        return frozenset(name for each in declared for name in each)

    @classmethod
    def member_names(cls) -> list[str]:
        """The JSON names of all members, sorted."""
        names = {field.alias or name for name, field in cls.model_fields.items()}
        return sorted(names | {cls.json_tag} if cls.json_tag else names)

    @classmethod
    def _learn(cls) -> frozenset[str]:
        known = frozenset({*cls.model_fields, *cls.member_names()})
        cls._known = known
        return known

    @classmethod
    def _members(cls) -> tuple[_Member, ...]:
        members = []
        for name, field in cls.model_fields.items():
            default = field.get_default(call_default_factory=True, validated_data={})
            if default is PydanticUndefined:
                default = Unset
            members.append(_Member(field.alias or name, name, default))
        cls._printing = tuple(members)
        return cls._printing


def _same(value: object, default: object) -> bool:
    if value is default or getattr(value, "is_spec_default", False):
        return True
    # numpy values compare element by element, and True equals 1
    return type(value) is type(default) and bool(value == default)


def integral(value: object) -> object:
    """`5.0` as `5`: JSON has one kind of number, and the reference takes either spelling."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


@dataclass(frozen=True, slots=True)
class Level:
    """Marks an integer member as bounded: `level: Annotated[int, Level(0, 9)] = 6`.

    Attributes:
        low: the least allowed value; None if there is none.
        high: the greatest allowed value; None if there is none.
    """

    low: int | None = None
    high: int | None = None

    def check(self, value: object) -> int:
        """`value` if it is an integer within the bounds.

        Raises:
            SpecError: it is not.
        """
        value = integral(value)
        if (
            not isinstance(value, int)
            or isinstance(value, bool)
            or (self.low is not None and value < self.low)
            or (self.high is not None and value > self.high)
        ):
            raise SpecError(f"expected {self}, but found {describe(value)}")
        return value

    def plain(self, json: object) -> tuple[int, ...] | None:
        """The integers of a list as JSON has them; None if it is another thing, or one is outside.

        Example:
            >>> Level(1, 9).plain([3, 4]), Level(1, 9).plain([3, 4.0]), Level(1, 9).plain([0])
            ((3, 4), None, None)
        """
        if type(json) is not list:
            return None
        low, high = self.low, self.high
        for value in json:
            if type(value) is not int:
                return None
            if (low is not None and value < low) or (high is not None and value > high):
                return None
        return tuple(json)

    def __str__(self) -> str:
        if self.low is not None and self.high is not None:
            return f"an integer from {self.low} to {self.high}"
        if self.low is not None:
            return "a positive integer" if self.low == 1 else f"an integer not below {self.low}"
        return "an integer" if self.high is None else f"an integer not above {self.high}"

    def __get_pydantic_core_schema__(
        self, source: object, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        inner = core_schema.int_schema(ge=self.low, le=self.high)
        return core_schema.no_info_before_validator_function(self.check, inner)


@dataclass(frozen=True, slots=True)
class JsonForm:
    """Says in JSON Schema what a member with a validator of its own accepts.

    For example `Annotated[Shape, PlainValidator(parse), JsonForm({"type": "array"})]`.

    Attributes:
        schema: the JSON Schema; `{"x-def": "Unit"}` refers to a part that `ts.json_schema` names.
    """

    schema: Mapping[str, object]

    def __get_pydantic_json_schema__(
        self, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, object]:
        return dict(self.schema)

    def __hash__(self) -> int:
        return id(self)


class MemberType:
    """Base of classes of ours, other than models, whose values are members of models."""

    __slots__ = ()

    #: What JSON Schema calls the form of such a member.
    _schema_name: ClassVar[str]

    @classmethod
    def _from_member(cls, json: object) -> Self:
        """The value for the JSON of a member."""
        return cls(json)  # type: ignore[call-arg]

    @classmethod
    def __get_pydantic_core_schema__(
        cls, source: object, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        return core_schema.no_info_plain_validator_function(cls._from_member)

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, object]:
        return {"x-def": cls._schema_name}


NonNegativeInt = Annotated[int, Level(0)]
PositiveInt = Annotated[int, Level(1)]
Rank = Annotated[int, Level(0, 32)]
