"""There is one predictor for each task and architecture."""

from official_bert.tasks import predictor


def test_tasks_and_architectures_are_registered_once():
    """Two predictors with one architecture would load each other's models."""
    predictors = predictor._PREDICTORS
    assert len({each.task_class.TASK for each in predictors}) == len(predictors)
    named = [each.architecture for each in predictors if each.architecture]
    assert len(set(named)) == len(named) >= 4
