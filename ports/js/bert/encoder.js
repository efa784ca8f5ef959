// Functions of a pre-trained model: vectors of texts, and tokens for [MASK].

import { joined } from "./classifier.js";
import { descending, softmax } from "./windows.js";

const MASK = "[MASK]";

/**
 * Returns the vector of a text: the mean over its tokens, scaled to length 1, as a
 * Float32Array. A text that is too long is truncated.
 */
export async function encode(bert, text, options) {
  const { tokenizer, card } = bert;
  const longest = card.lengths[card.lengths.length - 1];
  const row = joined(tokenizer, tokenizer.encode(text).slice(0, longest - 2));
  const [{ sequence_output: vectors }] = await bert.runRows([row], options);
  const size = card.architecture.hidden_size;
  const sums = new Float64Array(size);
  row.ids.forEach((_, token) => {
    for (let index = 0; index < size; index += 1) {
      sums[index] += vectors[token * size + index];
    }
  });
  const norm = Math.hypot(...sums);
  return Float32Array.from(sums, (sum) => sum / norm);
}

/** Returns the most likely tokens for each [MASK]; see `Candidate` in bert.d.ts. */
export async function fillMask(bert, text, topK, options) {
  const { tokenizer, card } = bert;
  const mask = tokenizer.vocab.get(MASK);
  const parts = text.split(MASK).map((part) => tokenizer.encode(part));
  if (parts.length === 1) {
    throw new RangeError(`The text has no ${MASK}. Write one in the text.`);
  }
  const tokens = parts.flatMap((part, index) => (index ? [mask, ...part] : part));
  const row = joined(tokenizer, tokens);
  const longest = card.lengths[card.lengths.length - 1];
  if (row.ids.length > longest) {
    throw new RangeError(
      `The text has ${row.ids.length} tokens, but the model reads at most ` +
        `${longest}. Shorten the text.`,
    );
  }
  const [{ sequence_output: vectors }] = await bert.runRows([row], options);
  const size = card.architecture.hidden_size;
  const found = [];
  for (let position = 0; position < row.ids.length; position += 1) {
    if (row.ids[position] === mask) {
      const vector = vectors.slice(position * size, (position + 1) * size);
      const outputs = await bert.runtime.runSignature("fill_mask", { vector });
      found.push(candidatesOf(tokenizer, outputs.token_logits, topK));
    }
  }
  return found;
}

function candidatesOf(tokenizer, logits, topK) {
  const probabilities = softmax(logits);
  return descending(probabilities)
    .slice(0, topK)
    .map((id) => ({
      token: tokenizer.pieces[id],
      probability: probabilities[id],
    }));
}
