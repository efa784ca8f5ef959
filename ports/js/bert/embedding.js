// The vector of a text from an embedding model.

import { rowsOf } from "./classifier.js";

/**
 * Returns the vector of a text as a Float32Array. The vector of a long text is the mean
 * of its windows' vectors if the model was trained with windows.
 */
export async function embed(bert, text, options) {
  const rows = rowsOf(bert, text);
  const outputs = await bert.runRows(rows, options);
  const vectors = outputs.map(({ embedding }) => embedding);
  if (vectors.length === 1) {
    return vectors[0];
  }
  // Round to 32 bits, like Python.
  const mean = vectors[0].map((_, index) => {
    const sum = vectors.reduce((total, one) => Math.fround(total + one[index]), 0);
    return sum / vectors.length;
  });
  if (!bert.card.task.normalize) {
    return mean;
  }
  const norm = Math.max(Math.hypot(...mean), 1e-12);
  return mean.map((value) => value / norm);
}
