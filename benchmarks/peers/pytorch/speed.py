"""Measure PyTorch with transformers. See `benchmarks/contender.py`."""

import torch
import transformers

from benchmarks import workload
from benchmarks.peers.pytorch import training as trainer

transformers.logging.set_verbosity_error()


def versions():
    """Return library -> version."""
    return {"torch": torch.__version__, "transformers": transformers.__version__}


def training(size, batch, gathered):
    """Return a function that runs one pre-training step of `BertForPreTraining`.

    Args:
      size: name of a released size.
      batch: sequences.
      gathered: whether the masked-LM head gets only the masked positions;
        transformers' default computes the logits of all positions.
    """
    sizes = workload.size_of(size)
    model = transformers.BertForPreTraining(transformers.BertConfig(**sizes))
    features = workload.pretraining_batch(sizes["vocab_size"], batch)
    return _update(model, pretraining_loss(model, features, gathered))


def pretraining_loss(model, features, gathered, device="cpu"):
    """Return a function: () -> loss of a batch, a tensor.

    Args:
      model: `BertForPreTraining`.
      features: see `workload.pretraining_batch`.
      gathered: see `training`.
      device: device of the model.
    """
    features = {
        name: torch.tensor(value, device=device) for name, value in features.items()
    }
    places = features["masked_lm_positions"].long()
    masked_ids = features["masked_lm_ids"].long()
    is_random = features["next_sentence_labels"].long().flatten()
    inputs = {
        "input_ids": features["input_ids"].long(),
        "attention_mask": features["input_mask"].long(),
        "token_type_ids": features["segment_ids"].long(),
    }
    labels = torch.full_like(inputs["input_ids"], -100).scatter(1, places, masked_ids)

    def loss_as_it_comes():
        return model(**inputs, labels=labels, next_sentence_label=is_random).loss

    def loss_of_masked():
        encoded = model.bert(**inputs)
        hidden = encoded.last_hidden_state
        where = places.unsqueeze(-1).expand(-1, -1, hidden.shape[-1])
        masked = hidden.gather(1, where)
        logits, next_sentence = model.cls(masked, encoded.pooler_output)
        loss_of = torch.nn.functional.cross_entropy
        return loss_of(logits.flatten(0, 1), masked_ids.flatten()) + loss_of(
            next_sentence, is_random
        )

    return loss_of_masked if gathered else loss_as_it_comes


def _update(model, loss_of):
    """Return a function of a batch, or without arguments, that runs a training step."""
    optimizer = trainer.adamw(model, learning_rate=1e-4)
    model.train()

    def update(*batch):
        loss = loss_of(*batch)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), trainer.CLIP_NORM)
        optimizer.step()
        optimizer.zero_grad()
        return loss.item()

    return update


def encoding(size, batch):
    """Return a function that runs `BertModel` on one full batch."""
    sizes = workload.size_of(size)
    model = transformers.BertModel(transformers.BertConfig(**sizes)).eval()
    names = ("input_ids", "attention_mask", "token_type_ids")
    values = workload.full_batch(sizes["vocab_size"], batch)
    inputs = {
        name: torch.tensor(value).long()
        for name, value in zip(names, values, strict=True)
    }

    def compute():
        with torch.inference_mode():
            encoded = model(**inputs)
        return encoded.last_hidden_state.numpy(), encoded.pooler_output.numpy()

    return compute


def fine_tuning(config, texts, batch, num_outputs):
    """Return a function that runs training steps on all batches of real texts.

    Args:
      config: dict of a `BertConfig`.
      texts: path; see `workload.read_texts`.
      batch: texts per training step; each batch is padded to its longest text.
      num_outputs: number of labels of the task; 1 for regression.
    """
    sizes = transformers.BertConfig(**config, num_labels=num_outputs)
    model = transformers.BertForSequenceClassification(sizes)
    rows = workload.read_texts(texts)
    batches = [
        _padded(rows[start : start + batch])
        for start in range(0, len(rows) - batch + 1, batch)
    ]
    update = _update(model, lambda inputs: model(**inputs).loss)

    def update_all():
        for inputs in batches:
            update(inputs)

    return update_all


def _padded(rows):
    """Return rows of `workload.read_texts` as a model's inputs and labels."""

    def pad(arrays):
        tensors = [torch.tensor(array).long() for array in arrays]
        return torch.nn.utils.rnn.pad_sequence(tensors, batch_first=True)

    ids, segments, labels = zip(*rows, strict=True)
    return {
        "input_ids": pad(ids),
        "attention_mask": pad([array * 0 + 1 for array in ids]),
        "token_type_ids": pad(segments),
        "labels": torch.tensor(labels),
    }
