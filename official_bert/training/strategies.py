"""The devices that train: the `tf.distribute` strategy, and the roles of processes."""

import contextlib
import json
import os
from typing import Any

import tensorflow as tf
from absl import logging

from official_bert.constants import STRATEGIES
from official_bert.errors import UserError

# Of one device in one training step, see `step.MICRO_BATCH`.
MOST_MICRO_BATCHES = 2**10


def make_strategy(
    name: str = "auto",
    num_devices: int = 0,
    tpu_name: str | None = None,
    tpu_zone: str | None = None,
    gcp_project: str | None = None,
) -> tf.distribute.Strategy:
    """Return the strategy with a name.

    Call it before any other TensorFlow function. TensorFlow must know about several
    workers, or a CPU that is split into several devices, when it starts.

    Args:
      name: one of `STRATEGIES`. `auto` uses several workers if `TF_CONFIG` lists them,
        else all GPUs of this machine, else one device.
      num_devices: devices of this machine; 0 for all GPUs, or else the CPU. A machine
        without GPUs splits its CPU into this number of logical devices. That is not
        faster, but it tests training on several devices.
      tpu_name: name or address of a Cloud TPU; None for the TPU of this machine.
      tpu_zone: zone of the TPU, if it differs from this machine's zone.
      gcp_project: project of the TPU, if it differs from this machine's project.

    Raises:
      UserError: the strategy is unknown, or the devices do not exist.
    """
    if name not in STRATEGIES:
        raise UserError(
            f"--strategy={name} is unknown. Use one of {', '.join(STRATEGIES)}."
        )
    if name == "auto":
        gpus = len(tf.config.list_physical_devices("GPU"))
        name = "mirrored" if (num_devices or gpus) > 1 else "one_device"
        if len(_workers(os.environ.get("TF_CONFIG"))) > 1:
            name = "multi_worker"
    if name == "tpu":
        return _tpu_strategy(tpu_name, tpu_zone, gcp_project)
    if name == "multi_worker":
        return _multi_worker_strategy(num_devices)
    if name == "one_device":
        if num_devices > 1:
            raise UserError(
                f"--num_devices is {num_devices}, but --strategy=one_device uses one "
                "device. Use --strategy=mirrored."
            )
        return tf.distribute.get_strategy()
    return tf.distribute.MirroredStrategy(_local_devices(num_devices))


def is_chief(strategy: tf.distribute.Strategy) -> bool:
    """Return whether this process writes the run's files; one of all workers does."""
    return worker_number(strategy) == 0


def is_multi_worker(strategy: tf.distribute.Strategy) -> bool:
    """Return whether several processes train together."""
    return isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy)


def is_tpu(strategy: tf.distribute.Strategy) -> bool:
    """Return whether the strategy uses TPUs, for which XLA compiles every step."""
    return isinstance(strategy, tf.distribute.TPUStrategy)


def worker_number(strategy: tf.distribute.Strategy) -> int:
    """Return this process's number among the workers; the chief is 0."""
    if not is_multi_worker(strategy):
        return 0
    resolver = strategy.cluster_resolver
    chiefs = len(resolver.cluster_spec().as_dict().get("chief", []))
    is_worker = resolver.task_type == "worker"
    return resolver.task_id + (chiefs if is_worker else 0)


def local_replicas(strategy: tf.distribute.Strategy) -> list[int]:
    """Return the numbers of the replicas that this process feeds."""
    if strategy.num_replicas_in_sync == 1:
        return [0]
    numbers: list[int] = []

    def note(context):
        numbers.append(context.replica_id_in_sync_group)
        return tf.constant(0)

    strategy.experimental_distribute_values_from_function(note)
    return numbers


def share_of(rows: int, replica: int, replicas: int) -> tuple[int, int]:
    """Return (start, stop) of a replica's rows; shares are as equal as possible."""
    return rows * replica // replicas, rows * (replica + 1) // replicas


def local_rows(strategy: tf.distribute.Strategy, batch_size: int) -> tuple[int, int]:
    """Return (start, stop) of the rows of each batch that this process needs."""
    numbers, replicas = local_replicas(strategy), strategy.num_replicas_in_sync
    start, _ = share_of(batch_size, numbers[0], replicas)
    _, stop = share_of(batch_size, numbers[-1], replicas)
    return start, stop


