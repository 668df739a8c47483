"""Write everything that follows from the settings' schema; run by `make generate`.

The tables in README.md and docs/configuration.md, docs/config.schema.json, and the settings of the
VS Code extension. With --check nothing is written: what is out of date is named, exit status 1.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from dg_lsp.configuration import Scope
from dg_lsp.configuration.fields import Field, fields

ROOT = Path(__file__).resolve().parents[1]
BEGIN, END = "<!-- settings: written by `make generate` -->", "<!-- end of settings -->"
EXTENSION = Path("clients/vscode")
_WHERE = {
    Scope.FOLDER: "any folder",
    Scope.TRUSTED: "trusted folders",
    Scope.USER: "never",
}


class Generated(NamedTuple):
    """A file, and what makes its new text of its old one."""

    path: Path
    text: Callable[[str], str]


FILES = [
    Generated(Path("README.md"), lambda old: with_table(old, short_table())),
    Generated(Path("docs/configuration.md"), lambda old: with_table(old, long_table())),
    Generated(Path("docs/config.schema.json"), lambda old: as_json(json_schema())),
    Generated(EXTENSION / "package.json", lambda old: as_json(manifest(json.loads(old)))),
    Generated(EXTENSION / "package.nls.json", lambda old: as_json(texts(json.loads(old)))),
    Generated(
        EXTENSION / "src" / "serverSettings.json",
        lambda old: as_json(list(fields())),
    ),
]


def with_table(page: str, table: str) -> str:
    """A page with `table` between its marks."""
    before, _, rest = page.partition(BEGIN)
    _, mark, after = rest.partition(END)
    if not mark:
        raise SystemExit(f"A page has no place for the settings; write {BEGIN} and {END} there.")
    return f"{before}{BEGIN}\n{table}\n{END}{after}"


def short_table() -> str:
    """Each setting with its default and what it means."""
    return _table(
        ("setting", "default", "meaning"),
        ((f"`{f.name}`", _default(f), f.text) for f in fields().values()),
    )


def long_table() -> str:
    """Each setting with all that is to be known."""
    return _table(
        ("setting", "takes", "default", "in `.dg-lsp.toml` of", "meaning"),
        ((f"`{f.name}`", f.expects, _default(f), _where(f), f.text) for f in fields().values()),
    )


def _where(field: Field) -> str:
    """Whose files may hold a setting."""
    return f"{_WHERE[field.scope]}, to be {field.limit}" if field.limit else _WHERE[field.scope]


def json_schema() -> dict[str, Any]:
    """What editors check a settings file by (JSON schema 2020-12)."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Settings of dg-lsp",
        "description": "config.toml and .dg-lsp.toml; see docs/configuration.md.",
        "type": "object",
        "properties": {
            # TOML has no null: a setting that is not wanted is left out.
            f.name: {"description": f.text, **_value(f), **_default_value(f)}
            for f in fields().values()
        },
        "additionalProperties": False,
    }


def manifest(old: dict[str, Any]) -> dict[str, Any]:
    """The extension's manifest with the server's settings."""
    for part in old["contributes"]["configuration"]:
        if part["order"] == 2:
            part["properties"] = {f"dgLsp.{f.name}": _property(f) for f in fields().values()}
    trust = old["capabilities"]["untrustedWorkspaces"]
    ours = [key for key in trust["restrictedConfigurations"] if key.startswith("dgLsp.server.")]
    trust["restrictedConfigurations"] = [
        *ours,
        *(
            f"dgLsp.{f.name}"
            for f in fields().values()
            if f.scope is not Scope.FOLDER or f.is_globs
        ),
    ]
    return old


def texts(old: dict[str, str]) -> dict[str, str]:
    """The extension's texts with the settings' meanings, without those that nothing names."""
    known = {**old, **{f"settings.{f.name}": f.text for f in fields().values()}}
    named = json.dumps(manifest(json.loads((ROOT / EXTENSION / "package.json").read_text())))
    return {key: text for key, text in known.items() if f"%{key}%" in named}


def as_json(value: object) -> str:
    """As JSON.stringify(value, null, 2) writes it, with a line break at the end."""
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def _property(field: Field) -> dict[str, Any]:
    """VS Code shows one kind of input a setting, so null is told by a list of types."""
    value = {"type": "string", **_value(field)}
    nullable = field.default is None
    return {
        **value,
        "type": [value["type"], "null"] if nullable else value["type"],
        "default": field.default,
        "scope": _vscode_scope(field.scope),
        "markdownDescription": f"%settings.{field.name}%",
    }


def _vscode_scope(scope: Scope) -> str:
    match scope:
        case Scope.USER:
            return "machine"
        case Scope.TRUSTED:
            return "machine-overridable"
        case Scope.FOLDER:
            return "window"


def _value(field: Field) -> dict[str, Any]:
    """The schema of a setting's value when there is one."""
    choices = field.schema.get("anyOf", [field.schema])
    value = next(choice for choice in choices if choice.get("type") != "null")
    return {k: v for k, v in value.items() if k not in ("description", "default")}


def _default_value(field: Field) -> dict[str, Any]:
    return {} if field.default is None else {"default": field.default}


def _default(field: Field) -> str:
    value = field.default
    return field.unset or f"`{value if isinstance(value, str) else json.dumps(value)}`"


def _table(head: tuple[str, ...], rows: Iterator[tuple[str, ...]]) -> str:
    rule = "|" + "---|" * len(head)
    first, *rest = (f"| {' | '.join(cells)} |" for cells in (head, *rows))
    return "\n".join([first, rule, *rest])


def main() -> None:
    """Write the files, or name those that would change."""
    checking = "--check" in sys.argv[1:]
    stale: list[str] = []
    for path, text in FILES:
        file = ROOT / path
        old = file.read_text() if file.exists() else ""
        new = text(old)
        if new == old:
            continue
        stale.append(str(path))
        if not checking:
            file.write_text(new)
    if checking and stale:
        sys.exit(f"Out of date: {', '.join(stale)}; run: make generate")


if __name__ == "__main__":
    main()
