// Runs tokenizer.js for a test: one JSON line in, one JSON line out.
//
//   node tokenizer_runner.js path/of/tokenizer.js
//
// {"vocab": text, "lower": bool} makes a tokenizer, {"words": [text, ...]},
// {"pieces": [text, ...]} and {"pairs": [[text, text or null, length], ...]} use it,
// {"table": true} requests the table. Exceptions are returned as {"error": "..."}.
"use strict";

const crypto = require("crypto");
const readline = require("readline");
const { BertTokenizer, loadCharacterTable } = require(process.argv[2]);

let tokenizer = null;

function answer(question) {
  if ("vocab" in question) {
    tokenizer = new BertTokenizer(question.vocab, { doLowerCase: question.lower });
    return tokenizer.pieces;
  }
  if (question.words) {
    return question.words.map((text) => tokenizer.words(text));
  }
  if (question.pieces) {
    return question.pieces.map((text) => {
      const { pieces, offsets } = tokenizer.tokenizeWithOffsets(text);
      return [tokenizer.encode(text), pieces, offsets];
    });
  }
  if (question.pairs) {
    return question.pairs.map((pair) => tokenizer.encodePair(...pair));
  }
  const { category, combiningClass, sigmaContext, folded } = loadCharacterTable();
  return {
    category: sha256(category),
    combiningClass: sha256(combiningClass),
    sigmaContext: sha256(sigmaContext),
    folded: [...folded],
  };
}

function sha256(bytes) {
  return crypto.createHash("sha256").update(bytes).digest("hex");
}

readline.createInterface({ input: process.stdin }).on("line", (line) => {
  let reply;
  try {
    reply = answer(JSON.parse(line));
  } catch (error) {
    reply = { error: `${error.name}: ${error.message}` };
  }
  process.stdout.write(JSON.stringify(reply) + "\n");
});
