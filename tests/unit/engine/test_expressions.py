"""What may stand in an expression of a workflow, and what it gives."""

import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ksana.domain.errors import InvalidInput
from ksana.engine import expressions
from ksana.engine.expressions import ExpressionFailed, check_expression, evaluate, items, truth
from ksana.engine.expressions_syntax import Unreadable, read

NAMES = frozenset({"nodes", "params", "item", "index"})
ROWS = [{"id": 1, "tags": ["a", "b"], "n": 2}, {"id": 2, "tags": [], "n": 2.5}, {"id": 3, "tags": ["b"], "n": None}]
VALUES: dict[str, Any] = {
    "nodes": {
        "load": {"status": "SUCCESS", "artifact": {"n": 5, "f": 5.0, "none": None, "rows": ROWS, "text": "zwölf"}},
        "a-b": {"status": "FAILED", "artifact": None},
    },
    "params": {"x": 1, "flag": False, "big": 2**70, "nul": "a\0b", "half": "\ud800", "list": [1, 2.5, None, "x"]},
    "item": None,
    "index": 0,
}


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = {"a": value}
    return value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("nodes.load.artifact.n > 3", True),
        ("nodes.load.artifact.f > 3", True),
        ("nodes.load.artifact.n == nodes.load.artifact.f", True),
        ("nodes.load.artifact.n > 4.5", True),
        ("nodes.load.artifact.n in [5.0]", True),
        ("double(nodes.load.artifact.n) + 0.5", 5.5),
        ("nodes.load.artifact.n / 2", 2),
        ("nodes.load.artifact.none == null", True),
        ("nodes.load.artifact.none == false", False),
        ("nodes['a-b'].status == 'FAILED'", True),
        ('nodes["a-b"].artifact', None),
        ("nodes.load.artifact.text + '!'", "zwölf!"),
        ("nodes.load.artifact.text.startsWith('zw')", True),
        ("has(params.x)", True),
        ("has(params.gone)", False),
        ("has(params.gone) && params.gone > 3", False),
        ("params.flag ? params.gone : 'b'", "b"),
        ("'n' in nodes.load.artifact", True),
        ("params.list", [1, 2.5, None, "x"]),
        ("params.list[1]", 2.5),
        ("params.nul", "a\0b"),
        ("item", None),
        ("index + 1", 1),
        ("[1, 'a', null, {'k': [true]}]", [1, "a", None, {"k": [True]}]),
        ("nodes.load.artifact.rows.map(r, r.id)", [1, 2, 3]),
        ("nodes.load.artifact.rows.filter(r, r.n != null && r.n > 2)", [ROWS[1]]),
        ("nodes.load.artifact.rows.map(r, r.tags.filter(t, t == 'b'))", [["b"], [], ["b"]]),
        ("nodes.load.artifact.rows.exists(r, 'b' in r.tags)", True),
        ("nodes.load.artifact.rows.all(r, r.id < 3)", False),
        ("nodes.load.artifact.rows.exists_one(r, r.id == 3)", True),
        (
            "nodes.load.artifact.rows.map(r, r.id > 1, {'id': r.id, 'x': params.x})",
            [{"id": 2, "x": 1}, {"id": 3, "x": 1}],
        ),
        ("size(nodes.load.artifact.rows) // a remark\n == 3", True),
        ("int('5') + 1", 6),
        ("timestamp('2026-03-01T09:30:00Z').getHours()", 9),
        ("timestamp('2026-03-01T09:30:00Z') < timestamp('2026-03-01T09:30:01Z')", True),
        ("string(duration('90s'))", "1m30s"),
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775808", -(2**63)),
    ],
)
def test_an_expression_gives(text: str, value: Any) -> None:
    check_expression(text, field="when", names=NAMES)
    result = evaluate(text, VALUES)
    assert result == value
    assert type(result) is type(value)


