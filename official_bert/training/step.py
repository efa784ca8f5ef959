"""One update, and one evaluation batch, on any `tf.distribute` strategy."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

from official_bert.modeling.kernels.choose import WITH_GRADIENTS
from official_bert.modeling.kernels.interface import Kernels
from official_bert.training.gradients import joint
from official_bert.training.gradients.micro_batches import rows_of, sum_over
from official_bert.training.guard import Guard
from official_bert.training.reports import describe, report_of

# The original's `tf.clip_by_global_norm(grads, clip_norm=1.0)`.
CLIP_NORM = 1.0

# Places in the 64 bits of a dropout seed. Below them are 2^10 dropout indices, so
# there can be 2^10 micro-batches, 2^12 replicas and 2^31 steps.
MICRO_BATCH, REPLICA, STEP = 2**10, 2**20, 2**32

# A batch may carry this float32 scalar: above 0, the worker wants to stop.
STOP = "stop"


@dataclasses.dataclass(frozen=True)
class Objective:
    """What is minimised and what is counted.

    Attributes:
      losses: name -> number added to the denominator of that loss's mean.
        Their sum is what is minimised.
      weights: features -> dict of each loss's weight, a float32 scalar. They
        are known before the forward pass, so that all replicas and
        micro-batches can agree on one denominator for the whole batch.
      terms: (model outputs, features) -> dict of name -> (sum, weight), for
        the losses and for whatever else is to be reported.
      describe: row of means -> what a log line says of it.
      joint: whether a loss compares examples with each other, so that `terms` needs the
        outputs and features of the whole batch; see `gradients.joint`.
    """

    losses: dict[str, float]
    weights: Callable[[dict[str, tf.Tensor]], dict[str, tf.Tensor]]
    terms: Callable[[Any, dict[str, tf.Tensor]], dict[str, tuple[tf.Tensor, tf.Tensor]]]
    describe: Callable[[dict[str, float]], str] = describe
    joint: bool = False


def mean_over_examples(
    loss: str,
    terms: Callable[
        [Any, dict[str, tf.Tensor]], dict[str, tuple[tf.Tensor, tf.Tensor]]
    ],
    describe: Callable[[dict[str, float]], str],
    joint: bool = False,
) -> Objective:
    """Return the `Objective` of one loss, whose mean is over examples.

    Args:
      loss: its name.
      terms: see `Objective`.
      describe: likewise.
      joint: likewise.
    """

    def weights(features):
        return {loss: tf.cast(tf.shape(features["input_ids"])[0], tf.float32)}

    return Objective({loss: 0.0}, weights, terms, describe, joint)


@dataclasses.dataclass(frozen=True)
class StepSettings:
    """How an update is computed.

    Without dropout all but `per_replica_update` give the same update, up to rounding.

    Attributes:
      seed: of dropout.
      micro_batch_size: rows that a device handles at once; 0 for all. It
        must divide each replica's share of the batch.
      xla: whether XLA compiles the forward and backward passes.
      per_replica_update: take means, and clip, on each replica by itself before the
        gradients are summed, as the original did on TPUs. The update then
        depends on how the batch is split.
    """

    seed: int
    micro_batch_size: int = 0
    xla: bool = False
    per_replica_update: bool = False


def step_seed(seed: int, step: int | tf.Tensor, replica: int | tf.Tensor) -> tf.Tensor:
    """Return the dropout seed of one replica in one step, int64 [2].

    A pure function of its arguments, without collisions below 2^31 steps and
    4096 replicas; the lowest bits are left to micro-batches and dropout
    indices (`modeling.dropout.index_seed`).
    """
    offset = tf.cast(step, tf.int64) * STEP + tf.cast(replica, tf.int64) * REPLICA
    return tf.stack([tf.constant(seed, tf.int64), offset])


def make_train_step(
    strategy: tf.distribute.Strategy,
    model: keras.Model,
    optimizer: keras.optimizers.Optimizer,
    guard: Guard,
    objective: Objective,
    settings: StepSettings,
    kernels: Kernels = WITH_GRADIENTS,
    all_reduce: Callable[[Any], Any] | None = None,
) -> Callable[[dict[str, Any]], dict[str, tf.Tensor]]:
    """Return the compiled function that makes one update.

    Its arguments are those of `make_replica_step`.

    Returns:
      function: per-replica features -> report, the same on all replicas.
    """
    replica_step = make_replica_step(
        strategy, model, optimizer, guard, objective, settings, kernels, all_reduce
    )

    @tf.function(autograph=False, reduce_retracing=True)
    def train_step(features):
        return first(strategy, strategy.run(replica_step, args=(features,)))

    return train_step


def make_replica_step(
    strategy: tf.distribute.Strategy,
    model: keras.Model,
    optimizer: keras.optimizers.Optimizer,
    guard: Guard,
    objective: Objective,
    settings: StepSettings,
    kernels: Kernels = WITH_GRADIENTS,
    all_reduce: Callable[[Any], Any] | None = None,
) -> Callable[[dict[str, tf.Tensor]], dict[str, tf.Tensor]]:
    """Return the function that makes one update on each replica, for `strategy.run`.

    The update is that of the whole batch, however it is split: denominators
    and gradients are summed over micro-batches and replicas, and the clipping
    norm is taken of the summed gradient, embeddings as dense matrices
    included. Clipped before the sum, each part would be scaled by its own norm: the
    sum would have another direction, depend on how the batch is split, and could be
    longer than the limit. Where that gradient is not finite, weights and moments
    stay as they are; the step still counts, so that step k always sees batch k.

    Args:
      strategy: a `tf.distribute` strategy.
      model: a Keras model whose call takes `training`, `dropout_seed` and `kernels`.
      optimizer: a built Keras optimizer; its `iterations` is the step.
      guard: `Guard`, made like model and optimizer in the strategy's scope.
      objective: `Objective`.
      settings: `StepSettings`.
      kernels: `Kernels` of the forward and backward passes. They also say whether
        XLA compiles the element-wise work of clipping and of the optimizer.
      all_reduce: function: nest of a replica's tensors -> their sums over the replicas;
        by default that of the strategy. For programs of replicas that do not exist.

    Returns:
      function: a replica's features -> report, a dict of scalars: `name` and
      `name/weight` for each term, summed over the replicas, 0 if the update
      was skipped; `gradient_norm`, of the summed gradient before clipping (with
      `per_replica_update`, of the sum of the clipped ones); `learning_rate`;
      `skipped_updates`, of the whole run, and `skipped_in_row`; `loss_scale`
      where there is one; `stop` where the features have it.
    """
    variables = model.trainable_variables
    gradients_of = _make_gradients_of(model, objective, settings, kernels)
    update = _make_update(strategy, optimizer, guard, variables, kernels)

    def replica_step(features):
        context = tf.distribute.get_replica_context()
        total = all_reduce or functools.partial(context.all_reduce, "SUM")
        # Integers are int64 where they were copied to a GPU before the step.
        features = {
            name: tf.cast(value, tf.int32) if value.dtype == tf.int64 else value
            for name, value in features.items()
        }
        weights = objective.weights(features)
        if STOP in features:
            # A computed tensor has a device, which the reduction asks for.
            weights[STOP] = tf.identity(features.pop(STOP))
        summed = total(weights)
        counted = weights if settings.per_replica_update else summed
        denominators = {
            name: counted[name] + added for name, added in objective.losses.items()
        }
        replica = context.replica_id_in_sync_group
        seed = step_seed(settings.seed, optimizer.iterations, replica)
        scale = tf.convert_to_tensor(guard.loss_scale) if guard.scaled else None
        # By itself, a replica compares its own examples only.
        count = 1 if settings.per_replica_update else context.num_replicas_in_sync
        replicas = joint.Replicas(count, replica, total)
        gradients, terms = gradients_of(features, denominators, seed, scale, replicas)
        gradients, terms, norm = _reduce(total, gradients, terms, settings)
        finite = tf.math.is_finite(norm)
        report = {
            name: tf.where(finite, value, tf.zeros_like(value))
            for name, value in report_of(terms).items()
        }
        report["gradient_norm"] = norm
        report["learning_rate"] = tf.convert_to_tensor(optimizer.learning_rate)
        if guard.scaled:
            report["loss_scale"] = scale
        if STOP in summed:
            report[STOP] = summed[STOP]
        update(finite, _clip_factor(norm, settings), gradients)
        report["skipped_updates"] = guard.skipped.read_value()
        report["skipped_in_row"] = guard.skipped_in_row.read_value()
        return report

    return replica_step


def _make_gradients_of(model, objective, settings, kernels):
    """Return the function that computes the gradients of one replica's rows.

    It is (features, denominators, dropout seed, loss scale or None, `joint.Replicas`)
    -> (dense float32 gradients, terms), summed over the micro-batches.
    """
    variables, micro_batch_size = model.trainable_variables, settings.micro_batch_size
    if objective.joint:
        return joint.make_gradients_of(
            model,
            objective.terms,
            micro_batch_size,
            MICRO_BATCH,
            settings.xla,
            kernels,
        )

    def of_rows(features, denominators, seed, scale):
        with tf.GradientTape() as tape:
            outputs = model(features, training=True, dropout_seed=seed, kernels=kernels)
            terms = objective.terms(outputs, features)
            loss = sum(terms[name][0] / denominators[name] for name in denominators)
            if scale is not None:
                loss *= scale
        gradients = tape.gradient(loss, [variable.value for variable in variables])
        # Embedding rows arrive as a list of slices with repetitions; their
        # norm is not that of the matrix they add up to.
        gradients = [tf.convert_to_tensor(gradient) for gradient in gradients]
        if scale is not None:
            gradients = [gradient / scale for gradient in gradients]
        return gradients, terms

    def of_share(features, denominators, seed, scale):
        rows = next(iter(features.values())).shape[0]
        if not micro_batch_size or rows == micro_batch_size:
            return of_rows(features, denominators, seed, scale)

        def of_micro_batch(number):
            part = {
                name: rows_of(value, number * micro_batch_size, micro_batch_size)
                for name, value in features.items()
            }
            offset = tf.cast(number, tf.int64) * MICRO_BATCH
            own = seed + tf.stack([tf.constant(0, tf.int64), offset])
            return of_rows(part, denominators, own, scale)

        return sum_over(rows // micro_batch_size, of_micro_batch)

    if settings.xla:
        of_share = tf.function(of_share, jit_compile=True, autograph=False)
    return lambda *values: of_share(*values[:-1])


def _reduce(all_reduce, gradients, terms, settings):
    """Sum over the replicas; also return the norm of the gradients' sum."""
    if settings.per_replica_update:
        gradients, _ = tf.clip_by_global_norm(gradients, CLIP_NORM)
    gradients, terms = all_reduce((gradients, terms))
    return gradients, terms, tf.linalg.global_norm(gradients)


