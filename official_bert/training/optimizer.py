"""`BertAdam`: BERT's Adam with decoupled weight decay; and LAMB."""

import re
from collections.abc import Iterable, Sequence
from typing import Any

import keras
import tensorflow as tf

from official_bert.checkpoints import names

# A variable whose name contains one of these has no weight decay. With Google's names
# these are the LayerNorm parameters and all biases, including `output_bias`. Embedding
# tables have weight decay.
EXCLUDE_FROM_WEIGHT_DECAY = ("LayerNorm", "layer_norm", "bias")


def decays(
    variable: keras.Variable, patterns: Iterable[str] = EXCLUDE_FROM_WEIGHT_DECAY
) -> bool:
    """Return whether weight decay applies to a Keras variable, by its path."""
    return not any(re.search(pattern, variable.path) for pattern in patterns)


@keras.saving.register_keras_serializable("official_bert")
class BertAdam(keras.optimizers.Optimizer):
    """The optimizer of the paper (App. A.2), exactly like the original code.

    Follows `AdamWeightDecayOptimizer` in google-research/bert
    `optimization.py`:

        m = β1 m + (1 - β1) g
        v = β2 v + (1 - β2) g²
        θ = θ - lr (m / (√v + ε) + decay θ)

    There is a difference to textbook AdamW: no bias correction. With β2 = 0.999 the
    first hundred steps are three to six times as large as Adam's. Warm-up hides this in
    pre-training, but not in a fine-tuning run of a few hundred steps.
    `bias_correction=True` gives AdamW.

    Args:
      learning_rate: float or schedule.
      weight_decay_rate: weight decay per step, in units of the learning rate.
      beta_1: decay of the first moment.
      beta_2: decay of the second moment.
      epsilon: added to √v, outside the root.
      exclude_from_weight_decay: patterns that are searched for in `variable.path`.
      bias_correction: whether to divide the moments by 1 - β^t.
    """

    def __init__(
        self,
        learning_rate: float | keras.optimizers.schedules.LearningRateSchedule = 1e-4,
        weight_decay_rate: float = 0.01,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-6,
        exclude_from_weight_decay: Iterable[str] = EXCLUDE_FROM_WEIGHT_DECAY,
        bias_correction: bool = False,
        name: str = "bert_adam",
        **kwargs: Any,
    ):
        super().__init__(learning_rate=learning_rate, name=name, **kwargs)
        self.weight_decay_rate = weight_decay_rate
        self.beta_1 = beta_1
        self.beta_2 = beta_2
        self.epsilon = epsilon
        self.patterns = tuple(exclude_from_weight_decay)
        self.bias_correction = bias_correction

    def build(self, var_list: Sequence[keras.Variable]) -> None:
        """Create `adam_m` and `adam_v` for each variable, as zeros."""
        if self.built:
            return
        super().build(var_list)
        self.adam_m, self.adam_v = self.add_optimizer_variables(
            var_list, ["adam_m", "adam_v"]
        )
        self._decayed = [decays(variable, self.patterns) for variable in var_list]

    def slots(self) -> dict[str, list[keras.Variable]]:
        """Return name in checkpoints -> list of variables."""
        return {names.FIRST_MOMENT: self.adam_m, names.SECOND_MOMENT: self.adam_v}

    def update_step(
        self,
        gradient: tf.Tensor,
        variable: keras.Variable | tf.Variable,
        learning_rate: tf.Tensor,
    ) -> None:
        """Update one variable and its moments in place.

        TensorFlow's fused `ResourceApplyAdam` makes one pass over memory; separate
        operations would make about ten. With both β powers given as 0 it applies no
        bias correction.
        """
        index = self._get_variable_index(variable)
        if isinstance(variable, keras.Variable):
            variable = variable.value
        rate = tf.cast(learning_rate, variable.dtype)
        power_1 = power_2 = tf.zeros([], variable.dtype)
        epsilon = tf.cast(self.epsilon, variable.dtype)
        if self.bias_correction:
            step = tf.cast(self.iterations + 1, variable.dtype)
            power_1, power_2 = self.beta_1**step, self.beta_2**step
            # The operation corrects √v through the learning rate. Scale ε in the same
            # way, so that it is added to the corrected √v.
            epsilon = self.epsilon * tf.sqrt(1.0 - power_2)
        if self._decayed[index] and self.weight_decay_rate:
            # Decay the old weights, before Adam changes them.
            variable.assign(variable * (1.0 - rate * self.weight_decay_rate))
        tf.raw_ops.ResourceApplyAdam(
            var=variable.handle,
            m=self.adam_m[index].value.handle,
            v=self.adam_v[index].value.handle,
            beta1_power=power_1,
            beta2_power=power_2,
            lr=rate,
            beta1=tf.cast(self.beta_1, variable.dtype),
            beta2=tf.cast(self.beta_2, variable.dtype),
            epsilon=epsilon,
            grad=tf.cast(gradient, variable.dtype),
        )

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        return {
            **super().get_config(),
            "weight_decay_rate": self.weight_decay_rate,
            "beta_1": self.beta_1,
            "beta_2": self.beta_2,
            "epsilon": self.epsilon,
            "exclude_from_weight_decay": list(self.patterns),
            "bias_correction": self.bias_correction,
        }


