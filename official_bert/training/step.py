"""One update, and one evaluation batch, on any `tf.distribute` strategy."""

import dataclasses
from collections.abc import Callable

import tensorflow as tf

from official_bert.training.reports import report_of

# The original's `tf.clip_by_global_norm(grads, clip_norm=1.0)`.
CLIP_NORM = 1.0


@dataclasses.dataclass(frozen=True)
class Objective:
    """What is minimised and what is counted.

    Attributes:
      losses: name -> number added to the denominator of that loss's mean.
        Their sum is what is minimised.
      weights: features -> dict of each loss's weight, a float32 scalar. They
        are known before the forward pass, so that all replicas can agree on
        one denominator for the whole batch.
      terms: (model outputs, features) -> dict of name -> (sum, weight), for
        the losses and for whatever else is to be reported.
    """

    losses: dict[str, float]
    weights: Callable
    terms: Callable


def step_seed(seed, step, replica):
    """Return the dropout seed of one replica in one step, int64 [2].

    A pure function of its arguments, without collisions below 2^31 steps and
    4096 replicas; the lowest bits are left to micro-batches and dropout
    sites (`modeling.layers.site_seed`).
    """
    place = tf.cast(step, tf.int64) * 2**32 + tf.cast(replica, tf.int64) * 2**20
    return tf.stack([tf.constant(seed, tf.int64), place])


def make_train_step(strategy, model, optimizer, objective, seed):
    """Return the compiled function that makes one update.

    The update is that of the whole batch, however it is split: denominators
    and gradients are summed over the replicas, and the clipping norm is taken
    of the summed gradient, embeddings as dense matrices included.

    Args:
      strategy: a `tf.distribute` strategy.
      model: a Keras model whose call takes `training` and `dropout_seed`.
      optimizer: a built Keras optimizer; its `iterations` is the step.
      objective: `Objective`.
      seed: int, of the run.

    Returns:
      function: per-replica features -> dict of float32 scalars: `name` and
      `name/weight` for each term, summed over the replicas, `gradient_norm`
      before clipping, and `learning_rate`.
    """
    variables = model.trainable_variables

    def forward_backward(features, denominators, dropout_seed):
        with tf.GradientTape() as tape:
            outputs = model(features, training=True, dropout_seed=dropout_seed)
            terms = objective.terms(outputs, features)
            loss = sum(terms[name][0] / denominators[name] for name in denominators)
        gradients = tape.gradient(loss, [variable.value for variable in variables])
        # Embedding rows arrive as a list of slices with repetitions; their
        # norm is not that of the matrix they add up to.
        return [tf.convert_to_tensor(gradient) for gradient in gradients], terms

    def replica_step(features):
        context = tf.distribute.get_replica_context()
        summed = context.all_reduce("SUM", objective.weights(features))
        denominators = {
            name: summed[name] + added for name, added in objective.losses.items()
        }
        dropout_seed = step_seed(
            seed, optimizer.iterations, context.replica_id_in_sync_group
        )
        gradients, terms = forward_backward(features, denominators, dropout_seed)
        gradients, terms = context.all_reduce("SUM", (gradients, terms))
        gradients, norm = tf.clip_by_global_norm(gradients, CLIP_NORM)
        report = report_of(terms)
        report["gradient_norm"] = norm
        report["learning_rate"] = tf.convert_to_tensor(optimizer.learning_rate)
        _apply(context, optimizer, gradients, variables)
        return report

    @tf.function(autograph=False, reduce_retracing=True)
    def train_step(features):
        return _first(strategy, strategy.run(replica_step, args=(features,)))

    return train_step


def make_eval_step(strategy, model, objective):
    """Return the compiled function that evaluates one batch.

    Returns:
      function: per-replica features -> dict of `name` and `name/weight`
      scalars, summed over the replicas.
    """

    def replica_step(features):
        outputs = model(features, training=False)
        terms = objective.terms(outputs, features)
        context = tf.distribute.get_replica_context()
        return report_of(context.all_reduce("SUM", terms))

    @tf.function(autograph=False, reduce_retracing=True)
    def eval_step(features):
        return _first(strategy, strategy.run(replica_step, args=(features,)))

    return eval_step


def _apply(context, optimizer, gradients, variables):
    """Let the optimizer apply gradients that are already summed.

    `optimizer.apply` would sum them over the replicas once more, so its
    per-variable step is called on each replica's copy directly.
    """

    def merged(strategy, *gradients):
        rate = tf.convert_to_tensor(optimizer.learning_rate)
        for variable, gradient in zip(variables, gradients, strict=True):
            strategy.extended.update(
                variable.value,
                lambda copy, gradient: optimizer.update_step(gradient, copy, rate),
                args=(gradient,),
                group=False,
            )
        optimizer.iterations.assign_add(1)

    context.merge_call(merged, args=tuple(gradients))


def _first(strategy, per_replica):
    """Every replica reports the same sums; take the first's."""
    return {
        name: strategy.experimental_local_results(value)[0]
        for name, value in per_replica.items()
    }
