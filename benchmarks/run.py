r"""The yardstick: this project beside its peers and this machine's own ceiling.

    python benchmarks/run.py --vocab_file=vocab.txt --text_file=text.txt \
        --data_dir=glue_data --squad_file=dev-v1.1.json --output=yardstick

Each contender of a row is a process of its own, and the processes compute in turns, one
at a time, so that what else the machine does meets all of them; a ratio is that of two
turns made one after the other. Rows that count floating-point operations say how much
of the rate of a 1536 x 1536 matrix product they reach, measured in the same turns.

--output is a folder: `yardstick.json` has all figures, and for each row the day, the
processor and the versions, `table.md` the table, `chart.png` the ratios. Rows that are
there already are not measured again, so that it can be stopped and started. PyTorch and
ONNX Runtime get an environment of their own, in --peer_env; --nopeers leaves them out.
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
from benchmarks.yardstick import report, rows  # noqa: E402
from benchmarks.yardstick.processes import take_turns  # noqa: E402
from benchmarks.yardstick.targets import Result  # noqa: E402
from official_bert import files  # noqa: E402
from official_bert.command_line.program import require, run  # noqa: E402
from official_bert.errors import UserError  # noqa: E402

FLAGS = flags.FLAGS

# Of a processor, those that matrix products are made of.
INSTRUCTIONS = ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_tile")
ROWS = {
    "train-tiny": lambda folder: rows.training("tiny"),
    "train-mini": lambda folder: rows.training("mini"),
    "train-base": lambda folder: rows.training("base"),
    "full-tiny": lambda folder: rows.full_sequences("tiny"),
    "full-mini": lambda folder: rows.full_sequences("mini"),
    "full-base": lambda folder: rows.full_sequences("base"),
    "flags-mini": lambda folder: rows.variants("mini"),
    "short-tiny": lambda folder: rows.short_sequences("tiny"),
    "short-mini": lambda folder: rows.short_sequences("mini"),
    "memory": lambda folder: rows.training_memory(),
    "encode": lambda folder: rows.encoding(),
    "int8": lambda folder: rows.int8(_given("vocab_file")),
    "cola": lambda folder: _glue("cola", folder),
    "mrpc": lambda folder: _glue("mrpc", folder),
    "rte": lambda folder: _glue("rte", folder),
    "sts-b": lambda folder: _glue("sts-b", folder),
    "sst-2": lambda folder: _glue("sst-2", folder),
    "squad": lambda folder: rows.squad(
        _given("squad_file"), _given("vocab_file"), folder
    ),
    "tokenize": lambda folder: rows.tokenization(*_text(), folder),
    "instances": lambda folder: rows.instances(*_text(), folder),
    "input": lambda folder: rows.input_pipeline(*_text(), folder),
    "help": lambda folder: rows.help_texts(),
}

flags.DEFINE_list("rows", list(ROWS), f"What to measure, of: {', '.join(ROWS)}.")
flags.DEFINE_string("vocab_file", None, "Vocabulary of an uncased English model.")
flags.DEFINE_string("text_file", None, "Text, a sentence a line, from 2 MB.")
flags.DEFINE_string("data_dir", None, "Folder of the folders of GLUE's tasks.")
flags.DEFINE_string("squad_file", None, "SQuAD 1.1's dev-v1.1.json.")
flags.DEFINE_integer("rounds", 7, "Turns of each contender.", 2)
flags.DEFINE_bool("peers", True, "Whether to measure PyTorch and ONNX Runtime.")
flags.DEFINE_string("peer_env", "build/peers", "Folder of their environment.")
flags.DEFINE_string("output", None, "Folder for the figures.")


def main():
    """Measure the rows that are missing; write and print all."""
    require("output")
    if unknown := set(FLAGS.rows) - set(ROWS):
        raise UserError(f"--rows: {min(unknown)!r} is none of {', '.join(ROWS)}.")
    os.makedirs(FLAGS.output, exist_ok=True)
    path = os.path.join(FLAGS.output, "yardstick.json")
    found = {}
    if os.path.exists(path):
        found = files.read_json(path, "figures of an earlier run")
    for name in FLAGS.rows:
        if name in found:
            continue
        summary = _measure(name)
        # In the order of the list, whenever a row was measured.
        known = found | {name: summary}
        found = {name: known[name] for name in ROWS if name in known}
        print("\n".join(report.lines(summary)), flush=True)
        _write(path, found)


def _measure(name):
    """Return the `report.row_summary` of a row."""
    with tempfile.TemporaryDirectory() as folder:
        row = ROWS[name](folder)
        contenders = [one for one in row.contenders if FLAGS.peers or not one.is_peer]
        python = None
        if any(one.is_peer for one in contenders):
            python = environment.peer_python(FLAGS.peer_env)
        seconds, memory, versions = take_turns(
            contenders, FLAGS.rounds, row.calls, python
        )
    product_flops = 2 * workload.PRODUCT_SIZE**3
    others = {one.name: one.flops for one in contenders if one.flops}
    result = Result(seconds, memory, row.units, row.flops, product_flops, others)
    return report.row_summary(row, result, _machine() | versions)


def _write(path, found):
    files.write_json(path, found)
    with open(os.path.join(FLAGS.output, "table.md"), "w", encoding="utf-8") as table:
        table.write("\n".join(report.table(found)) + "\n")
    report.write_chart(found, os.path.join(FLAGS.output, "chart.png"))


def _given(name):
    require(name)
    return FLAGS[name].value


def _glue(task_name, folder):
    return rows.fine_tuning(task_name, _given("data_dir"), _given("vocab_file"), folder)


def _text():
    return _given("text_file"), _given("vocab_file")


def _machine():
    """Return when and where a row is measured, as a dict."""
    told = _processor()
    known = told.get("flags", "").split()
    return {
        "on": datetime.date.today().isoformat(),
        "processor": told.get("model name") or platform.processor(),
        "with": " ".join(one for one in INSTRUCTIONS if one in known),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
    }


def _processor():
    """Return what Linux tells of the first core, as a dict."""
    try:
        first = pathlib.Path("/proc/cpuinfo").read_text().partition("\n\n")[0]
    except OSError:
        return {}
    pairs = [line.partition(":") for line in first.splitlines()]
    return {name.strip(): value.strip() for name, _, value in pairs}


if __name__ == "__main__":
    run(main)