@pytest.mark.parametrize(
    ("text", "nodes"),
    [
        ("true", set()),
        ("params.nodes.load", set()),
        ("nodes.load.status == 'x' && nodes['a-b'].artifact[0].load == nodes.third", {"load", "a-b", "third"}),
        ("nodes . load // nodes.remark\n .status == 'nodes.text' + r'\\'", {"load"}),
        ("params.list.map(x, nodes.load.artifact[x])", {"load"}),
        ("has(nodes.load.artifact.x)", {"load"}),
        ('"""nodes.a"b""" == nodes.load["x"]', {"load"}),
        ("[1].map(nodes, nodes + 1)", set()),
        ("nodes[params.x == 1 ? 'a' : 'b']", None),
        ("nodes[params.x]", None),
        ("nodes['a' + 'b']", None),
        ("nodes['\\u0061']", None),
        ("size(nodes)", None),
        ("nodes.size()", None),
        ("nodes", None),
        ("nodes.map(n, n)", None),
        ("'a' in nodes", None),
        ("{'k': nodes}", None),
        ("[1].map(nodes, nodes + 1) == nodes", None),
    ],
)
def test_the_nodes_that_it_needs_are_known_beforehand(text: str, nodes: set[str] | None) -> None:
    if nodes is None:
        with pytest.raises(InvalidInput, match="name the node") as refused:
            check_expression(text, field="when", names=NAMES)
        assert refused.value.field == "when"
    else:
        assert check_expression(text, field="when", names=NAMES).nodes == nodes


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "must be an expression"),
        (" \n", "must be an expression"),
        (7, "must be an expression"),
        ("1 +", "column 4: mismatched input '<EOF>'"),
        ("true &&\n || 1", "line 2, column 2"),
        ("nobody > 3", "column 1: there is no variable 'nobody'; there are: index, item, nodes, params"),
        ("[1].map(x, x) == x", "column 18: there is no variable 'x'"),
        ("[1].map(x, y)", "column 12: there is no variable 'y'"),
        ("now()", "there is no function 'now'; there are: contains"),
        ("params.foo()", "no function 'foo'"),
        ("params.x.matches('(a+)+$')", "no function 'matches'"),
        ("cel.bind(x, 1, x)", "no function 'bind'"),
        ("params.list.map(x)", "no function 'map'"),
        ("params.list.all(i, v, v == 1)", "cannot be read"),
        ("optional.of(1)", "no function 'of'"),
        (".params.x", "column 1: a name cannot begin with a dot"),
        ("Foo{a: 1}", "column 1: there are no message types"),
        ("params.?x", "column 7: unsupported syntax"),
        ("99999999999999999999", "column 1: invalid int literal"),
        ("'\ud800'", "column 2: half a character"),
        ("params.x\0", "column 9"),
        ("params.é", "column 8"),
        ("x" * 2001, "longer than 2000 characters"),
        ("(" * 900 + "1" + ")" * 900, "column"),
        ("[" * 900 + "]" * 900, "column"),
        ("[1].map(a, [1].map(b, [1].map(c, c)))", "nested 2 deep"),
        ("[1].map(x," * 100 + "1" + ")" * 100, "column"),
        ("[1].exists(a, [[1].all(b, ([1].filter(c, true)) == [])] == [])", "nested 2 deep"),
        ("[1]" + ".map(x, x)" * 9, "at most 8 times"),
    ],
)
def test_an_expression_is_refused_with_the_reason(text: Any, complaint: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        check_expression(text, field="nodes[2].when", names=NAMES)
    assert refused.value.field == "nodes[2].when"
    assert complaint in refused.value.reason
    assert len(refused.value.reason) < 300
    with pytest.raises(ExpressionFailed):  # one that was never checked meets the same rules
        evaluate(text, VALUES)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("params.gone", "there is no 'gone'"),
        ("nodes.gone.artifact", "there is no 'gone'"),
        ("params['gone'].x", "there is no 'gone'"),
        ("has(params.gone.x)", "there is no 'gone'"),
        ("params.list[9]", "there is no item 9 in the list"),
        ("1 / 0", "division by zero"),
        ("1 % 0", "division by zero"),
        ("1.0 / 0.0", "a number is infinite"),
        ("9223372036854775807 + 1", "a number is too large"),
        ("int(1e300)", "a number is too large"),
        ("params.big > 1", "does not fit in 64 bits"),
        ("params.half", "half a character"),
        ("1 + 1.5", "write double(x)"),
        ("'a' + 1", "the types do not fit: Unsupported operation: string + int"),
        ("nodes.load.artifact.none.x", "the types do not fit"),
        ("nodes.load.artifact.n.x", "the types do not fit"),
        ("params.list > 3", "the types do not fit"),
        ("size(null)", "the types do not fit"),
        ("true && 1", "the types do not fit"),
        ("int('x')", "int"),
        ("timestamp('2026-03-01T09:30:00Z')", "a value is a timestamp, which JSON does not have"),
        ("duration('90s')", "a value is a duration"),
        ("b'abc'", "a value is a string of bytes"),
        ("{1: 2}", "the keys of an object must be texts"),
        ("18446744073709551615u", "does not fit in 64 bits"),
    ],
)
def test_what_cannot_be_worked_out_fails_in_words(text: str, complaint: str) -> None:
    check_expression(text, field="when", names=NAMES)
    with pytest.raises(ExpressionFailed) as failed:
        evaluate(text, VALUES)
    assert complaint in str(failed.value)
    assert len(str(failed.value)) < 300
    assert "CEL" not in str(failed.value)


