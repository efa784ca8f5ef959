"""Python predictions in the form of an export's outputs, for comparison.

Each function takes the inputs of a signature as lists, and returns a dict
of arrays with the names and shapes of the signature's outputs.
"""

from collections.abc import Sequence

import numpy as np

from official_bert.checkpoints.model_directory import Bert
from official_bert.pretrained.fill_mask import encode_with_masks, fill_mask
from official_bert.tables.labels import MULTI_LABEL, REGRESSION
from official_bert.tasks.choice.predictor import ChoicePredictor
from official_bert.tasks.classifier.predictor import ClassifierPredictor
from official_bert.tasks.embedding.vectors import EmbeddingPredictor
from official_bert.tasks.ner.predictor import NerPredictor
from official_bert.tasks.squad.predictor import SquadPredictor
from official_bert.tokenization.full import FullTokenizer


def of_classifier(
    predictor: ClassifierPredictor,
    text: Sequence[str],
    text_b: Sequence[str] | None = None,
) -> dict[str, np.ndarray]:
    """Return the outputs of `ServedClassifier`, computed by a `ClassifierPredictor`."""
    pairs = list(text) if text_b is None else list(zip(text, text_b, strict=True))
    task, predictions = predictor.task, predictor.predict(pairs)
    if task.kind == REGRESSION:
        return {"value": np.array([one.value for one in predictions], np.float32)}
    labels = [one.label for one in predictions]
    rows = [list(one.probabilities.values()) for one in predictions]
    probabilities = np.array(rows, np.float32)
    if task.kind == MULTI_LABEL:
        names = [[n if n in row else "" for n in task.labels] for row in labels]
        return {"labels": _encoded(names), "probabilities": probabilities}
    return {"label": _encoded(labels), "probabilities": probabilities}


def of_squad(
    predictor: SquadPredictor, question: Sequence[str], context: Sequence[str]
) -> dict[str, np.ndarray]:
    """Return the outputs of `ServedSquad`, computed by a `SquadPredictor`."""
    answers = predictor.predict_all(zip(question, context, strict=True))
    outputs = {
        "answer": _encoded([one.text for one in answers]),
        "start": np.array([one.start for one in answers]),
        "end": np.array([one.end for one in answers]),
        "score": np.array([one.score for one in answers]),
    }
    if predictor.task.decoding.version_2_with_negative:
        outputs["null_score"] = np.array([one.null_score for one in answers])
        outputs["is_impossible"] = np.array([one.end == 0 for one in answers])
    return outputs


def of_tagger(predictor: NerPredictor, text: Sequence[str]) -> dict[str, np.ndarray]:
    """Return the entities of `ServedTagger`, computed by a `NerPredictor`."""
    entities = predictor.predict(list(text))

    def column(name, filler):
        return _padded([[getattr(e, name) for e in row] for row in entities], filler)

    return {
        "entities": _encoded(column("text", "")),
        "labels": _encoded(column("label", "")),
        "starts": np.array(column("start", -1)),
        "ends": np.array(column("end", -1)),
    }


def of_choice(
    predictor: ChoicePredictor, prompt: Sequence[str], choices: Sequence[Sequence[str]]
) -> dict[str, np.ndarray]:
    """Return the outputs of `ServedChoice`, computed by a `ChoicePredictor`."""
    answers = predictor.predict_all(zip(prompt, map(list, choices), strict=True))
    return {
        "index": np.array([one.index for one in answers]),
        "choice": _encoded([one.choice for one in answers]),
        "probabilities": np.array([one.probabilities for one in answers], np.float32),
    }


def of_embedding(
    predictor: EmbeddingPredictor, text: Sequence[str]
) -> dict[str, np.ndarray]:
    """Return the vectors of `ServedEmbedding`, computed by an `EmbeddingPredictor`."""
    return {"embedding": predictor.vectors(text)}


def of_encoder(
    bert: Bert, lengths: Sequence[int], text: Sequence[str]
) -> dict[str, np.ndarray]:
    """Return the vectors of `ServedEncoder`, computed by the model of a `Bert`.

    Texts are truncated to the last of the lengths of `rows.Layout`.
    """
    ids, mask = token_rows(bert.tokenizer, text, lengths[-1])
    size = min(length for length in lengths if length >= mask.sum(1).max())
    inputs = {"input_ids": ids[:, :size], "input_mask": mask[:, :size]}
    return {name: value.numpy() for name, value in bert.outputs(inputs).items()}


def of_attention(
    bert: Bert,
    lengths: Sequence[int],
    text: Sequence[str],
    layer: Sequence[int],
    head: Sequence[int],
) -> dict[str, np.ndarray]:
    """Return the outputs of `ServedEncoder.attention`, computed by Python."""
    rows = [encode_with_masks(bert.tokenizer, one) for one in text]
    longest = lengths[-1]
    rows = [
        ids if len(ids) <= longest else [*ids[: longest - 1], ids[-1]] for ids in rows
    ]
    size = min(one for one in lengths if one >= max(map(len, rows), default=0))
    maps = np.zeros((len(rows), size, size), np.float32)
    for number, ids in enumerate(rows):
        # Without padding, as in `attention_maps`.
        inputs = {"input_ids": np.array([ids], np.int32)}
        probs = bert.encoder(inputs, output_attention_probs=True)["attention_probs"]
        chosen = probs[layer[number]][0, head[number]]
        maps[number, : len(ids), : len(ids)] = chosen
    names = [[bert.tokenizer.inv_vocab[each] for each in ids] for ids in rows]
    tokens = [[*row, *[""] * (size - len(row))] for row in names]
    return {"tokens": _encoded(tokens), "attention_probs": maps}


def of_fill_mask(bert: Bert, text: Sequence[str]) -> dict[str, np.ndarray]:
    """Return the outputs of `ServedMaskedLM.fill_mask`, computed by Python."""
    rows = [fill_mask(bert, one) for one in text]
    depth = max((len(mask) for row in rows for mask in row), default=0)

    def column(name, filler):
        masks = [[[getattr(c, name) for c in mask] for mask in row] for row in rows]
        return _padded(masks, [filler] * depth)

    return {
        "tokens": _encoded(column("token", "")),
        "probabilities": np.array(column("probability", 0.0)),
    }


def token_rows(
    tokenizer: FullTokenizer, texts: Sequence[str], size: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return texts as `[CLS] tokens [SEP]`, truncated or padded to a length.

    Returns:
      (ids, mask), int32 [texts, size].
    """
    vocab = tokenizer.vocab
    ids = np.zeros((len(texts), size), np.int32)
    mask = np.zeros_like(ids)
    for row, text in enumerate(texts):
        cut = tokenizer.encode(text)[: size - 2]
        ids[row, : len(cut) + 2] = [vocab["[CLS]"], *cut, vocab["[SEP]"]]
        mask[row, : len(cut) + 2] = 1
    return ids, mask


def _encoded(values):
    """Return texts as an array of bytes, TensorFlow's form of strings."""
    return np.frompyfunc(str.encode, 1, 1)(np.array(values, object))


def _padded(rows, filler):
    """Return rows padded to the length of the longest row."""
    longest = max(map(len, rows), default=0)
    return [[*row, *[filler] * (longest - len(row))] for row in rows]
