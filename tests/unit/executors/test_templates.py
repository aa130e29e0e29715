"""What may stand in a template, and what it becomes."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ksana.domain.errors import InvalidInput
from ksana.executors.templates import (
    MAX_DOCUMENT_DEPTH,
    MAX_OUTPUT,
    DocumentTooLarge,
    check_template,
    referenced_nodes,
    referenced_nodes_in,
    render,
    render_value,
    rendered_document,
)
from ksana.executors.templates_filters import TemplateFailed

NAMES = frozenset({"run_id", "job_id", "scheduled_at", "triggered_at", "name", "input"})
VALUES: dict[str, Any] = {
    "run_id": 42,
    "job_id": "nightly",
    "scheduled_at": "2026-03-01T09:30:00Z",
    "triggered_at": "2026-03-01T09:30:01Z",
    "name": "Ann & <Bob>",
    "input": {"a": {"b": [1, 2, 3]}, "yes": True, "none": None, "items": "mine", "text": 'say "hi"', "empty": ""},
}


@pytest.mark.parametrize(
    ("template", "result"),
    [
        ("plain", "plain"),
        ("}} %} #}", "}} %} #}"),
        ("run {{ run_id }} of {{job_id}}", "run 42 of nightly"),
        ("{{ name }}", "Ann & <Bob>"),
        ("{{ input.a.b[1] }}{{ input['a']['b'][-1] }}", "23"),
        ("{{ input.items }}", "mine"),
        ("{{ input.yes }} {{ input.none }} {{ input.a }}", 'true null {"b": [1, 2, 3]}'),
        ("{{ input.text | tojson }}", '"say \\"hi\\""'),
        ("{{ name | tojson }}", '"Ann & <Bob>"'),
        ("{{ input.gone | default('x') }}{{ input.gone | d('y') }}{{ input.empty | d('z', true) }}", "xyz"),
        ("{{ name | upper }}{{ name | lower }}", "ANN & <BOB>ann & <bob>"),
        ("{{ '  x ' | trim }}|{{ name | urlencode }}", "x|Ann%20%26%20%3CBob%3E"),
        ("{{ '12' | int }}{{ 'x' | int(7) }}{{ input.a.b | length }}", "1273"),
        ("{{ input.a.b | first }}{{ input.a.b | last }}", "13"),
        ("{{ name | replace('Ann', 'Eve') }}{{ 'aaa' | replace('a', 'b', 1) }}", "Eve & <Bob>baa"),
        ("{{ run_id | string | length }}", "2"),
        ("{{ 'a' if run_id > 41 and not input.none else 'b' }}", "a"),
        ("{% if run_id in [1, 42] %}in{% elif true %}no{% else %}out{% endif %}", "in"),
        ("{% if input.gone is defined %}there{% else %}gone{% endif %}", "gone"),
        ("{# nothing #}x", "x"),
        ("{% raw %}{{ as it is }}{% endraw %}", "{{ as it is }}"),
        ("{{ run_id }}\n", "42\n"),
        ("{{ run_id }}\r\nb\r\n", "42\r\nb\r\n"),
        ("{{ {'a': [1, none]} | tojson }}", '{"a": [1, null]}'),
    ],
)
def test_a_template_gives(template: str, result: str) -> None:
    check_template(template, field="body", names=NAMES)
    assert render(template, VALUES) == result


def test_json_made_with_tojson_reads_back_as_what_went_in() -> None:
    assert json.loads(render("{{ input | tojson }}", VALUES)) == VALUES["input"]


@given(st.text().filter(lambda text: "{" not in text))
def test_text_without_marks_stays_as_it_is(text: str) -> None:
    assert render(text, {}) == text


@given(st.text())
def test_a_value_is_never_read_as_a_template(value: str) -> None:
    assert render("{{ name }}", {"name": value}) == value


@pytest.mark.parametrize(
    ("template", "complaint"),
    [
        ("a\n{{ run_id", "line 2"),
        ("{% if run_id %}", "line 1"),
        ("{{ nobody }}", "line 1: there is no variable 'nobody'; there are: input, job_id"),
        ("\n\n{{ 1 if nobody }}", "line 3: there is no variable 'nobody'"),
        ("{% for i in input %}{% endfor %}", "loops cannot be used"),
        ("{% macro m() %}{% endmacro %}", "macros cannot be used"),
        ("{% set x = 1 %}", "assignments cannot be used"),
        ("{% set x %}y{% endset %}", "assignments cannot be used"),
        ("{% include 'x' %}", "includes cannot be used"),
        ("{% import 'x' as y %}", "imports cannot be used"),
        ("{% from 'x' import y %}", "imports cannot be used"),
        ("{% extends 'x' %}", "inheritance cannot be used"),
        ("{% block b %}{% endblock %}", "blocks cannot be used"),
        ("{% with %}{% endwith %}", "with blocks cannot be used"),
        ("{% filter upper %}x{% endfilter %}", "filter blocks cannot be used"),
        ("{% call input() %}{% endcall %}", "cannot be used"),
        ("{{ name.upper() }}", "calls cannot be used"),
        ("{{ range(9) }}", "cannot be used"),
        ("{{ 'x' * 9 }}", "arithmetic cannot be used"),
        ("{{ 9 ** 9 ** 9 }}", "arithmetic cannot be used"),
        ("{{ '%0999999999d' % 1 }}", "arithmetic cannot be used"),
        ("{{ 1 + 1 }}", "arithmetic cannot be used"),
        ("{{ name ~ name }}", "joining with ~ cannot be used"),
        ("{{ name[1:2] }}", "slices cannot be used"),
        ("{{ name | attr('upper') }}", "attr"),
        ("{{ input | map('x') }}", "map"),
        ("{{ name | center(99999999) }}", "center"),
        ("{{ name is callable }}", "callable"),
        ("{{ loop }}", "no variable 'loop'"),
        ("{{ self }}", "no variable 'self'"),
        ("{% debug %}", "line 1"),
        ("{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}", "line 1"),
        ("{{ " + "not " * 5000 + "1 }}", "line 1"),
        ("{{ 0x" + "f" * 9000 + " }}", "line 1"),
        ("{{ " + "9" * 9000 + " }}", "line 1"),
        ("{{ run_id }}" * 501, "at most 500 places"),
        ("{{ run_id }}" + "x" * 100_000, "at most 100000 characters"),
        ("{{ [" + "1," * 10_000 + "] }}", "too large an expression"),
        ("{{ name" + " | tojson" * 100 + " }}", "too large an expression"),
    ],
)
def test_a_template_is_refused_with_its_line_and_the_reason(template: str, complaint: str) -> None:
    with pytest.raises(InvalidInput, match="line") as refused:
        check_template(template, field="headers.X", names=NAMES)
    assert complaint in str(refused.value)
    assert refused.value.field == "headers.X"


@pytest.mark.parametrize(
    "template",
    [
        "{{ name.__class__ }}",
        "{{ name['__class__'] }}",
        "{{ input.keys }}",
        "{{ input.__init__ }}",
        "{{ run_id.real }}",
        "{{ input.a.b.append }}",
        "{{ input.a.b['append'] }}",
        "{{ input.a.b[99] }}",
        "{{ input.gone }}",
        "{{ input.gone.deeper }}",
        "{{ input.gone | upper }}",
        "{{ [input.gone] | tojson }}",
    ],
)
def test_only_plain_data_can_be_reached(template: str) -> None:
    check_template(template, field="body", names=NAMES)
    with pytest.raises(TemplateFailed, match="there is no"):
        render(template, VALUES)


@pytest.mark.parametrize(
    "template",
    [
        "{{ input.long | replace('', input.long) }}",
        "{{ 'aaaaaaaaaa'" + " | replace('a', 'aaaaaaaaaa')" * 30 + " }}",
        "{{ '\"'" + " | tojson" * 40 + " }}",
        "{{ input.long }}" * 20,
        "{{ input.long | tojson | length }}" * 200,
        "{% if input.long | upper == 'x' %}{% endif %}" * 200,
    ],
)
def test_a_template_cannot_make_more_than_its_share(template: str) -> None:
    check_template(template, field="body", names=NAMES)
    with pytest.raises(TemplateFailed, match=r"too much text|more than 1000000"):
        render(template, {"input": {"long": '"' * 100_000}})


def test_the_output_is_bounded_also_without_any_template() -> None:
    assert render("x" * MAX_OUTPUT, {}) == "x" * MAX_OUTPUT
    with pytest.raises(TemplateFailed, match="longer than"):
        render("x" * (MAX_OUTPUT + 1), {})


def test_a_template_that_was_never_checked_meets_the_same_rules() -> None:
    with pytest.raises(TemplateFailed, match="loops cannot be used"):
        render("{% for a in input %}{% endfor %}", VALUES)
    with pytest.raises(TemplateFailed, match="the template failed"):
        render("{{ unclosed", VALUES)


@pytest.mark.parametrize(
    "template", ["{{ input.a | int | length }}", "{{ run_id < name }}", "{{ [] | first }}", "{{ name | upper(1) }}"]
)
def test_a_value_that_does_not_fit_fails_in_words(template: str) -> None:
    with pytest.raises(TemplateFailed, match="the template failed") as failed:
        render(template, VALUES)
    assert "Error" not in str(failed.value)


def test_the_placeholders_of_document_002_are_filled_in() -> None:
    body = (
        '{\n  "event": "order.received",\n  "job_id": "<filled-by-service>",\n  "run_id" : "<filled-by-service>",'
        '\n  "scheduled_at":"<filled-by-service>", "triggered_at": "<filled-by-service>", "other": "<filled-by-service>"}'
    )
    check_template(body, field="body", names=NAMES)
    assert json.loads(render(body, VALUES)) == {
        "event": "order.received",
        "job_id": "nightly",
        "run_id": "42",
        "scheduled_at": "2026-03-01T09:30:00Z",
        "triggered_at": "2026-03-01T09:30:01Z",
        "other": "<filled-by-service>",
    }


WORKFLOW: dict[str, Any] = {
    **VALUES,
    "params": {"ids": [7, 8], "none": None, "text": " {{ run_id }} ", "big": 2**70},
    "nodes": {"load": {"artifact": {"rows": [{"id": 1}], "ok": True, "rate": 0.5}}, "a-b.c": {"artifact": {}}},
    "item": {"id": "x"},
    "index": 3,
}


@pytest.mark.parametrize(
    ("template", "value"),
    [
        ("{{ nodes.load.artifact.rows }}", [{"id": 1}]),
        ("  {{nodes.load.artifact.ok}}\n", True),
        ("{{ nodes['load']['artifact'].rate }}", 0.5),
        ('{{ nodes["a-b.c"].artifact }}', {}),
        ("{{ params.ids[0] }}", 7),
        ("{{- params.ids[-1] -}}", 8),
        ("{{ params.ids.1 }}", 8),
        ("{{ params.none }}", None),
        ("{{ params.text }}", " {{ run_id }} "),
        ("{{ params.big }}", 2**70),
        ("{{ item }}", {"id": "x"}),
        ("{{ index }}", 3),
        ("{{ index }}!", "3!"),
        ("{{ index }}{{ index }}", "33"),
        (" {{ index | string }} ", " 3 "),
        ("{{ 5 }}", "5"),
        ("{{ params.ids[index] | default('none') }}", "none"),
        ("{{ params.ids | length }}", "2"),
        ("{{ index if true }}", "3"),
        ("plain", "plain"),
        ("", ""),
        ("{% raw %}{{ index }}{% endraw %}", "{{ index }}"),
    ],
)
def test_one_place_gives_its_value_and_anything_else_a_text(template: str, value: Any) -> None:
    result = render_value(template, WORKFLOW)
    assert result == value
    assert type(result) is type(value)


@pytest.mark.parametrize(
    "template",
    [
        "{{ params.gone }}",
        "{{ params.gone.deeper[0] }}",
        "{{ params.ids[2] }}",
        "{{ params.ids.append }}",
        "{{ index.real }}",
        "{{ item.__class__ }}",
        "{{ params.none.x }}",
    ],
)
def test_a_value_that_is_missing_fails_as_in_a_text(template: str) -> None:
    with pytest.raises(TemplateFailed, match="the template failed: there is no") as failed:
        render_value(template, WORKFLOW)
    with pytest.raises(TemplateFailed) as in_a_text:
        render(template, WORKFLOW)
    assert str(failed.value) == str(in_a_text.value)


@pytest.mark.parametrize("template", ["{{ nobody }}", "{{ nobody.x }}", "{{ unclosed }} }}", "{{ }}", "{{ a() }}"])
def test_a_value_of_what_is_no_template_fails_in_words(template: str) -> None:
    with pytest.raises(TemplateFailed):
        render_value(template, {})


def test_a_document_keeps_its_shape_and_the_types_of_what_is_filled_in() -> None:
    document = {
        "rows": "{{ nodes.load.artifact.rows }}",
        "{{ index }}": ["{{ index }}", "no. {{ index }}", 1, None, True, {"deep": "{{ params.ids[1] }}"}],
        "run_id": "<filled-by-service>",
        "other": "<filled-by-service>",
    }
    before = json.dumps(document)
    assert rendered_document(document, WORKFLOW) == {
        "rows": [{"id": 1}],
        "{{ index }}": [3, "no. 3", 1, None, True, {"deep": 8}],
        "run_id": "42",
        "other": "<filled-by-service>",
    }
    assert json.dumps(document) == before
    assert rendered_document("{{ index }}", WORKFLOW) == 3
    assert rendered_document(7, WORKFLOW) == 7


def test_what_was_filled_in_is_not_filled_in_again() -> None:
    assert rendered_document(["{{ params.text }}"], WORKFLOW) == [" {{ run_id }} "]


def levels(count: int) -> Any:
    value: Any = "{{ index }}"
    for _ in range(count):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("document", "complaint"),
    [
        (levels(MAX_DOCUMENT_DEPTH + 1), "nested deeper than 64 levels"),
        (levels(5_000), "nested deeper than 64 levels"),
        (["{{ index }}"] * 201, "more than 200 strings with templates"),
        (["{{ params.long }}"] * 20, "longer than 1000000 characters"),
        (["{{ params.list }}"] * 20, "longer than 1000000 characters"),
        ("{{ params.deep }}", "nested too deep"),
        ("{{ params.odd }}", "not plain JSON"),
        (["x" * MAX_OUTPUT, "x"], "longer than 1000000 characters"),
    ],
)
def test_a_document_is_bounded(document: Any, complaint: str) -> None:
    params = {"long": "x" * 100_000, "list": list(range(20_000)), "deep": levels(50_000), "odd": object()}
    with pytest.raises(TemplateFailed, match=complaint):
        rendered_document(document, {"index": 1, "params": params})


def test_a_document_may_be_as_deep_and_as_long_as_the_bounds() -> None:
    assert rendered_document(levels(MAX_DOCUMENT_DEPTH), {"index": 1}) is not None
    assert rendered_document(["{{ index }}"] * 200 + ["plain"] * 1_000, {"index": 1})[199:201] == [1, "plain"]


@pytest.mark.parametrize(
    ("template", "nodes"),
    [
        ("plain nodes.load", set()),
        ("{{ params.nodes.load }}", set()),
        ("{{ nodes.load.artifact.nodes }} {{ nodes['a-b.c'] }}", {"load", "a-b.c"}),
        (
            "{% if nodes.a.status == 'x' and params[nodes.b.artifact] %}{{ nodes.c | tojson }}{% endif %}",
            {"a", "b", "c"},
        ),
        ("{{ nodes.gone | default(nodes.other.artifact) }}", {"gone", "other"}),
        ("{{ [nodes.a, {'k': nodes.b}] }}", {"a", "b"}),
        ("{# nodes #}{% raw %}{{ nodes }}{% endraw %}", set()),
        ("{{ nodes.items }}", {"items"}),
    ],
)
def test_the_nodes_that_a_template_needs_are_known(template: str, nodes: set[str]) -> None:
    assert referenced_nodes(template) == nodes
    assert referenced_nodes_in({"a": [template, 1, None], "nodes": "{{ nodes.more }}"}) == nodes | {"more"}


@pytest.mark.parametrize(
    "template",
    [
        "{{ nodes }}",
        "{{ nodes | tojson }}",
        "{{ nodes[item] }}",
        "{{ nodes[nodes.a.artifact] }}",
        "{{ nodes[0] }}",
        "{{ 'a' in nodes }}",
        "{{ nodes.a if nodes }}",
        "{{ nodes['a' if item else 'b'] }}",
    ],
)
def test_a_node_must_be_named(template: str) -> None:
    with pytest.raises(TemplateFailed, match=r"line 2: name the node, as in nodes\.load"):
        referenced_nodes("\n" + template)
    with pytest.raises(TemplateFailed, match="name the node"):
        referenced_nodes_in([{"a": template}])


def test_what_is_no_template_names_no_nodes() -> None:
    with pytest.raises(TemplateFailed, match="line 1"):
        referenced_nodes("{{ nodes.a")
    with pytest.raises(TemplateFailed, match="loops cannot be used"):
        referenced_nodes("{% for n in nodes %}{% endfor %}")
    with pytest.raises(DocumentTooLarge):
        referenced_nodes_in(levels(100))


@given(st.text(alphabet="{}%#nodes.[]'\"a \ud800\0\n|", max_size=40))
def test_any_text_gives_a_value_or_fails_in_words(text: str) -> None:
    try:
        referenced_nodes(text)
        render_value(text, {"nodes": {"a": 1}, "a": [1]})
    except TemplateFailed as failed:
        assert str(failed)  # noqa: PT017 - it may also end well
