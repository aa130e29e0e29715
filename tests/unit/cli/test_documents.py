"""Documents are read as whoever wrote them meant them: JSON as JSON, the rest as YAML."""

import json
from pathlib import Path
from typing import Any

import pytest

from ksana.cli.client.documents import read_document

NEARLY_YAML: dict[str, Any] = {
    "large": 1e21,
    "line": "a\u2028b\u0085c",
    "erased": "\x7f",
    "rocket": "🚀",
    "tab": "a\tb",
}


@pytest.mark.parametrize("name", ["file", "file.json", "file.yaml"])
@pytest.mark.parametrize("indent", [None, 2, "\t"])
@pytest.mark.parametrize("ascii_only", [True, False])
def test_json_is_read_as_json(name: str, indent: int | str | None, ascii_only: bool, tmp_path: Path) -> None:
    file = tmp_path / name
    file.write_text("\n" + json.dumps(NEARLY_YAML, indent=indent, ensure_ascii=ascii_only))
    assert read_document(str(file)) == NEARLY_YAML


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("{a: 1, b: [x, y]}", {"a": 1, "b": ["x", "y"]}),
        ('{"a": 1,}', {"a": 1}),
        ("a: 2026-01-31\nb: 2026-01-31T12:00:00Z", {"a": "2026-01-31", "b": "2026-01-31T12:00:00Z"}),
        ("a: |\n  one\n  two\n", {"a": "one\ntwo\n"}),
    ],
)
def test_the_rest_is_yaml(text: str, meant: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text(text)
    assert read_document(str(file)) == meant
