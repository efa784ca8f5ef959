"""`Predictor`: a fine-tuned model of any task that answers, in any program."""

from official_bert.checkpoints import any_format
from official_bert.tasks import ner
from official_bert.tasks.choice import ChoiceTask
from official_bert.tasks.choice_predictor import ChoicePredictor
from official_bert.tasks.classifier_predictor import ClassifierPredictor
from official_bert.tasks.classifier_task import ClassifierTask
from official_bert.tasks.encoder_predictor import EncoderPredictor
from official_bert.tasks.ner import NerTask
from official_bert.tasks.ner_predictor import NerPredictor
from official_bert.tasks.squad import SquadTask
from official_bert.tasks.squad_predictor import SquadPredictor
from official_bert.tasks.task_file import has_task, read_task
from official_bert.tasks.tflite_model import carried_files, find_file

# Task -> what answers for it.
_ANSWERING = {
    ChoiceTask: ChoicePredictor,
    ClassifierTask: ClassifierPredictor,
    NerTask: NerPredictor,
    SquadTask: SquadPredictor,
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
        one; or a classifier or tagger of Hugging Face whose config names its labels.
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
        config = checkpoint.config
    return NerPredictor if config and ner.task_of(config) else ClassifierPredictor
