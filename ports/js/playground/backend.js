// Where predictions come from: the server of this page, `serve.py`. It has the exports
// of page/backend.js, and its models have the methods of bert.js.

import { search, similarity } from "./bert/search.js";

export const PRIVACY = "The model runs on this server. It does not store your text.";
export const LINKS = [["Models of this server as JSON", "playground.json"]];
export const WORKS_OFFLINE = false;

/** Returns {bert, names}: the model named in the query, and the names of all. */
export async function openModel(query) {
  const cards = await json(new URL("playground.json", location.href));
  const names = cards.map((card) => card.name);
  const name = query.get("model") ?? names[0];
  const card = cards.find((one) => one.name === name);
  if (!card) {
    throw new Error(`This server has no model "${name}". It has ${names.join(", ")}.`);
  }
  return { bert: new ServedBert(card, new URL("./", location.href)), names };
}

/** A model of the server. The results are those of bert.d.ts, unless noted. */
export class ServedBert {
  constructor(card, base) {
    this.card = card;
    this.url = new URL(`v1/models/${encodeURIComponent(card.name)}:predict`, base);
    this.stored = new Map(); // text -> vector, for search
    this.backend = { accelerator: "server", version: card.version, note: null };
  }

  get kind() {
    return this.card.kind;
  }

  async classify(text, textB = null, options = {}) {
    const instance = textB === null ? { text } : { text, text_b: textB };
    const found = await this.predict(instance, options);
    if (typeof found === "number") {
      return { value: found };
    }
    const scores = scoresOf(this.card.labels, found.probabilities);
    const labels = found.labels?.filter((label) => label) ?? [found.label];
    return { labels, scores };
  }

  /** Chooses; choices are an array of texts. Returns a `Classification`. */
  async choose(prompt, choices, options = {}) {
    const found = await this.predict({ prompt, choices }, options);
    return { labels: [found.choice], scores: scoresOf(choices, found.probabilities) };
  }

  /** The server returns one answer, without probabilities: candidates is empty. */
  async answer(question, context, options = {}) {
    const found = await this.predict({ question, context }, options);
    const units = unitsOf(context);
    return {
      text: found.answer,
      start: units[found.start],
      end: units[found.end],
      score: found.score,
      nullScore: found.null_score ?? null,
      candidates: [],
    };
  }

  /** The server returns entities without probabilities. */
  async tag(text, options = {}) {
    const found = await this.predict({ text }, options);
    const units = unitsOf(text);
    const entities = found.entities.map((entity, index) => ({
      text: entity,
      start: units[found.starts[index]],
      end: units[found.ends[index]],
      label: found.labels[index],
    }));
    // In a batch the row may be padded with "" and -1.
    return entities.filter((_, index) => found.starts[index] >= 0);
  }

  /** The signature returns five tokens per mask, so topK is at most 5. */
  async fillMask(text, topK = 5, options = {}) {
    const count = text.split("[MASK]").length - 1;
    if (!count) {
      throw new RangeError("The text has no [MASK]. Write one in the text.");
    }
    const found = await this.predict({ text }, options, "fill_mask");
    // In a batch the row may be padded with "".
    const masks = found.tokens.filter(([best]) => best);
    if (masks.length < count) {
      throw new RangeError("The text is too long for the model. Shorten the text.");
    }
    return masks.map((tokens, mask) =>
      tokens
        .map((token, rank) => ({ token, probability: found.probabilities[mask][rank] }))
        .slice(0, topK),
    );
  }

  async encode(text, options = {}) {
    const found = await this.predict({ text }, options);
    if (Array.isArray(found)) {
      return Float32Array.from(found); // of an embedding model
    }
    const vectors = found.sequence_output.filter((_, token) => found.input_mask[token]);
    const sums = vectors[0].map((_, index) =>
      vectors.reduce((sum, vector) => sum + vector[index], 0),
    );
    const norm = Math.hypot(...sums);
    return Float32Array.from(sums, (sum) => sum / norm);
  }

  async similarity(text, textB, options = {}) {
    return similarity(this, text, textB, options);
  }

  async search(query, texts, topK = 10, options = {}) {
    return search(this, query, texts, topK, options);
  }

  /**
   * Returns {tokens, probs} of a layer and head, both from 0: probs[i][j] is how much
   * token i attends to token j.
   */
  async attention(text, layer, head, options = {}) {
    const found = await this.predict({ text, layer, head }, options, "attention");
    const tokens = found.tokens.filter((token) => token);
    const probs = found.attention_probs.slice(0, tokens.length);
    return { tokens, probs: probs.map((row) => row.slice(0, tokens.length)) };
  }

  // Returns the prediction for one instance.
  async predict(instance, { signal } = {}, signature = "serving_default") {
    const request = { signature_name: signature, instances: [instance] };
    const body = JSON.stringify(request);
    const { predictions } = await json(this.url, { method: "POST", body, signal });
    return predictions[0];
  }
}

function scoresOf(labels, probabilities) {
  return probabilities.map((probability, index) => ({
    label: labels[index] ?? String(index),
    probability,
  }));
}

// Returns the JSON of a response. Errors are sentences.
async function json(url, options) {
  let response;
  try {
    response = await fetch(url, options);
  } catch (error) {
    if (error.name === "AbortError") {
      throw error;
    }
    throw new Error("The server does not respond. Start it again, then repeat the run.");
  }
  const content = await response.json().catch(() => ({}));
  if (!response.ok) {
    const reason = content.error ?? response.statusText;
    throw new Error(`The server returned an error (status ${response.status}): ${reason}`);
  }
  return content;
}

// The server counts code points, and JavaScript counts UTF-16 units. Returns the units
// before each code point, and before the end.
function unitsOf(text) {
  const units = [0];
  for (const character of text) {
    units.push(units[units.length - 1] + character.length);
  }
  return units;
}
