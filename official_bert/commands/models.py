"""List the models that you can use by name, with sizes and memory needs.

    official-bert models

    official-bert models --source=Google

Use a name of this list as --model of any command. The command downloads the model once.
docs/models.md describes other names, such as those of Hugging Face.

"to load" is the memory of the weights. "to fine-tune" is an estimate for a batch of 32
texts of 128 tokens in float32.
"""

from absl import flags

from official_bert.checkpoints.hub import names
from official_bert.training.plans import estimate
from official_bert.training.plans.workload import Workload

FLAGS = flags.FLAGS
SOURCES = (names.GOOGLE, names.HUGGING_FACE, names.KAGGLE)
BATCH_SIZE, MAX_SEQ_LENGTH, PRECISION = 32, 128, "float32"
GIGABYTE = 1e9
HEADINGS = ("name", "parameters", "casing", "languages", "to load", "to fine-tune")

# Flags that the help shows first.
REQUIRED: tuple[str, ...] = ()
MOST_USED: tuple[str, ...] = ("source",)

flags.DEFINE_enum("source", None, SOURCES, "List only models of this source.")


def main() -> None:
    """Print a table for each source."""
    models = [m for m in names.MODELS if FLAGS.source in (None, m.source)]
    rows = [_row(model) for model in models]
    widths = [max(map(len, column)) for column in zip(HEADINGS, *rows, strict=True)]
    before = None
    for model, row in zip(models, rows, strict=True):
        if model.source != before:
            print(f"{'' if before is None else chr(10)}{model.source}")
            print(_line(HEADINGS, widths))
            before = model.source
        print(_line(row, widths))


def _row(model):
    work = Workload(
        model.config, BATCH_SIZE, MAX_SEQ_LENGTH, 0, PRECISION, is_compiled=False
    )
    to_load = estimate.WEIGHT_BYTES * model.parameters
    to_fine_tune = estimate.argument_bytes(work) + estimate.temporary_bytes(work)
    return (
        model.name,
        f"{model.parameters / 1e6:.1f} M",
        model.casing,
        model.languages,
        f"{to_load / GIGABYTE:.2f} GB",
        f"{to_fine_tune / GIGABYTE:.1f} GB",
    )


def _line(cells, widths):
    """Return the cells as one line; numbers are right-aligned."""
    name, parameters, casing, languages, *memory = (
        cell.rjust(width) if number in (1, 4, 5) else cell.ljust(width)
        for number, (cell, width) in enumerate(zip(cells, widths, strict=True))
    )
    return "  ".join([name, parameters, casing, languages, *memory]).rstrip()
