r"""Draw the attention of each head of a model.

    python run_scripts/show_attention.py --model=output/tiny \
        --text="The cat sat on the mat." --output=attention.png

    python run_scripts/show_attention.py --model=output/tiny --layer=-1 \
        --text="Where is the cat?" --text_b="It sat on the mat." --output=last.png

By default, the figure shows all layers and heads as small pictures. --layer shows the
heads of one layer in large pictures with token labels. Each row of a picture is a
token, each column a token that it attends to. Each row sums to 1.
"""

from absl import flags, logging

from official_bert import given_paths
from official_bert.command_line import model_flags
from official_bert.command_line.flag_values import require
from official_bert.command_line.tensorflow_start import start_tensorflow
from official_bert.errors import UserError
from official_bert.pretrained import attention_picture

FLAGS = flags.FLAGS
# Flags that the help shows first.
REQUIRED: tuple[str, ...] = ("model", "text")
MOST_USED: tuple[str, ...] = ("output", "layer", "text_b", "numbers")

model_flags.define_model_path()
flags.DEFINE_string("text", None, "Text; [MASK] stands for the mask token.")
flags.DEFINE_string("text_b", None, "Second text of a pair.")
flags.DEFINE_integer(
    "layer", None, "Show only one layer: 0 is the first, -1 the last. Default: all."
)
flags.DEFINE_string("output", None, "File for the figure: .png, .svg or .pdf.")
flags.DEFINE_string(
    "numbers",
    None,
    "File for the attention probabilities, .npz or .json: [layers, heads, S, S].",
)


def main() -> None:
    """Check the flags, run the model and draw the figure."""
    path = model_flags.model_path()
    require(*REQUIRED)
    _check_files()
    start_tensorflow()
    from official_bert.checkpoints import model_directory
    from official_bert.pretrained import attention

    bert = model_directory.load_encoder(path, **model_flags.given_files())
    number_of_layers = bert.config.num_hidden_layers
    layers = list(range(number_of_layers))
    if FLAGS.layer is not None:
        layers = [attention.layer_number(FLAGS.layer, number_of_layers)]
    maps = attention.attention_maps(bert, FLAGS.text, FLAGS.text_b)
    if FLAGS.numbers:
        attention.save_numbers(FLAGS.numbers, maps, layers)
        print(f"Wrote the attention probabilities to {FLAGS.numbers}.")
    if FLAGS.output:
        if FLAGS.layer is None:
            whole = attention_picture.draw_all(FLAGS.output, maps)
        else:
            whole = attention_picture.draw_layer(FLAGS.output, maps, layers[0])
        if not whole:
            logging.warning(
                "No font of this machine has all characters of the text, so some "
                "appear as boxes. Noto Sans CJK has them (Debian: apt install "
                "fonts-noto-cjk)."
            )
        print(f"Wrote the figure to {FLAGS.output}.")


def _check_files():
    """Raise `UserError` for unusable files before the model is loaded."""
    if not FLAGS.output and not FLAGS.numbers:
        raise UserError(
            "Give --output=FILE.png for the figure, --numbers=FILE.npz for the "
            "numbers, or both."
        )
    if FLAGS.numbers:
        if not FLAGS.numbers.endswith((".npz", ".json")):
            raise UserError(
                f"--numbers={FLAGS.numbers} must end with .npz or .json, which "
                "selects the format."
            )
        given_paths.require_parent(FLAGS.numbers, "--numbers")
    if FLAGS.output:
        attention_picture.check_output(FLAGS.output)
        given_paths.require_parent(FLAGS.output, "--output")
