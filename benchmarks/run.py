r"""The yardstick: this project compared with other libraries and the machine's limit.

    python benchmarks/run.py --vocab_file=vocab.txt --text_file=text.txt \
        --data_dir=glue_data --squad_file=dev-v1.1.json --output=yardstick

Each variant of a row is a separate process. The processes compute alternately,
one at a time, so that other work on the machine affects all of them equally.
Ratios compare neighboring turns. Rows that count floating-point operations also
state their share of the speed of a 1536 x 1536 matrix product, measured in the
same turns. Noise can make a row seem faster than this product, which is
impossible. Such a row is measured once more. If that also fails, the row is
marked as unusable, and the other rows follow.

--output is a folder: `yardstick.json` has all numbers, and for each row the
day, the processor and the versions; `table.md` is the table, `chart.png` shows
the ratios. Existing rows are not measured again, unless they are unusable, so
you can stop the command and start it again. PyTorch and ONNX Runtime have a
separate environment, in --peer_env; --nopeers skips them.

--instructions=avx2 measures what a processor without AVX-512 would do: every program
sees a processor whose best instructions are AVX2 (Linux; see `yardstick/avx2_only.c`).
Use another --output for it. The first call disassembles the libraries (ten minutes).
"""

import datetime
import os
import pathlib
import platform
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from absl import flags  # noqa: E402

from benchmarks import workload  # noqa: E402
from benchmarks.peers import environment  # noqa: E402
from benchmarks.yardstick import (  # noqa: E402
    comparisons,
    instructions,
    processes,
    report,
)
from benchmarks.yardstick.targets import Result  # noqa: E402
from official_bert import files  # noqa: E402
from official_bert.command_line.flag_values import require  # noqa: E402
from official_bert.command_line.program import run  # noqa: E402
from official_bert.errors import UserError  # noqa: E402

FLAGS = flags.FLAGS

MOST_ATTEMPTS = 2
# The processor's instructions for matrix products.
INSTRUCTIONS = ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_tile")
COMPARISONS = {
    "train-tiny": lambda folder: comparisons.training("tiny"),
    "train-mini": lambda folder: comparisons.training("mini"),
    "train-base": lambda folder: comparisons.training("base"),
    "full-tiny": lambda folder: comparisons.full_sequences("tiny"),
    "full-mini": lambda folder: comparisons.full_sequences("mini"),
    "full-base": lambda folder: comparisons.full_sequences("base"),
    "flags-mini": lambda folder: comparisons.training_flags("mini"),
    "short-tiny": lambda folder: comparisons.short_sequences("tiny"),
    "short-mini": lambda folder: comparisons.short_sequences("mini"),
    "memory": lambda folder: comparisons.training_memory(),
    "encode": lambda folder: comparisons.encoding(),
    "int8": lambda folder: comparisons.int8(_required("vocab_file")),
    "cola": lambda folder: _glue("cola", folder),
    "mrpc": lambda folder: _glue("mrpc", folder),
    "rte": lambda folder: _glue("rte", folder),
    "sts-b": lambda folder: _glue("sts-b", folder),
    "sst-2": lambda folder: _glue("sst-2", folder),
    "squad": lambda folder: comparisons.squad(
        _required("squad_file"), _required("vocab_file"), folder
    ),
    "tokenize": lambda folder: comparisons.tokenization(*_text(), folder),
    "instances": lambda folder: comparisons.instances(*_text(), folder),
    "input": lambda folder: comparisons.input_pipeline(*_text(), folder),
    "help": lambda folder: comparisons.help_texts(),
}

flags.DEFINE_list(
    "rows", list(COMPARISONS), f"Rows to measure, from: {', '.join(COMPARISONS)}."
)
flags.DEFINE_string("vocab_file", None, "Vocabulary of an uncased English model.")
flags.DEFINE_string(
    "text_file", None, "Text file of at least 2 MB, one sentence per line."
)
flags.DEFINE_string(
    "data_dir", None, "Folder that contains the folders of the GLUE tasks."
)
flags.DEFINE_string("squad_file", None, "The file dev-v1.1.json of SQuAD 1.1.")
flags.DEFINE_integer("rounds", 7, "Turns of each variant.", 2)
flags.DEFINE_bool("peers", True, "Whether to measure PyTorch and ONNX Runtime.")
flags.DEFINE_string("peer_env", "build/peers", "Folder of their environment.")
flags.DEFINE_enum(
    "instructions",
    "all",
    ["all", "avx2"],
    "avx2 lets every program see a processor without AVX-512 and AMX.",
)
flags.DEFINE_string("output", None, "Folder for the results.")


