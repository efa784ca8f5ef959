"""The one place that maps variables to Google's names.

Layers nest and are named so that a variable's path *is* the TensorFlow 1 name
(`bert/encoder/layer_3/attention/self/query/kernel`); what differs is listed
here.
"""

# Google's optimizer slots are `<variable>/adam_m` and `<variable>/adam_v`.
FIRST_MOMENT, SECOND_MOMENT = "adam_m", "adam_v"
GLOBAL_STEP = "global_step"


def google_name(variable):
    """Return the TensorFlow 1 name of a Keras variable."""
    return variable.path


def is_weight(name):
    """Whether a name in a checkpoint is a model's, not the optimizer's."""
    leaf = name.rsplit("/", 1)[-1]
    return leaf not in (FIRST_MOMENT, SECOND_MOMENT, GLOBAL_STEP)