@keras.saving.register_keras_serializable("official_bert")
class BertLamb(keras.optimizers.Lamb):
    """LAMB as published (You et al., 2020, Algorithm 2), for batches of thousands.

        r = m̂ / (√v̂ + ε) + decay θ
        θ = θ - lr (|θ| / |r|) r

    m̂ and v̂ are Adam's moments with bias correction. The trust ratio |θ| / |r| is 1 if
    one of the norms is 0. LayerNorm parameters and biases have neither decay nor trust
    ratio, as in the authors' code. `keras.optimizers.Lamb` differs: it applies decay
    before the trust ratio, and the ratio to every variable.

    Args:
      learning_rate: float or schedule.
      weight_decay_rate: weight decay, added to the update inside the trust ratio.
      epsilon: added to √v̂, outside the root.
      **kwargs: arguments of `keras.optimizers.Lamb`.
    """

    def __init__(
        self,
        learning_rate: float | keras.optimizers.schedules.LearningRateSchedule = 1e-3,
        weight_decay_rate: float = 0.01,
        epsilon: float = 1e-6,
        **kwargs: Any,
    ):
        kwargs.setdefault("name", "bert_lamb")
        super().__init__(learning_rate=learning_rate, epsilon=epsilon, **kwargs)
        self.weight_decay_rate = weight_decay_rate

    def build(self, var_list: Sequence[keras.Variable]) -> None:
        """Create both moments of each variable, as zeros."""
        super().build(var_list)
        self._adapted = [decays(variable) for variable in var_list]

    def slots(self) -> dict[str, list[keras.Variable]]:
        """Return name in checkpoints -> list of variables."""
        first, second = names.LAMB_MOMENTS
        return {first: self._momentums, second: self._velocities}

    def update_step(
        self, gradient: tf.Tensor, variable: keras.Variable, learning_rate: tf.Tensor
    ) -> None:
        """Update one variable and its moments in place."""
        index = self._get_variable_index(variable)
        m, v = self._momentums[index], self._velocities[index]
        rate = tf.cast(learning_rate, variable.dtype)
        gradient = tf.cast(gradient, variable.dtype)
        step = tf.cast(self.iterations + 1, variable.dtype)
        m.assign_add((gradient - m) * (1.0 - self.beta_1))
        v.assign_add((tf.square(gradient) - v) * (1.0 - self.beta_2))
        corrected = m / (1.0 - self.beta_1**step)
        root = tf.sqrt(v / (1.0 - self.beta_2**step))
        update = corrected / (root + self.epsilon)
        if self._adapted[index]:
            update += self.weight_decay_rate * tf.convert_to_tensor(variable)
            update *= _trust_ratio(tf.convert_to_tensor(variable), update)
        variable.assign_sub(rate * update)

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        return {**super().get_config(), "weight_decay_rate": self.weight_decay_rate}


def _trust_ratio(weights, update):
    """Return |weights| / |update|, or 1 if one of them is 0."""
    norms = tf.norm(weights), tf.norm(update)
    ratio = tf.math.divide_no_nan(*norms)
    return tf.where(ratio > 0, ratio, tf.ones_like(ratio))
