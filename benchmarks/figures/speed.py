"""Speed and memory compared with other libraries, from `docs/yardstick.json`."""

from benchmarks.figures import numbers, style

# Program in the yardstick -> (library, whether it is that library's fastest setting).
PROGRAMS = {
    "KerasHub": (style.KERAS_HUB, False),
    "KerasHub jit": (style.KERAS_HUB, True),
    "PyTorch": (style.PYTORCH, False),
    "PyTorch gathered": (style.PYTORCH, True),
    "ONNX Runtime": (style.ONNX, True),
    "ONNX Runtime int8": (style.ONNX, True),
    "Rust tokenizers": (style.TOKENIZERS, True),
}
# Panel -> row of the yardstick -> its name in the panel.
SPEED_PANELS = {
    "Pre-training step, a quarter padding": {
        "train-tiny": "tiny",
        "train-mini": "mini",
        "train-base": "base",
    },
    "Pre-training step, no padding": {
        "full-tiny": "tiny",
        "full-mini": "mini",
        "full-base": "base",
    },
    "Fine-tuning MiniLM": {
        "cola": "CoLA",
        "mrpc": "MRPC",
        "rte": "RTE",
        "sts-b": "STS-B",
        "sst-2": "SST-2",
    },
    "Inference and text": {
        "encode": "base, float32",
        "int8": "base, int8 .tflite",
        "tokenize": "tokenization",
    },
}
OPTIONS = {
    "--noskip_padding": "ours --noskip_padding",
    "--xla": "--xla",
    "--micro_batch_size=8": "--micro_batch_size=8",
    "--recompute": "--recompute",
    "--precision=bfloat16": "--precision=bfloat16",
}
GIGABYTE = 1e9
TICKS = (1, 1.5, 2, 3, 4, 6)


def panels_of(rows):
    """Return panel -> row of the yardstick -> name, for those that were measured."""
    shown = {
        title: {row: name for row, name in names.items() if row in rows}
        for title, names in SPEED_PANELS.items()
    }
    return {title: names for title, names in shown.items() if names}


def draw_speed(rows=None):
    """Return the figure of other libraries' times divided by ours.

    Args:
      rows: dict of a row's name -> its summary, see `yardstick.report.summarize`;
        by default those of the documentation.
    """
    rows = rows or numbers.read(numbers.YARDSTICK)
    panels = panels_of(rows)
    mosaic = [[str(number)] for number in range(len(panels))]
    if len(panels) == len(SPEED_PANELS):
        mosaic = [["0", "2"], ["1", "3"]]
    figure, axes = style.new_figure(2.8 * len(mosaic), mosaic=mosaic)
    for number, (title, names) in enumerate(panels.items()):
        own = axes[str(number)]
        own.set_title(title)
        own.set(xscale="log", xlim=(0.85, 8.5))
        style.bare(own, x_grid=True)
        own.set_xticks(TICKS, [f"{tick:g} ×" for tick in TICKS])
        own.minorticks_off()
        own.axvline(1, color=style.COLORS[style.OURS], linewidth=2.5)
        style.name_rows(own, list(names.values()))
        for y, name in enumerate(names):
            _draw_ratios(own, y, rows[name]["theirs_over_ours"])
    libraries = (
        *(style.OURS, style.KERAS_HUB, style.PYTORCH),
        *(style.ONNX, style.TOKENIZERS),
    )
    note = (
        "Time divided by that of official_bert. Hollow: default setting of a library."
    )
    style.name_libraries(figure, libraries, note)
    return figure


def _draw_ratios(axes, y, ratios):
    """Draw quartiles of the libraries in a row, each at its own height."""
    shown = {name: PROGRAMS[name] for name in ratios if name in PROGRAMS}
    libraries = [library for library, _ in shown.values()]
    for offset, (name, (library, is_best)) in zip(
        _offsets(len(shown)), shown.items(), strict=True
    ):
        low, middle, high = ratios[name]
        color = style.COLORS[library]
        axes.plot([low, high], [y + offset] * 2, color=color, linewidth=1.2)
        is_filled = is_best or libraries.count(library) == 1
        filling = color if is_filled else style.PAPER
        axes.plot(middle, y + offset, "o", color=color, markerfacecolor=filling)
        style.label(axes, f"{middle:.2f}", (high, y + offset), color, size=7.5)


def _offsets(count):
    """Return heights around 0 for the programs of a row."""
    return [0.23 * (number - (count - 1) / 2) for number in range(count)]


def draw_memory():
    """Return the figure of peak memory, and of the effect of options."""
    rows = numbers.read(numbers.YARDSTICK)
    figure, axes = style.new_figure(
        2.9, mosaic=[["memory", "options"]], gridspec_kw={"width_ratios": [1, 1]}
    )
    _draw_memory(axes["memory"], rows)
    _draw_options(axes["options"], rows["flags-mini"])
    style.name_libraries(figure, (style.OURS, style.KERAS_HUB, style.PYTORCH))
    return figure


def _draw_memory(axes, rows):
    names = {"train-tiny": "tiny", "train-mini": "mini", "train-base": "base"}
    axes.set_title("Peak memory of a pre-training step, GB")
    style.bare(axes, x_grid=True)
    style.name_rows(axes, list(names.values()))
    axes.set_xlim(0, 5)
    for y, row in enumerate(names):
        memory = rows[row]["memory_bytes"]
        shown = {"ours": style.OURS, "KerasHub jit": style.KERAS_HUB}
        shown["PyTorch gathered"] = style.PYTORCH
        for offset, (name, library) in zip(_offsets(3), shown.items(), strict=True):
            gigabytes = memory[name] / GIGABYTE
            color = style.COLORS[library]
            axes.barh(y + offset, gigabytes, height=0.2, color=color)
            text = f"{gigabytes:.1f}"
            style.label(axes, text, (gigabytes, y + offset), color, size=8)


def _draw_options(axes, row):
    axes.set_title("Options with mini, default = 1")
    style.bare(axes, x_grid=True)
    style.name_rows(axes, list(OPTIONS))
    axes.axvline(1, color=style.SOFT, linewidth=1)
    axes.set(xlim=(0.55, 1.75))
    color = style.COLORS[style.OURS]
    for y, name in enumerate(OPTIONS.values()):
        low, middle, high = row["theirs_over_ours"][name]
        memory = row["memory_bytes"][name] / row["memory_bytes"]["ours"]
        axes.plot([low, high], [y, y], color=color, linewidth=1.2)
        axes.plot(middle, y, "o", color=color)
        axes.plot(memory, y, "D", color=color, markerfacecolor=style.PAPER)
        if name == "--precision=bfloat16":
            style.label(axes, "time", (middle, y), color, shift=(0, 9), ha="center")
            style.label(axes, "memory", (memory, y), color, shift=(0, 9), ha="center")
