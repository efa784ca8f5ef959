"""Facts from the text of an optimized HLO program.

They are collectives, operations on the host, loops, and the memory of each buffer.
"""

import collections
import re

# Names of HLO operations that communicate, and of those that wait for the host.
COLLECTIVES = ("all-reduce", "all-gather", "reduce-scatter", "collective-permute")
HOST_OPERATIONS = ("infeed", "outfeed", "send", "recv")
# Operations that only name or group data, or end a transfer that another one counts.
_FREE = {
    *("parameter", "constant", "tuple", "get-tuple-element", "bitcast", "while"),
    *("conditional", "call", "copy-done", "slice-done", "all-reduce-done"),
    "async-done",
}
_BYTES = {"pred": 1, "s8": 1, "u8": 1, "bf16": 2, "f16": 2, "s32": 4, "u32": 4}
_BYTES |= {"f32": 4, "s64": 8, "u64": 8, "f64": 8}
# `  ROOT %name = f32[2,3]{1,0} operation(%a, %b), attributes`
_INSTRUCTION = re.compile(
    r"^\s+(?:ROOT )?(%[\w.\-]+) = (.*?) ([a-z][a-z0-9\-]*)\((.*)$"
)


def find_collectives(text: str) -> dict[str, list[int]]:
    """Return name -> [number, bytes of results] of an HLO text's collectives."""
    found: dict[str, list[int]] = collections.defaultdict(lambda: [0, 0])
    names = "|".join(COLLECTIVES)
    for result, name in re.findall(rf" = (\S.*?) ({names})(?:-start)?\(", text):
        found[name][0] += 1
        found[name][1] += _size_of(result)
    return dict(found)


def find_host_operations(text: str) -> list[str]:
    """Return the names of operations that wait for the host, sorted."""
    names = "|".join(HOST_OPERATIONS)
    found = set(re.findall(rf" ({names})(?:-start|-done)?\(", text))
    found |= set(re.findall(r'custom_call_target="([^"]*[Cc]allback[^"]*)"', text))
    return sorted(found)


def loop_share(text: str, count: int) -> float:
    """Return the share of an HLO text's bytes that loops of N rounds transfer.

    The compiler counts the operations of a loop once, whatever its number of rounds.

    Args:
      text: an optimized module.
      count: N.

    Returns:
      bytes of one round / bytes of all operations, each counted once; 0 without such a
      loop.
    """
    once, in_loops = _once_and_in_loops(text, count, _transferred)
    total = in_loops + once
    return in_loops / total if total else 0.0


def main_memory_bytes(text: str, count: int = 1) -> int:
    """Return the bytes that operations read from and write to a chip's main memory.

    The compiler places some buffers on the chip. It copies such an operand from the
    main memory once. A matrix product may read an operand several times, so the
    result is a lower limit.

    Args:
      text: an optimized module.
      count: number of rounds of its loops over micro-batches.
    """
    once, in_loops = _once_and_in_loops(text, count, _in_main_memory)
    return once + in_loops * count


def _once_and_in_loops(text, count, size_of):
    """Return the sizes of the main computation and of all loop bodies of N rounds."""
    computations = _computations(text)
    entry = next(name for name in computations if name.startswith("ENTRY"))
    in_loops = 0
    for line in computations[entry]:
        loop = re.search(r" while\(.*condition=(%[\w.\-]+), body=(%[\w.\-]+)", line)
        if loop and count in _constants(computations[loop[1]]):
            in_loops += size_of(computations[loop[2]])
    return size_of(computations[entry]), in_loops


def _computations(text):
    """Return name -> lines of each computation; the main one starts with "ENTRY"."""
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
    return sum(
        _size_of(result) + sum(map(_size_of, operands))
        for _, result, operands in _operations(lines)
    )


def _in_main_memory(lines):
    """Return the bytes of results and operands that are in the main memory."""
    total = 0
    for operation, result, operands in _operations(lines):
        if operation.endswith("slice-start"):
            # The result is (operand, slice, …). Only the slice is copied.
            total += _sizes(result)[1][0]
        elif operation.endswith("-start"):
            # The result is (result, operand, …) of a copy, or those of a collective.
            total += sum(size for size, is_on_chip in _sizes(result) if not is_on_chip)
        else:
            arrays = [array for text in (result, *operands) for array in _sizes(text)]
            total += sum(size for size, is_on_chip in arrays if not is_on_chip)
    return total


def _operations(lines):
    """Yield (operation, shapes of its result, shapes of its operands) with a cost."""
    shapes = {}
    for line in lines:
        match = _INSTRUCTION.match(line)
        if not match:
            continue
        name, result, operation, rest = match.groups()
        shapes[name] = result
        if operation not in _FREE:
            operands = re.findall(r"%[\w.\-]+", rest.partition(")")[0])
            yield operation, result, [shapes.get(each, "") for each in operands]


def _size_of(shapes):
    """Return the bytes of the arrays in a text such as `(f32[2,3]{1,0}, s32[])`."""
    return sum(size for size, _ in _sizes(shapes))


def _sizes(shapes):
    """Return [(bytes, whether on the chip)] of arrays; `{1,0:S(1)}` is on the chip."""
    return [
        (_BYTES.get(kind, 4) * _product(shape), "S(" in layout)
        for kind, shape, layout in re.findall(r"(\w+)\[([\d,]*)\](\{[^}]*\})?", shapes)
    ]


def _product(shape):
    size = 1
    for dimension in shape.split(","):
        size *= int(dimension or 1)
    return size
