// Maps tokens of a window back to the context. It equals official_bert's
// `tasks/squad/texts.py`, which follows `get_final_text` of google-research/bert.

export class AnswerTexts {
  /**
   * @param {object} tokenizer A `BertTokenizer`.
   * @param {string} context
   * @param {{text: string, start: number}[]} words The words of the context.
   */
  constructor(tokenizer, context, words) {
    this.tokenizer = tokenizer;
    this.context = context;
    this.words = words;
    this.offsets = new Map(); // of words with an answer's first or last token
  }

  /** Returns [start, end) in the context for the tokens from … to of a window. */
  span(window, from, to) {
    return [from, to].map((position, side) => {
      const { word, number } = window.pieces[position - window.first];
      return this.words[word].start + this.offsetsOf(word)[number][side];
    });
  }

  // Returns [start, end) in a word for each of its tokens.
  offsetsOf(word) {
    if (!this.offsets.has(word)) {
      const { offsets } = this.tokenizer.tokenizeWithOffsets(this.words[word].text);
      this.offsets.set(word, inOrder(offsets));
    }
    return this.offsets.get(word);
  }

  /** Returns the original's text of an answer, which identifies equal answers. */
  text(window, from, to) {
    const first = window.pieces[from - window.first].word;
    const last = window.pieces[to - window.first].word;
    const words = this.words
      .slice(first, last + 1)
      .map((word) => Array.from(word.text));
    const ids = window.ids.slice(from, to + 1);
    const joined = ids.map((id) => this.tokenizer.pieces[id]).join(" ");
    const plain = joined.replaceAll(" ##", "").replaceAll("##", "");
    const pieces = plain.split(" ").filter(Boolean).join(" ");
    const [[firstWord, left], [lastWord, right]] = this.bounds(pieces, words);
    const shown = words.slice(firstWord, lastWord + 1);
    shown[shown.length - 1] = shown[shown.length - 1].slice(0, right + 1);
    shown[0] = shown[0].slice(left);
    return shown.map((characters) => characters.join("")).join(" ");
  }

  // Returns the begin and end of a text of tokens, each as [word, character in word].
  bounds(text, words) {
    const last = words.length - 1;
    const whole = [
      [0, 0],
      [last, words[last].length - 1],
    ];
    const tokenized = words
      .map((characters) => this.tokenizer.words(characters.join("")).join(" "))
      .filter(Boolean)
      .join(" ");
    const position = tokenized.indexOf(text);
    const numCharacters = words.reduce((total, word) => total + word.length, 0);
    if (
      text === tokenized ||
      position < 0 ||
      lengthOf(tokenized) !== numCharacters
    ) {
      return whole;
    }
    const start = lengthOf(tokenized.slice(0, position));
    const end = start + lengthOf(text) - 1;
    return [locate(start, words), locate(end, words)];
  }
}

// Reordered accents can move offsets. No piece may start after a later piece, or end
// before an earlier one.
function inOrder(offsets) {
  const ordered = offsets.map((one) => [...one]);
  for (let index = ordered.length - 2; index >= 0; index -= 1) {
    ordered[index][0] = Math.min(ordered[index][0], ordered[index + 1][0]);
  }
  for (let index = 1; index < ordered.length; index += 1) {
    ordered[index][1] = Math.max(ordered[index][1], ordered[index - 1][1]);
  }
  return ordered;
}

// Returns the number of code points, without spaces.
function lengthOf(text) {
  return Array.from(text.replaceAll(" ", "")).length;
}

function locate(number, words) {
  let left = number;
  const index = words.findIndex((word) => {
    if (left < word.length) {
      return true;
    }
    left -= word.length;
    return false;
  });
  return [index, left];
}
