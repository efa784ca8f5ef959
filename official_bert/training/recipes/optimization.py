"""The settings of the optimizer and of its learning-rate schedule."""

import dataclasses
from typing import Any

import keras

from official_bert.training.optimizer import BertAdam, BertLamb
from official_bert.training.recipes.muon import BertMuon
from official_bert.training.recipes.stable_adam import StableAdam
from official_bert.training.schedule import WarmupConstantDecay, WarmupLinearDecay

LINEAR, CONSTANT_DECAY = "linear", "constant_decay"


@dataclasses.dataclass(frozen=True)
class OptimizationSettings:
    """The flags of the optimizer, with the same names."""

    learning_rate: float
    num_train_steps: int
    num_warmup_steps: int = 0
    optimizer: str = "adam"
    bias_correction: bool = False
    learning_rate_schedule: str = LINEAR
    num_decay_steps: int | None = None
    layer_decay: float = 1.0
    average_last: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as a dict, without recipes that are off.

        Runs of earlier versions, which lack these recipes, can therefore resume.
        """
        values = dataclasses.asdict(self)
        for name in _RECIPES:
            if values[name] == OptimizationSettings.__dataclass_fields__[name].default:
                del values[name]
        return values


# Settings that do not come from the original.
_RECIPES = "learning_rate_schedule", "num_decay_steps", "layer_decay", "average_last"


def make_optimizer(settings: OptimizationSettings) -> keras.optimizers.Optimizer:
    """Return the optimizer of `OptimizationSettings`, not built yet."""
    schedule = make_schedule(settings)
    if settings.optimizer == "lamb":
        return BertLamb(schedule)
    if settings.optimizer == "muon":
        return BertMuon(schedule, bias_correction=settings.bias_correction)
    if settings.layer_decay == 1.0 and not settings.average_last:
        return BertAdam(schedule, bias_correction=settings.bias_correction)
    return StableAdam(
        schedule,
        settings.layer_decay,
        _first_averaged(settings),
        bias_correction=settings.bias_correction,
    )


def _first_averaged(settings):
    """Return the first step whose weights are averaged, or None."""
    if not settings.average_last:
        return None
    count = max(1, round(settings.num_train_steps * settings.average_last))
    return settings.num_train_steps - count


def make_schedule(
    settings: OptimizationSettings,
) -> keras.optimizers.schedules.LearningRateSchedule:
    """Return the learning-rate schedule of `OptimizationSettings`."""
    values = settings.learning_rate, settings.num_train_steps, settings.num_warmup_steps
    if settings.learning_rate_schedule == CONSTANT_DECAY:
        return WarmupConstantDecay(*values, settings.num_decay_steps or 1)
    return WarmupLinearDecay(*values)
