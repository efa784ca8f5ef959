"""A pre-trained encoder on a device's format: a vector for each text."""

import numpy as np

from official_bert.errors import UserError
from official_bert.fine_tuning import loading as fine_tuned
from official_bert.fine_tuning import outputs as scoring
from official_bert.fine_tuning.batches import FeatureSet
from official_bert.tasks.classifier import features as classifier_features
from official_bert.tasks.classifier.predictor import example_of


class EncoderPredictor:
    """The `.tflite` of a pre-trained model, loaded once; see `Predictor`.

    Attributes:
      model: `TfliteModel`.
      task: None: it has not been fine-tuned.
      tokenizer: `FullTokenizer`.
    """

    def __init__(self, path, batch_size=32):
        """Load a model.

        Args:
          path: of a `.tflite`, or of the folder it was exported to.
          batch_size: of no effect: rows go through it one by one.

        Raises:
          UserError: the file is damaged, or the model in it has no pooler.
        """
        self.model, self.tokenizer = fine_tuned.load_tflite(path)
        if "pooled_output" not in self.model.outputs():
            raise UserError(
                f"{path}: the model has no pooler, so it gives vectors of tokens "
                "(sequence_output) and none of texts; ask its signatures for those."
            )
        self.task, self.batch_size = None, batch_size

    def predict(self, texts):
        """Encode texts.

        Args:
          texts: iterable of str, or of pairs (str, str).

        Returns:
          float32 [N, H], the pooled output of each.

        Raises:
          TypeError: `texts` is one text, or something in it is none.
        """
        if isinstance(texts, str):
            raise TypeError("predict takes a list of texts; put this one into a list.")
        longest = self.model.lengths[-1]
        examples = [example_of(number, text) for number, text in enumerate(texts)]
        if not examples:
            return np.zeros(
                [0, self.model.outputs()["pooled_output"][1][-1]], np.float32
            )
        features = classifier_features.convert_examples(
            examples, self.tokenizer, longest
        )
        rows = scoring.score_rows(
            self.model,
            FeatureSet(features, longest, classifier_features.pad_features),
            self.batch_size,
        )
        return np.stack([row["pooled_output"] for row in rows])
