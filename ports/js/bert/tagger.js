// Finds the entities of a text of any length.

import { bestSpans, makeSpans, softmax } from "./windows.js";
import { splitWords } from "./words.js";

// Meaning of the first letter of a tag. L means E, and U means S.
const LETTERS = { O: "O", B: "B", I: "I", E: "E", S: "S", L: "E", U: "S" };

/** Returns the entities of a text; see `Entity` in bert.d.ts. */
export async function tag(bert, text, options) {
  const { card, tokenizer, casedTokenizer } = bert;
  const { task } = card;
  const offsets = splitWords(casedTokenizer, text, task.words_as_columns ?? false);
  const pieces = piecesOf(tokenizer, text, offsets);
  const room = task.max_seq_length - 2;
  const stride = task.doc_stride ?? Math.max(1, Math.floor(room / 2));
  const spans = makeSpans(pieces.ids.length, room, stride);
  const best = bestSpans(spans, pieces.ids.length);
  const scored = spans.map((span, number) =>
    pieces.firsts.flatMap((first, word) => (best[first] === number ? [word] : [])),
  );
  const used = spans.map((_, number) => number).filter((n) => scored[n].length);
  const rows = used.map((number) => windowOf(tokenizer, pieces.ids, spans[number]));
  const outputs = await bert.runRows(rows, options);
  const tags = new Array(offsets.length);
  const certainties = new Array(offsets.length);
  used.forEach((number, row) => {
    const { tags: ids, tag_logits: logits } = outputs[row];
    for (const word of scored[number]) {
      const position = pieces.firsts[word] - spans[number].start + 1;
      const id = ids[position];
      const from = position * task.tags.length;
      tags[word] = task.tags[id];
      certainties[word] = softmax(logits.slice(from, from + task.tags.length))[id];
    }
  });
  return entitiesOf(text, offsets, tags, certainties);
}

// Returns the ids of all pieces, and the index of each word's first piece.
function piecesOf(tokenizer, text, offsets) {
  const unknown = [tokenizer.vocab.get("[UNK]")];
  const ids = [];
  const firsts = [];
  for (const [start, end] of offsets) {
    const ofWord = tokenizer.encode(text.slice(start, end));
    firsts.push(ids.length);
    ids.push(...(ofWord.length ? ofWord : unknown));
  }
  return { ids, firsts };
}

function windowOf(tokenizer, ids, { start, length }) {
  const part = ids.slice(start, start + length);
  const { vocab } = tokenizer;
  return { ids: [vocab.get("[CLS]"), ...part, vocab.get("[SEP]")], segmentIds: [] };
}

function entitiesOf(text, offsets, tags, certainties) {
  return spansOf(tags).map(({ first, end, label }) => {
    const [start] = offsets[first];
    const [, stop] = offsets[end - 1];
    const sure = certainties.slice(first, end);
    const probability = sure.reduce((sum, one) => sum + one, 0) / sure.length;
    return { text: text.slice(start, stop), start, end: stop, label, probability };
  });
}

// Returns entities by the rules of `conlleval`; see `to_spans` of official_bert.
function spansOf(tags) {
  const spans = [];
  let first = null;
  let [before, labelBefore] = ["O", ""];
  [...tags, "O"].forEach((tagOfWord, position) => {
    const [letter, label] = splitTag(tagOfWord);
    const isNew =
      "BS".includes(letter) || "OES".includes(before) || label !== labelBefore;
    if (first !== null && (isNew || letter === "O")) {
      spans.push({ first, end: position, label: labelBefore });
      first = null;
    }
    if (letter !== "O" && isNew) {
      first = position;
    }
    [before, labelBefore] = [letter, label];
  });
  return spans;
}

function splitTag(name) {
  const hyphen = name.indexOf("-");
  const letter = hyphen < 0 ? name : name.slice(0, hyphen);
  return [LETTERS[letter], hyphen < 0 ? "" : name.slice(hyphen + 1)];
}
