"""`Predictor`: a fine-tuned model of any task that answers, in any program."""

from official_bert.checkpoints import any_format
from official_bert.checkpoints.huggingface.config_json import architecture
from official_bert.fine_tuning.config_labels import architecture_of
from official_bert.fine_tuning.task_file import has_task, read_task
from official_bert.fine_tuning.tflite_model import carried_files, find_file
from official_bert.tasks.choice import training as choice
from official_bert.tasks.choice.predictor import ChoicePredictor
from official_bert.tasks.choice.training import ChoiceTask
from official_bert.tasks.classifier import task as classifier_task
from official_bert.tasks.classifier.predictor import ClassifierPredictor
from official_bert.tasks.classifier.task import ClassifierTask
from official_bert.tasks.embedding.predictor import EncoderPredictor
from official_bert.tasks.ner import training as ner
from official_bert.tasks.ner.predictor import NerPredictor
from official_bert.tasks.ner.training import NerTask
from official_bert.tasks.squad import training as squad
from official_bert.tasks.squad.predictor import SquadPredictor
from official_bert.tasks.squad.training import SquadTask

# Task -> what answers for it.
_ANSWERING = {
    ChoiceTask: ChoicePredictor,
    ClassifierTask: ClassifierPredictor,
    NerTask: NerPredictor,
    SquadTask: SquadPredictor,
}
# Hugging Face's name of a model -> what answers, and what its config tells of its task.
_TOLD = {
    choice.ARCHITECTURE: (ChoicePredictor, choice.task_of),
    classifier_task.ARCHITECTURE: (ClassifierPredictor, classifier_task.task_of),
    ner.ARCHITECTURE: (NerPredictor, ner.task_of),
    squad.ARCHITECTURE: (SquadPredictor, squad.task_of),
}


class Predictor:
    """A fine-tuned model, loaded once; `task.json` says what for.

    `predict` may be called from several threads at a time. The model is compiled
    with the first call, and never again, whatever the texts' lengths and number.

    Attributes:
      answering: what answers, see `load`.
      task: what it tells, see there.
    """

    def __init__(self, path, batch_size=32):
        """Load a model; see `load`."""
        self.answering = load(path, batch_size)
        self.task = self.answering.task

    def predict(self, *texts):
        """Answer.

        Args:
          *texts: of a classifier a list of texts, or of pairs (text, text); of a
            tagger a text, or a list of them; of SQuAD a question and a context; of
            multiple choice a prompt and a list of choices.

        Returns:
          list of `Prediction`; list of `FoundEntity`, or of such lists; an
          `Answer`; a `ChoiceAnswer`; vectors, float32 [N, H].

        Raises:
          TypeError: these are not the texts that the task asks for.
        """
        return self.answering.predict(*texts)


def load(path, batch_size=32):
    """Load what answers for a model, with all that its task has.

    Args:
      path: output directory of a finished fine-tuning; a `.tflite` exported from
        one; a model of Hugging Face, where a classifier's or a tagger's config names
        its labels; or one of SQuAD that the original has trained.
      batch_size: texts that go through the model together.

    Returns:
      `ChoicePredictor`, `ClassifierPredictor`, `NerPredictor` or `SquadPredictor`;
      `EncoderPredictor` of a `.tflite` that was not fine-tuned.

    Raises:
      UserError: something is missing or does not fit.
      ValueError: `batch_size` is no size.
    """
    if batch_size < 1:
        raise ValueError(f"batch_size is {batch_size}; it must be 1 or more.")
    return _class_of(path)(path, batch_size)


def _class_of(path):
    """Return the class of what answers for a model."""
    if find_file(path):
        with carried_files(find_file(path)) as folder:
            if not has_task(folder):
                return EncoderPredictor
            task, _ = read_task(folder, *_ANSWERING)
        return _ANSWERING[type(task)]
    if has_task(path):
        task, _ = read_task(path, *_ANSWERING)
        return _ANSWERING[type(task)]
    with any_format.opened(path) as checkpoint:
        # Where nothing tells, this one says what is missing.
        return class_of(checkpoint) or ClassifierPredictor


def class_of(checkpoint):
    """Return the class of what answers for a checkpoint that has no `task.json`.

    Args:
      checkpoint: `Checkpoint`.

    Returns:
      a class, see `load`; None where it does not tell what it is for.
    """
    config = checkpoint.config
    if config is None:
        return None
    kind = architecture(checkpoint.shapes, architecture_of(config))
    answering, task_of = _TOLD.get(kind, (None, None))
    return answering if answering and task_of(config) else None
