"""One YAML mapping that stands for several: `{names}` in its texts are filled in from another."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import yaml

_NAME = re.compile(r"\{([a-z_]+)\}")


def names_in(pattern: yaml.Node, *, without: str) -> set[str]:
    """The names in braces in the fields of a mapping, but for one field."""
    fields = [value for key, value in pattern.value if key.value != without]
    return {name for field in fields for name in _names(field)}


def filled(pattern: yaml.Node, row: yaml.Node, *, without: str) -> yaml.Node:
    """The mapping with values of `row` in place of names, at the line of the row.

    A text that is nothing but a name is the value itself, which may be a number.
    """
    import yaml

    values = {str(key.value): value for key, value in row.value}
    fields = [(k, _filled(v, values)) for k, v in pattern.value if k.value != without]
    return yaml.MappingNode(pattern.tag, fields, row.start_mark, row.end_mark)


def _filled(node: yaml.Node, values: Mapping[str, yaml.Node]) -> yaml.Node:
    import yaml

    if isinstance(node, yaml.ScalarNode):
        text = str(node.value)
        if whole := _NAME.fullmatch(text):
            return values[whole[1]]
        text = _NAME.sub(lambda found: str(values[found[1]].value), text)
        return yaml.ScalarNode(node.tag, text, node.start_mark, node.end_mark, node.style)
    if isinstance(node, yaml.MappingNode):
        fields = [(key, _filled(value, values)) for key, value in node.value]
        return yaml.MappingNode(node.tag, fields, node.start_mark, node.end_mark)
    items = [_filled(item, values) for item in node.value]
    return yaml.SequenceNode(node.tag, items, node.start_mark, node.end_mark)


def _names(node: yaml.Node) -> set[str]:
    if isinstance(node.value, str):
        return set(_NAME.findall(node.value))
    inner = [item[1] if isinstance(item, tuple) else item for item in node.value]
    return {name for one in inner for name in _names(one)}
