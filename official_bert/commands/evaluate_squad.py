r"""Score the answers to a SQuAD file, as its official scripts do.

    python run_scripts/evaluate_squad.py --dev_file=dev-v1.1.json \
        --predictions=output/squad/predictions.json

    python run_scripts/evaluate_squad.py --dev_file=dev-v2.0.json \
        --predictions=output/squad2/predictions.json \
        --null_odds=output/squad2/null_odds.json \
        --nbest_predictions=output/squad2/nbest_predictions.json

Prints the scores as JSON, in percent. With --null_odds it also finds the threshold that
scores best; a question whose odds are above it has no answer. That needs the best text
of each question that is not empty, which is in the n best: the predictions lack it
where the threshold they were made with has taken it.
"""

import json
import reprlib

from absl import flags, logging

from official_bert import files, given_paths
from official_bert.command_line.flag_values import define_aliases, locate, require
from official_bert.errors import UserError

FLAGS = flags.FLAGS
# What the help shows first.
REQUIRED: tuple[str, ...] = ("dev_file", "predictions")
MOST_USED: tuple[str, ...] = (
    "version_2_with_negative",
    "null_odds",
    "nbest_predictions",
    "null_score_diff_threshold",
)

flags.DEFINE_string("dev_file", None, "SQuAD JSON with the right answers, also .gz.")
define_aliases("dev_file", "data_file")
flags.DEFINE_string("predictions", None, "JSON object: question id -> answer.")
flags.DEFINE_bool(
    "version_2_with_negative",
    None,
    "Score as SQuAD 2.0; default: if the file has questions without an answer.",
)
flags.DEFINE_string(
    "null_odds",
    None,
    "JSON object: question id -> the higher, the less likely is an answer.",
)
flags.DEFINE_string(
    "nbest_predictions",
    None,
    "JSON object: question id -> answers, the best first. The first that is not empty "
    "is what a threshold keeps or takes; default: that of --predictions.",
)
flags.DEFINE_float(
    "null_score_diff_threshold",
    None,
    "Score questions with --null_odds above it as answered by nothing.",
)


def main() -> None:
    """Read, score, print."""
    from official_bert.metrics import squad
    from official_bert.tasks.squad.files import read_gold_answers

    require(*REQUIRED)
    if FLAGS.null_score_diff_threshold != FLAGS.null_score_diff_threshold:
        raise UserError("--null_score_diff_threshold is nan; give a number.")
    gold_answers = read_gold_answers(locate(FLAGS.dev_file), "--dev_file")
    if gold_answers is None:
        raise UserError(f"--dev_file: {FLAGS.dev_file} has no answers to score by.")
    predictions = _read("predictions", str)
    with_negative = FLAGS.version_2_with_negative
    if with_negative is None:
        with_negative = not all(gold_answers.values())
    if with_negative:
        scores = _evaluate_v2(gold_answers, predictions)
    else:
        for name in ("null_odds", "nbest_predictions", "null_score_diff_threshold"):
            if FLAGS[name].value is not None:
                raise UserError(f"--{name} is for SQuAD 2.0; leave it out.")
        scores = squad.evaluate_v1(gold_answers, predictions)
    print(json.dumps(scores, indent=2))


def _evaluate_v2(gold_answers, predictions):
    """Return the scores of SQuAD 2.0, and those at a threshold as far as flags ask."""
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
                "%d of %d predictions are empty, and no threshold brings back their "
                "texts; give --nbest_predictions, which has them.",
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
            f"--nbest_predictions: {FLAGS.nbest_predictions} lacks {len(missing)} of "
            f"{len(asked)} questions of --predictions, such as {missing[0]}; "
            "take both files from the same run."
        )
    scores = squad.evaluate_v2(gold_answers, texts, odds, threshold)
    if threshold is not None:
        return scores
    best = {name: value for name, value in scores.items() if name.startswith("best_")}
    return squad.evaluate_v2(gold_answers, predictions) | best


def _best_text(qas_id, rows):
    """Return the first text that is not empty of a question's n best; "" for none."""
    texts = [row.get("text") if isinstance(row, dict) else None for row in rows]
    if not all(isinstance(text, str) for text in texts):
        raise UserError(
            f"--nbest_predictions: {FLAGS.nbest_predictions} has an answer to question "
            f'{qas_id} without a "text"; it must be as run_squad.py writes it.'
        )
    return next(filter(None, texts), "")


def _read(flag, kind):
    """Return the JSON object that a flag names, with values of a kind."""
    path = locate(getattr(FLAGS, flag))
    given_paths.require_readable(path, f"--{flag}")
    values = files.read_json(path, "a file of answers")
    for qas_id, value in values.items():
        # Numbers are null odds, differences of logits: never as large as this.
        is_wild = isinstance(value, (int, float)) and not abs(value) < 1e300
        if is_wild or isinstance(value, bool) or not isinstance(value, kind):
            raise UserError(
                f"--{flag}: {path} has {reprlib.repr(value)} for question {qas_id}; it "
                "must hold one value for each question, as run_squad.py writes it."
            )
    return values