def distribute(
    strategy: tf.distribute.Strategy,
    batch: dict[str, tf.Tensor],
    batch_size: int | None = None,
    first_row: int = 0,
    rows_axis: int = 0,
    copies: bool = False,
) -> dict[str, Any]:
    """Give each replica its share of a batch's rows.

    Args:
      strategy: a `tf.distribute` strategy.
      batch: dict of tensors [rows, …], and of scalars, which every replica gets.
      batch_size: rows of the whole batch, if `batch` contains only the rows that this
        process needs.
      first_row: index in the whole batch of the first row of `batch`.
      rows_axis: the axis of the rows; 1 for several batches [K, rows, …].
      copies: whether to copy each share to its replica's device now. If not, the step
        copies it. Integers on a GPU are int64, because TensorFlow expects int32
        arguments of a function in host memory (`step` converts them back).

    Returns:
      the same dict with per-replica tensors.
    """
    replicas = strategy.num_replicas_in_sync
    devices = replica_devices(strategy) if copies else None
    if replicas == 1:
        return copied(batch, devices[0]) if devices else batch
    if batch_size is None:
        batch_size = len(next(value for value in batch.values() if value.shape.rank))
    before = (slice(None),) * rows_axis

    def share(context):
        number = context.replica_id_in_sync_group
        start, stop = share_of(batch_size, number, replicas)
        rows = (*before, slice(start - first_row, stop - first_row))
        own = {
            name: value[rows] if value.shape.rank else value
            for name, value in batch.items()
        }
        return copied(own, devices[number - first]) if devices else own

    first = local_replicas(strategy)[0] if devices else 0
    return strategy.experimental_distribute_values_from_function(share)


def replica_devices(strategy: tf.distribute.Strategy) -> list[str]:
    """Return the device names of the replicas that this process feeds."""
    if strategy is tf.distribute.get_strategy() and not is_tpu(strategy):
        gpus = tf.config.list_logical_devices("GPU")
        return [gpus[0].name if gpus else "/device:CPU:0"]
    return list(strategy.extended.worker_devices)


def copied(tensors: dict[str, tf.Tensor], device: str) -> dict[str, tf.Tensor]:
    """Copy a batch's tensors to a device; see `distribute`."""
    is_gpu = "GPU" in device.upper()

    def copy(value):
        if is_gpu and value.dtype == tf.int32:
            with tf.device("/device:CPU:0"):
                value = tf.cast(value, tf.int64)
        with tf.device(device):
            return tf.identity(value)

    return {name: copy(value) for name, value in tensors.items()}


def check_shares(
    strategy: tf.distribute.Strategy, batch_size: int, micro_batch_size: int = 0
) -> None:
    """Raise `UserError` if a batch cannot be split over the replicas.

    Args:
      strategy: a `tf.distribute` strategy.
      batch_size: sequences per training step, over all replicas.
      micro_batch_size: sequences per replica and pass; 0 for all.
    """
    check_split(
        strategy.num_replicas_in_sync, batch_size, micro_batch_size, is_tpu(strategy)
    )


def check_split(
    replicas: int, batch_size: int, micro_batch_size: int, must_be_even: bool
) -> None:
    """Raise `UserError` if a batch cannot be split over N replicas.

    Args:
      replicas: N.
      batch_size: see `check_shares`.
      micro_batch_size: see `check_shares`.
      must_be_even: whether all shares must be equal, as on TPUs.
    """
    share, rest = divmod(batch_size, replicas)
    if batch_size < replicas:
        raise UserError(
            f"--train_batch_size={batch_size} is less than one sequence for each of "
            f"{replicas} devices. Use a larger batch size."
        )
    if rest and (micro_batch_size or must_be_even):
        raise UserError(
            f"--train_batch_size={batch_size} cannot be split evenly over {replicas} "
            f"devices. Use {batch_size - rest} or {batch_size - rest + replicas}."
        )
    if micro_batch_size and share % micro_batch_size:
        raise UserError(
            f"--micro_batch_size={micro_batch_size} does not divide the {share} "
            f"sequences of each device (--train_batch_size={batch_size} on {replicas} "
            f"device(s)). Use a divisor of {share}."
        )
    if micro_batch_size and share // micro_batch_size > MOST_MICRO_BATCHES:
        raise UserError(
            f"--micro_batch_size={micro_batch_size} splits each device's {share} "
            f"sequences into {share // micro_batch_size} micro-batches, but at most "
            f"{MOST_MICRO_BATCHES} can have distinct dropout masks. Use a larger "
            "--micro_batch_size."
        )


def from_chief(strategy: tf.distribute.Strategy, number: int) -> int:
    """Return the chief's number (int) on every worker; all workers must call it."""
    if not is_multi_worker(strategy):
        return number
    mine = local_replicas(strategy)[0] == 0

    def of_replica(context):
        is_first = mine and context.replica_id_in_sync_group == 0
        return tf.constant(number if is_first else 0, tf.int64)

    @tf.function
    def total(values):
        return strategy.reduce("SUM", strategy.run(tf.identity, (values,)), axis=None)

    return int(total(strategy.experimental_distribute_values_from_function(of_replica)))


