"""The rows of the table of accelerators, and the fingerprint of their code."""

import ast
import dataclasses
import hashlib
import importlib.metadata
import pathlib

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PACKAGE = ROOT / "official_bert"
RESULTS = ROOT / "docs" / "accelerators.json"

TINY, PRETRAINING, FINE_TUNING, ONE_CHIP = (
    "every topology",
    "pre-training",
    "fine-tuning",
    "one chip",
)
# App. A.2: training steps of the two phases.
STEPS = {128: 900_000, 512: 100_000}
# Training examples, and epochs in the flag file.
MRPC_EXAMPLES, SQUAD_EXAMPLES = 3_668, 87_599

# The compiled program depends on this code and on the packages.
_STEP = ("step", "optimizer", "guard", "precision", "pretraining", "reports", "runs")
_CODE = [
    *sorted((PACKAGE / "modeling").rglob("*.py")),
    *(PACKAGE / "training" / f"{name}.py" for name in _STEP),
    PACKAGE / "training" / "plans" / "program.py",
    PACKAGE / "training" / "plans" / "tpu_compiler.py",
    ROOT / "benchmarks" / "plans" / "kerashub.py",
    ROOT / "benchmarks" / "peers" / "kerashub_jax.py",
]
_PACKAGES = ("tensorflow", "keras", "jax", "jaxlib", "libtpu")


@dataclasses.dataclass(frozen=True)
class Case:
    """A row of the table.

    Attributes:
      section: part of the table.
      topology: name of the slice.
      model: "tiny", "base" or "large".
      phase: batch and length of the step, or the task.
      precision: precision of the step.
      flags: flags of `plan_training.py`, or for KerasHub of
        `benchmarks.plans.kerashub`.
      num_steps: training steps of the run, to compute its days; 0 if it is not
        a run.
      is_peer: whether the row is KerasHub's.
    """

    section: str
    topology: str
    model: str
    phase: str
    precision: str
    flags: tuple[str, ...]
    num_steps: int = 0
    is_peer: bool = False

    @property
    def name(self) -> str:
        """Return the row's name in the results."""
        who = "KerasHub" if self.is_peer else "ours"
        parts = (self.section, self.topology, self.model, self.phase, self.precision)
        return ", ".join((*parts, who))


def all_cases() -> list[Case]:
    """Return the rows in their order: those that compile fast come first."""
    return [*_tiny(), *_fine_tuning(), *_one_chip(), *_pretraining()]


def _tiny():
    small = ("v4:2x2x1", "v5e:2x2", "v5e:4x4", "v5p:2x2x1", "v6e:2x2")
    large = ("v4:4x4x4", "v5e:8x8", "v5p:4x4x4", "v6e:8x8")
    for topology in (*small, *large):
        flags = ("--flagfile=configs/tiny.flags", "--precision=bfloat16")
        yield Case(TINY, topology, "tiny", "64 x 128", "bfloat16", flags, 10_000)


def _fine_tuning():
    for phase, file, examples, batch in (
        ("MRPC", "glue/mrpc", MRPC_EXAMPLES, 32),
        ("SQuAD 1.1", "squad1", SQUAD_EXAMPLES, 32),
    ):
        flags = (f"--flagfile=configs/{file}.flags", "--precision=bfloat16")
        yield Case(
            *(FINE_TUNING, "v5e:2x2", "base", phase, "bfloat16", flags),
            num_steps=int(examples / batch * 3),
        )


def _one_chip():
    for model, rows, length, predictions in (
        ("base", 32, 128, 20),
        ("base", 8, 512, 77),
        ("large", 16, 128, 20),
    ):
        phase = f"{rows} x {length}"
        sizes = (f"--max_seq_length={length}", "--precision=bfloat16")
        ours = (
            f"--bert_config_file=configs/bert_{model}.json",
            *(f"--train_batch_size={rows}", "--chips=1", *sizes),
            f"--max_predictions_per_seq={predictions}",
        )
        yield Case(ONE_CHIP, "v5e:2x2", model, phase, "bfloat16", ours)
        peer = (model, str(rows), str(length), str(predictions))
        yield Case(*(ONE_CHIP, "v5e:2x2", model, phase, "bfloat16", peer), is_peer=True)


def _pretraining():
    for model in ("base", "large"):
        for length, file in ((128, model), (512, f"{model}_512")):
            for topology in ("v5e:4x4", "v4:4x4x4"):
                for precision in ("bfloat16", "float32"):
                    flags = (
                        f"--flagfile=configs/{file}.flags",
                        f"--precision={precision}",
                    )
                    yield Case(
                        *(PRETRAINING, topology, model, f"256 x {length}"),
                        *(precision, flags, STEPS[length]),
                    )


def fingerprint() -> str:
    """Return a text that changes when the rows must be compiled again.

    It covers the code of the training step without comments and docstrings, and the
    versions of the packages.
    """
    digest = hashlib.sha256()
    for path in _CODE:
        digest.update(_code_of(path).encode())
    for package in _PACKAGES:
        digest.update(f"{package} {importlib.metadata.version(package)}\n".encode())
    return digest.hexdigest()[:16]


def _code_of(path):
    """Return the code of a module, without comments and docstrings."""
    tree = ast.parse(path.read_text("utf-8"))
    for node in ast.walk(tree):
        documented = ast.Module | ast.ClassDef | ast.FunctionDef
        if isinstance(node, documented) and ast.get_docstring(node) is not None:
            node.body = node.body[1:]
    return ast.dump(tree)
