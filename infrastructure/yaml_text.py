"""YAML as far as it is JSON: no aliases, no tags, string keys, every key once. Needs PyYAML."""

from __future__ import annotations

from typing import Any

import yaml

from statelog.domain.errors import Malformed

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_CORE = "tag:yaml.org,2002:"
_SCALARS = frozenset(f"{_CORE}{kind}" for kind in ("str", "int", "float", "bool", "null"))


def parse_yaml(text: str, depth_limit: int) -> Any:
    """The value of the one document in YAML text.

    Raises `Malformed` naming line and column: for what is not YAML, an alias, a key that is not a
    string or appears twice, a value of a type JSON has not, and nesting beyond the limit.
    """
    try:
        _scan(text, depth_limit)
        node = yaml.compose(text, Loader=_LOADER)
        return None if node is None else _value(node)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise Malformed(_at(mark), f"is not YAML: {error.problem or error.context}") from None
    except yaml.reader.ReaderError as error:
        before = text[: error.position]
        place = _place(before.count("\n"), error.position - before.rfind("\n") - 1)
        raise Malformed(place, f"is not YAML: {error.reason}") from None


def dump_yaml(value: Any) -> str:
    """A JSON value as YAML text, which `parse_yaml` reads back as it was; keys in their order."""
    text: str = yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)
    return text


class _Dumper(yaml.SafeDumper):
    """Writes a value again where it is there twice: aliases are not read."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _scan(text: str, depth_limit: int) -> None:
    """Refuse aliases and depth before anything recursive sees the text."""
    depth = 0
    for event in yaml.parse(text, Loader=_LOADER):
        if isinstance(event, yaml.AliasEvent):
            raise Malformed(_at(event.start_mark), "aliases are not allowed; write the value again")
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > depth_limit:
            raise Malformed(_at(event.start_mark), f"is nested more than {depth_limit} levels deep")


def _value(node: Any) -> Any:
    if isinstance(node, yaml.MappingNode) and node.tag == f"{_CORE}map":
        return _mapping(node)
    if isinstance(node, yaml.SequenceNode) and node.tag == f"{_CORE}seq":
        return [_value(item) for item in node.value]
    if isinstance(node, yaml.ScalarNode) and node.tag in _SCALARS:
        return _scalar(node)
    kind = node.tag.removeprefix(_CORE)
    raise Malformed(_at(node.start_mark), f"has the type {kind!r}, which JSON has not; quote it")


def _scalar(node: Any) -> Any:
    try:
        return yaml.constructor.SafeConstructor().construct_object(node)
    except (ValueError, KeyError):
        kind = node.tag.removeprefix(_CORE)
        raise Malformed(_at(node.start_mark), f"{node.value[:40]!r} is no {kind}") from None


def _mapping(node: Any) -> dict[str, Any]:
    entries: dict[str, Any] = {}
    for key, item in node.value:
        if key.tag != f"{_CORE}str":
            raise Malformed(_at(key.start_mark), "the key is not a string; quote it")
        if key.value in entries:
            raise Malformed(_at(key.start_mark), f"the key {key.value!r} appears twice")
        entries[key.value] = _value(item)
    return entries


def _at(mark: Any) -> str:
    return "text" if mark is None else _place(mark.line, mark.column)


def _place(line: int, column: int) -> str:
    return f"line {line + 1}, column {column + 1}"
