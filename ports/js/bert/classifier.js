// Predicts labels or a number for texts and pairs of texts.

import { makeSpans, softmax } from "./windows.js";

/** Returns the result of one text or pair; see `Classification` in bert.d.ts. */
export async function classify(bert, text, textB, options) {
  const rows = rowsOf(bert, text, textB);
  const logits = await meanLogits(bert, rows, options);
  const { kind, labels, threshold } = bert.card.task;
  if (kind === "regression") {
    return { value: logits[0], windows: rows.length };
  }
  const isMultiLabel = kind === "multi_label";
  const probabilities = isMultiLabel
    ? logits.map((logit) => 1 / (1 + Math.exp(-logit)))
    : softmax(logits);
  const scores = labels.map((label, index) => ({
    label,
    probability: probabilities[index],
  }));
  const best = scores.reduce((one, other) =>
    other.probability > one.probability ? other : one,
  );
  const holding = scores.filter((one) => one.probability >= threshold);
  const chosen = isMultiLabel ? holding : [best];
  return { labels: chosen.map((one) => one.label), scores, windows: rows.length };
}

async function meanLogits(bert, rows, options) {
  const outputs = await bert.runRows(rows, options);
  const logits = outputs.map((output) => output.logits);
  return Array.from(logits[0], (_, index) => {
    // Round to 32 bits, like Python.
    const sum = logits.reduce((total, one) => Math.fround(total + one[index]), 0);
    return Math.fround(sum / logits.length);
  });
}

/** Returns one row. A long text has several if the model was trained with windows. */
export function rowsOf({ tokenizer, card }, text, textB = null) {
  const { max_seq_length: length, long_text: longText } = card.task;
  const first = tokenizer.encode(text);
  const second = tokenizer.encode(textB ?? "");
  const room = length - (second.length ? 3 : 2);
  if (longText !== "window" || first.length + second.length <= room) {
    const pair = tokenizer.encodePair(text, textB, length);
    const used = pair.input_mask.indexOf(0);
    const end = used < 0 ? length : used;
    const [ids, segmentIds] = [pair.input_ids, pair.segment_ids];
    return [{ ids: ids.slice(0, end), segmentIds: segmentIds.slice(0, end) }];
  }
  const isFirstLong = first.length > second.length;
  const long = isFirstLong ? first : second;
  const short = (isFirstLong ? second : first).slice(0, Math.floor(room / 2));
  const size = room - short.length;
  const stride = Math.max(1, Math.floor(size / 2));
  return makeSpans(long.length, size, stride).map(({ start, length: count }) => {
    const part = long.slice(start, start + count);
    return isFirstLong
      ? joined(tokenizer, part, short)
      : joined(tokenizer, short, part);
  });
}

/** Returns {ids, segmentIds} of [CLS] first [SEP], or [CLS] first [SEP] second [SEP]. */
export function joined(tokenizer, first, second = []) {
  const sep = tokenizer.vocab.get("[SEP]");
  const head = [tokenizer.vocab.get("[CLS]"), ...first, sep];
  const tail = second.length ? [...second, sep] : [];
  return {
    ids: [...head, ...tail],
    segmentIds: [...head.map(() => 0), ...tail.map(() => 1)],
  };
}
