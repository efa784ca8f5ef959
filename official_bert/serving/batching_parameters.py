"""TensorFlow Serving's batching parameters, and their text file."""

import dataclasses
import re
from typing import Any

from official_bert.errors import UserError


@dataclasses.dataclass(frozen=True)
class BatchingParameters:
    """Fields of TensorFlow Serving's `BatchingParameters`.

    Attributes:
      max_batch_size: rows of a batch. A larger request is a batch of its own.
      batch_timeout_micros: longest wait of a request for more rows, microseconds.
      max_enqueued_batches: limit of the queue, in batches of `max_batch_size` rows.
      num_batch_threads: batches that are computed at once.
      allowed_batch_sizes: a batch is filled to the next of these sizes with copies of
        its last row. Empty: any size.
    """

    max_batch_size: int = 64
    batch_timeout_micros: int = 0
    max_enqueued_batches: int = 64
    num_batch_threads: int = 2
    allowed_batch_sizes: tuple[int, ...] = ()


_LOWEST = {"batch_timeout_micros": 0}
_FIELD = re.compile(
    r"(?P<name>\w+)\s*(?:\{\s*value\s*:\s*(?P<wrapped>\d+)\s*[,;]?\s*\}"
    r"|:\s*(?:(?P<plain>\d+)|\[(?P<many>[\d\s,]*)\]))\s*[,;]?\s*"
)
# Fields without a meaning for this server.
_UNUSED = re.compile(
    r"\bpad_variable_length_inputs\s*:\s*false\b[,;]?"
    r'|\bthread_pool_name\s*\{\s*value\s*:\s*"[^"]*"\s*\}[,;]?'
)


def parse_parameters(text: str, flag: str) -> BatchingParameters:
    """Return the parameters of TensorFlow Serving's text protobuf.

    Args:
      text: content of the file, such as `max_batch_size { value: 64 }`.
      flag: flag and value, for messages.

    Raises:
      UserError: the text is invalid, or a value is out of range.
    """
    known = {one.name for one in dataclasses.fields(BatchingParameters)}
    found: dict[str, Any] = {}
    # Texts need no padding here, and responses never have padded rows.
    text = _UNUSED.sub("", re.sub(r"#.*", "", text)).strip()
    while text:
        match = _FIELD.match(text)
        name = match["name"] if match else text.split()[0]
        if not match or name not in known:
            raise UserError(
                f"{flag}: cannot read {name!r}. The file contains lines such as "
                f"max_batch_size {{ value: 64 }}, with {', '.join(sorted(known))}."
            )
        text = text[match.end() :]
        if name == "allowed_batch_sizes":
            numbers = (
                match["many"] or match["plain"] or match["wrapped"] or ""
            ).strip()
            sizes = [int(number) for number in re.split(r"[\s,]+", numbers) if number]
            found[name] = (*found.get(name, ()), *sizes)
            continue
        value = match["wrapped"] or match["plain"]
        lowest = _LOWEST.get(name, 1)
        if value is None or int(value) < lowest:
            raise UserError(f"{flag}: {name} must be a number of at least {lowest}.")
        found[name] = int(value)
    parameters = BatchingParameters(**found)
    sizes = list(parameters.allowed_batch_sizes)
    if sizes and (
        sizes != sorted(set(sizes))
        or sizes[0] < 1
        or sizes[-1] != parameters.max_batch_size
    ):
        raise UserError(
            f"{flag}: allowed_batch_sizes must increase and end with max_batch_size, "
            f"{parameters.max_batch_size}."
        )
    return parameters
