r"""Count the bytes per token of a TPU training step, with and without --pack.

    python benchmarks/packed_bytes.py --input_file='data/pretraining_128/*.tfrecord' \
        --bert_config_file=configs/bert_base.json --train_batch_size=32

Bytes and temporaries are the TPU compiler's numbers for one chip
(plan_training.py, which needs the extra `plan`). Tokens are those of an average
row of the records; padding does not count.
"""

import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from absl import flags  # noqa: E402

from official_bert.command_line.flag_values import define_positive, require  # noqa: E402
from official_bert.command_line.program import run  # noqa: E402
from official_bert.config import BertConfig  # noqa: E402
from official_bert.constants import PRECISIONS  # noqa: E402

FLAGS = flags.FLAGS

flags.DEFINE_string("input_file", None, "TFRecord files (names and globs).")
flags.DEFINE_string("bert_config_file", "configs/bert_base.json", "Model.")
define_positive("train_batch_size", 32, "Rows per chip.")
flags.DEFINE_enum(
    "precision", "bfloat16", PRECISIONS, "Precision of products and activations."
)
flags.DEFINE_string("topology", "v5e:2x2", "TPU slice; one of its chips is used.")


def main():
    """Print a table row for each way."""
    require("input_file")
    from official_bert.data.records.record_set import open_record_set

    config = BertConfig.from_json_file(FLAGS.bert_config_file)
    records = open_record_set(FLAGS.input_file, config)
    packed = records.packed()
    print(packed.describe_packing())
    print(
        "| | sequences per row | tokens per row | GB | GB of temporaries | kB/token |"
    )
    print("|---|---|---|---|---|---|")
    for name, used in (("unpacked", records), ("packed", packed)):
        tokens = packed.num_tokens / used.index.num_rows
        costs = _costs(used, is_packed=used is packed)
        each = costs["bytes_accessed"] / (FLAGS.train_batch_size * tokens)
        print(
            f"| {name} | {records.index.num_records / used.index.num_rows:.2f} "
            f"| {tokens:.1f} | {costs['bytes_accessed'] / 1e9:.2f} "
            f"| {costs['temp_gb']:.2f} | {each / 1e3:.1f} |",
            flush=True,
        )


def _costs(records, is_packed):
    """Return the numbers of `plan_training.py --json` for one chip."""
    values = {
        "bert_config_file": FLAGS.bert_config_file,
        "max_seq_length": records.max_seq_length,
        "max_predictions_per_seq": records.max_predictions_per_seq,
        "train_batch_size": FLAGS.train_batch_size,
        "precision": FLAGS.precision,
        "topology": FLAGS.topology,
        "chips": 1,
        "pack": is_packed,
    }
    command = [sys.executable, ROOT / "run_scripts" / "plan_training.py", "--json"]
    command += [f"--{name}={value}" for name, value in values.items()]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


if __name__ == "__main__":
    run(main)
