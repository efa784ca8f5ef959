r"""Compute vectors of texts: one per token, or one per text.

    python run_scripts/extract_features.py --model=uncased_L-12_H-768_A-12 \
      --input_file=input.txt --output_file=output.jsonl --layers=-1,-2,-3,-4

    python run_scripts/extract_features.py --model=uncased_L-12_H-768_A-12 \
      --input_file=input.txt --sentence_vectors=vectors.npy --pooling=mean

Give both --output_file and --sentence_vectors to write both in one run.

Each line of the input is a text, or a pair: "text a ||| text b". The JSON lines have
the format of google-research/bert's script: tokens, layers, values with 6 digits. The
files of an embedding model (run_embedding.py, sentence-transformers) define how it
makes the vector of a text. To resume a stopped run with --sentence_vectors alone,
repeat the command.
"""

import dataclasses

from absl import flags, logging

from official_bert import files, given_paths
from official_bert.command_line import found_models, streams
from official_bert.command_line.flag_values import (
    define_aliases,
    define_positive,
    require,
)
from official_bert.command_line.model_flags import given_files
from official_bert.command_line.run_record import write_run_json
from official_bert.command_line.tensorflow_start import start_tensorflow
from official_bert.constants import LONG_TEXT, POOLINGS, TRUNCATE
from official_bert.errors import UserError

FLAGS = flags.FLAGS
# Flags that the help shows first.
REQUIRED: tuple[str, ...] = ("input_file", "model")
MOST_USED: tuple[str, ...] = (
    "output_file",
    "sentence_vectors",
    "pooling",
    "layers",
    "max_seq_length",
    "long_text",
    "doc_stride",
    "batch_size",
)

flags.DEFINE_string(
    "input_file", None, "Text, one per line, plain or .gz; - is standard input."
)
flags.DEFINE_string(
    "output_file", None, "JSON lines with the vectors of each token; - prints them."
)
flags.DEFINE_string(
    "sentence_vectors",
    None,
    "Alone or with --output_file: a .npy file with one vector per line of input, "
    "float32 [N, H].",
)
flags.DEFINE_enum(
    "pooling",
    None,
    POOLINGS,
    "How the vector of a text is made. mean: average of all its tokens, including "
    "[CLS] and [SEP]. cls: vector of [CLS]. pooler: pooled output. Default: the "
    "pooling, size and normalization of an embedding model, or mean.",
)
flags.DEFINE_string(
    "layers",
    None,
    "Layers, such as -1 for the last and 0 for the first. Default: -1,-2,-3,-4 for "
    "tokens, -1 for sentence vectors. A sentence vector is the mean over its layers. "
    "With both outputs, the flag applies to both.",
)
flags.DEFINE_string(
    "model", None, "Model: a path in any format, or a name (docs/models.md)."
)
define_aliases("model", "init_checkpoint")
flags.DEFINE_integer(
    "max_seq_length",
    None,
    "Maximum tokens that the model reads at once, including [CLS] and [SEP]. "
    "Default: 128, or the model's maximum if that is less.",
    lower_bound=3,
)
flags.DEFINE_enum(
    "long_text",
    None,
    LONG_TEXT,
    "Handling of longer texts. truncate: cut, as in the original. window: read "
    "overlapping windows and take each token from the window where it has the most "
    "context; an embedding model averages the windows' vectors. Default: truncate, "
    "or the setting of an embedding model.",
)
define_positive(
    "doc_stride",
    None,
    "Tokens between the starts of two windows. Default: half a window.",
)
define_positive("batch_size", 32, "Number of texts or windows per batch.")
flags.DEFINE_bool("use_tpu", False, "For old commands; a GPU or the CPU is used.")
flags.DEFINE_string("master", None, "For old commands; has no effect.")
flags.DEFINE_integer("num_tpu_cores", 8, "For old commands; has no effect.")
flags.DEFINE_bool("use_one_hot_embeddings", False, "For old commands; has no effect.")


def main() -> None:
    """Check the flags, load the model, write the features."""
    require(*REQUIRED)
    layers, sentence_layers = _parse_layers()
    _check_files()
    given = given_files()
    checkpoint = found_models.find(FLAGS.model)
    start_tensorflow()
    from official_bert.checkpoints import model_directory
    from official_bert.corpus import text_blocks
    from official_bert.corpus.progress import progress
    from official_bert.pretrained import feature_extraction, feature_files
    from official_bert.tables.text_pairs import split_line

    if FLAGS.sentence_vectors and not FLAGS.output_file:
        _write_sentence_vectors(checkpoint, given, sentence_layers)
        _describe_run(checkpoint, given)
        return
    pooling, reading = FLAGS.pooling or "mean", _reading()
    _require_pooling(checkpoint)
    bert = model_directory.load_encoder(checkpoint, **given)
    total = text_blocks.total_bytes([FLAGS.input_file])
    with progress(total, "extracting", "B") as on_bytes:
        texts = map(split_line, streams.lines_of(FLAGS.input_file, on_bytes))
        width = bert.config.hidden_size
        if FLAGS.sentence_vectors and FLAGS.output_file:
            both = feature_extraction.token_and_sentence_features(
                bert, texts, pooling, layers, sentence_layers, reading
            )
            logging.info("%s", bert.report)
            with streams.opened_output(FLAGS.output_file) as out:
                feature_files.write_both(
                    out, FLAGS.sentence_vectors, both, layers, width
                )
        else:
            features = feature_extraction.token_features(bert, texts, layers, reading)
            logging.info("%s", bert.report)
            with streams.opened_output(FLAGS.output_file) as out:
                feature_files.write_json_lines(out, features, layers)
    _describe_run(checkpoint, given)


