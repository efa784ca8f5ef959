r"""Score predictions for a SQuAD file as the official scripts do.

    python run_scripts/evaluate_squad.py --dev_file=dev-v1.1.json \
        --predictions=output/squad/predictions.json

    python run_scripts/evaluate_squad.py --dev_file=dev-v2.0.json \
        --predictions=output/squad2/predictions.json \
        --null_odds=output/squad2/null_odds.json \
        --nbest_predictions=output/squad2/nbest_predictions.json

Prints the scores in percent, as JSON. With --null_odds it also finds the threshold with
the best score. Questions whose odds are above the threshold count as unanswerable. Give
--nbest_predictions too: it contains the best non-empty answer of each question. In
--predictions, such an answer may have been replaced by an empty one.
"""

import json
import reprlib

from absl import flags, logging

from official_bert import files, given_paths
from official_bert.command_line.flag_values import define_aliases, locate, require
from official_bert.errors import UserError

FLAGS = flags.FLAGS
# Flags that the help shows first.
REQUIRED: tuple[str, ...] = ("dev_file", "predictions")
MOST_USED: tuple[str, ...] = (
    "version_2_with_negative",
    "null_odds",
    "nbest_predictions",
    "null_score_diff_threshold",
)

flags.DEFINE_string(
    "dev_file", None, "SQuAD JSON file with the correct answers, also .gz."
)
define_aliases("dev_file", "data_file")
flags.DEFINE_string(
    "predictions", None, "JSON object: question id -> predicted answer."
)
flags.DEFINE_bool(
    "version_2_with_negative",
    None,
    "Score as SQuAD 2.0. Default: true if the file has unanswerable questions.",
)
flags.DEFINE_string(
    "null_odds",
    None,
    "JSON object: question id -> null odds. Higher odds mean that an answer is less "
    "likely.",
)
flags.DEFINE_string(
    "nbest_predictions",
    None,
    "JSON object: question id -> list of answers, best first. A threshold keeps or "
    "removes the first non-empty one. Default: the answer in --predictions.",
)
flags.DEFINE_float(
    "null_score_diff_threshold",
    None,
    "Count questions with --null_odds above this threshold as unanswerable.",
)


def main() -> None:
    """Read the predictions and print their scores."""
    from official_bert.metrics import squad
    from official_bert.tasks.squad.files import read_gold_answers

    require(*REQUIRED)
    gold_answers = read_gold_answers(locate(FLAGS.dev_file), "--dev_file")
    if gold_answers is None:
        raise UserError(
            f"--dev_file={FLAGS.dev_file} has no answers to score against. Use a dev "
            "file with answers."
        )
    predictions = _read("predictions", str)
    with_negative = FLAGS.version_2_with_negative
    if with_negative is None:
        with_negative = not all(gold_answers.values())
    if with_negative:
        scores = _evaluate_v2(gold_answers, predictions)
    else:
        for name in ("null_odds", "nbest_predictions", "null_score_diff_threshold"):
            if FLAGS[name].value is not None:
                raise UserError(f"--{name} is only for SQuAD 2.0. Leave it out.")
        scores = squad.evaluate_v1(gold_answers, predictions)
    print(json.dumps(scores, indent=2))


def _evaluate_v2(gold_answers, predictions):
    """Return the SQuAD 2.0 scores, and those at a threshold if flags give null odds."""
    from official_bert.metrics import squad

    threshold = FLAGS.null_score_diff_threshold
    if not FLAGS.null_odds:
        for name in ("nbest_predictions", "null_score_diff_threshold"):
            if FLAGS[name].value is not None:
                raise UserError(f"--{name} needs --null_odds.")
        return squad.evaluate_v2(gold_answers, predictions)
    odds = _read("null_odds", (int, float))
    odds = {qas_id: float(value) for qas_id, value in odds.items()}
    if not FLAGS.nbest_predictions:
        num_empty = sum(not text for text in predictions.values())
        if num_empty:
            logging.warning(
                "%d of %d predictions are empty, so no threshold can restore their "
                "answers. Give --nbest_predictions, which contains them.",
                num_empty,
                len(predictions),
            )
        return squad.evaluate_v2(gold_answers, predictions, odds, threshold)
    nbest = _read("nbest_predictions", list)
    texts = {qas_id: _best_text(qas_id, rows) for qas_id, rows in nbest.items()}
    asked = [qas_id for qas_id in predictions if qas_id in gold_answers]
    missing = [qas_id for qas_id in asked if qas_id not in texts]
    if missing:
        raise UserError(
            f"--nbest_predictions={FLAGS.nbest_predictions} lacks {len(missing)} of "
            f"{len(asked)} questions of --predictions, such as {missing[0]}. Use two "
            "files of the same run."
        )
    scores = squad.evaluate_v2(gold_answers, texts, odds, threshold)
    if threshold is not None:
        return scores
    best = {name: value for name, value in scores.items() if name.startswith("best_")}
    return squad.evaluate_v2(gold_answers, predictions) | best


def _best_text(qas_id, rows):
    """Return the first non-empty text of a question's n best, or ""."""
    texts = [row.get("text") if isinstance(row, dict) else None for row in rows]
    if not all(isinstance(text, str) for text in texts):
        raise UserError(
            f"--nbest_predictions={FLAGS.nbest_predictions} has an answer to "
            f'question {qas_id} without a "text". Use a file that run_squad.py wrote.'
        )
    return next(filter(None, texts), "")


def _read(flag, kind):
    """Return the JSON object of a flag's file; its values must have the given type."""
    path = locate(getattr(FLAGS, flag))
    given_paths.require_readable(path, f"--{flag}")
    values = files.read_json(path, "a file of answers")
    for qas_id, value in values.items():
        # Numbers are null odds, differences of logits, which are never this large.
        is_wild = isinstance(value, (int, float)) and not abs(value) < 1e300
        if is_wild or isinstance(value, bool) or not isinstance(value, kind):
            raise UserError(
                f"--{flag}: {path} has {reprlib.repr(value)} for question {qas_id}. "
                "Use a file that run_squad.py wrote, with one value per question."
            )
    return values
