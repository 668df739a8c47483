"""The schema's settings one by one, for checks, sentences and pages."""

from __future__ import annotations

import functools
from typing import Any, cast

import msgspec

from dg_lsp.configuration.schema import GLOBS, Configuration, Limit, Scope


class Field(msgspec.Struct, frozen=True):
    """One setting."""

    name: str
    """As it is written."""
    text: str
    """What it means, a sentence."""
    scope: Scope
    limit: Limit
    expects: str
    """What it takes, as a sentence goes on behind "takes"."""
    default: Any
    unset: str
    """What counts in place of null."""
    schema: dict[str, Any]
    """JSON schema of its value."""

    @property
    def is_globs(self) -> bool:
        """Whether its value is a list of globs."""
        return self.name in GLOBS

    def is_within(self, value: Any, own: Any) -> bool:
        """Whether a value keeps to the limit for folders that nobody trusts.

        `own` is what the user has, None for the model's own.
        """
        match self.limit:
            case Limit.LOWER:
                return own is None or (value is not None and value <= own)
            case Limit.RAISE:
                return own is None or (value is not None and value >= own)
            case Limit.OFF:
                return own or not value
            case _:
                return True

    @property
    def adds_up(self) -> bool:
        """Whether what the sources say is joined; of other settings the last source counts."""
        return isinstance(self.default, list)


@functools.cache
def fields() -> dict[str, Field]:
    """Every setting by its name, in the order of the schema."""
    info = cast("msgspec.inspect.StructType", msgspec.inspect.type_info(Configuration))
    defined = msgspec.json.schema(Configuration)["$defs"][Configuration.__name__]
    found: dict[str, Field] = {}
    for field in info.fields:
        meta = cast("msgspec.inspect.Metadata", field.type)
        extra = cast("dict[str, Any]", meta.extra)
        schema = cast("dict[str, Any]", defined["properties"][field.encode_name])
        found[field.encode_name] = Field(
            name=field.encode_name,
            text=schema["description"],
            scope=extra["scope"],
            limit=extra["limit"],
            expects=extra["expects"] or _expected(schema, field.encode_name),
            default=schema["default"],
            unset=extra["unset"],
            schema=schema,
        )
    return found


def _expected(schema: dict[str, Any], name: str) -> str:
    """What a setting takes, by its type."""
    value = next(s for s in schema.get("anyOf", [schema]) if s.get("type") != "null")
    if value["type"] == "boolean":
        return "true or false"
    number = "a number" if value["type"] == "number" else "a whole number"
    unit = "milliseconds" if name.endswith("Ms") else number
    return f"{unit} from {value['minimum']} to {value['maximum']}"
