"""Learning rates: the original's, and one whose runs can be extended."""

from typing import Any

import keras
import tensorflow as tf


@keras.saving.register_keras_serializable("official_bert")
class WarmupLinearDecay(keras.optimizers.schedules.LearningRateSchedule):
    """The learning rate of `create_optimizer` in google-research/bert.

    The decay counts all steps from 0. During warm-up, the learning rate is
    `init_lr * step / num_warmup_steps` instead. The first step therefore has learning
    rate 0. At the end of warm-up the learning rate drops by the fraction
    `num_warmup_steps / num_train_steps`.

    Args:
      init_lr: the learning rate that warm-up approaches.
      num_train_steps: the step at which the learning rate reaches 0 and stays there.
      num_warmup_steps: number of warm-up steps; 0 for none.
    """

    def __init__(self, init_lr: float, num_train_steps: int, num_warmup_steps: int = 0):
        super().__init__()
        self.init_lr = init_lr
        self.num_train_steps = num_train_steps
        self.num_warmup_steps = num_warmup_steps

    def __call__(self, step: int | tf.Tensor) -> tf.Tensor:
        """Return the learning rate of step `step` (from 0), float32."""
        step = tf.cast(step, tf.float32)
        done = tf.minimum(step, self.num_train_steps) / self.num_train_steps
        decayed = self.init_lr * (1.0 - done)
        if not self.num_warmup_steps:
            return decayed
        warm = self.init_lr * (step / self.num_warmup_steps)
        return tf.where(step < self.num_warmup_steps, warm, decayed)

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        return {
            "init_lr": self.init_lr,
            "num_train_steps": self.num_train_steps,
            "num_warmup_steps": self.num_warmup_steps,
        }


@keras.saving.register_keras_serializable("official_bert")
class WarmupConstantDecay(keras.optimizers.schedules.LearningRateSchedule):
    """Linear warm-up, a constant learning rate, and a decay to 0 at the end.

    The decay is 1 - √(fraction of the decay steps done), the form that Hägele et al.
    (2024) recommend. Steps before the decay do not depend on `num_train_steps`. A
    checkpoint from there can therefore continue with more steps.

    Args:
      init_lr: the constant learning rate.
      num_train_steps: the step at which the learning rate reaches 0 and stays there.
      num_warmup_steps: number of warm-up steps; 0 for none.
      num_decay_steps: number of steps of the decay, which are the last steps.
    """

    def __init__(
        self,
        init_lr: float,
        num_train_steps: int,
        num_warmup_steps: int = 0,
        num_decay_steps: int = 1,
    ):
        super().__init__()
        self.init_lr = init_lr
        self.num_train_steps = num_train_steps
        self.num_warmup_steps = num_warmup_steps
        self.num_decay_steps = num_decay_steps

    def __call__(self, step: int | tf.Tensor) -> tf.Tensor:
        """Return the learning rate of step `step` (from 0), float32."""
        step = tf.cast(step, tf.float32)
        first = self.num_train_steps - self.num_decay_steps
        done = tf.clip_by_value((step - first) / self.num_decay_steps, 0.0, 1.0)
        rate = self.init_lr * (1.0 - tf.sqrt(done))
        if not self.num_warmup_steps:
            return rate
        warm = self.init_lr * (step / self.num_warmup_steps)
        return tf.where(step < self.num_warmup_steps, warm, rate)

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        return {
            "init_lr": self.init_lr,
            "num_train_steps": self.num_train_steps,
            "num_warmup_steps": self.num_warmup_steps,
            "num_decay_steps": self.num_decay_steps,
        }
