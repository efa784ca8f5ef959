// Answers questions on a context of any length. It equals official_bert's
// `tasks/squad`: windows, the choice of the answer, and its position in the context.

import { AnswerTexts } from "./squad_texts.js";
import { bestSpans, descending, makeSpans, softmax } from "./windows.js";

// Larger than any sum of logits. Used if no span of the context can be an answer.
const NO_CANDIDATE = 1000000;
const WORD = /[^ \t\r\n\u202f]+/g;

/** Returns the answer to a question; see `Answer` in bert.d.ts. */
export async function answer(bert, question, context, options) {
  const { task } = bert.card;
  const words = [...context.matchAll(WORD)].map((match) => ({
    text: match[0],
    start: match.index,
  }));
  const windows = windowsOf(bert.tokenizer, task, question, words);
  const outputs = await bert.runRows(windows, options);
  windows.forEach((one, index) => {
    one.startLogits = Array.from(outputs[index].start_logits).slice(0, one.ids.length);
    one.endLogits = Array.from(outputs[index].end_logits).slice(0, one.ids.length);
  });
  return choose(windows, task, new AnswerTexts(bert.tokenizer, context, words));
}

// Returns the rows [CLS] question [SEP] part of the context [SEP].
function windowsOf(tokenizer, task, question, words) {
  const { vocab } = tokenizer;
  const [cls, sep] = [vocab.get("[CLS]"), vocab.get("[SEP]")];
  const query = tokenizer.encode(question).slice(0, task.max_query_length);
  const head = [cls, ...query, sep];
  const pieces = words.flatMap((word, index) =>
    tokenizer.encode(word.text).map((id, number) => ({ id, word: index, number })),
  );
  const room = task.max_seq_length - query.length - 3;
  const spans = makeSpans(pieces.length, room, task.doc_stride);
  const best = bestSpans(spans, pieces.length);
  return spans.map(({ start, length }, number) => {
    const part = pieces.slice(start, start + length);
    return {
      ids: [...head, ...part.map((piece) => piece.id), sep],
      segmentIds: [...head.map(() => 0), ...part.map(() => 1), 1],
      first: head.length, // position of the first context token
      pieces: part, // each with its word, and its number in the word
      isBest: part.map((_, index) => best[start + index] === number),
    };
  });
}

function choose(windows, task, texts) {
  const mayBeNone = task.version_2_with_negative;
  const noAnswer = windows.map((one) => one.startLogits[0] + one.endLogits[0]);
  const emptyScore = windows.length ? Math.min(...noAnswer) : 0;
  const found = new Map(); // text -> answer, the best first
  for (const one of candidates(windows, task, mayBeNone ? emptyScore : null)) {
    const text = one.window ? texts.text(one.window, one.from, one.to) : "";
    if (!found.has(text)) {
      const span = one.window ? texts.span(one.window, one.from, one.to) : [0, 0];
      found.set(text, { start: span[0], end: span[1], score: one.score });
      if (found.size === task.n_best_size) {
        break;
      }
    }
  }
  if (mayBeNone && !found.has("")) {
    found.set("", { start: 0, end: 0, score: emptyScore });
  }
  const nbest = withProbabilities([...found.values()], texts.context);
  const best = nbest.find((one) => one.end > 0) ?? null;
  const empty = { text: "", start: 0, end: 0, score: 0, probability: 1 }; // no words
  let chosen = nbest[0] ?? empty;
  if (mayBeNone) {
    const odds = best ? emptyScore - best.score : NO_CANDIDATE;
    const isAnswered = best && odds <= task.null_score_diff_threshold;
    chosen = isAnswered ? best : nbest.find((one) => one.end === 0);
  }
  const nullScore = mayBeNone ? emptyScore : null;
  return { ...chosen, nullScore, candidates: nbest, windows: windows.length };
}

// Returns all spans that can be an answer, the best first, with a stable sort.
function candidates(windows, task, emptyScore) {
  const spans = windows.flatMap((window) => spansOf(window, task));
  if (emptyScore !== null) {
    spans.push({ window: null, score: emptyScore });
  }
  const order = descending(spans.map((one) => one.score));
  return order.map((index) => spans[index]);
}

function spansOf(window, task) {
  const { first, pieces, startLogits, endLogits } = window;
  const end = first + pieces.length;
  const isContext = (position) => position >= first && position < end;
  const bestOf = (logits) =>
    descending(logits).slice(0, task.n_best_size).filter(isContext);
  const starts = bestOf(startLogits).filter((one) => window.isBest[one - first]);
  const ends = bestOf(endLogits);
  return starts.flatMap((from) =>
    ends
      .filter((to) => to >= from && to - from < task.max_answer_length)
      .map((to) => ({ window, from, to, score: startLogits[from] + endLogits[to] })),
  );
}

function withProbabilities(found, context) {
  const probabilities = softmax(found.map((one) => one.score));
  return found.map((one, index) => ({
    text: context.slice(one.start, one.end),
    ...one,
    probability: probabilities[index],
  }));
}
