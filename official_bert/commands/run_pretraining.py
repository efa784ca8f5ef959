r"""Pre-train BERT with masked LM and next-sentence prediction.

    python run_scripts/run_pretraining.py --flagfile=configs/tiny.flags

    python run_scripts/run_pretraining.py \
        --bert_config_file=configs/bert_tiny.json \
        --input_file='data/train/*.tfrecord' --output_dir=output/tiny \
        --do_train --train_batch_size=32 --num_train_steps=2000 \
        --num_warmup_steps=200 --learning_rate=5e-4

To resume, repeat the command, even after a kill. At the end, the output directory is a
model: try it with `fill_mask.py --model=…`. More in docs/how_to/pretraining.md.
"""

from typing import Any

from absl import flags, logging

from official_bert import files, given_paths
from official_bert.command_line import found_models, training_flags
from official_bert.command_line.flag_values import (
    define_aliases,
    define_positive,
    locate,
    require,
)
from official_bert.command_line.recipes import pretraining_flags as recipe_flags
from official_bert.command_line.tensorflow_start import start_tensorflow
from official_bert.config import BertConfig
from official_bert.errors import UserError

FLAGS = flags.FLAGS
# Flags that the help shows first.
REQUIRED: tuple[str, ...] = ("input_file", "output_dir")
MOST_USED: tuple[str, ...] = (
    "flagfile",
    "do_train",
    "do_eval",
    "bert_config_file",
    "vocab_file",
    "dev_file",
    "train_batch_size",
    "learning_rate",
    "num_train_steps",
    "num_warmup_steps",
)

flags.DEFINE_string(
    "bert_config_file",
    None,
    "bert_config.json of the model; default: that of --model.",
)
flags.DEFINE_string("input_file", None, "TFRecords to train on (names and globs).")
flags.DEFINE_string(
    "dev_file",
    None,
    "Held-out TFRecords to evaluate on. Default: --input_file, as in the original.",
)
define_aliases("dev_file", "eval_input_file")
flags.DEFINE_string(
    "model",
    None,
    "Model whose weights start a new run: a path in any format "
    "(docs/how_to/conversion.md) or a name (docs/models.md). Adam moments and the step "
    "count start at zero.",
)
define_aliases("model", "init_checkpoint")
flags.DEFINE_string(
    "continue_from",
    None,
    "Output directory or checkpoint prefix of another run to continue, with its "
    "weights, moments and step, for example from length 128 to 512. "
    "--num_train_steps counts the steps of both runs.",
)
flags.DEFINE_string(
    "vocab_file",
    None,
    "Vocabulary of the records. It is copied to the model directory.",
)
flags.DEFINE_integer(
    "max_seq_length", None, "Length of the records. Default: their actual length."
)
flags.DEFINE_integer(
    "max_predictions_per_seq",
    None,
    "Maximum number of masked tokens per record. Default: that of the records.",
)
define_positive(
    "num_train_steps",
    100000,
    "Total number of training steps. The learning rate reaches 0 at the last step.",
)
flags.DEFINE_integer(
    "num_warmup_steps", 10000, "Training steps of linear warm-up.", lower_bound=0
)
define_positive("save_checkpoints_steps", 1000, "Training steps between checkpoints.")
define_positive(
    "iterations_per_loop",
    100,
    "Training steps between two log lines. On TPUs also the steps per call, at most "
    "100.",
)
define_positive("max_eval_steps", 100, "Maximum number of evaluation batches.")
flags.DEFINE_bool(
    "next_sentence_prediction",
    True,
    "Train next-sentence prediction too. If false, train only the masked LM (Table "
    "5, No NSP). Must match the records.",
)
flags.DEFINE_bool(
    "skip_padding",
    None,
    "Skip padding outside attention. Default: yes, but not with --xla, with --pack "
    "or on TPUs.",
)
flags.DEFINE_bool(
    "pack",
    False,
    "Train on rows of up to 3 short sequences instead of padding. --train_batch_size "
    "then counts rows. Evaluations are not packed. See "
    "docs/concepts/padding_and_packing.md.",
)


