"""Decode records to readable text, which `inspect_instances.py` prints."""

import itertools
import textwrap
from collections.abc import Iterable, Iterator, Sequence

from official_bert.data.records import examples
from official_bert.errors import UserError

# Escape sequences of terminals (ECMA-48 colors).
_RESET, _DIM = "\033[0m", "\033[2m"
_SEGMENT_COLOURS = ("\033[36m", "\033[33m")  # A cyan, B yellow.
_MASKED, _LABEL = "\033[1;31m", "\033[1;32m"


def describe_instances(
    record_files: Iterable[str],
    vocab: Sequence[str],
    skip: int,
    count: int,
    in_colour: bool,
) -> Iterator[str]:
    """Yield a text of several lines for each selected record.

    Args:
      record_files: list of paths of TFRecord files.
      vocab: list of str, the tokens by id.
      skip: number of records to skip.
      count: number of records to describe.
      in_colour: whether to use terminal colors.

    Raises:
      UserError: a file has another format, no record is left, or an id is not
        in the vocabulary.
    """
    found = itertools.chain.from_iterable(map(_read_features, record_files))
    shown = 0
    for where, features in itertools.islice(found, skip, skip + count):
        shown += 1
        try:
            yield _describe(where, features, vocab, in_colour)
        except IndexError as error:
            raise UserError(
                f"{where} has an id of {len(vocab)} or more, but the vocabulary "
                f"has only {len(vocab)} entries. Give the vocabulary that "
                "created the records."
            ) from error
    if not shown:
        raise UserError(f"--skip={skip} skips all records. Use a smaller number.")


def _read_features(path):
    """Yield (where, dict of lists) for each record of a file."""
    names = examples.infer_lengths(path)["names"]
    for number, example in enumerate(examples.read_examples(path)):
        present = example.features.feature
        yield (
            f"{path}: record {number}",
            {
                ours: list(examples.feature_values(present[theirs]))
                for ours, theirs in names.items()
            },
        )


def _describe(where, features, vocab, in_colour):
    length = sum(features["input_mask"])
    masks = [features.get(name, ()) for name in examples.MASKED]
    was = {
        position: vocab[label]
        for position, label, weight in zip(*masks, strict=True)
        if weight
    }
    masked = f"{len(was)} masked" if any(masks) else "masked during training"
    is_random = features["next_sentence_labels"][0] == 1
    heading = (
        f"{where}: {length} of {len(features['input_ids'])} tokens, {masked}, "
        f"B is {'a random text' if is_random else 'the next text'} "
        f"(label {int(is_random)})"
    )
    tokens = [vocab[index] for index in features["input_ids"][:length]]
    segments = features["segment_ids"][:length]
    lines = [_paint(heading, _DIM, in_colour)]
    for segment, name in enumerate("AB"):
        words = [
            _show_token(token, was.get(position), segment, in_colour)
            for position, token in enumerate(tokens)
            if segments[position] == segment
        ]
        wrapped = textwrap.fill(
            " ".join(words),
            # Color sequences make words seem longer than they are.
            width=100,
            initial_indent=f"  {name}  ",
            subsequent_indent="     ",
            break_long_words=False,
            break_on_hyphens=False,
        )
        lines.append(wrapped)
    return "\n".join([*lines, ""])


def _show_token(token, label, segment, in_colour):
    if label is None:
        return _paint(token, _SEGMENT_COLOURS[segment], in_colour)
    seen = _paint(token, _MASKED, in_colour)
    return seen + _paint(f"«{label}»", _LABEL, in_colour)


def _paint(text, colour, in_colour):
    return f"{colour}{text}{_RESET}" if in_colour else text
