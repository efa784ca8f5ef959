r"""Score the answers to a SQuAD file, as its official scripts do.

    python run_scripts/evaluate_squad.py --data_file=dev-v1.1.json \
        --predictions=output/squad/predictions.json

    python run_scripts/evaluate_squad.py --data_file=dev-v2.0.json \
        --predictions=predictions.json --null_odds=null_odds.json

Prints the scores as JSON, in percent. With --null_odds it also finds the threshold that
scores best; a question whose odds are above it has no answer.
"""

import json

from absl import flags
from command_line import locate, require, run

from official_bert import files
from official_bert.errors import UserError

FLAGS = flags.FLAGS

flags.DEFINE_string("data_file", None, "SQuAD JSON with the right answers, also .gz.")
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
flags.DEFINE_float(
    "null_score_diff_threshold",
    None,
    "Score questions with --null_odds above it as answered by nothing.",
)


def main():
    """Read, score, print."""
    from official_bert.metrics import squad
    from official_bert.tasks.squad_files import read_gold_answers

    require("data_file", "predictions")
    if FLAGS.null_score_diff_threshold != FLAGS.null_score_diff_threshold:
        raise UserError("--null_score_diff_threshold is nan; give a number.")
    gold_answers = read_gold_answers(locate(FLAGS.data_file), "--data_file")
    if gold_answers is None:
        raise UserError(f"--data_file: {FLAGS.data_file} has no answers to score by.")
    predictions = _read("predictions", str)
    with_negative = FLAGS.version_2_with_negative
    if with_negative is None:
        with_negative = not all(gold_answers.values())
    if not with_negative:
        for name in ("null_odds", "null_score_diff_threshold"):
            if FLAGS[name].value is not None:
                raise UserError(f"--{name} is for SQuAD 2.0; leave it out.")
        found = squad.evaluate_v1(gold_answers, predictions)
    else:
        odds = _read("null_odds", (int, float)) if FLAGS.null_odds else None
        if odds is None and FLAGS.null_score_diff_threshold is not None:
            raise UserError("--null_score_diff_threshold needs --null_odds.")
        found = squad.evaluate_v2(
            gold_answers, predictions, odds, FLAGS.null_score_diff_threshold
        )
    print(json.dumps(found, indent=2))


def _read(flag, kind):
    """Return the JSON object that a flag names, with values of a kind."""
    path = locate(FLAGS[flag].value)
    files.require_readable(path, f"--{flag}")
    found = files.read_json(path, "a file of answers")
    wrong = [
        key
        for key, value in found.items()
        if not isinstance(value, kind) or value != value  # Not a number.
    ]
    if wrong:
        raise UserError(
            f"--{flag}: {path} has {found[wrong[0]]!r} for question {wrong[0]}; it "
            "must hold one value for each question."
        )
    return found


if __name__ == "__main__":
    run(main)
