"""Protection of the weights from gradients that are not finite.

It also adapts the loss scale of float16, whose numbers end at 65,504 and become 0 below
6e-8. The loss is multiplied by the scale before the backward pass, and the gradients
are divided by it afterward (Micikevicius et al., 2018).
"""

import tensorflow as tf

FIRST_LOSS_SCALE = 2.0**15
# Good steps after which the scale doubles, as in Keras' `LossScaleOptimizer`.
GROWTH_STEPS = 2000


class Guard:
    """Counts skipped steps and adapts the loss scale.

    Create it in the scope of the training strategy.

    Args:
      scaled: whether the loss is scaled, for float16. Otherwise the scale stays 1.

    Attributes:
      loss_scale: float32 variable.
      good_updates: int64 variable, good steps since the scale last changed.
      skipped: int64 variable, skipped steps of the whole run.
      skipped_in_row: int64 variable, skipped steps since the last good one.
    """

    def __init__(self, scaled: bool = False):
        self.scaled = scaled
        first = FIRST_LOSS_SCALE if scaled else 1.0
        self.loss_scale = tf.Variable(first, trainable=False, dtype=tf.float32)
        self.good_updates = tf.Variable(0, trainable=False, dtype=tf.int64)
        self.skipped = tf.Variable(0, trainable=False, dtype=tf.int64)
        self.skipped_in_row = tf.Variable(0, trainable=False, dtype=tf.int64)

    def variables(self) -> dict[str, tf.Variable]:
        """Return name -> variable of the state to save with a run.

        Without scaling the scale is not saved. A run that resumes in float16 then
        starts with the first scale.
        """
        names: tuple[str, ...] = ("skipped", "skipped_in_row")
        if self.scaled:
            names += ("loss_scale", "good_updates")
        return {name: getattr(self, name) for name in names}

    def count(self, finite: tf.Tensor) -> None:
        """Count one training step, on one device.

        Args:
          finite: bool tensor, whether the gradient was finite.
        """
        bad = tf.cast(~finite, tf.int64)
        self.skipped.assign_add(bad)
        self.skipped_in_row.assign((self.skipped_in_row + bad) * bad)
        if not self.scaled:
            return
        # Halve the scale after an overflow, double it after `GROWTH_STEPS` good steps.
        scale, good = self.loss_scale.read_value(), self.good_updates + 1
        grown = finite & (good >= GROWTH_STEPS)
        up = tf.where(grown, scale * 2.0, scale)
        self.loss_scale.assign(tf.where(finite, up, tf.maximum(scale / 2.0, 1.0)))
        self.good_updates.assign(tf.where(finite & ~grown, good, 0))
