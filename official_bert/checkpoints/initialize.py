"""Weights from a checkpoint into a model, strictly, with a report."""

import dataclasses

from official_bert.checkpoints import google, names
from official_bert.errors import UserError


@dataclasses.dataclass(frozen=True)
class Report:
    """What became of each name.

    Attributes:
      prefix: the checkpoint.
      loaded: variables that were read.
      new: variables of a head that the checkpoint lacks; they keep their
        initial values.
      unused: weights in the checkpoint that the model has no use for.
    """

    prefix: str
    loaded: list[str]
    new: list[str]
    unused: list[str]

    def __str__(self):
        lines = [f"Initialised {len(self.loaded)} variables from {self.prefix}."]
        if self.new:
            lines.append(f"Not in the checkpoint, so new: {', '.join(self.new)}.")
        if self.unused:
            lines.append(f"In the checkpoint, not used: {', '.join(self.unused)}.")
        return "\n".join(lines)


def load_weights(model, path):
    """Set a model's variables from a checkpoint with Google's names.

    Optimizer slots and the step are not read: a run that starts from a
    checkpoint starts at step 0 (`init_checkpoint` of the original).

    Args:
      model: a Keras model or layer of this package.
      path: see `google.find_prefix`.

    Returns:
      `Report`.

    Raises:
      UserError: no checkpoint there, a shape that differs, or a variable of
        the encoder that is missing. The model is then unchanged.
    """
    prefix = google.find_prefix(path)
    reader = google.open_checkpoint(prefix)
    shapes = reader.get_variable_to_shape_map()
    wanted = {names.google_name(v): v for v in model.trainable_variables}
    _check(prefix, shapes, wanted)
    loaded = [name for name in wanted if name in shapes]
    values = {name: google.read_tensor(reader, name, prefix) for name in loaded}
    for name, value in values.items():
        wanted[name].assign(value)
    return Report(
        prefix,
        loaded,
        new=[name for name in wanted if name not in shapes],
        unused=sorted(n for n in shapes if n not in wanted and names.is_weight(n)),
    )


def _check(prefix, shapes, wanted):
    for name, variable in wanted.items():
        if name in shapes and tuple(shapes[name]) != tuple(variable.shape):
            raise UserError(
                f"{prefix} does not fit the model: {name} is {shapes[name]} in the "
                f"checkpoint and {list(variable.shape)} in the model; give the "
                "bert_config.json that came with the checkpoint."
            )
    missing = [n for n in wanted if n.startswith("bert/") and n not in shapes]
    if missing:
        raise UserError(
            f"{prefix} does not fit the model: it lacks {len(missing)} of its "
            f"variables, the first is {missing[0]}; give the bert_config.json "
            "that came with the checkpoint."
        )
