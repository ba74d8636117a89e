"""Writes the protocol's types and refusals for Python, from the pages that Rust's types make.

    python sdk/python/tests/make_protocol.py          # after `cargo xtask docs`

`test_protocol.py` compares what it makes with what is committed.
"""

import json
import re
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PACKAGE = ROOT / "sdk/python/sealane"
MADE = "Made by `sdk/python/tests/make_protocol.py`"
NAMES = {"integer": "int", "string": "str", "boolean": "bool", "number": "float", "null": "None"}
ROW = re.compile(r"\| ((?:`[A-Z]\w+`(?:, )?)+) \| [–\d, ]+ \| [–\d]+ \|")
#: Words of Python, which cannot be fields of a class.
KEYWORDS = ("from",)


def annotation(schema: dict) -> str:
    """The type of a schema, as Python writes it."""
    if "$ref" in schema:
        return schema["$ref"].rpartition("/")[2]
    for union in ("oneOf", "anyOf"):
        if union in schema:
            return " | ".join(dict.fromkeys(annotation(part) for part in schema[union]))
    if "enum" in schema:
        return f"Literal[{', '.join(json.dumps(value) for value in schema['enum'])}]"
    if "const" in schema:
        return f"Literal[{json.dumps(schema['const'])}]"
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if kinds == ["array"]:
        return f"list[{annotation(schema.get('items', {}))}]"
    if kinds == ["object"]:
        return "dict[str, Any]"
    return " | ".join(NAMES[kind] for kind in kinds) or "Any"


def declaration(name: str, schema: dict) -> str:
    """A type of the schema as a TypedDict or an alias."""
    fields = schema.get("properties")
    if fields is None or schema.get("type") != "object":
        return f"{name}: TypeAlias = {annotation(schema)!r}\n"
    required = schema.get("required", [])
    types = {key: annotation(field) for key, field in fields.items()}
    types = {key: t if key in required else f"NotRequired[{t}]" for key, t in types.items()}
    if any(key in KEYWORDS for key in fields):
        pairs = "".join(f'    "{key}": {kind!r},\n' for key, kind in types.items())
        return f'{name} = TypedDict("{name}", {{\n{pairs}}})\n'
    said = " ".join(schema.get("description", name).split())
    lines = "".join(f"    {key}: {kind}\n" for key, kind in types.items())
    return f"class {name}(TypedDict):\n{docstring(said)}\n{lines}"


def docstring(text: str) -> str:
    quoted = text.replace("\\", "\\\\")
    if len(quoted) <= 89:
        return f'    """{quoted}"""\n'
    return textwrap.indent("\n".join(textwrap.wrap(f'"""{quoted}', 95)), "    ") + '\n    """\n'


def types() -> str:
    """The text of `protocol.py`."""
    kinds = json.loads((ROOT / "spec/hub.schema.json").read_text())["$defs"]
    named = {name: declaration(name, schema) for name, schema in kinds.items()}
    head = (
        f'"""Bodies and frames of the hub protocol. {MADE}."""\n\n'
        "from __future__ import annotations\n\n"
        "from typing import TYPE_CHECKING, Any, Literal, TypedDict\n\n"
        "if TYPE_CHECKING:\n    from typing_extensions import NotRequired, TypeAlias\n"
    )
    return head + "".join(
        ("\n\n" if text.startswith("class") else "\n") + text for text in named.values()
    )


def codes() -> list[str]:
    """The names of refusals in the tables of hub.md and access.md, in their order."""
    pages = [(ROOT / "spec" / page).read_text() for page in ("hub.md", "access.md")]
    rows = [row for page in pages for row in ROW.findall(page)]
    return list(dict.fromkeys(name for row in rows for name in re.findall(r"\w+", row)))


def refusals() -> str:
    """The text of `refusals.py`."""
    entries = json.loads((ROOT / "spec/errors.json").read_text())
    known = {entry["name"]: entry for entry in entries}
    parts = [
        f'"""The refusals of a hub, a class for each code. {MADE}."""\n\n'
        "from .errors import HubError\n"
    ]
    for name in codes():
        entry = known[name]
        said = entry["cause"][0].upper() + entry["cause"][1:] + "."
        retry = "" if entry["retry"] == "never" else f'\n    retry = "{entry["retry"]}"\n'
        parts.append(f"\n\nclass {name}(HubError):\n{docstring(said)}{retry}")
    classes = "".join(f'    "{name}": {name},\n' for name in codes())
    table = f"REFUSALS: dict[str, type[HubError]] = {{\n{classes}}}\n"
    parts.append(f"\n\n#: The class of each code.\n{table}")
    return "".join(parts)


def main() -> None:
    (PACKAGE / "protocol.py").write_text(types())
    (PACKAGE / "refusals.py").write_text(refusals())


if __name__ == "__main__":
    main()
