"""Show a model's parameter counts by part, next to the paper's estimates.

    python run_scripts/describe_model.py --bert_config_file=configs/bert_base.json

    python run_scripts/describe_model.py --size=large

This is pure arithmetic: no model is built. Below the table, the command prints the
floating-point operations of one training sequence.
"""

import dataclasses

from absl import flags

from official_bert import config as bert_config
from official_bert import parameter_count
from official_bert.command_line.flag_values import locate
from official_bert.errors import UserError

FLAGS = flags.FLAGS
# Flags that the help shows first.
REQUIRED: tuple[str, ...] = ()
MOST_USED: tuple[str, ...] = (
    "bert_config_file",
    "size",
    "max_seq_length",
    "max_predictions_per_seq",
)

flags.DEFINE_string("bert_config_file", None, "bert_config.json of the model.")
flags.DEFINE_enum(
    "size", None, list(bert_config.SIZES), "A released size, instead of a file."
)
flags.DEFINE_integer("max_seq_length", 128, "Tokens per sequence.", lower_bound=1)
flags.DEFINE_integer(
    "max_predictions_per_seq", 20, "Masked tokens per sequence.", lower_bound=0
)


def main() -> None:
    """Print the parameter table."""
    if bool(FLAGS.bert_config_file) == bool(FLAGS.size):
        raise UserError("Give either --bert_config_file or --size, but not both.")
    if FLAGS.size:
        config = bert_config.BertConfig.named(FLAGS.size)
    else:
        config = bert_config.BertConfig.from_json_file(locate(FLAGS.bert_config_file))
    print(
        f"L={config.num_hidden_layers} layers, H={config.hidden_size} hidden, "
        f"A={config.num_attention_heads} heads of {config.head_size}, "
        f"I={config.intermediate_size} intermediate,\nV={config.vocab_size} tokens, "
        f"P={config.max_position_embeddings} positions, T={config.type_vocab_size} "
        "segment types\n"
    )
    print(_account(parameter_count.parameter_parts(config)))
    length, predictions = FLAGS.max_seq_length, FLAGS.max_predictions_per_seq
    flops = parameter_count.training_flops(config, length, predictions)
    text = (
        f"\nOne training sequence of {length} tokens with {predictions} masked "
        f"tokens: {flops:.3g} operations\n(matrix products, forward and backward)."
    )
    limit = config.max_position_embeddings
    if length > limit:
        text += f" The model cannot read this length: it has only {limit} positions."
    print(text)


def _account(parts):
    """Return the parts as a table, with a total below each group."""
    lines = [_row("part", "on paper", "", "exactly", "")]
    rough = exact = 0
    for group, name in (
        (parameter_count.ENCODER, "encoder"),
        (parameter_count.HEADS, "with both heads"),
    ):
        for part in (part for part in parts if part.group == group):
            rough, exact = rough + part.rough, exact + part.exact
            lines.append(_row(*dataclasses.astuple(part)[1:]))
        lines += ["-" * len(lines[0]), _row(name, "", rough, "", exact)]
    return "\n".join(lines)


def _row(name, rough_formula, rough, formula, exact):
    def number(value):
        return f"{value:,}" if value else ""

    return (
        f"{name:20}{rough_formula:>9}{number(rough):>14}   "
        f"{formula:20}{number(exact):>14}"
    )
