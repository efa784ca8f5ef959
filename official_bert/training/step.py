"""One training step, and one evaluation batch, on any `tf.distribute` strategy."""

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

# Units of the number in a dropout seed, 64 bits. The lowest 10 bits are the dropout
# index. The other parts allow 2^10 micro-batches, 2^12 replicas and 2^31 steps.
MICRO_BATCH, REPLICA, STEP = 2**10, 2**20, 2**32

# Optional float32 scalar of a batch: above 0 if the worker should stop.
STOP = "stop"


@dataclasses.dataclass(frozen=True)
class Objective:
    """The loss to minimize and the values to report.

    Attributes:
      losses: name -> number added to the denominator of that loss's mean. Training
        minimizes their sum.
      weights: function: features -> dict of each loss's weight, a float32 scalar. They
        do not need the forward pass, so all replicas and micro-batches can use one
        denominator for the whole batch.
      terms: function: (model outputs, features) -> dict of name -> (sum, weight), for
        the losses and for all other values to report.
      describe: function: row of means -> text of a log line.
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
    """Return the `Objective` of one loss that is a mean over examples.

    Args:
      loss: name of the loss.
      terms: see `Objective`.
      describe: see `Objective`.
      joint: see `Objective`.
    """

    def weights(features):
        return {loss: tf.cast(tf.shape(features["input_ids"])[0], tf.float32)}

    return Objective({loss: 0.0}, weights, terms, describe, joint)


@dataclasses.dataclass(frozen=True)
class StepSettings:
    """The way in which a training step is computed.

    Without dropout, all settings except `per_replica_update` give the same weights, up
    to rounding.

    Attributes:
      seed: seed of dropout.
      micro_batch_size: rows per device and pass; 0 for all. It must divide each
        replica's share of the batch.
      xla: whether XLA compiles the forward and backward passes.
      per_replica_update: take means and clip on each replica, before the gradients are
        summed, like the original on TPUs. The result then depends on the way the batch
        is split.
    """

    seed: int
    micro_batch_size: int = 0
    xla: bool = False
    per_replica_update: bool = False


def step_seed(seed: int, step: int | tf.Tensor, replica: int | tf.Tensor) -> tf.Tensor:
    """Return the dropout seed of one replica in one training step, int64 [2].

    It is a pure function of its arguments, without collisions below 2^31 steps and
    4096 replicas. The lowest bits are 0, for micro-batches and dropout indices
    (`modeling.dropout.index_seed`).
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
    """Return a compiled function that makes one training step.

    For the arguments see `make_replica_step`.

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
    """Return the function of one training step on each replica, for `strategy.run`.

    The result does not depend on the way the batch is split: denominators and
    gradients are summed over micro-batches and replicas. The clipping norm is that of
    the summed gradient, including embedding gradients as dense matrices. Clipping
    before the sum would scale each part by its own norm. The sum would then have
    another direction, would depend on the split, and could exceed the limit. If the
    summed gradient is not finite, weights and moments do not change. The step still
    counts, so that step k always uses batch k.

    Args:
      strategy: a `tf.distribute` strategy.
      model: a Keras model whose call takes `training`, `dropout_seed` and `kernels`.
      optimizer: a built Keras optimizer; its `iterations` is the step.
      guard: `Guard`, made in the strategy's scope like model and optimizer.
      objective: `Objective`.
      settings: `StepSettings`.
      kernels: `Kernels` of the forward and backward passes. They also define whether
        XLA compiles the element-wise work of clipping and of the optimizer.
      all_reduce: function: nest of a replica's tensors -> their sums over the replicas;
        by default the strategy's. Programs for replicas that do not exist need another.

    Returns:
      function: a replica's features -> report, a dict of scalars:
      `name` and `name/weight` of each term, summed over the replicas; 0 if the step was
      skipped.
      `gradient_norm` of the summed gradient before clipping; with
      `per_replica_update`, of the sum of clipped gradients.
      `learning_rate`, `skipped_updates` of the whole run, and `skipped_in_row`.
      `loss_scale` if the loss is scaled, and `stop` if the features contain it.
    """
    variables = model.trainable_variables
    gradients_of = _make_gradients_of(model, objective, settings, kernels)
    update = _make_update(strategy, optimizer, guard, variables, kernels)

    def replica_step(features):
        context = tf.distribute.get_replica_context()
        total = all_reduce or functools.partial(context.all_reduce, "SUM")
        # Integers that were copied to a GPU before the step are int64.
        features = {
            name: tf.cast(value, tf.int32) if value.dtype == tf.int64 else value
            for name, value in features.items()
        }
        weights = objective.weights(features)
        if STOP in features:
            # The reduction needs a tensor with a device, so compute one.
            weights[STOP] = tf.identity(features.pop(STOP))
        summed = total(weights)
        counted = weights if settings.per_replica_update else summed
        denominators = {
            name: counted[name] + added for name, added in objective.losses.items()
        }
        replica = context.replica_id_in_sync_group
        seed = step_seed(settings.seed, optimizer.iterations, replica)
        scale = tf.convert_to_tensor(guard.loss_scale) if guard.scaled else None
        # With separate updates, a replica compares only its own examples.
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

    It maps (features, denominators, dropout seed, loss scale or None,
    `joint.Replicas`) to (dense float32 gradients, terms), summed over micro-batches.
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
        # The gradient of an embedding table is a list of slices with repetitions. Their
        # norm is not the norm of the matrix, so convert them to a matrix.
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
    """Sum over the replicas; return gradients, terms and the gradients' norm."""
    if settings.per_replica_update:
        gradients, _ = tf.clip_by_global_norm(gradients, CLIP_NORM)
    gradients, terms = all_reduce((gradients, terms))
    return gradients, terms, tf.linalg.global_norm(gradients)


def _clip_factor(norm, settings):
    """Return the factor that clips gradients, as in `tf.clip_by_global_norm`."""
    if settings.per_replica_update:
        return tf.ones([])
    return CLIP_NORM * tf.minimum(1.0 / norm, 1.0 / CLIP_NORM)


def _make_update(strategy, optimizer, guard, variables, kernels):
    """Return a function that applies summed gradients with the optimizer.

    `optimizer.apply` would sum them over the replicas again. Therefore its per-variable
    step is called on each device directly. The function's arguments on each replica
    are: whether to apply the gradients, a bool scalar; the clipping factor, a float32
    scalar; and the gradients.
    """

    def on_device(step, finite, factor, *gradients):
        rate = tf.convert_to_tensor(optimizer.learning_rate)

        def apply():
            for variable, gradient in zip(variables, gradients, strict=True):
                optimizer.update_step(gradient * factor, variable, rate)
            return True

        if kernels.compiles_update:
            # Clipping, decay and Adam become one pass over memory.
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
    """Return a compiled function that evaluates one batch.

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
