r"""Add the words of your domain to a pre-trained model.

    python run_scripts/extend_vocab.py --model=uncased_L-12_H-768_A-12 \
        --input_file='corpus/*.txt' --num_words=500 --output_dir=extended

    python run_scripts/extend_vocab.py --model=uncased_L-12_H-768_A-12 \
        --new_words_file=words.txt --output_dir=extended

The first command adds the words of the corpus that save the most tokens. With
--suggest_only it only lists them; edit the list and pass it as --new_words_file.

New words replace [unused…] tokens first. The embedding of a new word starts as the mean
of the embeddings of its WordPiece tokens. Continue the pre-training on your text to
train it further. Texts in which no word starts with a new word keep their token ids and
hidden states, bit for bit.
"""

import dataclasses
import os
import pathlib
import tempfile

from absl import flags

from official_bert import files, given_paths
from official_bert.command_line import found_models
from official_bert.command_line.command_table import in_users_form
from official_bert.command_line.flag_values import define_aliases, require
from official_bert.command_line.model_flags import given_files
from official_bert.command_line.run_record import write_run_json
from official_bert.command_line.tensorflow_start import start_tensorflow
from official_bert.corpus import readers
from official_bert.errors import UserError
from official_bert.tokenization import extend, train
from official_bert.tokenization.vocabulary import check_vocab_size
from official_bert.tokenization.wordpiece import UNKNOWN

DEFAULT_NUM_WORDS = 500
# Rows of the printed table if all suggestions are written to a file.
MOST_ROWS = 20
SUGGESTIONS_FILE = "new_words.tsv"
FLAGS = flags.FLAGS
# Flags that the help shows first.
REQUIRED: tuple[str, ...] = ("model",)
MOST_USED: tuple[str, ...] = (
    "output_dir",
    "input_file",
    "new_words_file",
    "num_words",
    "suggest_only",
    "suggestions_file",
    "min_frequency",
    "input_format",
    "keep_other_words",
    "use_unused",
)

flags.DEFINE_string("model", None, "Model to extend: a path or a name.")
define_aliases("model", "init_checkpoint")
flags.DEFINE_string(
    "output_dir",
    None,
    "Directory of the new model, in Google's format. It must be new or empty.",
)
flags.DEFINE_string(
    "input_file",
    None,
    "Text of your domain that new words are taken from: a comma-separated list of "
    "names and globs, plain or .gz. With --new_words_file it only shows what the "
    "words save.",
)
flags.DEFINE_enum(
    "input_format",
    "lines",
    readers.FORMATS,
    "lines: one sentence per line. raw: running text. wikiextractor: WikiExtractor's "
    "output.",
)
flags.DEFINE_string(
    "new_words_file",
    None,
    "Words to add, one per line. Text after a tab is ignored, so that a list of "
    "suggestions can be used.",
)
flags.DEFINE_integer(
    "num_words",
    None,
    f"Maximum number of suggested words; {DEFAULT_NUM_WORDS} if not given.",
    lower_bound=1,
)
flags.DEFINE_integer(
    "min_frequency", 5, "Minimum count of a word to be suggested.", lower_bound=1
)
flags.DEFINE_bool("suggest_only", False, "Suggest words without changing a model.")
flags.DEFINE_string(
    "suggestions_file",
    None,
    "File for the suggestions, tab-separated: word, count, number of tokens, tokens "
    f"saved, current tokens. Default: {SUGGESTIONS_FILE} in --output_dir.",
)
flags.DEFINE_bool(
    "keep_other_words",
    False,
    "Leave out words that change how another word of --input_file is tokenized.",
)
flags.DEFINE_bool(
    "use_unused",
    True,
    "Replace [unused…] tokens before appending. Turn this off for models that were "
    "fine-tuned with such tokens as markers.",
)


def main() -> None:
    """Suggest words, or add words to a model."""
    require(*REQUIRED)
    _check_flags()
    sources = readers.find_inputs(FLAGS.input_file) if FLAGS.input_file else []
    if FLAGS.suggestions_file:
        given_paths.require_parent(FLAGS.suggestions_file, "--suggestions_file")
        given_paths.require_no_input(
            [FLAGS.suggestions_file], sources, "--suggestions_file"
        )
    model = found_models.find(FLAGS.model)
    start_tensorflow()
    from official_bert.checkpoints import any_format

    with any_format.opened(model) as opened:
        checkpoint, tokenizer = _check_model(opened)
        if FLAGS.suggest_only:
            counter = _count_words(sources, tokenizer)
            path = FLAGS.suggestions_file
            _report_effect(counter, tokenizer, _suggest(counter, tokenizer, path, path))
        else:
            _extend(checkpoint, tokenizer, sources)


