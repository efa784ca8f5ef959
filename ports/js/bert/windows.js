// Overlapping windows, for texts that are longer than the model's input.

/**
 * Returns [{start, length}, ...]: the windows over numTokens tokens. It equals
 * `make_spans` of official_bert.
 */
export function makeSpans(numTokens, maxTokens, stride) {
  const spans = [];
  let start = 0;
  while (start < numTokens) {
    const length = Math.min(numTokens - start, maxTokens);
    spans.push({ start, length });
    if (start + length === numTokens) {
      break;
    }
    start += Math.min(length, stride);
  }
  return spans;
}

/**
 * Returns the window number for each token. It is the window with the most context on
 * the side that has less context. It equals `best_spans` of official_bert.
 */
export function bestSpans(spans, numTokens) {
  const best = new Int32Array(numTokens);
  const bestScore = new Float64Array(numTokens).fill(-Infinity);
  spans.forEach(({ start, length }, number) => {
    for (let left = 0; left < length; left += 1) {
      const score = Math.min(left, length - 1 - left) + 0.01 * length;
      if (score > bestScore[start + left]) {
        bestScore[start + left] = score;
        best[start + left] = number;
      }
    }
  });
  return best;
}

/** Returns the probabilities of scores. */
export function softmax(scores) {
  const most = scores.reduce((one, other) => Math.max(one, other), -Infinity);
  const powers = Array.from(scores, (score) => Math.exp(score - most));
  const total = powers.reduce((one, other) => one + other, 0);
  return powers.map((power) => power / total);
}

/** Returns the indexes of values, the largest value first; equal values in order. */
export function descending(values) {
  const order = Array.from(values, (_, index) => index);
  return order.sort((one, other) => values[other] - values[one] || one - other);
}
