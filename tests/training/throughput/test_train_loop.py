"""Several training steps in one call are bit-identical to single steps."""

import json

import pytest
import several_steps
import tensorflow as tf
import warm_python
from marks import slow


def check(found, replicas):
    assert found["unequal"] == []
    assert found["same_reports"] and found["replicas"] == replicas
    assert found["steps"] == [sum(several_steps.CALLS)] * 2
    # Weights, both moments, the guard's counts and the reports, with dropout.
    assert found["compared"] > 100 and found["dropout"] == 0.1


@pytest.mark.parametrize(
    "flags",
    [{}, {"micro_batch_size": 1}, slow({"xla": True, "precision": "bfloat16"})],
    ids=str,
)
def test_on_one_device(flags):
    check(several_steps.differences(tf.distribute.get_strategy(), **flags), 1)


@pytest.mark.slow
def test_on_two_replicas():
    process = warm_python.start([several_steps.__file__, "2"])
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 0, output[-3000:]
    check(json.loads(output.splitlines()[-1]), 2)
