"""The rows of the yardstick: what is measured, beside whom, and what is aimed at."""

import dataclasses

from benchmarks import workload
from benchmarks.yardstick import preparation
from benchmarks.yardstick.processes import Contender
from benchmarks.yardstick.targets import (
    OURS,
    PRODUCT,
    Ceiling,
    Memory,
    Rate,
    Seconds,
    Speed,
)
from official_bert.config import BertConfig
from official_bert.parameter_count import encoder_flops, training_flops

KERAS_HUB, KERAS_HUB_JIT = "KerasHub", "KerasHub jit"
PYTORCH, PYTORCH_GATHERED = "PyTorch", "PyTorch gathered"
WITH_PADDING, PRODUCTS = "ours --noskip_padding", "its products alone"
ONNX, RUST = "ONNX Runtime", "Rust tokenizers"
KERAS_HUBS = (KERAS_HUB, KERAS_HUB_JIT)
# Of the original's script, at 5 duplicates on two cores of a 2.5 GHz Xeon.
ORIGINAL_MB_PER_SECOND = 0.094
# The tokens of the sequences of most training steps.
MIXED = f"{workload.SHORTEST} to {workload.LENGTH}"
BATCHES = {"tiny": 32, "mini": 32, "base": 8}


@dataclasses.dataclass(frozen=True)
class Row:
    """Something that is measured.

    Attributes:
      name: as in --rows.
      title: for people.
      unit: what a call works off, in the plural.
      units: how many of them.
      contenders: list of `Contender`, ours first.
      targets: list of what `targets` has.
      flops: of the matrix products of a call of ours, or None.
      calls: in a turn, see `processes.take_turns`.
      is_drawn: whether its ratios belong in the picture.
    """

    name: str
    title: str
    unit: str
    units: float
    contenders: list
    targets: list = dataclasses.field(default_factory=list)
    flops: float | None = None
    calls: int = 3
    is_drawn: bool = True


def _product():
    # Short, and to be the best that the machine can do.
    return Contender(PRODUCT, "ours", "product", {}, calls=15)


def _ours(function, **arguments):
    return Contender(OURS, "ours", function, arguments)


def _training_flops(size, shortest=workload.SHORTEST, predictions=workload.PREDICTIONS):
    """Return the operations of a size's update, padding left out.

    Args:
      size: name of a released size.
      shortest: see `workload.pretraining_batch`; its length for no padding.
      predictions: places of a sequence whose words are computed.
    """
    config = BertConfig.named(size)
    batch = workload.pretraining_batch(config.vocab_size, BATCHES[size], shortest)
    lengths = batch["input_mask"].sum(axis=1)
    return sum(training_flops(config, int(one), predictions) for one in lengths)


def training(size):
    """Return the row of a size's pre-training update."""
    sizes = {"size": size, "batch": BATCHES[size]}
    # As it comes, PyTorch's model computes the words of all places.
    of_pytorch = {
        PYTORCH: (False, workload.LENGTH),
        PYTORCH_GATHERED: (True, workload.PREDICTIONS),
    }
    contenders = [
        *_with_and_without_padding(size, sizes),
        *_keras_hubs(size, sizes),
        *(
            Contender(
                name,
                "peers.pytorch.speed",
                "training",
                sizes | {"gathered": gathered},
                is_peer=True,
                flops=_training_flops(size, workload.LENGTH, predictions),
            )
            for name, (gathered, predictions) in of_pytorch.items()
        ),
        _product(),
    ]
    targets = [_beside_keras_hub(size)]
    if size == "base":
        targets.append(Speed((PYTORCH,), 2, PYTORCH))
    title = f"{size}: training step, {BATCHES[size]} × {MIXED}"
    return _training_row(f"train-{size}", title, size, contenders, targets)


def full_sequences(size):
    """Return the row of a size's update on sequences without padding."""
    sizes = {"size": size, "batch": BATCHES[size]}
    full = sizes | {"shortest": workload.LENGTH}
    contenders = [
        *_with_and_without_padding(size, full),
        Contender(PRODUCTS, "ours", "products", sizes),
        *_keras_hubs(size, full),
        _product(),
    ]
    # Here all that is computed is counted.
    targets = [Ceiling(0.8)] if size == "base" else []
    targets.append(_beside_keras_hub(size))
    title = f"{size}: training step, {BATCHES[size]} × {workload.LENGTH}, no padding"
    name = f"full-{size}"
    return _training_row(name, title, size, contenders, targets, workload.LENGTH)


def short_sequences(size, shortest=16):
    """Return the row of a size's update on sequences many of which are short."""
    sizes = {"size": size, "batch": BATCHES[size], "shortest": shortest}
    contenders = [*_with_and_without_padding(size, sizes), _product()]
    title = f"{size}: training step, {BATCHES[size]} × {shortest} to {workload.LENGTH}"
    return _training_row(f"short-{size}", title, size, contenders, shortest=shortest)


