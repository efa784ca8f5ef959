// BERT in the browser: runs the model of a folder from `export_model.py --format=web`.
//
//   import { openBert } from "./bert.js";
//
//   const bert = await openBert(new URL("./", import.meta.url));
//   const { labels, scores } = await bert.classify("Wonderful!");
//
// bert.d.ts describes all functions. A model has one task: bert.kind is "classifier",
// "squad", "ner", "embedding", "fill_mask" or "encoder". Offsets count UTF-16 units,
// like strings in JavaScript: text.slice(start, end).

import "./tokenizer.js"; // sets globalThis.BertTokenizer
import { classify } from "./bert/classifier.js";
import { embed } from "./bert/embedding.js";
import { encode, fillMask } from "./bert/encoder.js";
import { Runtime, missingFeature } from "./bert/runtime.js";
import { search, similarity } from "./bert/search.js";
import { answer } from "./bert/squad.js";
import { tag } from "./bert/tagger.js";

export { missingFeature };

// During a long text, the page can draw and react after this time.
const DRAW_MS = 30;
const METHODS = {
  classifier: ["classify"],
  squad: ["answer"],
  ner: ["tag"],
  embedding: ["encode", "similarity", "search"],
  fill_mask: ["fillMask", "encode", "similarity", "search"],
  encoder: ["encode", "similarity", "search"],
};

/** Loads the model of a folder; see bert.d.ts. */
export async function openBert(folder, options = {}) {
  const missing = missingFeature();
  if (missing) {
    throw new Error(missing);
  }
  const base = new URL(folder, globalThis.location?.href);
  const card = await (await get(base, "model.json")).json();
  const vocabulary = await (await get(base, "vocab.txt")).text();
  const bytes = await download(base, card.model_bytes, options.onProgress);
  const runtime = await Runtime.load(bytes, card, base, options);
  return new Bert(card, vocabulary, runtime);
}

class Bert {
  constructor(card, vocabulary, runtime) {
    const { BertTokenizer } = globalThis;
    this.card = card;
    this.runtime = runtime;
    this.stored = new Map(); // text -> vector, for search
    this.tokenizer = new BertTokenizer(vocabulary, { doLowerCase: card.do_lower_case });
    this.casedTokenizer = new BertTokenizer(vocabulary, { doLowerCase: false });
  }

  get kind() {
    return this.card.kind;
  }

  get backend() {
    return this.runtime.backend;
  }

  async classify(text, textB = null, options = {}) {
    this.require("classify");
    return classify(this, text, textB, options);
  }

  async answer(question, context, options = {}) {
    this.require("answer");
    return answer(this, question, context, options);
  }

  async tag(text, options = {}) {
    this.require("tag");
    return tag(this, text, options);
  }

  async fillMask(text, topK = 5, options = {}) {
    this.require("fillMask");
    return fillMask(this, text, topK, options);
  }

  async encode(text, options = {}) {
    this.require("encode");
    return (this.kind === "embedding" ? embed : encode)(this, text, options);
  }

  async similarity(text, textB, options = {}) {
    this.require("similarity");
    return similarity(this, text, textB, options);
  }

  async search(query, texts, topK = 10, options = {}) {
    this.require("search");
    return search(this, query, texts, topK, options);
  }

  /** Frees the memory of the model. */
  close() {
    this.runtime.delete();
  }

  require(method) {
    if (!METHODS[this.kind].includes(method)) {
      throw new TypeError(
        `${method}: this model is for ${METHODS[this.kind].join(", ")} ` +
          `(kind ${this.kind}).`,
      );
    }
  }

  // Returns the outputs of rows [{ids, segmentIds}, ...]. The page can draw and react
  // between rows.
  async runRows(rows, { signal, onProgress } = {}) {
    const outputs = [];
    let drawn = performance.now();
    for (const { ids, segmentIds } of rows) {
      signal?.throwIfAborted();
      outputs.push(await this.runtime.run(ids, segmentIds));
      if (rows.length > 1) {
        onProgress?.(outputs.length / rows.length);
      }
      if (performance.now() - drawn > DRAW_MS) {
        await new Promise((resolve) => setTimeout(resolve));
        drawn = performance.now();
      }
    }
    return outputs;
  }
}

async function get(base, name) {
  const url = new URL(name, base);
  const response = await fetch(url);
  if (!response.ok) {
    throw new Error(`${url} cannot be loaded: HTTP status ${response.status}.`);
  }
  return response;
}

// Returns the bytes of the .tflite. Hosts that compress do not report its size.
async function download(base, size, onProgress) {
  const reader = (await get(base, "model.tflite")).body.getReader();
  const bytes = new Uint8Array(size);
  let loaded = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) {
      break;
    }
    if (loaded + value.length > size) {
      throw new Error("model.tflite is larger than model.json says. Copy both again.");
    }
    bytes.set(value, loaded);
    loaded += value.length;
    onProgress?.(loaded / size);
  }
  if (loaded < size) {
    throw new Error(`model.tflite has ${loaded} of ${size} bytes. Copy it again.`);
  }
  return bytes;
}
