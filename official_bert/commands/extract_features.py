r"""Turn texts into vectors: each token's, or one for each text.

    python run_scripts/extract_features.py --model=uncased_L-12_H-768_A-12 \
      --input_file=input.txt --output_file=output.jsonl --layers=-1,-2,-3,-4

    python run_scripts/extract_features.py --model=uncased_L-12_H-768_A-12 \
      --input_file=input.txt --sentence_vectors=vectors.npy --pooling=mean

Give both --output_file and --sentence_vectors to write both in one run.

Each line of the input is a text, or a pair: "text a ||| text b". The JSON lines are
those of google-research/bert's script: tokens, layers, values of 6 digits. An embedding
model (run_embedding.py, sentence-transformers) says itself how it makes the vector of a
text. A run with --sentence_vectors alone that was killed continues with the same
command.
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
# What the help shows first.
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
    "input_file", None, "Text, one a line, plain or .gz; - is standard input."
)
flags.DEFINE_string(
    "output_file", None, "JSON lines with the vectors of each token; - prints them."
)
flags.DEFINE_string(
    "sentence_vectors",
    None,
    "Instead of --output_file or with it: a .npy file for one vector a line, float32 "
    "[N, H].",
)
flags.DEFINE_enum(
    "pooling",
    None,
    POOLINGS,
    "What a sentence's vector is. mean: of all its tokens, [CLS] and [SEP] among "
    "them. cls: the vector of [CLS]. pooler: the pooled output. Default: that of an "
    "embedding model, with its size and normalization, or mean.",
)
flags.DEFINE_string(
    "layers",
    None,
    "Layers, -1 being the last and 0 the first. Default: -1,-2,-3,-4 for tokens, -1 "
    "for sentences; the mean of several makes a sentence's vector. With both outputs "
    "it counts for both.",
)
flags.DEFINE_string("model", None, "The model: a path in any format, or a name.")
define_aliases("model", "init_checkpoint")
flags.DEFINE_integer(
    "max_seq_length",
    None,
    "Tokens that the model reads at once, [CLS] and [SEP] among them; default: 128, or "
    "what the model can read if that is less.",
    lower_bound=3,
)
flags.DEFINE_enum(
    "long_text",
    None,
    LONG_TEXT,
    "What becomes of longer texts. truncate: cut off, as in the original. window: "
    "read through overlapping windows, each token taken from the one where it has "
    "the most context; an embedding model averages the windows' vectors. Default: "
    "truncate, or that of an embedding model.",
)
define_positive(
    "doc_stride",
    None,
    "Tokens from one window's start to the next one's; default: half a window.",
)
define_positive("batch_size", 32, "Rows that go through the model together.")
flags.DEFINE_bool("use_tpu", False, "For old commands; a GPU or the CPU is used.")
flags.DEFINE_string("master", None, "For old commands; it has no effect.")
flags.DEFINE_integer("num_tpu_cores", 8, "For old commands; it has no effect.")
flags.DEFINE_bool(
    "use_one_hot_embeddings", False, "For old commands; it has no effect."
)


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
    """Write the `.npy`; continue the rows that an earlier run has left."""
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
        logging.info("%d vectors were kept of an earlier run.", kept)


def _embedding_of(checkpoint, given):
    """Return the function from texts to vectors of an embedding model, or None."""
    from official_bert.tasks.embedding.directories import described_task
    from official_bert.tasks.embedding.vectors import EmbeddingPredictor

    if FLAGS.pooling or FLAGS.layers:
        return None
    task = described_task(checkpoint)
    if task is None:
        return None
    if FLAGS.doc_stride:
        raise UserError(
            "--doc_stride has no effect with an embedding model, whose windows begin "
            "half a window apart; leave it out."
        )
    changes = {"max_seq_length": FLAGS.max_seq_length, "long_text": FLAGS.long_text}
    changes = {name: value for name, value in changes.items() if value is not None}
    task = dataclasses.replace(task, **changes)
    predictor = EmbeddingPredictor(checkpoint, FLAGS.batch_size, task, **given)

    def vectors_of(texts):
        if not all(isinstance(text, str) for text in texts):
            raise UserError(
                f"{FLAGS.input_file} holds a pair of texts (|||), and an embedding "
                "model makes vectors of single texts; write them on lines of their own."
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
    """Raise `UserError` if both outputs of an embedding model are wanted."""
    from official_bert.tasks.embedding.directories import described_task

    if FLAGS.sentence_vectors and not FLAGS.pooling and described_task(checkpoint):
        raise UserError(
            "--output_file and --sentence_vectors of an embedding model: give "
            "--pooling, whose vectors are not normalized, or write them in two runs."
        )


def _describe_run(checkpoint, given):
    """Write `OUTPUT.run.json` for each output that is not a stream."""
    for output in _outputs().values():
        if not streams.is_stream(output):
            read = None if FLAGS.input_file == streams.STANDARD else FLAGS.input_file
            inputs = [checkpoint, given["config_file"], given["vocab_file"], read]
            write_run_json(f"{output}.run.json", inputs)


def _outputs():
    """Return dict of flag -> output, of those that are given."""
    values = {name: FLAGS[name].value for name in ("output_file", "sentence_vectors")}
    return {name: value for name, value in values.items() if value}


def _parse_layers():
    """Return the numbers of the tokens' layers and of the sentences' layers."""
    if FLAGS.layers is None:
        return (-1, -2, -3, -4), (-1,)
    if FLAGS.pooling == "pooler" and not FLAGS.output_file:
        raise UserError(
            "--layers has no effect with --pooling=pooler, which is made from the last "
            "layer; leave one of them out."
        )
    try:
        layers = tuple(int(number) for number in FLAGS.layers.split(","))
        return layers, layers
    except ValueError as error:
        raise UserError(
            f"--layers is {FLAGS.layers!r}: it must be whole numbers with commas "
            "between them, such as -1,-2."
        ) from error


def _check_files():
    """Raise `UserError` before the model is loaded, not after."""
    outputs = _outputs()
    if not outputs:
        raise UserError(
            "Give --output_file for the vectors of tokens, --sentence_vectors for "
            "those of whole texts, or both."
        )
    for name, output in outputs.items():
        if not streams.is_stream(output):
            given_paths.require_parent(output, f"--{name}")
            given_paths.require_no_input([output], [FLAGS.input_file], f"--{name}")
        elif name == "sentence_vectors":
            raise UserError(
                "--sentence_vectors: a .npy file begins with the number of its rows, "
                "which is known in the end only, so it cannot be printed; give a file."
            )
    if len(set(map(files.real, outputs.values()))) < len(outputs):
        raise UserError(
            f"--output_file and --sentence_vectors both name {FLAGS.output_file}; give "
            "each a file of its own."
        )
    if FLAGS.input_file != streams.STANDARD:
        given_paths.require_readable(FLAGS.input_file, "--input_file")
    if FLAGS.use_tpu:
        logging.warning("--use_tpu has no effect here: a GPU or the CPU is used.")
