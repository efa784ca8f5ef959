"""The compared pre-training recipes, each a list of flags of `run_pretraining.py`."""

import dataclasses
import re

# Flags that change the time of a training step.
COSTLY = (
    *("--nodropout", "--nonext_sentence", "--masked_lm_prob"),
    *("--optimizer", "--train_batch_size", "--pack"),
)


# Size of the model -> learning rate. With twice this rate, the base stays at the
# unigram entropy.
RATES = {"tiny": 1e-3, "mini": 2.5e-4}


@dataclasses.dataclass(frozen=True)
class Recipe:
    """The flags of a recipe, in addition to those that all recipes share.

    Attributes:
      flags: tuple of flags. `{fifth}`, `{first}` and `{second}` stand for numbers of
        steps, see `flags_for`.
      rate_ratio: learning rate, divided by that of the size in `RATES`.
      steps_ratio: training steps, divided by those of a batch of constant size.
      causal_share: share of the steps with a left-to-right model, at the beginning.
      records: flag file in configs/ablations that its records are created with.
      initializer_range: that of the model's config.
    """

    flags: tuple[str, ...] = ()
    rate_ratio: float = 1.0
    steps_ratio: float = 1.0
    causal_share: float = 0.0
    records: str = "bert"
    initializer_range: float = 0.02

    @property
    def cost(self):
        """Return the flags on which the speed depends, as text."""
        return " ".join(flag for flag in self.flags if flag.startswith(COSTLY))

    def flags_for(self, num_train_steps):
        """Return the flags, a list of strings, for a number of training steps."""
        values = {
            "fifth": max(1, num_train_steps // 5),
            # With 32, 64 and 128 sequences, each size trains a third of them.
            "first": num_train_steps * 4 // 7,
            "second": num_train_steps * 6 // 7,
        }
        return [flag.format(**values) for flag in self.flags]


# Without both, small models stay on a plateau for a long time. The base and the rows
# after it contain them. Otherwise each effect would be that of the plateau's end.
START = ("--nodropout", "--initializer=fan_in")


def _with(*flags, **values):
    return Recipe((*START, *flags), **values)


SCHEDULE = "--learning_rate_schedule=constant_decay", "--num_decay_steps={fifth}"
# `configs/budget.flags`, apart from the learning rate and the batch size.
BUDGET = (*START, *SCHEDULE)


def _after_left_to_right(share, *flags):
    """Return the budget recipe with this start and only the masked-LM loss."""
    own = *flags, START[1], *SCHEDULE, "--nonext_sentence_prediction"
    return Recipe(own, causal_share=share, records="table5_no_nsp")


BASE = "base: both"
RECIPES = {
    "2018": Recipe(),
    "2018 at half the rate": Recipe(rate_ratio=0.5),
    "2018 at twice the rate": Recipe(rate_ratio=2),
    "no dropout": Recipe(START[:1]),
    "initializer fan_in": Recipe(START[1:]),
    BASE: _with(),
    "initializer range 0.08": Recipe(START[:1], initializer_range=0.08),
    "initializer residual": Recipe((START[0], "--initializer=residual")),
    "base at half the rate": _with(rate_ratio=0.5),
    "base at twice the rate": _with(rate_ratio=2),
    "base with batches of 16": _with("--train_batch_size=16", steps_ratio=4),
    "base with batches of 256": _with("--train_batch_size=256", steps_ratio=1 / 4),
    "masking 40 %": _with("--masked_lm_prob=0.4"),
    "masking 30 % to 15 %": _with("--masked_lm_prob=0.30:0.15"),
    "no next sentence": _with("--nonext_sentence_prediction", records="table5_no_nsp"),
    "growing batch": _with(
        *("--train_batch_size=32", "--batch_size_steps={first}:64,{second}:128"),
        steps_ratio=7 / 6,
    ),
    "Muon": _with("--optimizer=muon"),
    "Muon at 4 times the rate": _with("--optimizer=muon", rate_ratio=4),
    "LAMB": _with("--optimizer=lamb"),
    "LAMB at 4 times the rate": _with("--optimizer=lamb", rate_ratio=4),
    "packing": _with("--pack"),
    "causal then masked": _with(causal_share=0.25),
    "causal then masked at twice the rate": _with(causal_share=0.25, rate_ratio=2),
    "budget": Recipe(BUDGET),
    "budget with dropout": Recipe(BUDGET[1:]),
    "budget with Muon at 4 times the rate": Recipe(
        (*BUDGET, "--optimizer=muon"), rate_ratio=4
    ),
    "budget after 25 % left-to-right": _after_left_to_right(0.25, "--nodropout"),
    "budget after 25 % left-to-right, with dropout": _after_left_to_right(0.25),
    "budget after 10 % left-to-right, with dropout": _after_left_to_right(0.1),
}


def folder_name(recipe, size, seed, minutes):
    """Return the name of the folder of a pre-trained model."""
    words = re.sub("[:,]", "", recipe).replace("%", "percent").split()
    return f"{size}_{'-'.join(words)}_{minutes:g}-minutes_{seed}"