def _clip_factor(norm, settings):
    """Return what clips gradients of a norm: that of `tf.clip_by_global_norm`."""
    if settings.per_replica_update:
        return tf.ones([])
    return CLIP_NORM * tf.minimum(1.0 / norm, 1.0 / CLIP_NORM)


def _make_update(strategy, optimizer, guard, variables, kernels):
    """Return the function that lets the optimizer apply gradients already summed.

    `optimizer.apply` would sum them over the replicas once more, so its
    per-variable step is called on each device directly. The function's arguments on
    each replica are whether to do it, bool scalar; the clipping factor, float32 scalar;
    and the gradients.
    """

    def on_device(step, finite, factor, *gradients):
        rate = tf.convert_to_tensor(optimizer.learning_rate)

        def apply():
            for variable, gradient in zip(variables, gradients, strict=True):
                optimizer.update_step(gradient * factor, variable, rate)
            return True

        if kernels.compiles_update:
            # Clipping, decay and Adam become one pass over the memory.
            apply = tf.function(apply, jit_compile=True, autograph=False)
        tf.cond(finite, apply, lambda: False)
        guard.count(finite)
        step.assign_add(1)

    def on_all_devices(strategy, *values):
        step = optimizer.iterations.value
        strategy.extended.update(step, on_device, args=values, group=False)

    def update(finite, factor, gradients):
        tf.__internal__.distribute.interim.maybe_merge_call(
            on_all_devices, strategy, finite, factor, *gradients
        )

    return update


def make_eval_step(
    strategy: tf.distribute.Strategy, model: keras.Model, objective: Objective
) -> Callable[[dict[str, Any]], dict[str, tf.Tensor]]:
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
        return first(strategy, strategy.run(replica_step, args=(features,)))

    return eval_step


def first(
    strategy: tf.distribute.Strategy, per_replica: dict[str, Any]
) -> dict[str, tf.Tensor]:
    """Return the first replica's report; all replicas report the same sums."""
    return {
        name: strategy.experimental_local_results(value)[0]
        for name, value in per_replica.items()
    }