def main() -> None:
    """Check the flags and the records, then train and evaluate."""
    require(*REQUIRED)
    _check_flags()
    files.require_possible_directory(FLAGS.output_dir, "--output_dir")
    names = ("bert_config_file", "continue_from", "vocab_file")
    paths: dict[str, Any] = {name: locate(FLAGS[name].value) for name in names}
    paths["init_checkpoint"] = found_models.find(FLAGS.model)
    config_file = paths["bert_config_file"]
    config = BertConfig.from_json_file(config_file) if config_file else None
    strategy = start_tensorflow(training_flags.make_strategy)
    from official_bert.training import strategies

    if config is None:
        from official_bert.checkpoints import any_format, model_directory

        with any_format.opened(paths["init_checkpoint"]) as checkpoint:
            config = model_directory.config_of(checkpoint)
    train_set, eval_set = _open_records(config, paths["vocab_file"])
    recipes = recipe_flags.settings()
    if FLAGS.do_train:
        train_set = recipe_flags.with_masking_rate(train_set)
        if FLAGS.pack:
            train_set = train_set.packed()
            if strategies.is_chief(strategy):
                print(train_set.describe_packing(), flush=True)
        if train_set.unchecked_files:
            logging.warning(
                "Could not check the vocabulary of the records: no manifest.json "
                "describes %s.",
                given_paths.named(train_set.unchecked_files),
            )
        sizes = [size for _, size in recipes["batch_size_steps"]]
        for size in [FLAGS.train_batch_size, *sizes]:
            train_set.check_batch_size(size)
            strategies.check_shares(strategy, size, FLAGS.micro_batch_size)
    from official_bert.training import pretraining

    settings = training_flags.settings(
        pretraining.PretrainingSettings, **paths, **recipes
    )
    complete = pretraining.run(strategy, config, train_set, eval_set, settings)
    if not strategies.is_chief(strategy) or not complete:
        return
    inputs = [*paths.values(), *train_set.index.files]
    if FLAGS.dev_file:
        inputs += eval_set.index.files
    training_flags.describe_run(("input_file", "dev_file", "vocab_file"), inputs)


def _check_flags():
    if not FLAGS.model and not FLAGS.bert_config_file:
        raise UserError(
            "Give --bert_config_file (such as configs/bert_base.json) for a new "
            "model, or --model to start from existing weights."
        )
    training_flags.check()
    recipe_flags.check()
    training_flags.require_one_of("do_train", "do_eval")
    if FLAGS.stop_at_step and FLAGS.stop_at_step > FLAGS.num_train_steps:
        raise UserError(
            f"--stop_at_step={FLAGS.stop_at_step} is after the last step, "
            f"--num_train_steps={FLAGS.num_train_steps}. Give a smaller value."
        )
    if FLAGS.pack and FLAGS.skip_padding:
        raise UserError(
            "--pack fills padding with sequences, and --skip_padding skips it. Use "
            "only one of them."
        )
    if FLAGS.model and FLAGS.continue_from:
        raise UserError(
            "--model starts a new run, and --continue_from continues another run. "
            "Use only one of them."
        )
    if FLAGS.do_train and FLAGS.num_warmup_steps >= FLAGS.num_train_steps:
        logging.warning(
            "--num_warmup_steps=%d is not less than --num_train_steps=%d: the "
            "learning rate will never reach --learning_rate.",
            FLAGS.num_warmup_steps,
            FLAGS.num_train_steps,
        )


def _open_records(config, vocab_file):
    """Return the training and evaluation records, after checking their vocabulary."""
    from official_bert.data.records.record_set import check_agreement, open_record_set
    from official_bert.tokenization.vocabulary import check_vocab_size, load_vocab

    def open_set(flag):
        return open_record_set(
            ",".join(locate(p) for p in given_paths.split_list(getattr(FLAGS, flag))),
            config,
            f"--{flag}",
            FLAGS.max_seq_length,
            FLAGS.max_predictions_per_seq,
            vocab_file,
        )

    train_set = eval_set = open_set("input_file")
    if FLAGS.dev_file:
        eval_set = open_set("dev_file")
        check_agreement({**train_set.manifests, **eval_set.manifests})
    if vocab_file:
        check_vocab_size(load_vocab(vocab_file), config, vocab_file)
    elif FLAGS.do_train:
        logging.warning(
            "Without --vocab_file the model directory gets no vocab.txt, and the "
            "model cannot be used for predictions. Give the vocabulary of the "
            "records."
        )
    return train_set, eval_set