def _check_flags():
    """Raise `UserError` for flags that are missing or contradict each other."""
    if not FLAGS.new_words_file and not FLAGS.input_file:
        raise UserError(
            "Give --input_file, a text that new words are taken from, or "
            "--new_words_file, a list of words."
        )
    for name in ("num_words", "suggest_only", "suggestions_file"):
        if FLAGS.new_words_file and FLAGS[name].value:
            raise UserError(
                f"--{name} is for suggestions, but --new_words_file gives the words. "
                "Leave one of them out."
            )
    if FLAGS.keep_other_words and not FLAGS.input_file:
        raise UserError("--keep_other_words needs a text. Give --input_file.")
    if not FLAGS.suggest_only:
        require("output_dir")


def _check_model(checkpoint):
    """Return the checkpoint with its own or the given files, and its tokenizer."""
    from official_bert.checkpoints import initialize, model_directory

    given = given_files()
    config = model_directory.config_of(checkpoint, given.pop("config_file"))
    tokenizer = model_directory.tokenizer_of(checkpoint, **given)
    vocab_file = given["vocab_file"] or checkpoint.vocab_file
    initialize.check_size(checkpoint, config)
    check_vocab_size(tokenizer.vocab, config, vocab_file)
    vocab = {"vocab_file": vocab_file, "do_lower_case": tokenizer.do_lower_case}
    return dataclasses.replace(checkpoint, config=config, **vocab), tokenizer


def _count_words(sources, tokenizer):
    """Return a `WordCounter` of the text, and show progress while reading."""
    from official_bert.engines import word_counting

    counter, _ = word_counting.count_words(
        sources, FLAGS.input_format, tokenizer.do_lower_case, hold_out=False
    )
    if not counter.words():
        raise UserError(
            f"--input_file={FLAGS.input_file} contains no words. Check that it is the "
            "right file."
        )
    if counter.pruned:
        print(
            f"To save memory, words seen at most {counter.pruned} times were left "
            "out. The numbers below do not include them."
        )
    return counter


def _suggest(counter, tokenizer, path, shown_path):
    """Print suggestions, at least one, and return their words.

    Args:
      counter: `WordCounter` of the text.
      tokenizer: tokenizer of the model.
      path: file that the suggestions are written to, or None.
      shown_path: final name of this file, for messages.
    """
    unknown = extend.unknown_words(counter, tokenizer)
    if unknown:
        print(
            f"The model does not know {len(unknown)} words of the text, most often "
            f"{' '.join(word for word, _ in unknown[:10])}. They are one token each, "
            "so they are not suggested. To add them, use --new_words_file."
        )
    suggestions = extend.suggest_words(
        counter,
        tokenizer,
        FLAGS.num_words or DEFAULT_NUM_WORDS,
        FLAGS.min_frequency,
        FLAGS.keep_other_words,
    )
    if not suggestions:
        raise UserError(
            "There is no word to add: no word that occurs "
            f"--min_frequency={FLAGS.min_frequency} times is split into several tokens"
            f"{' without changing another word' if FLAGS.keep_other_words else ''}. "
            "Use more text or a smaller --min_frequency."
        )
    table = [extend.COLUMNS, *(one.columns for one in suggestions)]
    # The file contains all suggestions.
    shown = table[: MOST_ROWS + 1] if path else table
    width = max(len(word) for word, *_ in shown[1:])
    for word, count, pieces, saved, cut in shown:
        print(f"{word:{width}} {count:>8} {pieces:>7} {saved:>8}  {cut}")
    if path:
        print(f"All {len(suggestions)} suggestions are in {shown_path}.")
        files.write_text(path, extend.suggestions_text(suggestions))
    return [one.word for one in suggestions]


