"""Which templates may be saved: an allow-list over Jinja2's syntax tree, so that what is not known is not allowed."""

from collections.abc import Iterator

from jinja2 import Environment, nodes

from ksana.executors.templates_filters import FILTERS, TESTS, TemplateFailed

MAX_TEMPLATE = 100_000
MAX_MARKS = 500
MAX_TOKENS = 5_000
MAX_NODES = 5_000
MAX_DEPTH = 60

_ALLOWED: frozenset[type[nodes.Node]] = frozenset(
    {
        *(nodes.Template, nodes.Output, nodes.TemplateData, nodes.If),
        *(nodes.Name, nodes.Getattr, nodes.Getitem, nodes.Const, nodes.List, nodes.Tuple, nodes.Dict, nodes.Pair),
        *(nodes.Compare, nodes.Operand, nodes.And, nodes.Or, nodes.Not, nodes.Neg, nodes.CondExpr),
        *(nodes.Filter, nodes.Keyword, nodes.Test),
    }
)
_SPOKEN: dict[type[nodes.Node], str] = {
    nodes.For: "loops",
    nodes.Call: "calls",
    nodes.CallBlock: "calls",
    nodes.Macro: "macros",
    nodes.Assign: "assignments",
    nodes.AssignBlock: "assignments",
    nodes.Include: "includes",
    nodes.Import: "imports",
    nodes.FromImport: "imports",
    nodes.Extends: "inheritance",
    nodes.Block: "blocks",
    nodes.FilterBlock: "filter blocks",
    nodes.With: "with blocks",
    nodes.Slice: "slices",
    nodes.Concat: "joining with ~",
    nodes.Add: "arithmetic",
    nodes.Sub: "arithmetic",
    nodes.Mul: "arithmetic",
    nodes.Div: "arithmetic",
    nodes.FloorDiv: "arithmetic",
    nodes.Mod: "arithmetic",
    nodes.Pow: "arithmetic",
}


def check_size(environment: Environment, source: str) -> None:
    """TemplateFailed if reading the template would itself take too long; TemplateSyntaxError if it cannot be split up."""
    if len(source) > MAX_TEMPLATE:
        raise TemplateFailed(f"line 1: a template may have at most {MAX_TEMPLATE} characters")
    if source.count("{{") + source.count("{%") + source.count("{#") > MAX_MARKS:
        raise TemplateFailed(f"line 1: a template may have at most {MAX_MARKS} places to fill in")
    # The pieces come one by one, so that counting stops before the costly work, which is parsing, has begun.
    for count, (line, _kind, _text) in enumerate(environment.lex(source), start=1):
        if count > MAX_TOKENS:
            raise TemplateFailed(f"line {line}: too large an expression")


def check_tree(tree: nodes.Template, names: frozenset[str] | None) -> None:
    """TemplateFailed, naming the line, at the first thing that is not allowed. Without `names`, any name is."""
    for count, (node, depth) in enumerate(_walk(tree), start=1):
        if count > MAX_NODES or depth > MAX_DEPTH:
            raise TemplateFailed(f"line {node.lineno}: too large an expression")
        refusal = _refusal(node, names)
        if refusal is not None:
            raise TemplateFailed(f"line {node.lineno}: {refusal}")


def plain_path(tree: nodes.Template) -> tuple[str | int, ...] | None:
    """The variable and the keys after it, if the whole template is one such place: `{{ params.ids[0] }}`."""
    output = tree.body[0] if len(tree.body) == 1 else None
    if not isinstance(output, nodes.Output) or len(output.nodes) != 1:
        return None
    keys: list[str | int] = []
    node: nodes.Node = output.nodes[0]
    while isinstance(node, nodes.Getattr | nodes.Getitem):
        key = node.attr if isinstance(node, nodes.Getattr) else _constant(node.arg)
        if key is None:
            return None
        keys.append(key)
        node = node.node
    return (node.name, *reversed(keys)) if isinstance(node, nodes.Name) else None


def named_nodes(tree: nodes.Template) -> tuple[frozenset[str], int | None]:
    """The ids in `nodes.<id>` and `nodes["<id>"]`, and the line of the first use of `nodes` that names none."""
    named: dict[int, str] = {}
    used: list[nodes.Name] = []
    for node, _depth in _walk(tree):
        if isinstance(node, nodes.Name) and node.name == "nodes":
            used.append(node)
        elif isinstance(node, nodes.Getattr | nodes.Getitem):
            key = node.attr if isinstance(node, nodes.Getattr) else _constant(node.arg)
            if isinstance(key, str):
                named[id(node.node)] = key
    lines = [name.lineno for name in used if id(name) not in named]
    return frozenset(named[id(name)] for name in used if id(name) in named), min(lines, default=None)


def _constant(node: nodes.Node) -> str | int | None:
    if isinstance(node, nodes.Neg):
        below = _constant(node.node)
        return -below if isinstance(below, int) else None
    value = node.value if isinstance(node, nodes.Const) else None
    return value if isinstance(value, str | int) and not isinstance(value, bool) else None


def _refusal(node: nodes.Node, names: frozenset[str] | None) -> str | None:
    if type(node) not in _ALLOWED:
        what = _SPOKEN.get(type(node), type(node).__name__.lower())
        return f"{what} cannot be used in a template"
    if isinstance(node, nodes.Name) and names is not None and node.name not in names:
        return f"there is no variable {node.name!r}; there are: {', '.join(sorted(names))}"
    if isinstance(node, nodes.Filter) and (node.name not in FILTERS or node.node is None):
        return f"there is no filter {node.name!r}; there are: {', '.join(sorted(FILTERS))}"
    if isinstance(node, nodes.Test) and node.name not in TESTS:
        return f"there is no test {node.name!r}; there are: {', '.join(sorted(TESTS))}"
    return None


def _walk(tree: nodes.Node) -> Iterator[tuple[nodes.Node, int]]:
    """Every node with its depth, without recursion: the tree may be deeper than the stack."""
    waiting = [(tree, 0)]
    while waiting:
        node, depth = waiting.pop()
        yield node, depth
        waiting.extend((child, depth + 1) for child in node.iter_child_nodes())