def _reading():
    from official_bert.pretrained.feature_extraction import Reading

    long_text = FLAGS.long_text or TRUNCATE
    return Reading(FLAGS.max_seq_length, FLAGS.batch_size, long_text, FLAGS.doc_stride)


def _write_sentence_vectors(checkpoint, given, layers):
    """Write the `.npy` file; continue the one that an earlier run left."""
    from official_bert.corpus import text_blocks
    from official_bert.corpus.progress import progress
    from official_bert.pretrained import vector_files
    from official_bert.tables.text_pairs import split_line

    vectors_of = _embedding_of(checkpoint, given) or _pooling_of(
        checkpoint, given, layers
    )
    source = None
    if FLAGS.input_file != streams.STANDARD:
        source = {"sha256": files.sha256_of(FLAGS.input_file)}
    with progress(
        text_blocks.total_bytes([FLAGS.input_file]), "extracting", "B"
    ) as on_bytes:
        texts = map(split_line, streams.lines_of(FLAGS.input_file, on_bytes))
        kept = vector_files.write_vectors(
            FLAGS.sentence_vectors, texts, vectors_of, source
        )
    if kept:
        logging.info("Kept %d vectors of an earlier run.", kept)


def _embedding_of(checkpoint, given):
    """Return an embedding model's function from texts to vectors, or None."""
    from official_bert.tasks.embedding.directories import described_task
    from official_bert.tasks.embedding.vectors import EmbeddingPredictor

    if FLAGS.pooling or FLAGS.layers:
        return None
    task = described_task(checkpoint)
    if task is None:
        return None
    if FLAGS.doc_stride:
        raise UserError(
            "--doc_stride has no effect with an embedding model: its windows start "
            "half a window apart. Leave it out."
        )
    changes = {"max_seq_length": FLAGS.max_seq_length, "long_text": FLAGS.long_text}
    changes = {name: value for name, value in changes.items() if value is not None}
    task = dataclasses.replace(task, **changes)
    predictor = EmbeddingPredictor(checkpoint, FLAGS.batch_size, task, **given)

    def vectors_of(texts):
        if not all(isinstance(text, str) for text in texts):
            raise UserError(
                f"{FLAGS.input_file} contains a pair of texts (|||), but an "
                "embedding model makes vectors of single texts. Write them on "
                "separate lines."
            )
        return predictor.vectors(texts)

    return vectors_of


def _pooling_of(checkpoint, given, layers):
    """Return the function from texts to vectors of any encoder."""
    from official_bert.checkpoints import model_directory
    from official_bert.pretrained.feature_extraction import sentence_vectors

    bert = model_directory.load_encoder(checkpoint, **given)
    logging.info("%s", bert.report)
    pooling, reading = FLAGS.pooling or "mean", _reading()
    return lambda texts: sentence_vectors(bert, texts, pooling, layers, reading)


def _require_pooling(checkpoint):
    """Raise `UserError` if both outputs of an embedding model are requested."""
    from official_bert.tasks.embedding.directories import described_task

    if FLAGS.sentence_vectors and not FLAGS.pooling and described_task(checkpoint):
        raise UserError(
            "--output_file and --sentence_vectors cannot be combined for an "
            "embedding model. Add --pooling, whose vectors are not normalized, or "
            "use two runs."
        )


def _describe_run(checkpoint, given):
    """Write `OUTPUT.run.json` for each output that is not a stream."""
    for output in _outputs().values():
        if not streams.is_stream(output):
            read = None if FLAGS.input_file == streams.STANDARD else FLAGS.input_file
            inputs = [checkpoint, given["config_file"], given["vocab_file"], read]
            write_run_json(f"{output}.run.json", inputs)


def _outputs():
    """Return a dict: flag -> output, of the outputs that are given."""
    values = {name: FLAGS[name].value for name in ("output_file", "sentence_vectors")}
    return {name: value for name, value in values.items() if value}


def _parse_layers():
    """Return the layer numbers for tokens and those for sentence vectors."""
    if FLAGS.layers is None:
        return (-1, -2, -3, -4), (-1,)
    if FLAGS.pooling == "pooler" and not FLAGS.output_file:
        raise UserError(
            "--layers has no effect with --pooling=pooler, which uses the last "
            "layer. Leave one of them out."
        )
    try:
        layers = tuple(int(number) for number in FLAGS.layers.split(","))
        return layers, layers
    except ValueError as error:
        raise UserError(
            f"--layers={FLAGS.layers!r} is invalid. Give whole numbers separated by "
            "commas, such as -1,-2."
        ) from error


def _check_files():
    """Raise `UserError` for unusable files before the model is loaded."""
    outputs = _outputs()
    if not outputs:
        raise UserError(
            "Give --output_file for token vectors, --sentence_vectors for vectors of "
            "whole texts, or both."
        )
    for name, output in outputs.items():
        if not streams.is_stream(output):
            given_paths.require_parent(output, f"--{name}")
            given_paths.require_no_input([output], [FLAGS.input_file], f"--{name}")
        elif name == "sentence_vectors":
            raise UserError(
                "--sentence_vectors cannot be printed: a .npy file starts with its "
                "number of rows, which is known only at the end. Give a file name."
            )
    if len(set(map(files.real, outputs.values()))) < len(outputs):
        raise UserError(
            f"--output_file and --sentence_vectors both name {FLAGS.output_file}. "
            "Use two different files."
        )
    if FLAGS.input_file != streams.STANDARD:
        given_paths.require_readable(FLAGS.input_file, "--input_file")
    if FLAGS.use_tpu:
        logging.warning("--use_tpu has no effect here: a GPU or the CPU is used.")
