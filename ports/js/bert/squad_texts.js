// From tokens of a window back to the context. The same as official_bert's
// `tasks/squad/texts.py`, after `get_final_text` of google-research/bert.

export class AnswerTexts {
  /**
   * @param {object} tokenizer A `BertTokenizer`.
   * @param {string} context
   * @param {{text: string, start: number}[]} words Of the context.
   */
  constructor(tokenizer, context, words) {
    this.tokenizer = tokenizer;
    this.context = context;
    this.words = words;
    this.offsets = new Map(); // of the words that answers begin or end in
  }

  /** Returns [start, end) in the context of the tokens from … to of a window. */
  span(window, from, to) {
    return [from, to].map((position, side) => {
      const { word, number } = window.pieces[position - window.first];
      return this.words[word].start + this.offsetsOf(word)[number][side];
    });
  }

  // [start, end) in a word of each of its tokens.
  offsetsOf(word) {
    if (!this.offsets.has(word)) {
      const { offsets } = this.tokenizer.tokenizeWithOffsets(this.words[word].text);
      this.offsets.set(word, inOrder(offsets));
    }
    return this.offsets.get(word);
  }

  /** Returns the text by which answers count as equal, as the original writes it. */
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

  // Where a text of tokens begins and ends in words: two of [word, character in it].
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

// Accents may have changed places: what a piece begins must not leave out what follows
// it, nor what it ends what comes before.
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

// Code points without spaces.
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