def test_a_variable_that_is_not_given_is_named() -> None:
    with pytest.raises(ExpressionFailed, match="there is no variable 'item'"):
        evaluate("item == 1", {"params": {}})


def test_only_what_is_named_is_looked_at() -> None:
    values = {"nodes": {"a": {"artifact": {"n": 1, "huge": [0] * 1_000_000, "odd": object(), "deep": nested(9_000)}}}}
    assert evaluate("nodes.a.artifact.n == 1 && !has(nodes.a.artifact.gone)", values) is True
    for part, complaint in (("odd", "which JSON does not have"), ("deep", "nested deeper than 64")):
        with pytest.raises(ExpressionFailed, match=complaint):
            evaluate(f"nodes.a.artifact.{part} == 1", values)


def test_the_callers_data_stays_as_it_is() -> None:
    values = {"params": {"list": [1, {"a": 2}]}}
    result = evaluate("params.list", values)
    result[1]["a"] = 3
    assert values == {"params": {"list": [1, {"a": 2}]}}


def test_a_condition_is_true_or_false_and_nothing_else() -> None:
    assert truth("params.x == 1", VALUES) is True
    assert truth("params.flag", VALUES) is False
    for text, kind in [
        ("params.x", "a number"),
        ("item", "null"),
        ("'true'", "a text"),
        ("[]", "a list"),
        ("{}", "an obj"),
    ]:
        with pytest.raises(ExpressionFailed, match=f"must be true or false, and is {kind}"):
            truth(text, VALUES)


def test_items_are_a_list_and_not_too_many() -> None:
    assert items("params.list", VALUES, 4) == [1, 2.5, None, "x"]
    assert items("[]", VALUES, 0) == []
    with pytest.raises(ExpressionFailed, match="has 4 items, and may have at most 3"):
        items("params.list", VALUES, 3)
    with pytest.raises(ExpressionFailed, match="must be a list, and is an object"):
        items("params", {"params": {}}, 3)


