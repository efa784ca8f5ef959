// Content of the page for each kind of model: fields, examples, and the call.

import { attentionOf } from "./attention.js";
import * as views from "./views.js";

const TRAIN =
  "The train left Lisbon on time, and by noon Maria Lopes had the carriage to " +
  "herself. She was on her way to Porto, where the Serralves museum had opened an " +
  "exhibition about the bridges of Gustave Eiffel.";

const QUESTIONS = [
  "How do I change my password?",
  "Which cards do you accept?",
  "Where is my parcel?",
  "How can I return an article?",
].join("\n");

/** kind -> {fields, examples, run}. run returns the elements of the result. */
export const TASKS = {
  classifier: {
    fields: [{ id: "text", label: "Text", rows: 6 }],
    examples: [
      { text: "Wonderful from the first minute to the last." },
      { text: "Two hours of my life that I will never get back." },
      { text: "The actors are good, but the story goes nowhere." },
    ],
    run: async (bert, { text }, options) =>
      views.classification(await bert.classify(text, null, options)),
  },
  pairs: {
    fields: [
      { id: "text", label: "First text", rows: 3 },
      { id: "textB", label: "Second text", rows: 3 },
    ],
    examples: [
      {
        text: "The train left Lisbon on time.",
        textB: "The train departed from Lisbon punctually.",
      },
      {
        text: "The train left Lisbon on time.",
        textB: "The museum is closed on Mondays.",
      },
    ],
    run: async (bert, { text, textB }, options) =>
      views.classification(await bert.classify(text, textB, options)),
  },
  squad: {
    fields: [
      { id: "text", label: "Question", rows: 2 },
      { id: "context", label: "Context", rows: 9, hint: "Any length." },
    ],
    examples: [
      { text: "Where was Maria Lopes going?", context: TRAIN },
      { text: "What is the exhibition about?", context: TRAIN },
    ],
    run: async (bert, { text, context }, options) =>
      views.answer(await bert.answer(text, context, options), context),
  },
  ner: {
    fields: [{ id: "text", label: "Text", rows: 8, hint: "Any length." }],
    examples: [
      { text: TRAIN },
      { text: "Angela Merkel met Emmanuel Macron of France in Berlin for the EU." },
    ],
    run: async (bert, { text }, options) =>
      views.entities(await bert.tag(text, options), text),
  },
  embedding: {
    fields: [
      { id: "text", label: "Text", rows: 2 },
      { id: "texts", label: "Texts to compare", rows: 7, hint: "One text per line." },
    ],
    examples: [
      { text: "I forgot the word for logging in.", texts: QUESTIONS },
      { text: "Can I pay with Visa?", texts: QUESTIONS },
      { text: "The train left Lisbon on time.", texts: "The departure was punctual." },
    ],
    run: async (bert, { text, texts }, options) =>
      views.matches(await bert.search(text, linesOf(texts), 50, options)),
  },
  fill_mask: {
    fields: [
      { id: "text", label: "Text", rows: 4, hint: "Write [MASK] for a missing word." },
    ],
    examples: [
      { text: "The train left on [MASK]." },
      { text: "Paris is the [MASK] of [MASK]." },
    ],
    run: async (bert, { text }, options) =>
      withAttention(bert, views.masks(await bert.fillMask(text, 5, options), text), [
        { label: "Text", text },
      ]),
  },
  encoder: {
    fields: [
      { id: "text", label: "First text", rows: 3 },
      { id: "textB", label: "Second text", rows: 3 },
    ],
    examples: [
      {
        text: "The train left Lisbon on time.",
        textB: "The departure from Lisbon was punctual.",
      },
      {
        text: "The train left Lisbon on time.",
        textB: "Add the flour and stir the dough.",
      },
    ],
    run: async (bert, { text, textB }, options) =>
      withAttention(bert, views.cosine(await bert.similarity(text, textB, options)), [
        { label: "First text", text },
        { label: "Second text", text: textB },
      ]),
  },
  // Only on a server.
  multiple_choice: {
    fields: [
      { id: "text", label: "Beginning", rows: 3 },
      { id: "texts", label: "Choices", rows: 5, hint: "One choice per line." },
    ],
    examples: [
      {
        text: "The train stops at the station, and the doors open.",
        texts: "The passengers get off.\nThe train flies away.\nThe station eats lunch.",
      },
      {
        text: "She pours the dough into the pan.",
        texts: "She reads the pan.\nThe pancake browns slowly.\nThe dough calls a taxi.",
      },
    ],
    run: async (bert, { text, texts }, options) =>
      views.classification(await bert.choose(text, linesOf(texts), options)),
  },
};

// Adds the attention map of a text, if the model's outputs have one.
function withAttention(bert, shown, texts) {
  return bert.card.has_attention && bert.card.config
    ? [...shown, attentionOf(bert, texts)]
    : shown;
}

function linesOf(texts) {
  return texts.split("\n").filter((line) => line.trim());
}

/** Returns the entry of `TASKS` for a model card. */
export function taskOf(card) {
  return TASKS[card.kind === "classifier" && card.is_pair ? "pairs" : card.kind];
}
