r"""Ask a pre-trained model for the words that were masked.

    python run_scripts/fill_mask.py --model_dir=output/tiny \
        --text="Return a [MASK] of the names in the module."

Prints the likeliest word pieces for each [MASK], with probabilities. Without
--text each line of standard input is a text.
"""

import dataclasses
import json
import sys

from absl import flags
from command_line import locate, require, run, start_tensorflow

from official_bert.errors import UserError

FLAGS = flags.FLAGS

flags.DEFINE_string(
    "model_dir", None, "Directory with bert_config.json, vocab.txt, bert_model.ckpt.*."
)
flags.DEFINE_multi_string("text", [], "Text with [MASK]; may be given several times.")
flags.DEFINE_integer("top_k", 5, "Word pieces to print for each [MASK].")
flags.DEFINE_bool("json", False, "Print one JSON object per text.")


def main():
    """Print the answers for each text."""
    require("model_dir")
    if FLAGS.top_k < 1:
        raise UserError(f"--top_k is {FLAGS.top_k}: it must be at least 1.")
    start_tensorflow()
    from official_bert.checkpoints import model_directory
    from official_bert.tasks.fill_mask import fill_mask

    bert = model_directory.load(locate(FLAGS.model_dir))
    for text in FLAGS.text or _lines_of_input():
        answers = fill_mask(bert, text, FLAGS.top_k)
        print(_as_json(text, answers) if FLAGS.json else _as_lines(text, answers))


def _lines_of_input():
    """Yield the lines of standard input that are not empty."""
    if sys.stdin.isatty():
        print("One text with [MASK] a line; Ctrl-D ends.", file=sys.stderr)
    # One unreadable byte should not end a long list.
    sys.stdin.reconfigure(encoding="utf-8", errors="replace")
    yield from filter(None, map(str.strip, sys.stdin))


def _as_json(text, answers):
    masks = [[dataclasses.asdict(candidate) for candidate in mask] for mask in answers]
    return json.dumps({"text": text, "masks": masks}, ensure_ascii=False)


def _as_lines(text, answers):
    lines = [text]
    for number, mask in enumerate(answers, start=1):
        words = [f"{c.token} {c.probability:.1%}" for c in mask]
        label = f"[MASK] {number}" if len(answers) > 1 else "[MASK]"
        lines.append(f"  {label}: {'   '.join(words)}")
    return "\n".join(lines)


if __name__ == "__main__":
    run(main)
