"""`BertMuon`: Muon for the encoder's matrices, `BertAdam` for all other weights."""

import re
from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from official_bert.checkpoints import names
from official_bert.training.optimizer import BertAdam, decays

# Kernels of the encoder. Embeddings and heads train with Adam, as Jordan et al. advise.
_MATRIX = re.compile(r"(^|/)encoder/layer_\d+/.*/kernel$")


def is_matrix(variable: keras.Variable) -> bool:
    """Return whether Muon trains a variable, by its path and shape."""
    return len(variable.shape) == 2 and bool(_MATRIX.search(variable.path))


@keras.saving.register_keras_serializable("official_bert")
class BertMuon(BertAdam):
    """Muon (Jordan et al., 2024) for matrices, with BERT's Adam for the rest.

    The step of a matrix is that of `keras.optimizers.Muon`: five Newton-Schulz
    iterations make the momentum almost orthogonal. A factor of 0.2 √(larger side)
    gives the step the size of an Adam step (Liu et al., 2025), so both parts
    use one learning rate. Decoupled weight decay applies to the same variables as in
    `BertAdam`.

    Args:
      learning_rate: float or schedule.
      momentum: decay of the momentum of matrices.
      **kwargs: arguments of `BertAdam`.
    """

    def __init__(
        self,
        learning_rate: float | keras.optimizers.schedules.LearningRateSchedule = 1e-3,
        momentum: float = 0.95,
        **kwargs: Any,
    ):
        kwargs.setdefault("name", "bert_muon")
        super().__init__(learning_rate, **kwargs)
        self.momentum = momentum
        # Only its mathematics is used. Its own step count and learning rate are not.
        self._muon = keras.optimizers.Muon(
            momentum=momentum, weight_decay=None, exclude_embeddings=False
        )

    def build(self, var_list: Sequence[keras.Variable]) -> None:
        """Create the momentum of each matrix and Adam's moments of the others."""
        if self.built:
            return
        keras.optimizers.Optimizer.build(self, var_list)

        matrices = [variable for variable in var_list if is_matrix(variable)]
        self._muon.build(matrices)
        momenta = iter(self._muon.momentums)

        def create_moment(name):
            return [
                None
                if is_matrix(variable)
                else self.add_variable_from_reference(variable, name)
                for variable in var_list
            ]

        self.momenta = [next(momenta) if is_matrix(v) else None for v in var_list]
        self.adam_m, self.adam_v = create_moment("adam_m"), create_moment("adam_v")
        self._decayed = [decays(variable, self.patterns) for variable in var_list]

    def slots(self) -> dict[str, list[keras.Variable | None]]:
        """Return name in checkpoints -> list of variables; None marks a missing one."""
        return {**super().slots(), names.MUON_MOMENTUM: self.momenta}

    def update_step(
        self,
        gradient: tf.Tensor,
        variable: keras.Variable | tf.Variable,
        learning_rate: tf.Tensor,
    ) -> None:
        """Update one variable and its moments in place."""
        index = self._get_variable_index(variable)
        if self.momenta[index] is None:
            super().update_step(gradient, variable, learning_rate)
            return
        rate = tf.cast(learning_rate, variable.dtype)
        if self._decayed[index] and self.weight_decay_rate:
            kept = 1.0 - rate * self.weight_decay_rate
            variable.assign(tf.convert_to_tensor(variable) * kept)
        self._muon.update_step(tf.cast(gradient, variable.dtype), variable, rate)

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        return {**super().get_config(), "momentum": self.momentum}