def _extend(checkpoint, tokenizer, sources):
    """Choose the words, write the new model and describe it."""
    from official_bert.fine_tuning import model_card

    with files.atomic_directory(FLAGS.output_dir, "--output_dir") as directory:
        if FLAGS.new_words_file:
            words, counter = _words_of_list(sources, tokenizer)
        else:
            counter = _count_words(sources, tokenizer)
            paths = [
                FLAGS.suggestions_file or os.path.join(folder, SUGGESTIONS_FILE)
                for folder in (directory, FLAGS.output_dir)
            ]
            words = _suggest(counter, tokenizer, *paths)
        ids = extend.place_words(tokenizer.vocab, words, FLAGS.use_unused)
        extended = _write_model(checkpoint, tokenizer, ids, directory)
        model_files = [FLAGS.model, FLAGS.bert_config_file, FLAGS.vocab_file]
        inputs = [
            *map(found_models.path_of, model_files),
            FLAGS.new_words_file,
            *sources,
        ]
        write_run_json(os.path.join(directory, "run.json"), inputs)
        names = ("model", "new_words_file", "input_file")
        data = {name: FLAGS[name].value for name in names if FLAGS[name].value}
        model_card.write(directory, data, in_users_form)
    print(*extended.notes, sep="\n", end="\n" if extended.notes else "")
    num_tokens, num_rows = len(tokenizer.vocab), checkpoint.config.vocab_size
    unused = sum(index < num_tokens for index in ids.values())
    padding = sum(num_tokens <= index < num_rows for index in ids.values())
    print(
        f"{FLAGS.output_dir}: {len(ids)} words added: {unused} replaced [unused…] "
        f"tokens, {padding} replaced padding rows of the embedding table, "
        f"{len(ids) - unused - padding} are new rows. vocab_size was {num_rows} and "
        f"is now {extended.config.vocab_size}."
    )
    _report_effect(counter, tokenizer, words)


def _words_of_list(sources, tokenizer):
    """Return the words of --new_words_file, and the counted text or None."""
    words, notes = extend.read_words(FLAGS.new_words_file, tokenizer)
    print(*notes, sep="\n", end="\n" if notes else "")
    if not sources:
        return words, None
    counter = _count_words(sources, tokenizer)
    if FLAGS.keep_other_words:
        kept = extend.harmless_words(counter.words(), tokenizer, words, len(words))
        if not kept:
            raise UserError(
                f"{FLAGS.new_words_file}: each of its words changes how another word "
                "of --input_file is tokenized. Leave out --keep_other_words."
            )
        harmful = [word for word in words if word not in kept]
        if harmful:
            print(f"Left out because of --keep_other_words: {' '.join(harmful)}.")
        words = kept
    return words, counter


def _write_model(checkpoint, tokenizer, ids, directory):
    """Write the extended model; return its `Checkpoint`."""
    from official_bert.checkpoints import google, vocab_rows

    cut = tokenizer.wordpiece_tokenizer.tokenize_word
    pieces = {
        index: tokenizer.convert_tokens_to_ids(cut(word)) for word, index in ids.items()
    }
    with tempfile.TemporaryDirectory() as folder:
        vocab_file = pathlib.Path(folder, google.VOCAB_FILE)
        vocab_file.write_bytes(extend.extended_vocab(checkpoint.vocab_file, ids))
        extended = dataclasses.replace(
            vocab_rows.extend(checkpoint, pieces), vocab_file=str(vocab_file)
        )
        google.write_model(directory, extended)
    return extended


def _report_effect(counter, tokenizer, words):
    """Print the saved tokens, and other words that are tokenized differently."""
    if counter is None:
        print(
            "Words that start with a new word may be tokenized differently. Give "
            "--input_file to see the effect on a text."
        )
        return
    old = train.measure_vocab([*tokenizer.vocab], counter)
    new = train.measure_vocab([*tokenizer.vocab, *words], counter)
    before, after = (round(q.num_words * q.pieces_per_word) for q in (old, new))
    print(
        f"Tokens of the text: {before} before, {after} with the new words, "
        f"{1 - after / before:.2%} less. Unknown words: {old.unknown_rate:.4%} "
        f"before, {new.unknown_rate:.4%} with them."
    )
    changes = extend.changed_words(counter.words(), tokenizer, words)
    if not changes:
        print("All other words of the text keep their tokens.")
        return
    occurrences = sum(change.count for change in changes)
    print(
        "Other words are tokenized differently, because they start with a new word: "
        f"{len(changes)} ({occurrences / old.num_words:.2%} of the text), such as "
        f"{'; '.join(map(str, changes[:3]))}. --keep_other_words leaves out the new "
        "words that cause this."
    )
    lost = [change for change in changes if change.after == [UNKNOWN]]
    if lost:
        print(
            f"{len(lost)} of these words become unknown, because the vocabulary "
            "lacks tokens for the part after the new word, such as "
            f"{'; '.join(map(str, lost[:3]))}."
        )