def main():
    """Measure the missing rows; write and print all rows."""
    require("output")
    if unknown := set(FLAGS.rows) - set(COMPARISONS):
        raise UserError(
            f"--rows: {min(unknown)!r} is not one of {', '.join(COMPARISONS)}."
        )
    os.makedirs(FLAGS.output, exist_ok=True)
    if FLAGS.instructions == "avx2":
        environments = [sys.prefix, FLAGS.peer_env] if FLAGS.peers else [sys.prefix]
        instructions.leave_out_avx512(FLAGS.output, environments)
    path = os.path.join(FLAGS.output, "yardstick.json")
    summaries = {}
    if os.path.exists(path):
        summaries = files.read_json(path, "results of an earlier run")
    for name in FLAGS.rows:
        if name in summaries and "unusable" not in summaries[name]:
            continue
        summaries[name] = _measure(name)
        print("\n".join(report.lines(summaries[name])), flush=True)
        # In the order of the list, independent of the time of measurement.
        _write(path, {one: summaries[one] for one in COMPARISONS if one in summaries})


def _measure(name):
    """Return the summary of a row, which may be unusable."""
    with tempfile.TemporaryDirectory() as folder:
        comparison = COMPARISONS[name](folder)
        for attempt in range(1, MOST_ATTEMPTS + 1):
            result, versions = _take_turns(comparison)
            measured = _machine() | versions
            if not result.is_faster_than_product():
                return report.summarize(comparison, result, measured)
            if attempt < MOST_ATTEMPTS:
                print(
                    f"{comparison.title}: faster than the matrix product, so the row "
                    "is measured again.",
                    flush=True,
                )
    reason = f"faster than the matrix product, measured {MOST_ATTEMPTS} times"
    return report.summarize_unusable(comparison, result, measured, reason)


def _take_turns(comparison):
    """Return (`Result` of a comparison, dict of library -> version)."""
    variants = [
        one for one in comparison.variants if FLAGS.peers or not one.in_peer_env
    ]
    python = None
    if any(one.in_peer_env for one in variants):
        python = environment.peer_python(FLAGS.peer_env)
    seconds, memory, versions = processes.take_turns(
        variants, FLAGS.rounds, comparison.calls, python
    )
    result = Result(
        seconds,
        memory,
        comparison.units,
        comparison.flops,
        product_flops=2 * workload.PRODUCT_SIZE**3,
        other_flops={one.name: one.flops for one in variants if one.flops},
    )
    return result, versions


def _write(path, summaries):
    files.write_json(path, summaries)
    with open(os.path.join(FLAGS.output, "table.md"), "w", encoding="utf-8") as table:
        table.write("\n".join(report.table(summaries)) + "\n")
    report.write_chart(summaries, os.path.join(FLAGS.output, "chart.png"))


def _required(name):
    require(name)
    return FLAGS[name].value


def _glue(task_name, folder):
    return comparisons.fine_tuning(
        task_name, _required("data_dir"), _required("vocab_file"), folder
    )


def _text():
    return _required("text_file"), _required("vocab_file")


def _machine():
    """Return the day and the machine, as a dict."""
    processor = _processor()
    known = processor.get("flags", "").split()
    if FLAGS.instructions == "avx2":
        known = ["avx2"]
    return {
        "on": datetime.date.today().isoformat(),
        "processor": processor.get("model name") or platform.processor(),
        "with": " ".join(one for one in INSTRUCTIONS if one in known),
        "instructions": FLAGS.instructions,
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        # All measured programs inherit it; `official_bert` sets it if it is
        # unset.
        "TF_ENABLE_ONEDNN_OPTS": os.environ.get("TF_ENABLE_ONEDNN_OPTS"),
    }


def _processor():
    """Return what Linux reports about the first core, as a dict."""
    try:
        first = pathlib.Path("/proc/cpuinfo").read_text().partition("\n\n")[0]
    except OSError:
        return {}
    pairs = [line.partition(":") for line in first.splitlines()]
    return {name.strip(): value.strip() for name, _, value in pairs}


if __name__ == "__main__":
    run(main)
