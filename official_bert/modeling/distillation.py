"""A small classifier that learns from a large one: the model and its losses."""

from collections.abc import Mapping
from typing import Any

import keras
import tensorflow as tf

from official_bert.config import BertConfig
from official_bert.modeling.classification import ClassificationModel
from official_bert.modeling.kernels.choose import WITH_GRADIENTS
from official_bert.modeling.kernels.interface import Kernels


@keras.saving.register_keras_serializable("official_bert")
class DistillationModel(ClassificationModel):
    """The student, with a linear map from each of its layers to the teacher's width.

    The maps are needed only in training. Legend: L layers and width H of the student,
    width T of the teacher.

    Args:
      config: the student's `BertConfig`, or its `to_dict()`.
      num_outputs: C, see `ClassificationModel`.
      teacher_width: T.
      recompute: see `BertEncoder`.
    """

    def __init__(
        self,
        config: BertConfig | dict[str, Any],
        num_outputs: int,
        teacher_width: int,
        recompute: bool = False,
        **kwargs: Any,
    ):
        super().__init__(config, num_outputs, recompute, **kwargs)
        self.teacher_width = teacher_width
        self.maps = [
            keras.layers.Dense(
                teacher_width, use_bias=False, name=f"distillation_map_{layer}"
            )
            for layer in range(self.config.num_hidden_layers)
        ]
        for each in self.maps:
            each.build((None, self.config.hidden_size))

    def call(
        self,
        inputs: Mapping[str, tf.Tensor],
        training: bool = False,
        dropout_seed: tf.Tensor | None = None,
        kernels: Kernels = WITH_GRADIENTS,
    ) -> dict[str, tf.Tensor]:
        """Compute the scores of texts; in training, also the mapped vectors.

        For the arguments see `ClassificationModel.call`.

        Returns:
          dict with float32 `logits` [B, C]; in training also `vectors` [B, L, T], the
          mapped vectors of `[CLS]` after each layer.
        """
        if not training:
            return super().call(inputs, kernels=kernels)
        dropout_seed = self.bert.draw_dropout_seed(training, dropout_seed)
        encoded = self.bert(
            inputs, training=training, dropout_seed=dropout_seed, kernels=kernels
        )
        pooled = self.dropped(encoded["pooled_output"], dropout_seed, kernels)
        vectors = [
            tf.cast(one_map(layer[:, 0]), tf.float32)
            for one_map, layer in zip(
                self.maps, encoded["all_encoder_layers"], strict=True
            )
        ]
        return {
            "logits": self.classifier(pooled),
            "vectors": tf.stack(vectors, axis=1),
        }

    def student(self) -> ClassificationModel:
        """Return the classifier without the maps, with the same weights."""
        student = ClassificationModel(self.config, self.num_outputs)
        weights = {variable.path: variable for variable in self.weights}
        for variable in student.weights:
            variable.assign(weights[variable.path])
        return student

    def get_config(self) -> dict[str, Any]:
        """Return the arguments for `from_config`."""
        return {**super().get_config(), "teacher_width": self.teacher_width}


def logit_losses(
    logits: tf.Tensor, teacher_logits: tf.Tensor, temperature: float
) -> tf.Tensor:
    """Return T² KL(teacher ‖ student) at temperature T (Hinton et al., 2015, Sec. 2).

    Args:
      logits: float32 [B, C] of the student. One output is a regression: the loss is
        then the squared difference.
      teacher_logits: float32 [B, C].
      temperature: T, which divides both logits.

    Returns:
      float32 [B], nats.
    """
    if logits.shape[-1] == 1:
        return tf.square(logits - teacher_logits)[:, 0]
    ours = tf.nn.log_softmax(logits / temperature)
    theirs = tf.nn.log_softmax(teacher_logits / temperature)
    return temperature**2 * tf.reduce_sum(tf.exp(theirs) * (theirs - ours), axis=-1)


def hidden_losses(vectors: tf.Tensor, teacher_vectors: tf.Tensor) -> tf.Tensor:
    """Return the mean squared distance of normalized vectors (Sun et al., 2019).

    Args:
      vectors: float32 [B, L, T], the student's after the linear maps.
      teacher_vectors: float32 [B, L, T].

    Returns:
      float32 [B], from 0 to 4.
    """
    ours = tf.math.l2_normalize(vectors, axis=-1)
    theirs = tf.math.l2_normalize(teacher_vectors, axis=-1)
    distances = tf.reduce_sum(tf.square(ours - theirs), axis=-1)
    return tf.reduce_mean(distances, axis=-1)