def _with_and_without_padding(size, sizes):
    computes_padding = Contender(
        WITH_PADDING,
        "ours",
        "training",
        sizes | {"skip_padding": False},
        flops=_training_flops(size, workload.LENGTH),
    )
    return [_ours("training", **sizes), computes_padding]


def _keras_hubs(size, sizes):
    return [
        Contender(
            name,
            "peers.kerashub",
            "training",
            sizes | {"jit_compile": jit_compile},
            flops=_training_flops(size, workload.LENGTH),
        )
        for name, jit_compile in {KERAS_HUB: "auto", KERAS_HUB_JIT: True}.items()
    ]


def _beside_keras_hub(size):
    return Speed(KERAS_HUBS, 1.4 if size == "base" else 2, "KerasHub's best")


def _training_row(
    name, title, size, contenders, targets=(), shortest=workload.SHORTEST
):
    flops = _training_flops(size, shortest)
    batch = BATCHES[size]
    return Row(name, title, "sequences", batch, contenders, list(targets), flops)


def variants(size):
    """Return the row of a size's update under the flags of `run_pretraining.py`."""
    sizes = {"size": size, "batch": BATCHES[size]}
    micro_batch = BATCHES[size] // 4
    settings = {
        "--recompute": {"recompute": True},
        "--precision=bfloat16": {"precision": "bfloat16"},
        f"--micro_batch_size={micro_batch}": {"micro_batch_size": micro_batch},
    }
    contenders = [
        *_with_and_without_padding(size, sizes),
        Contender(
            "--xla",
            "ours",
            "training",
            sizes | {"xla": True},
            flops=_training_flops(size, workload.LENGTH),
        ),
        *(
            Contender(name, "ours", "training", sizes | changed)
            for name, changed in settings.items()
        ),
        _product(),
    ]
    title = f"{size}: training step with flags, {BATCHES[size]} × {MIXED}"
    row = _training_row(f"flags-{size}", title, size, contenders)
    return dataclasses.replace(row, is_drawn=False)


def training_memory():
    """Return the row of the memory of base's update."""
    sizes = {"size": "base", "batch": BATCHES["base"]}
    recompute = "ours --recompute"
    contenders = [
        _ours("training", **sizes),
        Contender(recompute, "ours", "training", sizes | {"recompute": True}),
        _keras_hubs("base", sizes)[0],
        _product(),
    ]
    targets = [Memory(OURS, KERAS_HUB, 1), Memory(recompute, OURS, 0.6)]
    title = f"base: memory of a training step, {BATCHES['base']} × {MIXED}"
    return _training_row("memory", title, "base", contenders, targets)


def encoding(batch=16):
    """Return the row of base's outputs in float32."""
    sizes = {"size": "base", "batch": batch}
    contenders = [
        _ours("encoding", **sizes),
        Contender(
            KERAS_HUB, "peers.kerashub", "encoding", sizes | {"jit_compile": False}
        ),
        Contender(
            KERAS_HUB_JIT, "peers.kerashub", "encoding", sizes | {"jit_compile": True}
        ),
        Contender(PYTORCH, "peers.pytorch.speed", "encoding", sizes, True),
        Contender(ONNX, "peers.onnx_runtime", "encoding", sizes, True),
        _product(),
    ]
    flops = batch * encoder_flops(BertConfig.named("base"), workload.LENGTH)
    return Row(
        "encode",
        f"base: outputs in float32, {batch} × {workload.LENGTH}",
        "sequences",
        batch,
        contenders,
        [Ceiling(0.9), Speed((ONNX,), 1, ONNX)],
        flops,
    )


def int8(vocab_file):
    """Return the row of base in 8 bits, a row at a time."""
    quantized = {"size": "base", "vocab_file": vocab_file}
    plain = ".tflite float32"
    onnx_sizes = {"size": "base", "batch": 1, "quantized": True}
    contenders = [
        _ours("tflite", **quantized, quantization="int8"),
        Contender(plain, "ours", "tflite", quantized | {"quantization": "float32"}),
        Contender(f"{ONNX} int8", "peers.onnx_runtime", "encoding", onnx_sizes, True),
    ]
    targets = [Speed((plain,), 2, plain), Speed((f"{ONNX} int8",), 1, f"{ONNX} int8")]
    title = f"base: .tflite of 8 bits, 1 × {workload.LENGTH}"
    # Without operations: the product is of float32.
    return Row("int8", title, "sequences", 1, contenders, targets)


def _encoder_flops_of(texts, length=None):
    """Return the operations of MiniLM's outputs for texts.

    Args:
      texts: path, see `workload.read_texts`.
      length: that all are padded to; None for their own lengths.
    """
    config = BertConfig.from_dict(preparation.MINILM)
    lengths = [length or len(ids) for ids, _, _ in workload.read_texts(texts)]
    return sum(encoder_flops(config, tokens) for tokens in lengths)


