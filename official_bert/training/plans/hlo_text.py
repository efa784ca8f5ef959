"""What an optimized program says in its text: collectives, host operations, loops."""

import collections
import re

# Operations of HLO: those that communicate, and those that wait for the host.
COLLECTIVES = ("all-reduce", "all-gather", "reduce-scatter", "collective-permute")
HOST_OPERATIONS = ("infeed", "outfeed", "send", "recv")
# Operations that name or group data and transfer none. Their other halves transfer it.
_FREE = {
    *("parameter", "constant", "tuple", "get-tuple-element", "bitcast", "while"),
    *("conditional", "call", "copy-done", "all-reduce-done", "async-done"),
}
_BYTES = {"pred": 1, "s8": 1, "u8": 1, "bf16": 2, "f16": 2, "s32": 4, "u32": 4}
_BYTES |= {"f32": 4, "s64": 8, "u64": 8, "f64": 8}
# `  ROOT %name = f32[2,3]{1,0} operation(%a, %b), attributes`
_INSTRUCTION = re.compile(
    r"^\s+(?:ROOT )?(%[\w.\-]+) = (.*?) ([a-z][a-z0-9\-]*)\((.*)$"
)


def find_collectives(text: str) -> dict[str, list[int]]:
    """Return name -> [how many there are, bytes of their results] in an HLO text."""
    found: dict[str, list[int]] = collections.defaultdict(lambda: [0, 0])
    names = "|".join(COLLECTIVES)
    for result, name in re.findall(rf" = (\S.*?) ({names})(?:-start)?\(", text):
        found[name][0] += 1
        found[name][1] += _size_of(result)
    return dict(found)


def find_host_operations(text: str) -> list[str]:
    """Return the operations of an HLO text that wait for the host, sorted."""
    names = "|".join(HOST_OPERATIONS)
    found = set(re.findall(rf" ({names})(?:-start|-done)?\(", text))
    found |= set(re.findall(r'custom_call_target="([^"]*[Cc]allback[^"]*)"', text))
    return sorted(found)


def loop_share(text: str, count: int) -> float:
    """Return the part of the bytes of an HLO text that loops of N rounds transfer.

    The compiler counts the operations of a loop once, however many rounds it makes.

    Args:
      text: an optimized module.
      count: N.

    Returns:
      bytes of one round / bytes of all operations, each once; 0 without such a loop.
    """
    computations = _computations(text)
    sizes = {name: _transferred(lines) for name, lines in computations.items()}
    entry = next(name for name in sizes if name.startswith("ENTRY"))
    in_loops = 0
    for line in computations[entry]:
        loop = re.search(r" while\(.*condition=(%[\w.\-]+), body=(%[\w.\-]+)", line)
        if loop and count in _constants(computations[loop[1]]):
            in_loops += sizes[loop[2]]
    total = in_loops + sizes[entry]
    return in_loops / total if total else 0.0


def _computations(text):
    """Return name -> lines of each computation; the entry's begins with "ENTRY"."""
    found: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in text.splitlines():
        head = re.match(r"((?:ENTRY )?%?[\w.\-]+) .*\{$", line)
        if head and not line.startswith(" "):
            lines = found[head[1]] = []
        else:
            lines.append(line)
    return found


def _constants(lines):
    return {
        int(number)
        for line in lines
        for number in re.findall(r" constant\((\d+)\)", line)
    }


def _transferred(lines):
    """Return the bytes of results and operands of instructions."""
    sizes, total = {}, 0
    for line in lines:
        match = _INSTRUCTION.match(line)
        if not match:
            continue
        name, result, operation, rest = match.groups()
        sizes[name] = _size_of(result)
        if operation not in _FREE:
            operands = re.findall(r"%[\w.\-]+", rest.partition(")")[0])
            total += sizes[name] + sum(sizes.get(each, 0) for each in operands)
    return total


def _size_of(shapes):
    """Return the bytes of the arrays in a text such as `(f32[2,3]{1,0}, s32[])`."""
    return sum(
        _BYTES.get(kind, 4) * _product(shape)
        for kind, shape in re.findall(r"(\w+)\[([\d,]*)\]", shapes)
    )


def _product(shape):
    size = 1
    for dimension in shape.split(","):
        size *= int(dimension or 1)
    return size
