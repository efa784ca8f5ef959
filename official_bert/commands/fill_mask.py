r"""Predict the masked tokens of a text with a pre-trained model, or score the text.

    python run_scripts/fill_mask.py --model=output/tiny \
        --text="Return a [MASK] of the names in the module."

    python run_scripts/fill_mask.py --model=output/tiny --score \
        --text="Return a list of names." --text_b="The list is sorted."

Prints the most likely WordPiece tokens for each [MASK], with probabilities. Without
--text, each line of standard input is a text.
"""

import dataclasses
import json
import sys

from absl import flags

from official_bert.command_line import model_flags
from official_bert.command_line.flag_values import define_positive
from official_bert.command_line.streams import STANDARD, lines_of
from official_bert.command_line.tensorflow_start import start_tensorflow
from official_bert.errors import UserError

FLAGS = flags.FLAGS
# Flags that the help shows first.
REQUIRED: tuple[str, ...] = ("model",)
MOST_USED: tuple[str, ...] = ("text", "text_b", "score", "top_k", "json", "batch_size")

model_flags.define_model_path()
flags.DEFINE_multi_string("text", [], "Text with [MASK]. Can be repeated.")
flags.DEFINE_multi_string(
    "text_b",
    [],
    "One text for each --text. Prints the probability that it is the next sentence. "
    "[MASK] and --score apply to --text only.",
)
flags.DEFINE_bool(
    "score",
    False,
    "Print how likely each text is, instead of masked tokens. The "
    "pseudo-log-likelihood is the sum of each token's log-probability when that "
    "token is masked.",
)
define_positive("top_k", 5, "WordPiece tokens to print for each [MASK].")
define_positive(
    "batch_size",
    32,
    "With --score: masked copies of a text per batch.",
)
flags.DEFINE_bool("json", False, "Print one JSON object per text.")


def main() -> None:
    """Print the predictions for each text."""
    path = model_flags.model_path()
    if FLAGS.text_b and len(FLAGS.text_b) != len(FLAGS.text):
        raise UserError(
            f"--text_b is given {len(FLAGS.text_b)} times, but --text "
            f"{len(FLAGS.text)} times. Give one --text_b for each --text."
        )
    start_tensorflow()
    from official_bert.checkpoints import model_directory

    bert = model_directory.load(
        path, **model_flags.given_files(), next_sentence=bool(FLAGS.text_b)
    )
    if not FLAGS.text and sys.stdin.isatty():
        what = "One text" if FLAGS.score else "One text with [MASK]"
        print(f"{what} per line; Ctrl-D ends.", file=sys.stderr)
    for number, text in enumerate(FLAGS.text or filter(None, lines_of(STANDARD))):
        answer = _answer(bert, text, FLAGS.text_b[number] if FLAGS.text_b else None)
        if FLAGS.json:
            print(json.dumps(answer, ensure_ascii=False))
        else:
            print(_as_lines(answer))


def _answer(bert, text, text_b):
    """Return the predictions for a text, as a dict for JSON."""
    from official_bert.pretrained import likelihood
    from official_bert.pretrained.fill_mask import MASK, fill_mask

    answer = {"text": text}
    if FLAGS.score:
        score = likelihood.pseudo_log_likelihood(bert, text, FLAGS.batch_size)
        pairs = zip(score.tokens, score.log_probabilities, strict=True)
        answer |= {
            "pseudo_log_likelihood": score.pseudo_log_likelihood,
            "pseudo_perplexity": score.pseudo_perplexity,
            "num_tokens": len(score.tokens),
            "tokens": [{"token": token, "log_probability": p} for token, p in pairs],
        }
    elif MASK in text or text_b is None:
        answer["masks"] = [
            [dataclasses.asdict(candidate) for candidate in mask]
            for mask in fill_mask(bert, text, FLAGS.top_k)
        ]
    if text_b is not None:
        answer["text_b"] = text_b
        probability = likelihood.next_sentence_probability(bert, text, text_b)
        answer["next_sentence_probability"] = probability
    return answer


def _as_lines(answer):
    """Return the predictions as text for people."""
    lines = [answer["text"]]
    masks = answer.get("masks", [])
    for number, mask in enumerate(masks, start=1):
        words = [f"{c['token']} {c['probability']:.1%}" for c in mask]
        label = f"[MASK] {number}" if len(masks) > 1 else "[MASK]"
        lines.append(f"  {label}: {'   '.join(words)}")
    if "pseudo_log_likelihood" in answer:
        lines.append(
            f"  pseudo-log-likelihood: {answer['pseudo_log_likelihood']:.4f} nats   "
            f"tokens: {answer['num_tokens']}   "
            f"pseudo-perplexity: {answer['pseudo_perplexity']:.4g}"
        )
    if "text_b" in answer:
        probability = answer["next_sentence_probability"]
        lines.append(f"  next sentence: {probability:.1%}   {answer['text_b']}")
    return "\n".join(lines)
