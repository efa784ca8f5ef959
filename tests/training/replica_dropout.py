"""Dropout and evaluation on two replicas with the same rows.

Prints JSON. `together` is the masked-LM loss of a training step, summed over the
replicas. `alone` is the loss of a plain call with each replica's dropout seed. Then
follow the same sum of an evaluation step, and the loss of one plain call.
"""

import json

import replay
import tensorflow as tf
from original_head import features, head_config, recording

from official_bert.config import BertConfig
from official_bert.modeling.pretraining import PretrainingModel, pretraining_terms
from official_bert.training.guard import Guard
from official_bert.training.optimizer import BertAdam
from official_bert.training.pretraining import PRETRAINING
from official_bert.training.step import (
    StepSettings,
    make_eval_step,
    make_train_step,
    step_seed,
)

SEED, STEP = 3, 4


def main():
    strategy = replay.two_replicas()
    config = head_config().to_dict() | {
        "hidden_dropout_prob": 0.3,
        "num_hidden_layers": 1,
    }
    with strategy.scope():
        model, optimizer = PretrainingModel(BertConfig.from_dict(config)), BertAdam(0.0)
        optimizer.build(model.trainable_variables)
        guard = Guard()
    optimizer.iterations.assign(STEP)
    batch = {name: tf.constant(x) for name, x in features(recording()).items()}
    both = strategy.experimental_distribute_values_from_function(lambda _: batch)

    def loss(**arguments):
        terms = pretraining_terms(model(batch, **arguments), batch)
        return float(terms["masked_lm_loss"][0])

    alone = [
        loss(training=True, dropout_seed=step_seed(SEED, STEP, replica))
        for replica in (0, 1)
    ]
    train_step = make_train_step(
        strategy, model, optimizer, guard, PRETRAINING, StepSettings(SEED)
    )
    eval_step = make_eval_step(strategy, model, PRETRAINING)
    found = {
        "alone": alone,
        "together": float(train_step(both)["masked_lm_loss"]),
        "evaluated": float(eval_step(both)["masked_lm_loss"]),
        "evaluated_alone": loss(),
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
