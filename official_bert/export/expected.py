"""What Python answers, in the form of an export's outputs, to compare the two.

Each function takes what a signature takes, lists of str, and returns a dict of arrays
with the names and shapes of its outputs.
"""

import numpy as np

from official_bert.pretrained.fill_mask import fill_mask
from official_bert.tables.labels import MULTI_LABEL, REGRESSION


def of_classifier(predictor, text, text_b=None):
    """Return the outputs of `ServedClassifier`, by a `ClassifierPredictor`."""
    pairs = list(text) if text_b is None else list(zip(text, text_b, strict=True))
    return _named(predictor.task, predictor.predict(pairs))


def _named(task, predictions):
    if task.kind == REGRESSION:
        return {"value": np.array([one.value for one in predictions], np.float32)}
    labels = [one.label for one in predictions]
    rows = [list(one.probabilities.values()) for one in predictions]
    probabilities = np.array(rows, np.float32)
    if task.kind == MULTI_LABEL:
        names = [[n if n in row else "" for n in task.labels] for row in labels]
        return {"labels": _texts(names), "probabilities": probabilities}
    return {"label": _texts(labels), "probabilities": probabilities}


def of_squad(predictor, question, context):
    """Return the outputs of `ServedSquad`, by a `SquadPredictor`."""
    answers = predictor.predict_all(zip(question, context, strict=True))
    outputs = {
        "answer": _texts([one.text for one in answers]),
        "start": np.array([one.start for one in answers]),
        "end": np.array([one.end for one in answers]),
        "score": np.array([one.score for one in answers]),
    }
    if predictor.task.decoding.version_2_with_negative:
        outputs["null_score"] = np.array([one.null_score for one in answers])
        outputs["is_impossible"] = np.array([one.end == 0 for one in answers])
    return outputs


def of_tagger(predictor, text):
    """Return the entities of `ServedTagger`, by a `NerPredictor`."""
    found = predictor.predict(list(text))
    names = {"entities": "text", "labels": "label", "starts": "start", "ends": "end"}
    defaults = {"entities": "", "labels": "", "starts": -1, "ends": -1}
    return {
        name: _padded(
            [[getattr(one, attribute) for one in row] for row in found], defaults[name]
        )
        for name, attribute in names.items()
    }


def of_choice(predictor, prompt, choices):
    """Return the outputs of `ServedChoice`, by a `ChoicePredictor`."""
    answers = predictor.predict_all(zip(prompt, map(list, choices), strict=True))
    return {
        "index": np.array([one.index for one in answers]),
        "choice": _texts([one.choice for one in answers]),
        "probabilities": np.array([one.probabilities for one in answers], np.float32),
    }


def of_encoder(bert, lengths, text):
    """Return the vectors of `ServedEncoder`, by the model of a `Bert`.

    Args:
      bert: `checkpoints.model_directory.Bert`.
      lengths: of `rows.Layout`; the last is where texts are cut.
      text: list of str.
    """
    vocab, encode = bert.tokenizer.vocab, bert.tokenizer.encode
    rows = [
        [vocab["[CLS]"], *encode(one)[: lengths[-1] - 2], vocab["[SEP]"]]
        for one in text
    ]
    longest = max(map(len, rows))
    ids = np.zeros((len(rows), min(n for n in lengths if n >= longest)), np.int32)
    mask = np.zeros_like(ids)
    for number, row in enumerate(rows):
        ids[number, : len(row)], mask[number, : len(row)] = row, 1
    encoder = getattr(bert.model, "bert", bert.model)
    outputs = encoder({"input_ids": ids, "input_mask": mask})
    return {name: outputs[name].numpy() for name in bert.vectors}


def of_fill_mask(bert, text):
    """Return the outputs of `ServedMaskedLM.fill_mask`."""
    found = [fill_mask(bert, one) for one in text]
    return {
        "tokens": _padded([[[c.token for c in mask] for mask in row] for row in found]),
        "probabilities": _padded(
            [[[c.probability for c in mask] for mask in row] for row in found], 0.0
        ),
    }


def _texts(values):
    """Return an object array of bytes, as TensorFlow gives strings."""
    flat = np.array(values, object)
    encoded = [text.encode() for text in flat.reshape(-1)]
    result = np.empty(len(encoded), object)
    result[:] = encoded
    return result.reshape(flat.shape)


def _padded(rows, default=""):
    """Return rows of different lengths as one array."""
    longest = max(map(len, rows), default=0)
    depth = len(next((row[0] for row in rows if row), ()) or ()) if _nested(rows) else 0
    filler = [default] * depth if depth else default
    full = [list(row) + [filler] * (longest - len(row)) for row in rows]
    shape = (len(rows), longest, depth) if depth else (len(rows), longest)
    if isinstance(default, str):
        return _texts(full).reshape(shape)
    return np.array(full).reshape(shape)


def _nested(rows):
    return any(row and isinstance(row[0], list) for row in rows)