def fine_tuning(task_name, data_dir, vocab_file, folder, batch=32, num_batches=4):
    """Return the row of updates on a task's own texts."""
    texts, num_outputs = preparation.glue_texts(
        task_name, data_dir, vocab_file, folder, batch * num_batches
    )
    work = {
        "config": preparation.MINILM,
        "texts": texts,
        "batch": batch,
        "num_outputs": num_outputs,
    }
    padded = f"padded to {workload.LENGTH}"
    contenders = [
        _ours("fine_tuning", **work),
        Contender(
            padded,
            "ours",
            "fine_tuning",
            work | {"padded": True},
            flops=3 * _encoder_flops_of(texts, workload.LENGTH),
        ),
        Contender(PYTORCH, "peers.pytorch.speed", "fine_tuning", work, True),
        _product(),
    ]
    targets = [Speed((PYTORCH,), 1.5, PYTORCH)]
    if task_name in ("cola", "mrpc"):
        targets = [Speed((padded,), 2.5, padded), Speed((PYTORCH,), 2, PYTORCH)]
    return Row(
        task_name,
        f"{task_name.upper()}: fine-tuning MiniLM, {num_batches} batches of {batch}",
        "sequences",
        batch * num_batches,
        contenders,
        targets,
        3 * _encoder_flops_of(texts),
        calls=1,
    )


def squad(squad_file, vocab_file, folder, num_questions=60, batch=16):
    """Return the row of SQuAD's windows."""
    texts, count = preparation.squad_windows(
        squad_file, vocab_file, folder, num_questions
    )
    work = {"config": preparation.MINILM, "texts": texts, "batch": batch}
    padded = f"padded to {preparation.WINDOW}"
    contenders = [
        _ours("windows", **work),
        Contender(
            padded,
            "ours",
            "windows",
            work | {"padded_to": preparation.WINDOW},
            flops=_encoder_flops_of(texts, preparation.WINDOW),
        ),
        _product(),
    ]
    title = f"SQuAD: MiniLM on windows of {preparation.WINDOW}/{preparation.STRIDE}"
    targets = [Speed((padded,), 1.3, padded)]
    flops = _encoder_flops_of(texts)
    return Row("squad", title, "windows", count, contenders, targets, flops, calls=1)


def tokenization(text_file, vocab_file, folder):
    """Return the row of the tokenizer."""
    path, megabytes = preparation.first_lines(text_file, folder, "tokens.txt", 12.0)
    work = {"lines_file": path, "vocab_file": vocab_file}
    contenders = [
        _ours("tokenization", **work, seen=False),
        Contender("ours, again", "ours", "tokenization", work | {"seen": True}),
        Contender(RUST, "peers.rust", "tokenization", work),
    ]
    targets = [Speed((RUST,), 2, RUST)]
    title = "tokenization, one thread, text not seen before"
    return Row("tokenize", title, "MB", megabytes, contenders, targets, calls=1)


def instances(text_file, vocab_file, folder, dupe_factor=5):
    """Return the row of instance creation in the exact mode."""
    path, megabytes = preparation.first_lines(text_file, folder, "instances.txt", 2.0)
    work = {"lines_file": path, "vocab_file": vocab_file, "dupe_factor": dupe_factor}
    return Row(
        "instances",
        f"instances, one process, exact mode, {dupe_factor} duplicates",
        "MB",
        megabytes,
        [_ours("instances", **work)],
        [Rate(8 * ORIGINAL_MB_PER_SECOND, "MB")],
        calls=1,
    )


def input_pipeline(text_file, vocab_file, folder, batch=32, count=20):
    """Return the row of the batches that a trainer gets."""
    records = preparation.records(text_file, vocab_file, folder)
    work = {"records": records, "batch": batch, "count": count}
    updates = "tiny's updates"
    contenders = [
        _ours("batches", **work),
        Contender(updates, "ours", "updates", work),
    ]
    title = f"input pipeline, {count} batches of {batch} × {workload.LENGTH}"
    targets = [Speed((updates,), 10, updates)]
    return Row(
        "input",
        title,
        "sequences",
        batch * count,
        contenders,
        targets,
        calls=1,
        is_drawn=False,
    )


def help_texts():
    """Return the row of the time that run scripts take to their `--help`."""
    scripts = ["run_pretraining.py", "run_classifier.py", "run_squad.py", "predict.py"]
    contenders = [
        Contender(name, "ours", "help_text", {"script": script})
        for name, script in zip([OURS, *scripts[1:]], scripts, strict=True)
    ]
    title = f"to --help: {', '.join(scripts)}"
    return Row("help", title, "scripts", 1, contenders, [Seconds(1.5)], is_drawn=False)
