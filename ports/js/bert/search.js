// Compares the vectors of texts: similarity of two, search in a small list.

// Stored vectors are dropped when there are more.
const MOST_STORED = 10_000;

/** Returns the cosine of two texts' vectors, from -1 to 1. */
export async function similarity(bert, text, textB, options) {
  const first = await bert.encode(text, options);
  return cosine(first, await bert.encode(textB, options));
}

/**
 * Returns the texts that are most similar to the query, best first; see `Match` in
 * bert.d.ts. Equal texts keep their order. The vectors of the texts are stored for the
 * next search.
 */
export async function search(bert, query, texts, topK, { signal, onProgress } = {}) {
  const vector = await bert.encode(query, { signal });
  if (bert.stored.size > MOST_STORED) {
    bert.stored.clear();
  }
  const found = [];
  for (const [index, text] of texts.entries()) {
    const stored = bert.stored.get(text) ?? (await bert.encode(text, { signal }));
    bert.stored.set(text, stored);
    found.push({ index, text, similarity: cosine(vector, stored) });
    onProgress?.(found.length / texts.length);
  }
  found.sort((one, other) => other.similarity - one.similarity || one.index - other.index);
  return found.slice(0, topK);
}

function cosine(first, second) {
  const product = (one, other) =>
    one.reduce((sum, value, index) => sum + value * other[index], 0);
  const squares = product(first, first) * product(second, second);
  return squares ? product(first, second) / Math.sqrt(squares) : 0;
}