@pytest.mark.parametrize(
    "text",
    [
        "params.a.map(x, x)",
        "params.a.all(x, params.a.all(y, x == y))",
        "params.a.all(x, x in params.a)",
        "params.a.map(x, params.a.map(y, params.a))",
        "(params.a + params.a).filter(x, true)",
        "[params.a].map(x, x.map(y, y))",
        "[params.a]" + ".map(x, x + x + x + x + x + x + x + x)" * 8,
        "[params.s]" + ".map(x, x + x + x + x + x + x + x + x)" * 8,
        "[params.s]" + ".map(x, [x, x, x, x, x, x, x, x])" * 8,
        "['ab']" + ".map(x, [x, x, x, x, x, x, x, x, x, x, x, x])" * 8,
        "params.b.map(x, params.b).map(y, y.map(z, params.b))",
        "params.b.map(x, params.b)[0].map(y, params.b.map(z, params.b))",
        "[params.c].exists(x, x in x.map(y, x))",
        "params.d.map(x, params.c).filter(y, true)",
        "params.a == params.a" + " && params.a == params.a" * 60,
        "params.s.contains('x')" + " || (params.s + params.s).contains('x')" * 50,
    ],
)
def test_what_would_take_too_long_is_not_begun_and_what_is_begun_ends_soon(text: str) -> None:
    values = {
        "params": {
            "a": list(range(20_000)),
            "b": list(range(1_000)),
            "c": [{"k": i} for i in range(400)],
            "d": [1] * 60,
            "s": "a" * 1_000_000,
        }
    }
    try:
        evaluate(text, values)
    except ExpressionFailed as failed:
        assert "too much work" in str(failed)  # noqa: PT017 - it may also end well; this test itself would take for ever if not


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("params.rows.map(r, {'id': r.id, 'name': r.name, 'x': params.x})", 600),
        ("params.rows.map(r, r.id)", 1_500),
        ("params.rows.filter(r, r.id > 10 && r.name != 'b')", 600),
        ("params.rows.map(r, r.tags.filter(t, t != params.x))", 150),
        ("params.rows", 20_000),
        ("[params.rows.all(r, r.id >= 0 && r.name != 'c')]", 20_000),
    ],
)
def test_ordinary_lists_are_not_too_much(text: str, count: int) -> None:
    rows = [{"id": i, "name": "a", "tags": ["u", "v"]} for i in range(count)]
    assert evaluate(text, {"params": {"rows": rows, "x": "u"}})


def test_when_the_library_breaks_down_that_is_a_failure_like_any_other() -> None:
    class PanicException(BaseException):
        """As pyo3 raises it."""

    def panicking() -> None:
        raise PanicException("index out of bounds")

    def interrupted() -> None:
        raise KeyboardInterrupt

    with pytest.raises(ExpressionFailed, match="cannot be worked out"):
        expressions._guarded(panicking)
    with pytest.raises(KeyboardInterrupt):
        expressions._guarded(interrupted)


@given(st.text(max_size=60))
def test_any_text_is_an_expression_or_refused(text: str) -> None:
    try:
        check_expression(text, field="when", names=NAMES)
    except InvalidInput:
        return
    try:
        evaluate(text, VALUES)
    except ExpressionFailed:
        return


WORDS = [
    "nodes",
    ".load",
    "['a']",
    "params",
    ".x",
    "[0]",
    "item",
    ".map(i, ",
    ".all(i, ",
    "i",
    ")",
    "(",
    "+",
    "==",
    "'t'",
    "1",
    "[",
]


@given(
    st.lists(
        st.sampled_from([*WORDS, "]", ",", "&&", "r'\\'", "//", "\n", "{'k': ", "}", "has(", "size("]), max_size=14
    )
)
def test_what_is_refused_or_fails_does_so_on_purpose(words: list[str]) -> None:
    text = " ".join(words)
    try:
        found = check_expression(text, field="when", names=NAMES)
    except InvalidInput:
        return
    assert found.nodes <= {"load", "a", "x"}
    try:
        evaluate(text, VALUES)
    except ExpressionFailed:
        return


def test_reading_alone_refuses_what_is_no_token() -> None:
    with pytest.raises(Unreadable, match="column 3"):
        read("1 $ 2")


def test_the_library_is_not_loaded_before_it_is_needed() -> None:
    code = "import sys, ksana.engine.expressions as e; print('cel' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