def end_together(strategy: tf.distribute.Strategy) -> None:
    """Wait for all workers, so that none leaves while another still waits.

    The second wait may fail, because workers may leave after the first.
    """
    from_chief(strategy, 0)
    with contextlib.suppress(tf.errors.OpError):
        from_chief(strategy, 0)


def _local_devices(num_devices):
    """Return the names of the devices to use, GPUs if the machine has any."""
    gpus = tf.config.list_physical_devices("GPU")
    if gpus and num_devices > len(gpus):
        raise UserError(
            f"--num_devices is {num_devices}, but this machine has {len(gpus)} GPUs. "
            f"Use at most {len(gpus)}."
        )
    if gpus:
        return [f"GPU:{number}" for number in range(num_devices or len(gpus))]
    count = num_devices or 1
    logging.warning(
        "TensorFlow sees no GPU. Training uses %s, which is not faster. To check this "
        "machine, run run_scripts/doctor.py.",
        f"the CPU as {count} devices" if count > 1 else "the CPU",
    )
    if count > 1:
        cpu = tf.config.list_physical_devices("CPU")[0]
        logical = [tf.config.LogicalDeviceConfiguration() for _ in range(count)]
        try:
            tf.config.set_logical_device_configuration(cpu, logical)
        except RuntimeError as error:
            started = len(tf.config.list_logical_devices("CPU"))
            if started < count:
                raise UserError(
                    f"--num_devices is {count}, but TensorFlow has already started "
                    f"with {started} CPU device(s). Create the strategy before other "
                    "TensorFlow calls."
                ) from error
    return [f"CPU:{number}" for number in range(count)]


EXAMPLE = (
    '\'{"cluster": {"worker": ["host0:2222", "host1:2222"]}, '
    '"task": {"type": "worker", "index": 0}}\''
)


def _workers(tf_config):
    """Return the addresses of the workers in `TF_CONFIG`."""
    if not tf_config:
        return []
    try:
        config = json.loads(tf_config)
        cluster, task = config.get("cluster", {}), config.get("task", {})
        addresses = [*cluster.get("chief", []), *cluster.get("worker", [])]
        if addresses and int(task["index"]) not in range(len(cluster[task["type"]])):
            raise IndexError(f"no {task['type']} {task['index']}")
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise UserError(
            f"TF_CONFIG is {tf_config!r}. It does not describe a worker of a cluster "
            f"({type(error).__name__}: {error}). Example: {EXAMPLE}"
        ) from error
    return addresses


def _multi_worker_strategy(num_devices):
    workers = _workers(os.environ.get("TF_CONFIG"))
    if not workers:
        raise UserError(
            "--strategy=multi_worker needs the environment variable TF_CONFIG on "
            f"each worker. Example for the first worker: {EXAMPLE}"
        )
    gpus = tf.config.list_physical_devices("GPU")
    if num_devices > max(len(gpus), 1):
        raise UserError(
            f"--num_devices is {num_devices}, but this worker has {len(gpus)} GPUs. "
            "Workers cannot split their CPUs into several devices."
        )
    if gpus and num_devices:
        tf.config.set_visible_devices(gpus[:num_devices], "GPU")
    print(f"Waiting for all {len(workers)} workers: {', '.join(workers)}.", flush=True)
    return tf.distribute.MultiWorkerMirroredStrategy()


def _tpu_strategy(tpu_name, tpu_zone, gcp_project):
    try:
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver(
            tpu_name or "local", zone=tpu_zone, project=gcp_project
        )
        if tpu_name not in (None, "local"):
            tf.config.experimental_connect_to_cluster(resolver)
        tf.tpu.experimental.initialize_tpu_system(resolver)
        return tf.distribute.TPUStrategy(resolver)
    except (tf.errors.OpError, ValueError, RuntimeError, OSError, ImportError) as error:
        # TensorFlow's message names internal operations and devices, so omit it.
        if tpu_name in (None, "local"):
            raise UserError(
                "--use_tpu, or --strategy=tpu: TensorFlow finds no free TPU on this "
                "machine. Remove the flag to use a GPU or the CPU, name another TPU "
                "with --tpu_name, or install tensorflow-tpu on a TPU VM "
                "(docs/how_to/tpu.md)."
            ) from error
        raise UserError(
            f"--tpu_name: cannot connect to a TPU named {tpu_name}. Check the name, "
            "--tpu_zone and --gcp_project, and that cloud-tpu-client is installed "
            "(docs/how_to/tpu.md)."
        ) from error
