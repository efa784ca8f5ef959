// Runs the modules of bert.js for a test: one JSON line in, one JSON line out.
//
//   node bert_runner.mjs FOLDER   (FOLDER holds tokenizer.js and bert/)
//
// A request names a function and its arguments; given logits replace a model.

import path from "node:path";
import readline from "node:readline";
import { pathToFileURL } from "node:url";

const load = (name) => import(pathToFileURL(path.resolve(process.argv[2], name)));

// tokenizer.js is not a module: import it like a page does.
await load("tokenizer.js").then((loaded) => {
  globalThis.BertTokenizer ??= (loaded.default ?? loaded).BertTokenizer;
});
const { makeSpans, bestSpans } = await load("bert/windows.js");
const { splitWords } = await load("bert/words.js");
const { answer } = await load("bert/squad.js");
const { tag } = await load("bert/tagger.js");

let bert = null;

const FUNCTIONS = {
  open: (vocab, lower, task) => {
    bert = {
      card: { task },
      tokenizer: new globalThis.BertTokenizer(vocab, { doLowerCase: lower }),
      casedTokenizer: new globalThis.BertTokenizer(vocab, { doLowerCase: false }),
    };
    return null;
  },
  spans: (tokens, most, stride) => {
    const spans = makeSpans(tokens, most, stride);
    return [spans.map((one) => [one.start, one.length]), [...bestSpans(spans, tokens)]];
  },
  words: (text, asColumns) => splitWords(bert.casedTokenizer, text, asColumns),
  answer: async (question, context, starts, ends) => {
    let rows = null;
    const runRows = (given) => {
      rows = given.map((row) => [row.ids, row.segmentIds]);
      return given.map((_, index) => ({
        start_logits: Float32Array.from(starts[index]),
        end_logits: Float32Array.from(ends[index]),
      }));
    };
    const found = await answer({ ...bert, runRows }, question, context);
    return { rows, found };
  },
  tag: async (text, tags) => {
    const count = bert.card.task.tags.length;
    const runRows = (given) =>
      given.map((row, index) => ({
        tags: Int32Array.from(tags[index].slice(0, row.ids.length)),
        tag_logits: new Float32Array(row.ids.length * count),
      }));
    return tag({ ...bert, runRows }, text);
  },
};

for await (const line of readline.createInterface({ input: process.stdin })) {
  const [name, ...values] = JSON.parse(line);
  process.stdout.write(`${JSON.stringify(await FUNCTIONS[name](...values))}\n`);
}
