// BERT's tokenizer. For every string, ids equal those of official_bert.FullTokenizer.
//
//   const tokenizer = new BertTokenizer(vocabText, { doLowerCase: true });
//   tokenizer.encodePair("Is it far?", null, 128).input_ids
//
// One file without dependencies: require() it, import it for its side effect, or use a
// <script>. Without `module`, the exports are globalThis.BertTokenizer and
// globalThis.loadCharacterTable.
//
// JavaScript engines have different versions of Unicode. Spaces, accents and lower case
// differ between them. This file therefore uses no Unicode function of the engine
// (toLowerCase, normalize, trim, \s, \p{...}). It reads all rules from the table at its
// end, which has Unicode 14. docs/reference/tokenizer.md explains each step.

(function (exports) {
  "use strict";

  const CODE_POINTS = 0x110000;
  const MAX_CHARACTERS_PER_WORD = 200;
  const SPECIAL_TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"];

  // Categories: each character has exactly one; 0 is any other character.
  const CONTROL = 1; // removed
  const REPLACEMENT = 2; // U+FFFD: removed
  const WHITESPACE = 3; // separates words
  const LINE_SEPARATOR = 4; // U+2028, U+2029: separate words
  const PUNCTUATION = 5; // each is a word
  const CJK = 6; // Chinese: each is a word
  const MARK = 7; // an accent: removed when text is lower-cased

  // The role of a character next to a capital sigma; UNCASED is 0.
  const CASED = 1;
  const IGNORABLE = 2;

  const CAPITAL_SIGMA = 0x3a3;
  const SIGMA = 0x3c3;
  const FINAL_SIGMA = 0x3c2;

  // Characters to strip from the lines of a vocabulary. trim() would strip others.
  const SPACES =
    "\t\n\v\f\r\x1c\x1d\x1e\x1f \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005" +
    "\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000";

  class BertTokenizer {
    /**
     * @param {string} vocabText The content of vocab.txt: one piece per line.
     * @param {{doLowerCase?: boolean}} [options] Whether text is lower-cased and its
     *   accents are removed (the default). It must match the model's training.
     */
    constructor(vocabText, { doLowerCase = true } = {}) {
      this.pieces = readVocab(vocabText);
      this.vocab = new Map(this.pieces.map((piece, id) => [piece, id]));
      this.doLowerCase = doLowerCase;
      this.table = loadCharacterTable();
      checkVocab(this.pieces, this.vocab);
    }

    /** Returns the words and punctuation marks of a text. */
    words(text) {
      return this.splitWords(text).map(textOf);
    }

    /** Returns the pieces of a text. */
    tokenize(text) {
      return this.tokenizeWithOffsets(text).pieces;
    }

    /** Returns the ids of the pieces of a text. */
    encode(text) {
      return this.tokenize(text).map((piece) => this.vocab.get(piece));
    }

    /**
     * Returns {pieces, offsets}. offsets has one [start, end) per piece, in UTF-16
     * units: text.slice(start, end) is the source of the piece, including accents.
     */
    tokenizeWithOffsets(text) {
      const pieces = [];
      const offsets = [];
      for (const word of this.splitWords(text)) {
        for (const [piece, characters] of this.cutWord(word)) {
          pieces.push(piece);
          offsets.push(cover(characters));
        }
      }
      return { pieces, offsets };
    }

    /**
     * Returns {input_ids, input_mask, segment_ids}, arrays of maxLength numbers:
     * [CLS] text [SEP], or [CLS] text [SEP] textB [SEP], then zeros. If the pair is too
     * long, the longer text loses its last pieces; the second if both are equally long.
     */
    encodePair(text, textB, maxLength) {
      if (!Number.isInteger(maxLength) || maxLength < 3) {
        throw new RangeError(`maxLength is ${maxLength}: it must be at least 3.`);
      }
      let first = this.encode(text);
      let second = this.encode(textB == null ? "" : textB);
      // Check before truncation, which may remove the whole second text.
      const room = maxLength - (second.length ? 3 : 2);
      [first, second] = truncatePair(first, second, room);
      const sep = this.vocab.get("[SEP]");
      const segmentA = [this.vocab.get("[CLS]"), ...first, sep];
      const segmentB = second.length ? [...second, sep] : [];
      const length = segmentA.length + segmentB.length;
      const padding = new Array(maxLength - length).fill(0);
      return {
        input_ids: [...segmentA, ...segmentB, ...padding],
        input_mask: [...new Array(length).fill(1), ...padding],
        segment_ids: [...segmentA.map(() => 0), ...segmentB.map(() => 1), ...padding],
      };
    }

    // A word is an array of characters {codePoint, start, end}.
    splitWords(text) {
      const words = [];
      const characters = charactersOf(text);
      if (this.doLowerCase) {
        lowerSigmas(characters, this.table.sigmaContext);
      }
      for (const chunk of splitChunks(characters, this.table.category)) {
        const folded = this.doLowerCase ? fold(chunk, this.table) : chunk;
        for (const word of splitPunctuation(folded, this.table.category)) {
          words.push(word);
        }
      }
      return words;
    }

    // Returns [piece, its characters] for each piece of a word, the longest match
    // first, from the left. Returns one [UNK] for the word if a part has no piece.
    cutWord(word) {
      const { vocab } = this;
      const unknown = [["[UNK]", word]];
      // A vocabulary is UTF-8 and cannot contain half a surrogate pair. If a removed
      // character separated two halves, they must not become a pair here.
      if (word.length > MAX_CHARACTERS_PER_WORD || word.some(isSurrogate)) {
        return unknown;
      }
      const strings = word.map((one) => String.fromCodePoint(one.codePoint));
      const found = [];
      let start = 0;
      while (start < word.length) {
        let end = word.length;
        let piece = (start ? "##" : "") + strings.slice(start).join("");
        while (end > start && !vocab.has(piece)) {
          end -= 1;
          piece = piece.slice(0, piece.length - strings[end].length);
        }
        if (end === start) {
          return unknown;
        }
        found.push([piece, word.slice(start, end)]);
        start = end;
      }
      return found;
    }
  }

  // The id of a piece is its line number, from 0. Empty lines count.
  function readVocab(vocabText) {
    requireString(vocabText, "A vocabulary");
    const lines = vocabText.split("\n");
    if (lines[lines.length - 1] === "") {
      lines.pop(); // the text after the last line end is not a line
    }
    return lines.map(strip);
  }

  function strip(line) {
    let start = 0;
    let end = line.length;
    while (start < end && SPACES.includes(line[start])) start += 1;
    while (end > start && SPACES.includes(line[end - 1])) end -= 1;
    return line.slice(start, end);
  }

  function checkVocab(pieces, vocab) {
    if (vocab.size < pieces.length) {
      const again = pieces.findIndex((piece, id) => vocab.get(piece) !== id);
      throw new Error(
        `The vocabulary has ${JSON.stringify(pieces[again])} on lines ${again + 1} ` +
          `and ${vocab.get(pieces[again]) + 1}. Each piece may occur only once.`,
      );
    }
    const missing = SPECIAL_TOKENS.filter((token) => !vocab.has(token));
    if (missing.length) {
      throw new Error(
        `The vocabulary of ${pieces.length} lines has no ${missing.join(", ")}. ` +
          "Check that this is the text of a vocab.txt, without a byte order mark.",
      );
    }
  }

  function charactersOf(text) {
    requireString(text, "A text");
    const characters = [];
    let start = 0;
    while (start < text.length) {
      // Half a surrogate pair is a character too, of category 0.
      const codePoint = text.codePointAt(start);
      const end = start + (codePoint > 0xffff ? 2 : 1);
      characters.push({ codePoint, start, end });
      start = end;
    }
    return characters;
  }

  // Lower-cases each capital sigma: U+03C2 at the end of a word, else U+03C3. A sigma
  // ends a word if a cased letter precedes and none follows, apart from ignorable ones.
  function lowerSigmas(characters, sigmaContext) {
    characters.forEach((character, index) => {
      if (character.codePoint === CAPITAL_SIGMA) {
        const before = meetsCasedLetter(characters, index, -1, sigmaContext);
        const after = meetsCasedLetter(characters, index, 1, sigmaContext);
        character.codePoint = before && !after ? FINAL_SIGMA : SIGMA;
      }
    });
  }

  function meetsCasedLetter(characters, index, step, sigmaContext) {
    for (let at = index + step; at >= 0 && at < characters.length; at += step) {
      const context = sigmaContext[characters[at].codePoint];
      if (context !== IGNORABLE) {
        return context === CASED;
      }
    }
    return false;
  }

  // Returns the parts between separators, without removed characters. Each Chinese
  // character is a separate part.
  function splitChunks(characters, category) {
    const chunks = [];
    let chunk = [];
    for (const character of characters) {
      const kind = category[character.codePoint];
      if (kind === CONTROL || kind === REPLACEMENT) {
        continue;
      }
      if (kind === WHITESPACE || kind === LINE_SEPARATOR || kind === CJK) {
        chunks.push(chunk);
        chunk = [];
      }
      if (kind === CJK) {
        chunks.push([character]);
      } else if (kind !== WHITESPACE && kind !== LINE_SEPARATOR) {
        chunk.push(character);
      }
    }
    chunks.push(chunk);
    return chunks;
  }

  // Returns lower case, decomposed (NFD), without accents. A removed accent extends the
  // range of the letter before it.
  function fold(chunk, table) {
    const kept = [];
    for (const character of reorder(lower(chunk, table.folded), table.combiningClass)) {
      const letter = kept[kept.length - 1];
      if (table.category[character.codePoint] !== MARK) {
        kept.push(character);
      } else if (letter) {
        letter.end = Math.max(letter.end, character.end);
      }
    }
    return kept;
  }

  // Returns the lower case in NFD. One character may become several.
  function lower(chunk, folded) {
    const lowered = [];
    for (const { codePoint, start, end } of chunk) {
      for (const one of folded.get(codePoint) || [codePoint]) {
        lowered.push({ codePoint: one, start, end });
      }
    }
    return lowered;
  }

  // Returns characters in canonical order: each run of combining characters is sorted
  // by class, with a stable sort.
  function reorder(characters, combiningClass) {
    const classOf = (character) => combiningClass[character.codePoint];
    const ordered = characters.slice();
    let start = 0; // start of the run
    for (let end = 0; end <= ordered.length; end += 1) {
      if (end === ordered.length || classOf(ordered[end]) === 0) {
        const run = end - start > 1 ? ordered.slice(start, end) : [];
        run.sort((one, other) => classOf(one) - classOf(other)); // stable since ES2019
        run.forEach((character, index) => {
          ordered[start + index] = character;
        });
        start = end + 1;
      }
    }
    return ordered;
  }

  function splitPunctuation(chunk, category) {
    const words = [];
    let startsWord = true;
    for (const character of chunk) {
      const alone = category[character.codePoint] === PUNCTUATION;
      if (alone || startsWord) {
        words.push([]);
      }
      words[words.length - 1].push(character);
      startsWord = alone;
    }
    return words;
  }

  function requireString(value, what) {
    if (typeof value !== "string") {
      throw new TypeError(`${what} must be a string, not ${typeof value}.`);
    }
  }

  function isSurrogate({ codePoint }) {
    return codePoint >= 0xd800 && codePoint <= 0xdfff;
  }

  function textOf(characters) {
    return characters.map((one) => String.fromCodePoint(one.codePoint)).join("");
  }

  function cover(characters) {
    let { start, end } = characters[0];
    for (const one of characters) {
      start = Math.min(start, one.start);
      end = Math.max(end, one.end);
    }
    return [start, end];
  }

  function truncatePair(first, second, room) {
    let lengthA = first.length;
    let lengthB = second.length;
    while (lengthA + lengthB > room) {
      if (lengthA > lengthB) {
        lengthA -= 1;
      } else {
        lengthB -= 1;
      }
    }
    return [first.slice(0, lengthA), second.slice(0, lengthB)];
  }

  let loadedTable = null;

  /**
   * Returns {category, combiningClass, sigmaContext, folded}: three Uint8Arrays with a
   * number for each code point, and a Map from a code point to the code points of its
   * lower case in NFD, for characters that change. The table is unpacked once.
   */
  function loadCharacterTable() {
    if (loadedTable === null) {
      loadedTable = {
        category: readRuns(CATEGORY),
        combiningClass: readRuns(COMBINING_CLASS),
        sigmaContext: readRuns(SIGMA_CONTEXT),
        folded: readFolded(FOLDED),
      };
    }
    return loadedTable;
  }

  // "0*300 e6*15 dc": 0 for 0x300 code points, 0xe6 for 0x15, then 0xdc for one.
  function readRuns(text) {
    const values = new Uint8Array(CODE_POINTS);
    let start = 0;
    for (const run of text.split(/[\n ]+/).filter(Boolean)) {
      const [value, count] = run.split("*");
      const end = start + (count ? parseInt(count, 16) : 1);
      values.fill(parseInt(value, 16), start, end);
      start = end;
    }
    return values;
  }

  // "41-5a=61 c0=61+300": U+0041 to U+005A become U+0061 to U+007A, and U+00C0
  // becomes U+0061 U+0300.
  function readFolded(text) {
    const folded = new Map();
    for (const entry of text.split(/[\n ]+/).filter(Boolean)) {
      const [range, codes] = entry.split("=");
      const [first, last] = range.split("-").map((code) => parseInt(code, 16));
      const codePoints = codes.split("+").map((code) => parseInt(code, 16));
      folded.set(first, codePoints);
      for (let codePoint = first + 1; codePoint <= last; codePoint += 1) {
        folded.set(codePoint, [codePoints[0] + codePoint - first]);
      }
    }
    addHangul(folded);
    return folded;
  }

  // Korean syllables decompose by arithmetic (Unicode 14, 3.12).
  function addHangul(folded) {
    for (let index = 0; index < 19 * 21 * 28; index += 1) {
      const leading = 0x1100 + Math.floor(index / (21 * 28));
      const vowel = 0x1161 + (Math.floor(index / 28) % 21);
      const trailing = index % 28 ? [0x11a7 + (index % 28)] : [];
      folded.set(0xac00 + index, [leading, vowel, ...trailing]);
    }
  }

  // BEGIN TABLE (written by make_tokenizer_js.py; do not edit)
  const CATEGORY = `
1*9 3*2 1*2 3 1*12 3 5*f 0*a 5*7 0*1a 5*6 0*1a 5*4 1*21 3 5 0*5 5 0*3 5 0 1 0*8 5*2 0*3
5 0*3 5 0*240 7*70 0*e 5 0*8 5 0*fb 7*5 0*d2 5*6 0*29 5*2 0*6 7*2d 5 7 5 7*2 5 7*2 5 7
0*2b 5*2 0*b 1*6 0*3 5*2 0 5*2 0*2 7*b 5 1 5*3 0*2b 7*15 0*a 5*4 0*2 7 0*63 5 0 7*7 1 0
7*6 0*2 7*2 0 7*4 0*12 5*e 0 1 0 7 0*1e 7*1b 0*5b 7*b 0*3a 7*9 0*3 5*3 0*3 7 0*18 7*4 0
7*9 0 7*3 0 7*5 0*2 5*f 0*1a 7*3 0*2 5 0*31 1*2 0*6 7*8 0*2a 7*18 1 7*20 0*37 7 0 7 0*4
7*8 0*4 7 0*3 7*7 0*a 7*2 5*2 0*a 5 0*10 7 0*3a 7 0*4 7*4 0*8 7 0*14 7*2 0*19 5 7 0*2
7*2 0*39 7 0*4 7*2 0*4 7*2 0*2 7*3 0*3 7 0*1e 7*2 0*3 7 5 0*a 7*2 0*39 7 0*4 7*5 0 7*2
0*4 7 0*14 7*2 0*c 5 0*9 7*6 0 7 0*3a 7 0*2 7 0 7*4 0*8 7 0*7 7*2 0*b 7*2 0*1e 7 0*3d 7
0*c 7 0*32 7 0*3 7 0*37 7 0 7*3 0*5 7*3 0 7*4 0*7 7*2 0*b 7*2 0*13 5 0*9 7 0*2 5 0*37 7
0*2 7 0*6 7 0*5 7*2 0*14 7*2 0*1c 7*2 0*39 7*2 0*4 7*4 0*8 7 0*14 7*2 0*1d 7 0*48 7 0*7
7*3 0 7 0*1d 5 0*3c 7 0*2 7*7 0*c 7*8 5 0*a 5*2 0*55 7 0*2 7*9 0*b 7*6 0*36 5*f 0 5 0*3
7*2 0*1b 7 0 7 0 7 5*4 0*33 7*e 0 7*5 5 7*2 0*5 7*b 0 7*24 0*9 7 0*9 5*5 0*4 5*2 0*52
7*4 0 7*6 0 7*2 0*2 7*2 0*b 5*6 0*8 7*2 0*4 7*3 0*10 7*4 0*d 7 0*2 7*2 0*6 7 0*f 7 0*5d
5 0*261 7*3 5*9 0*97 5 0*26d 5 0*11 3 0*1a 5*2 0*4e 5*3 0*24 7*3 0*1d 7*2 0 5*2 0*1b 7*2
0*1e 7*2 0*40 7*2 0 7*7 0*8 7 0*2 7*b 5*3 0 5*3 0*2 7 0*22 5*b 7*3 1 7 0*75 7*2 0*22 7
0*76 7*3 0*4 7*2 0*9 7 0*6 7*3 0*8 5*2 0*d1 7*2 0*2 7 0*2 5*2 0*36 7 0 7*7 0 7 0 7 0*2
7*8 0*6 7*a 0*2 7 0*20 5*7 0 5*6 0*2 7*e 0 7*10 0*31 7*4 0*30 7 0 7*5 0 7 0*5 7 0*17 5*7
0*a 7*9 0*9 5*2 0 7*2 0*20 7*4 0*2 7*2 0 7*3 0*38 7 0 7*2 0*3 7 0 7*3 0*a 5*4 0*2c 7*8
0*2 7*2 0*3 5*5 0*3e 5*2 0*40 5*8 0*8 7*3 5 7*d 0 7*7 0*4 7 0*6 7 0*3 7*2 0*c6 7*40
0*200 3*b 1*5 5*18 4*2 1*5 3 5*14 0 5*d 0 5*c 3 1*5 0 1*a 0*d 5*2 0*e 5*2 0*41 7*d 0*4 7
0*3 7*c 0*217 5*4 0*1d 5*2 0*43d 5*e 0*4f 5*2 0*1f 5*a 0*193 5*16 0*3f 5*4 0*20 5*2
0*2f1 7*3 0*7 5*4 0 5*2 0*70 5 0*e 7 0*60 7*20 5*2f 0 5*20 0*2 5*c 0*1a2 3 5*3 0*4 5*a
0*2 5*c 0*a 7*4 0*2 5 0*c 5 0*5b 7*2 0*5 5 0*5a 5 0*304 6*19c0 0*40 6*5200 0*4fe 5*2
0*10d 5*3 0*5f 7 0*3 5 7*a 5 0*1f 7*2 0*50 7*2 5*6 0*10a 7 0*3 7 0*4 7 0*19 7*2 0*5 7
0*47 5*4 0*4c 7*2 0*8 5*2 0*10 7*12 0*6 5*3 0 5 0*2 7 0*26 7*8 5*2 0*17 7*b 0*d 5 0*20
7*3 0*30 7 0*2 7*4 0*2 7*2 0*3 5*d 0*10 5*2 0*5 7 0*43 7*6 0*2 7*2 0*2 7*2 0*c 7 0*8 7
0*f 5*4 0*1c 7 0*33 7 0 7*3 0*2 7*2 0*5 7*2 0 7 0*1c 5*2 0*c 7*2 0*2 5*2 0*4 7 0*ee 7
0*2 7 0*2 5 0 7 0*4d12 6*200 0*1e 7 0*21f 5*2 0*c0 7*10 5*a 0*6 7*10 5*23 0 5*e 0 5 0*4
5 0 5*2 0*93 1 0 5*3 0 5*6 0 5*4 0*a 5*2 0*3 5*2 0*1a 5*3 0 5 0*1b 5 0 5 0 5*7 0*93 1*3
0 2 0*102 5*3 0*fa 7 0*e2 7 0*95 7*5 0*24 5 0*30 5 0*19e 5 0*2e7 5 0*c7 5 0*1f 5 0*c1
7*3 0 7*2 0*5 7*4 0*28 7*3 0*4 7 0*10 5*9 0*26 5 0*65 7*2 0*9 5*7 0*42 5*7 0*59 5*4
0*187 7*4 0*183 7*2 5 0*98 7*b 0*4 5*5 0*28 7*4 5*4 0*77 7 0*36 7*f 5*7 0*22 7 0*2 7*2
0*a 7*3 0*31 7*4 0*2 7*2 5*2 1 5*4 7 0*a 1 0*32 7*3 0*24 7*5 0 7*8 0*b 5*4 0*2f 7 5*2
0*a 7*2 0*34 7*9 0*6 5*4 7*4 5 0 7 0*b 5 0 5*3 0*4f 7*3 0*2 7 0 7*2 5*6 7 0*6a 5 0*35 7
0*3 7*8 0*15 7*2 0*39 7*2 0*3 7 0*25 7*7 0*3 7*5 0*c3 7*8 0*2 7*3 0 7 0*4 5*5 0*a 5*2 0
5 7 0*54 7*6 0 7 0*4 7*2 0 7*2 0*2 5 0*eb 7*4 0*6 7*2 0 7*2 5*17 0*4 7*2 0*55 7*8 0*2 7
0 7*2 5*3 0*1c 5*d 0*3e 7 0 7 0*2 7*6 0 7 0 5 0*63 7*3 0*2 7*4 0 7*5 0*10 5*3 0*f0 7*9 0
7*2 5 0*ff 7*2 0 7 0*4 7 5*3 0*8d 7*4 0*2 7*2 0*4 7 0 5 0*1e 7*a 0*28 7*6 0*2 7*4 5*8 7
0*9 7*6 0*2 7*3 0*2e 7*d 0 7*2 5*3 0 5*5 0*18d 7*7 0 7*6 0 7 0 5*5 0*2a 5*2 0*20 7*16
0*2 7*7 0 7*2 0 7*2 0*7a 7*6 0*3 7 0 7*2 0 7*7 0 7 0*48 7*2 0*3 7 0 7 0*15b 7*2 0*2 5*2
0*106 5 0*470 5*5 0*b7c 5*2 0*43d 1*9 0*3635 5*2 0*80 7*5 5 0*3a 7*7 5*5 0*8 5 0*352 5*4
0*b4 7 0*3f 7*4 0*4f 5 0 7 0*4cb8 7*2 5 1*4 0*125c 7*2e 0*2 7*17 0*220 7*3 0*9 1*8 7*8
0*2 7*7 0*1e 7*4 0*94 7*3 0*7bb 7*37 0*4 7*32 0*8 7 0*e 7 0*2 5*5 0*f 7*5 0 7*f 0*550
7*7 0 7*11 0*2 7*7 0 7*2 0 7*5 0*105 7*7 0*177 7 0*3d 7*4 0*5e0 7*7 0*6d 7*7 0*13 5*2
0*16a0 6*a6e0 0*20 6*27b0 0*2950 6*220 0*b05e1 1 0*1e 1*60 0*80 7*f0 0*2fe10
`;
  const COMBINING_CLASS = `
0*300 e6*15 e8 dc*4 e8 d8 dc*5 ca*2 dc*4 ca*2 dc*b 1*5 dc*4 e6*8 f0 e6 dc*3 e6*3 dc*2 0
e6*3 dc*4 e6 e8 dc*2 e6 e9 ea*2 e9 ea*2 e9 e6*d 0*113 e6*5 0*109 dc e6*4 dc e6*3 de dc
e6*6 dc*6 e6*2 dc e6*2 de e4 e6 a b c d e f 10 11 12 13*2 14 15 16 0 17 0 18 19 0 e6 dc
0 12 0*48 e6*8 1e 1f 20 0*30 1b 1c 1d 1e 1f 20 21 22 e6*2 dc*2 e6*5 dc e6*2 dc 0*10 23
0*65 e6*7 0*2 e6*4 dc e6 0*2 e6*2 0 dc e6*2 dc 0*23 24 0*1e e6 dc e6*2 dc e6*2 dc*3 e6
dc*2 e6 dc e6*3 dc e6 dc e6 dc e6 dc e6*2 0*a0 e6*7 dc e6 0*9 dc 0*18 e6*4 0 e6*9 0 e6*3
0 e6*5 0*2b dc*3 0*3c e6 dc*3 e6*4 0*2a e6*5 dc*5 e6*e 0 dc e6*2 dc e6*2 dc e6*3 dc*3 1b
1c 1d e6*3 dc e6*2 dc*2 e6*5 0*3c 7 0*10 9 0*3 e6 dc e6*2 0*67 7 0*10 9 0*30 e6 0*3d 7
0*10 9 0*6e 7 0*10 9 0*6e 7 0*10 9 0*7f 9 0*6e 7 0*10 9 0*7 54 5b 0*65 7 0*10 9 0*6d 9*2
0*10 9 0*7c 9 0*6d 67*2 9 0*d 6b*4 0*6c 76*2 9 0*d 7a*4 0*4c dc*2 0*1b dc 0 dc 0 d8 0*37
81 82 0 84 0*5 82*4 0*2 82 0 e6*2 9 0 e6*2 0*3e dc 0*70 7 0 9*2 0*52 dc 0*2cf e6*3 0*3b4
9*2 0*1e 9 0*9d 9 0*a e6 0*cb e4 0*8f de e6 dc 0*db e6 dc 0*47 9 0*14 e6*8 0*2 dc 0*30
e6*5 dc*6 e6*2 dc 0 dc*2 e6*2 dc*2 e6*5 dc e6*4 0*65 7 0*f 9 0*26 e6 dc e6*7 0*36 9*2
0*3a 7 0*b 9*2 0*43 7 0*98 e6*3 0 1 dc*5 e6*2 dc*4 e6 0 1*7 0*4 dc 0*6 e6 0*3 e6*2 0*c6
e6*2 dc e6*7 dc e6*2 ea d6 dc ca e6*25 e8 e4*2 dc da e6 e9 dc e6 dc 0*2d0 e6*2 1*2 e6*4
1*3 e6*2 0*4 e6 0*3 1*2 e6 dc e6 1*2 dc*4 e6 0*bfe e6*3 0*8d 9 0*60 e6*20 0*22a da e4 e8
de e0*2 0*69 8*2 0*75d4 e6 0*4 e6*a 0*20 e6*2 0*50 e6*2 0*114 9 0*25 9 0*97 9 0*1b e6*12
0*39 dc*3 0*25 9 0*5f 7 0*c 9 0*ef e6 0 e6*2 dc 0*2 e6*2 0*5 e6*2 0 e6 0*34 9 0*f6 9
0*4f30 1a 0*301 e6*7 dc*7 e6*2 0*3cd dc 0*e2 dc 0*95 e6*5 0*692 dc 0 e6 0*28 e6 1 dc 0*4
9 0*a5 e6 dc 0*23d e6*4 0*183 e6*2 0*99 dc*2 e6*3 dc e6 dc*4 0*31 e6 dc e6 dc 0*c0 9
0*29 9 0*e 9 0*39 9 7 0*45 e6*3 0*30 9*2 0*3e 7 0*4c 9 0*9 7 0*6a 9 7 0*b2 7 9 0*50 7*2
0*10 9 0*18 e6*7 0*3 e6*5 0*cd 9 0*3 7 0*17 e6 0*63 9 7 0*fb 9 7 0*7e 9 0*76 9 7 0*73 9
0*10d 9 7 0*102 9*2 0*4 7 0*9c 9 0*53 9 0*12 9 0*51 9 0*1a5 9 0*102 7 0 9*2 0*51 9
0*4d58 1*5 0*3b e6*7 0*4b9 6*2 0*4cac 1 0*14c6 d8*2 1*3 0*3 e2 d8*5 0*8 dc*8 0*2 e6*5
dc*2 0*1e e6*4 0*94 e6*3 0*dbb e6*7 0 e6*11 0*2 e6*7 0 e6*2 0 e6*5 0*105 e6*7 0*177 e6
0*3d e6*4 0*5e0 dc*7 0*6d e6*6 7 0*f16b5
`;
  const SIGMA_CONTEXT = `
2*9 0*2 2*2 0 2*12 0*7 2 0*6 2 0*b 2 0*6 1*1a 0*3 2 0 2 1*1a 0*4 2*21 0*8 2 0 1 0*2 2 0
2 0*4 2 1 0 2*2 0 1 0*5 1*17 0 1*1f 0 1*c3 0 1*4 0*4 1*d0 0 1*1b 2*c0 1*4 2*2 1*2 0*2 2
1*3 0 1 0*4 2*2 1 2 1*3 0 1 0 1*14 0 1*53 0 1*8b 0 2*7 1*a6 0 1*26 0*2 2 0*5 2 1*29 0*8
2*2d 0 2 0 2*2 0 2*2 0 2 0*2c 2 0*b 2*6 0*a 2*b 0 2 0*23 2 0*a 2*15 0*10 2 0*65 2*8 0
2*a 0 2*4 0*21 2 0 2 0*1e 2*1b 0*5b 2*b 0*3a 2*b 0*4 2 0*2 2 0*18 2*18 0*2b 2*3 0*2c 2
0*7 2*2 0*6 2*8 0*29 2*3a 0*37 2 0 2 0*4 2*8 0*4 2 0*3 2*7 0*a 2*2 0*d 2 0*f 2 0*3a 2
0*4 2*4 0*8 2 0*14 2*2 0*1a 2 0*2 2*2 0*39 2 0*4 2*2 0*4 2*2 0*2 2*3 0*3 2 0*1e 2*2 0*3
2 0*b 2*2 0*39 2 0*4 2*5 0 2*2 0*4 2 0*14 2*2 0*16 2*6 0 2 0*3a 2 0*2 2 0 2*4 0*8 2 0*7
2*2 0*b 2*2 0*1e 2 0*3d 2 0*c 2 0*32 2 0*3 2 0*37 2 0 2*3 0*5 2*3 0 2*4 0*7 2*2 0*b 2*2
0*1d 2 0*3a 2 0*2 2 0*6 2 0*5 2*2 0*14 2*2 0*1c 2*2 0*39 2*2 0*4 2*4 0*8 2 0*14 2*2 0*1d
2 0*48 2 0*7 2*3 0 2 0*5a 2 0*2 2*7 0*b 2*9 0*62 2 0*2 2*9 0*9 2 0 2*6 0*4a 2*2 0*1b 2 0
2 0 2 0*37 2*e 0 2*5 0 2*2 0*5 2*b 0 2*24 0*9 2 0*66 2*4 0 2*6 0 2*2 0*2 2*2 0*19 2*2
0*4 2*3 0*10 2*4 0*d 2 0*2 2*2 0*6 2 0*f 2 0*2 1*26 0 1 0*5 1 0*2 1*2b 0 2 1*3 0*25d 2*3
0*40 1*56 0*2 1*6 0*314 2*3 0*1d 2*2 0*1e 2*2 0*1e 2*2 0*40 2*2 0 2*7 0*8 2 0*2 2*b 0*3
2 0*5 2 0*2d 2*5 0*33 2 0*41 2*2 0*22 2 0*76 2*3 0*4 2*2 0*9 2 0*6 2*3 0*db 2*2 0*2 2
0*3a 2 0 2*7 0 2 0 2 0*2 2*8 0*6 2*a 0*2 2 0*27 2 0*8 2*1f 0*31 2*4 0*30 2 0 2*5 0 2 0*5
2 0*28 2*9 0*c 2*2 0*20 2*4 0*2 2*2 0 2*3 0*38 2 0 2*2 0*3 2 0 2*3 0*3a 2*8 0*2 2*2 0*40
2*6 0*2 1*9 0*7 1*2b 0*2 1*3 0*10 2*3 0 2*d 0 2*7 0*4 2 0*6 2 0*3 2*2 0*6 1*2c 2*3f 1*d
2 1*22 2*65 1*116 0*2 1*6 0*2 1*26 0*2 1*6 0*2 1*8 0 1 0 1 0 1 0 1*1f 0*2 1*35 0 1*7 2 1
2*3 1*3 0 1*7 2*3 1*4 0*2 1*6 0 2*3 1*d 2*3 0*2 1*3 0 1*7 2*2 0*c 2*5 0*8 2*2 0*a 2 0*2
2 0*2 2*5 0*31 2*5 0 2*a 0 2 0*d 2 0*10 2*d 0*33 2*21 0*11 1 0*4 1 0*2 1*a 0 1 0*3 1*5
0*6 1 0 1 0 1 0 1*4 0 1*6 0*4 1 0*2 1*4 0*5 1*5 0*4 1 0*11 1*20 0*3 1*2 0*331 1*34 0*716
1*7c 2*2 1*67 0*6 1*4 2*3 1*2 0*c 1*26 0 1 0*5 1 0*41 2 0*f 2 0*60 2*20 0*2f 2 0*1d5 2
0*24 2*4 0*3 2*5 0*5 2 0*5d 2*6 0*5d 2*3 0*6f16 2 0*4e2 2*6 0*10e 2 0*33 1*2e 0 2*4 0
2*a 0 2 1*1c 2*4 0*50 2*2 0*e 2*22 1*4e 2 1*17 2*3 1*4 0 1*3b 0*5 1*2 0 1 0 1*5 0*18 2*3
1*2 0 2*2 1 0*7 2 0*3 2 0*4 2 0*19 2*2 0*5 2 0*97 2*2 0*1a 2*12 0*d 2 0*26 2*8 0*19 2*b
0*2e 2*3 0*30 2 0*2 2*4 0*2 2*2 0*11 2 0*15 2*2 0*42 2*6 0*2 2*2 0*2 2*2 0*c 2 0*8 2
0*23 2 0*b 2 0*33 2 0 2*3 0*2 2*2 0*5 2*2 0 2 0*1b 2 0*e 2*2 0*5 2*2 0 2 0*39 1*2b 2*5
1*9 2*3 0*4 1*50 0*25 2 0*2 2 0*4 2 0*4f12 1*7 0*c 1*5 0*6 2 0*93 2*11 0*23d 2*10 0*3 2
0*c 2*10 0*22 2 0*2 2 0*a9 2 0*7 2 0*6 2 0*b 2 0*6 1*1a 0*3 2 0 2 1*1a 0*15 2 0*2d 2*2
0*43 2 0*15 2*3 0 2 0*1ff 2 0*e2 2 0*95 2*5 0*85 1*50 0*60 1*24 0*4 1*24 0*74 1*b 0 1*f
0 1*7 0 1*2 0 1*b 0 1*f 0 1*7 0 1*2 0*1c3 2*6 0 2*2a 0 2*9 0*246 2*3 0 2*2 0*5 2*4 0*28
2*3 0*4 2 0*a5 2*2 0*199 1*33 0*d 1*33 0*31 2*4 0*183 2*2 0*99 2*b 0*31 2*4 0*7b 2 0*36
2*f 0*29 2 0*2 2*2 0*a 2*3 0*31 2*4 0*2 2*2 0*2 2 0*4 2 0*a 2 0*32 2*3 0*24 2*5 0 2*8
0*3e 2 0*c 2*2 0*34 2*9 0*a 2*4 0*2 2 0*5f 2*3 0*2 2 0 2*2 0*6 2 0*a0 2 0*3 2*8 0*15 2*2
0*39 2*2 0*3 2 0*25 2*7 0*3 2*5 0*c3 2*8 0*2 2*3 0 2 0*17 2 0*54 2*6 0 2 0*4 2*2 0 2*2
0*ee 2*4 0*6 2*2 0 2*2 0*1b 2*2 0*55 2*8 0*2 2 0 2*2 0*6a 2 0 2 0*2 2*6 0 2 0*65 2*3 0*2
2*4 0 2*5 0*103 2*9 0 2*2 0*65 1*40 0*5b 2*2 0 2 0*4 2 0*90 2*4 0*2 2*2 0*4 2 0*20 2*a
0*28 2*6 0*2 2*4 0*8 2 0*9 2*6 0*2 2*3 0*2e 2*d 0 2*2 0*196 2*7 0 2*6 0 2 0*52 2*16 0*2
2*7 0 2*2 0 2*2 0*7a 2*6 0*3 2 0 2*2 0 2*7 0 2 0*48 2*2 0*3 2 0 2 0*15b 2*2 0*153b 2*9
0*36b7 2*5 0*3b 2*7 0*9 2*4 0*2fc 1*40 0*cf 2 0*3f 2*11 0*40 2*2 0 2*2 0*400b 2*4 0 2*7
0 2*2 0*c9e 2*2 0 2*4 0*125c 2*2e 0*2 2*17 0*220 2*3 0*9 2*10 0*2 2*7 0*1e 2*4 0*94 2*3
0*1bb 1*55 0 1*47 0 1*2 0*2 1 0*2 1*2 0*2 1*4 0 1*c 0 1 0 1*7 0 1*41 0 1*4 0*2 1*8 0 1*7
0 1*1c 0 1*4 0 1*5 0 1 0*3 1*7 0 1*154 0*2 1*19 0 1*19 0 1*1f 0 1*19 0 1*1f 0 1*19 0
1*1f 0 1*19 0 1*1f 0 1*19 0 1*8 0*234 2*37 0*4 2*32 0*8 2 0*e 2 0*16 2*5 0 2*f 0*450 1*a
0 1*14 0*e1 2*7 0 2*11 0*2 2*7 0 2*2 0 2*5 0*105 2*e 0*170 2 0*3d 2*4 0*5e0 2*7 0*29
1*44 2*8 0*7e4 1*1a 0*6 1*1a 0*6 1*1a 0*271 2*5 0*c0c01 2 0*1e 2*60 0*80 2*f0 0*2fe10
`;
  const FOLDED = `
41-5a=61 c0=61+300 c1=61+301 c2=61+302 c3=61+303 c4=61+308 c5=61+30a c6=e6 c7=63+327
c8=65+300 c9=65+301 ca=65+302 cb=65+308 cc=69+300 cd=69+301 ce=69+302 cf=69+308 d0=f0
d1=6e+303 d2=6f+300 d3=6f+301 d4=6f+302 d5=6f+303 d6=6f+308 d8=f8 d9=75+300 da=75+301
db=75+302 dc=75+308 dd=79+301 de=fe e0=61+300 e1=61+301 e2=61+302 e3=61+303 e4=61+308
e5=61+30a e7=63+327 e8=65+300 e9=65+301 ea=65+302 eb=65+308 ec=69+300 ed=69+301
ee=69+302 ef=69+308 f1=6e+303 f2=6f+300 f3=6f+301 f4=6f+302 f5=6f+303 f6=6f+308
f9=75+300 fa=75+301 fb=75+302 fc=75+308 fd=79+301 ff=79+308 100=61+304 101=61+304
102=61+306 103=61+306 104=61+328 105=61+328 106=63+301 107=63+301 108=63+302 109=63+302
10a=63+307 10b=63+307 10c=63+30c 10d=63+30c 10e=64+30c 10f=64+30c 110=111 112=65+304
113=65+304 114=65+306 115=65+306 116=65+307 117=65+307 118=65+328 119=65+328 11a=65+30c
11b=65+30c 11c=67+302 11d=67+302 11e=67+306 11f=67+306 120=67+307 121=67+307 122=67+327
123=67+327 124=68+302 125=68+302 126=127 128=69+303 129=69+303 12a=69+304 12b=69+304
12c=69+306 12d=69+306 12e=69+328 12f=69+328 130=69+307 132=133 134=6a+302 135=6a+302
136=6b+327 137=6b+327 139=6c+301 13a=6c+301 13b=6c+327 13c=6c+327 13d=6c+30c 13e=6c+30c
13f=140 141=142 143=6e+301 144=6e+301 145=6e+327 146=6e+327 147=6e+30c 148=6e+30c
14a=14b 14c=6f+304 14d=6f+304 14e=6f+306 14f=6f+306 150=6f+30b 151=6f+30b 152=153
154=72+301 155=72+301 156=72+327 157=72+327 158=72+30c 159=72+30c 15a=73+301 15b=73+301
15c=73+302 15d=73+302 15e=73+327 15f=73+327 160=73+30c 161=73+30c 162=74+327 163=74+327
164=74+30c 165=74+30c 166=167 168=75+303 169=75+303 16a=75+304 16b=75+304 16c=75+306
16d=75+306 16e=75+30a 16f=75+30a 170=75+30b 171=75+30b 172=75+328 173=75+328 174=77+302
175=77+302 176=79+302 177=79+302 178=79+308 179=7a+301 17a=7a+301 17b=7a+307 17c=7a+307
17d=7a+30c 17e=7a+30c 181=253 182=183 184=185 186=254 187=188 189-18a=256 18b=18c
18e=1dd 18f=259 190=25b 191=192 193=260 194=263 196=269 197=268 198=199 19c=26f 19d=272
19f=275 1a0=6f+31b 1a1=6f+31b 1a2=1a3 1a4=1a5 1a6=280 1a7=1a8 1a9=283 1ac=1ad 1ae=288
1af=75+31b 1b0=75+31b 1b1-1b2=28a 1b3=1b4 1b5=1b6 1b7=292 1b8=1b9 1bc=1bd 1c4=1c6
1c5=1c6 1c7=1c9 1c8=1c9 1ca=1cc 1cb=1cc 1cd=61+30c 1ce=61+30c 1cf=69+30c 1d0=69+30c
1d1=6f+30c 1d2=6f+30c 1d3=75+30c 1d4=75+30c 1d5=75+308+304 1d6=75+308+304 1d7=75+308+301
1d8=75+308+301 1d9=75+308+30c 1da=75+308+30c 1db=75+308+300 1dc=75+308+300
1de=61+308+304 1df=61+308+304 1e0=61+307+304 1e1=61+307+304 1e2=e6+304 1e3=e6+304
1e4=1e5 1e6=67+30c 1e7=67+30c 1e8=6b+30c 1e9=6b+30c 1ea=6f+328 1eb=6f+328 1ec=6f+328+304
1ed=6f+328+304 1ee=292+30c 1ef=292+30c 1f0=6a+30c 1f1=1f3 1f2=1f3 1f4=67+301 1f5=67+301
1f6=195 1f7=1bf 1f8=6e+300 1f9=6e+300 1fa=61+30a+301 1fb=61+30a+301 1fc=e6+301
1fd=e6+301 1fe=f8+301 1ff=f8+301 200=61+30f 201=61+30f 202=61+311 203=61+311 204=65+30f
205=65+30f 206=65+311 207=65+311 208=69+30f 209=69+30f 20a=69+311 20b=69+311 20c=6f+30f
20d=6f+30f 20e=6f+311 20f=6f+311 210=72+30f 211=72+30f 212=72+311 213=72+311 214=75+30f
215=75+30f 216=75+311 217=75+311 218=73+326 219=73+326 21a=74+326 21b=74+326 21c=21d
21e=68+30c 21f=68+30c 220=19e 222=223 224=225 226=61+307 227=61+307 228=65+327
229=65+327 22a=6f+308+304 22b=6f+308+304 22c=6f+303+304 22d=6f+303+304 22e=6f+307
22f=6f+307 230=6f+307+304 231=6f+307+304 232=79+304 233=79+304 23a=2c65 23b=23c 23d=19a
23e=2c66 241=242 243=180 244=289 245=28c 246=247 248=249 24a=24b 24c=24d 24e=24f
340-341=300 343=313 344=308+301 370=371 372=373 374=2b9 376=377 37e=3b 37f=3f3
385=a8+301 386=3b1+301 387=b7 388=3b5+301 389=3b7+301 38a=3b9+301 38c=3bf+301
38e=3c5+301 38f=3c9+301 390=3b9+308+301 391-3a1=3b1 3a3-3a9=3c3 3aa=3b9+308 3ab=3c5+308
3ac=3b1+301 3ad=3b5+301 3ae=3b7+301 3af=3b9+301 3b0=3c5+308+301 3ca=3b9+308 3cb=3c5+308
3cc=3bf+301 3cd=3c5+301 3ce=3c9+301 3cf=3d7 3d3=3d2+301 3d4=3d2+308 3d8=3d9 3da=3db
3dc=3dd 3de=3df 3e0=3e1 3e2=3e3 3e4=3e5 3e6=3e7 3e8=3e9 3ea=3eb 3ec=3ed 3ee=3ef 3f4=3b8
3f7=3f8 3f9=3f2 3fa=3fb 3fd-3ff=37b 400=435+300 401=435+308 402=452 403=433+301
404-406=454 407=456+308 408-40b=458 40c=43a+301 40d=438+300 40e=443+306 40f=45f
410-418=430 419=438+306 41a-42f=43a 439=438+306 450=435+300 451=435+308 453=433+301
457=456+308 45c=43a+301 45d=438+300 45e=443+306 460=461 462=463 464=465 466=467 468=469
46a=46b 46c=46d 46e=46f 470=471 472=473 474=475 476=475+30f 477=475+30f 478=479 47a=47b
47c=47d 47e=47f 480=481 48a=48b 48c=48d 48e=48f 490=491 492=493 494=495 496=497 498=499
49a=49b 49c=49d 49e=49f 4a0=4a1 4a2=4a3 4a4=4a5 4a6=4a7 4a8=4a9 4aa=4ab 4ac=4ad 4ae=4af
4b0=4b1 4b2=4b3 4b4=4b5 4b6=4b7 4b8=4b9 4ba=4bb 4bc=4bd 4be=4bf 4c0=4cf 4c1=436+306
4c2=436+306 4c3=4c4 4c5=4c6 4c7=4c8 4c9=4ca 4cb=4cc 4cd=4ce 4d0=430+306 4d1=430+306
4d2=430+308 4d3=430+308 4d4=4d5 4d6=435+306 4d7=435+306 4d8=4d9 4da=4d9+308 4db=4d9+308
4dc=436+308 4dd=436+308 4de=437+308 4df=437+308 4e0=4e1 4e2=438+304 4e3=438+304
4e4=438+308 4e5=438+308 4e6=43e+308 4e7=43e+308 4e8=4e9 4ea=4e9+308 4eb=4e9+308
4ec=44d+308 4ed=44d+308 4ee=443+304 4ef=443+304 4f0=443+308 4f1=443+308 4f2=443+30b
4f3=443+30b 4f4=447+308 4f5=447+308 4f6=4f7 4f8=44b+308 4f9=44b+308 4fa=4fb 4fc=4fd
4fe=4ff 500=501 502=503 504=505 506=507 508=509 50a=50b 50c=50d 50e=50f 510=511 512=513
514=515 516=517 518=519 51a=51b 51c=51d 51e=51f 520=521 522=523 524=525 526=527 528=529
52a=52b 52c=52d 52e=52f 531-556=561 622=627+653 623=627+654 624=648+654 625=627+655
626=64a+654 6c0=6d5+654 6c2=6c1+654 6d3=6d2+654 929=928+93c 931=930+93c 934=933+93c
958=915+93c 959=916+93c 95a=917+93c 95b=91c+93c 95c=921+93c 95d=922+93c 95e=92b+93c
95f=92f+93c 9cb=9c7+9be 9cc=9c7+9d7 9dc=9a1+9bc 9dd=9a2+9bc 9df=9af+9bc a33=a32+a3c
a36=a38+a3c a59=a16+a3c a5a=a17+a3c a5b=a1c+a3c a5e=a2b+a3c b48=b47+b56 b4b=b47+b3e
b4c=b47+b57 b5c=b21+b3c b5d=b22+b3c b94=b92+bd7 bca=bc6+bbe bcb=bc7+bbe bcc=bc6+bd7
c48=c46+c56 cc0=cbf+cd5 cc7=cc6+cd5 cc8=cc6+cd6 cca=cc6+cc2 ccb=cc6+cc2+cd5 d4a=d46+d3e
d4b=d47+d3e d4c=d46+d57 dda=dd9+dca ddc=dd9+dcf ddd=dd9+dcf+dca dde=dd9+ddf f43=f42+fb7
f4d=f4c+fb7 f52=f51+fb7 f57=f56+fb7 f5c=f5b+fb7 f69=f40+fb5 f73=f71+f72 f75=f71+f74
f76=fb2+f80 f78=fb3+f80 f81=f71+f80 f93=f92+fb7 f9d=f9c+fb7 fa2=fa1+fb7 fa7=fa6+fb7
fac=fab+fb7 fb9=f90+fb5 1026=1025+102e 10a0-10c5=2d00 10c7=2d27 10cd=2d2d 13a0-13ef=ab70
13f0-13f5=13f8 1b06=1b05+1b35 1b08=1b07+1b35 1b0a=1b09+1b35 1b0c=1b0b+1b35
1b0e=1b0d+1b35 1b12=1b11+1b35 1b3b=1b3a+1b35 1b3d=1b3c+1b35 1b40=1b3e+1b35
1b41=1b3f+1b35 1b43=1b42+1b35 1c90-1cba=10d0 1cbd-1cbf=10fd 1e00=61+325 1e01=61+325
1e02=62+307 1e03=62+307 1e04=62+323 1e05=62+323 1e06=62+331 1e07=62+331 1e08=63+327+301
1e09=63+327+301 1e0a=64+307 1e0b=64+307 1e0c=64+323 1e0d=64+323 1e0e=64+331 1e0f=64+331
1e10=64+327 1e11=64+327 1e12=64+32d 1e13=64+32d 1e14=65+304+300 1e15=65+304+300
1e16=65+304+301 1e17=65+304+301 1e18=65+32d 1e19=65+32d 1e1a=65+330 1e1b=65+330
1e1c=65+327+306 1e1d=65+327+306 1e1e=66+307 1e1f=66+307 1e20=67+304 1e21=67+304
1e22=68+307 1e23=68+307 1e24=68+323 1e25=68+323 1e26=68+308 1e27=68+308 1e28=68+327
1e29=68+327 1e2a=68+32e 1e2b=68+32e 1e2c=69+330 1e2d=69+330 1e2e=69+308+301
1e2f=69+308+301 1e30=6b+301 1e31=6b+301 1e32=6b+323 1e33=6b+323 1e34=6b+331 1e35=6b+331
1e36=6c+323 1e37=6c+323 1e38=6c+323+304 1e39=6c+323+304 1e3a=6c+331 1e3b=6c+331
1e3c=6c+32d 1e3d=6c+32d 1e3e=6d+301 1e3f=6d+301 1e40=6d+307 1e41=6d+307 1e42=6d+323
1e43=6d+323 1e44=6e+307 1e45=6e+307 1e46=6e+323 1e47=6e+323 1e48=6e+331 1e49=6e+331
1e4a=6e+32d 1e4b=6e+32d 1e4c=6f+303+301 1e4d=6f+303+301 1e4e=6f+303+308 1e4f=6f+303+308
1e50=6f+304+300 1e51=6f+304+300 1e52=6f+304+301 1e53=6f+304+301 1e54=70+301 1e55=70+301
1e56=70+307 1e57=70+307 1e58=72+307 1e59=72+307 1e5a=72+323 1e5b=72+323 1e5c=72+323+304
1e5d=72+323+304 1e5e=72+331 1e5f=72+331 1e60=73+307 1e61=73+307 1e62=73+323 1e63=73+323
1e64=73+301+307 1e65=73+301+307 1e66=73+30c+307 1e67=73+30c+307 1e68=73+323+307
1e69=73+323+307 1e6a=74+307 1e6b=74+307 1e6c=74+323 1e6d=74+323 1e6e=74+331 1e6f=74+331
1e70=74+32d 1e71=74+32d 1e72=75+324 1e73=75+324 1e74=75+330 1e75=75+330 1e76=75+32d
1e77=75+32d 1e78=75+303+301 1e79=75+303+301 1e7a=75+304+308 1e7b=75+304+308 1e7c=76+303
1e7d=76+303 1e7e=76+323 1e7f=76+323 1e80=77+300 1e81=77+300 1e82=77+301 1e83=77+301
1e84=77+308 1e85=77+308 1e86=77+307 1e87=77+307 1e88=77+323 1e89=77+323 1e8a=78+307
1e8b=78+307 1e8c=78+308 1e8d=78+308 1e8e=79+307 1e8f=79+307 1e90=7a+302 1e91=7a+302
1e92=7a+323 1e93=7a+323 1e94=7a+331 1e95=7a+331 1e96=68+331 1e97=74+308 1e98=77+30a
1e99=79+30a 1e9b=17f+307 1e9e=df 1ea0=61+323 1ea1=61+323 1ea2=61+309 1ea3=61+309
1ea4=61+302+301 1ea5=61+302+301 1ea6=61+302+300 1ea7=61+302+300 1ea8=61+302+309
1ea9=61+302+309 1eaa=61+302+303 1eab=61+302+303 1eac=61+323+302 1ead=61+323+302
1eae=61+306+301 1eaf=61+306+301 1eb0=61+306+300 1eb1=61+306+300 1eb2=61+306+309
1eb3=61+306+309 1eb4=61+306+303 1eb5=61+306+303 1eb6=61+323+306 1eb7=61+323+306
1eb8=65+323 1eb9=65+323 1eba=65+309 1ebb=65+309 1ebc=65+303 1ebd=65+303 1ebe=65+302+301
1ebf=65+302+301 1ec0=65+302+300 1ec1=65+302+300 1ec2=65+302+309 1ec3=65+302+309
1ec4=65+302+303 1ec5=65+302+303 1ec6=65+323+302 1ec7=65+323+302 1ec8=69+309 1ec9=69+309
1eca=69+323 1ecb=69+323 1ecc=6f+323 1ecd=6f+323 1ece=6f+309 1ecf=6f+309 1ed0=6f+302+301
1ed1=6f+302+301 1ed2=6f+302+300 1ed3=6f+302+300 1ed4=6f+302+309 1ed5=6f+302+309
1ed6=6f+302+303 1ed7=6f+302+303 1ed8=6f+323+302 1ed9=6f+323+302 1eda=6f+31b+301
1edb=6f+31b+301 1edc=6f+31b+300 1edd=6f+31b+300 1ede=6f+31b+309 1edf=6f+31b+309
1ee0=6f+31b+303 1ee1=6f+31b+303 1ee2=6f+31b+323 1ee3=6f+31b+323 1ee4=75+323 1ee5=75+323
1ee6=75+309 1ee7=75+309 1ee8=75+31b+301 1ee9=75+31b+301 1eea=75+31b+300 1eeb=75+31b+300
1eec=75+31b+309 1eed=75+31b+309 1eee=75+31b+303 1eef=75+31b+303 1ef0=75+31b+323
1ef1=75+31b+323 1ef2=79+300 1ef3=79+300 1ef4=79+323 1ef5=79+323 1ef6=79+309 1ef7=79+309
1ef8=79+303 1ef9=79+303 1efa=1efb 1efc=1efd 1efe=1eff 1f00=3b1+313 1f01=3b1+314
1f02=3b1+313+300 1f03=3b1+314+300 1f04=3b1+313+301 1f05=3b1+314+301 1f06=3b1+313+342
1f07=3b1+314+342 1f08=3b1+313 1f09=3b1+314 1f0a=3b1+313+300 1f0b=3b1+314+300
1f0c=3b1+313+301 1f0d=3b1+314+301 1f0e=3b1+313+342 1f0f=3b1+314+342 1f10=3b5+313
1f11=3b5+314 1f12=3b5+313+300 1f13=3b5+314+300 1f14=3b5+313+301 1f15=3b5+314+301
1f18=3b5+313 1f19=3b5+314 1f1a=3b5+313+300 1f1b=3b5+314+300 1f1c=3b5+313+301
1f1d=3b5+314+301 1f20=3b7+313 1f21=3b7+314 1f22=3b7+313+300 1f23=3b7+314+300
1f24=3b7+313+301 1f25=3b7+314+301 1f26=3b7+313+342 1f27=3b7+314+342 1f28=3b7+313
1f29=3b7+314 1f2a=3b7+313+300 1f2b=3b7+314+300 1f2c=3b7+313+301 1f2d=3b7+314+301
1f2e=3b7+313+342 1f2f=3b7+314+342 1f30=3b9+313 1f31=3b9+314 1f32=3b9+313+300
1f33=3b9+314+300 1f34=3b9+313+301 1f35=3b9+314+301 1f36=3b9+313+342 1f37=3b9+314+342
1f38=3b9+313 1f39=3b9+314 1f3a=3b9+313+300 1f3b=3b9+314+300 1f3c=3b9+313+301
1f3d=3b9+314+301 1f3e=3b9+313+342 1f3f=3b9+314+342 1f40=3bf+313 1f41=3bf+314
1f42=3bf+313+300 1f43=3bf+314+300 1f44=3bf+313+301 1f45=3bf+314+301 1f48=3bf+313
1f49=3bf+314 1f4a=3bf+313+300 1f4b=3bf+314+300 1f4c=3bf+313+301 1f4d=3bf+314+301
1f50=3c5+313 1f51=3c5+314 1f52=3c5+313+300 1f53=3c5+314+300 1f54=3c5+313+301
1f55=3c5+314+301 1f56=3c5+313+342 1f57=3c5+314+342 1f59=3c5+314 1f5b=3c5+314+300
1f5d=3c5+314+301 1f5f=3c5+314+342 1f60=3c9+313 1f61=3c9+314 1f62=3c9+313+300
1f63=3c9+314+300 1f64=3c9+313+301 1f65=3c9+314+301 1f66=3c9+313+342 1f67=3c9+314+342
1f68=3c9+313 1f69=3c9+314 1f6a=3c9+313+300 1f6b=3c9+314+300 1f6c=3c9+313+301
1f6d=3c9+314+301 1f6e=3c9+313+342 1f6f=3c9+314+342 1f70=3b1+300 1f71=3b1+301
1f72=3b5+300 1f73=3b5+301 1f74=3b7+300 1f75=3b7+301 1f76=3b9+300 1f77=3b9+301
1f78=3bf+300 1f79=3bf+301 1f7a=3c5+300 1f7b=3c5+301 1f7c=3c9+300 1f7d=3c9+301
1f80=3b1+313+345 1f81=3b1+314+345 1f82=3b1+313+300+345 1f83=3b1+314+300+345
1f84=3b1+313+301+345 1f85=3b1+314+301+345 1f86=3b1+313+342+345 1f87=3b1+314+342+345
1f88=3b1+313+345 1f89=3b1+314+345 1f8a=3b1+313+300+345 1f8b=3b1+314+300+345
1f8c=3b1+313+301+345 1f8d=3b1+314+301+345 1f8e=3b1+313+342+345 1f8f=3b1+314+342+345
1f90=3b7+313+345 1f91=3b7+314+345 1f92=3b7+313+300+345 1f93=3b7+314+300+345
1f94=3b7+313+301+345 1f95=3b7+314+301+345 1f96=3b7+313+342+345 1f97=3b7+314+342+345
1f98=3b7+313+345 1f99=3b7+314+345 1f9a=3b7+313+300+345 1f9b=3b7+314+300+345
1f9c=3b7+313+301+345 1f9d=3b7+314+301+345 1f9e=3b7+313+342+345 1f9f=3b7+314+342+345
1fa0=3c9+313+345 1fa1=3c9+314+345 1fa2=3c9+313+300+345 1fa3=3c9+314+300+345
1fa4=3c9+313+301+345 1fa5=3c9+314+301+345 1fa6=3c9+313+342+345 1fa7=3c9+314+342+345
1fa8=3c9+313+345 1fa9=3c9+314+345 1faa=3c9+313+300+345 1fab=3c9+314+300+345
1fac=3c9+313+301+345 1fad=3c9+314+301+345 1fae=3c9+313+342+345 1faf=3c9+314+342+345
1fb0=3b1+306 1fb1=3b1+304 1fb2=3b1+300+345 1fb3=3b1+345 1fb4=3b1+301+345 1fb6=3b1+342
1fb7=3b1+342+345 1fb8=3b1+306 1fb9=3b1+304 1fba=3b1+300 1fbb=3b1+301 1fbc=3b1+345
1fbe=3b9 1fc1=a8+342 1fc2=3b7+300+345 1fc3=3b7+345 1fc4=3b7+301+345 1fc6=3b7+342
1fc7=3b7+342+345 1fc8=3b5+300 1fc9=3b5+301 1fca=3b7+300 1fcb=3b7+301 1fcc=3b7+345
1fcd=1fbf+300 1fce=1fbf+301 1fcf=1fbf+342 1fd0=3b9+306 1fd1=3b9+304 1fd2=3b9+308+300
1fd3=3b9+308+301 1fd6=3b9+342 1fd7=3b9+308+342 1fd8=3b9+306 1fd9=3b9+304 1fda=3b9+300
1fdb=3b9+301 1fdd=1ffe+300 1fde=1ffe+301 1fdf=1ffe+342 1fe0=3c5+306 1fe1=3c5+304
1fe2=3c5+308+300 1fe3=3c5+308+301 1fe4=3c1+313 1fe5=3c1+314 1fe6=3c5+342
1fe7=3c5+308+342 1fe8=3c5+306 1fe9=3c5+304 1fea=3c5+300 1feb=3c5+301 1fec=3c1+314
1fed=a8+300 1fee=a8+301 1fef=60 1ff2=3c9+300+345 1ff3=3c9+345 1ff4=3c9+301+345
1ff6=3c9+342 1ff7=3c9+342+345 1ff8=3bf+300 1ff9=3bf+301 1ffa=3c9+300 1ffb=3c9+301
1ffc=3c9+345 1ffd=b4 2000-2001=2002 2126=3c9 212a=6b 212b=61+30a 2132=214e
2160-216f=2170 2183=2184 219a=2190+338 219b=2192+338 21ae=2194+338 21cd=21d0+338
21ce=21d4+338 21cf=21d2+338 2204=2203+338 2209=2208+338 220c=220b+338 2224=2223+338
2226=2225+338 2241=223c+338 2244=2243+338 2247=2245+338 2249=2248+338 2260=3d+338
2262=2261+338 226d=224d+338 226e=3c+338 226f=3e+338 2270=2264+338 2271=2265+338
2274=2272+338 2275=2273+338 2278=2276+338 2279=2277+338 2280=227a+338 2281=227b+338
2284=2282+338 2285=2283+338 2288=2286+338 2289=2287+338 22ac=22a2+338 22ad=22a8+338
22ae=22a9+338 22af=22ab+338 22e0=227c+338 22e1=227d+338 22e2=2291+338 22e3=2292+338
22ea=22b2+338 22eb=22b3+338 22ec=22b4+338 22ed=22b5+338 2329-232a=3008 24b6-24cf=24d0
2adc=2add+338 2c00-2c2f=2c30 2c60=2c61 2c62=26b 2c63=1d7d 2c64=27d 2c67=2c68 2c69=2c6a
2c6b=2c6c 2c6d=251 2c6e=271 2c6f=250 2c70=252 2c72=2c73 2c75=2c76 2c7e-2c7f=23f
2c80=2c81 2c82=2c83 2c84=2c85 2c86=2c87 2c88=2c89 2c8a=2c8b 2c8c=2c8d 2c8e=2c8f
2c90=2c91 2c92=2c93 2c94=2c95 2c96=2c97 2c98=2c99 2c9a=2c9b 2c9c=2c9d 2c9e=2c9f
2ca0=2ca1 2ca2=2ca3 2ca4=2ca5 2ca6=2ca7 2ca8=2ca9 2caa=2cab 2cac=2cad 2cae=2caf
2cb0=2cb1 2cb2=2cb3 2cb4=2cb5 2cb6=2cb7 2cb8=2cb9 2cba=2cbb 2cbc=2cbd 2cbe=2cbf
2cc0=2cc1 2cc2=2cc3 2cc4=2cc5 2cc6=2cc7 2cc8=2cc9 2cca=2ccb 2ccc=2ccd 2cce=2ccf
2cd0=2cd1 2cd2=2cd3 2cd4=2cd5 2cd6=2cd7 2cd8=2cd9 2cda=2cdb 2cdc=2cdd 2cde=2cdf
2ce0=2ce1 2ce2=2ce3 2ceb=2cec 2ced=2cee 2cf2=2cf3 304c=304b+3099 304e=304d+3099
3050=304f+3099 3052=3051+3099 3054=3053+3099 3056=3055+3099 3058=3057+3099
305a=3059+3099 305c=305b+3099 305e=305d+3099 3060=305f+3099 3062=3061+3099
3065=3064+3099 3067=3066+3099 3069=3068+3099 3070=306f+3099 3071=306f+309a
3073=3072+3099 3074=3072+309a 3076=3075+3099 3077=3075+309a 3079=3078+3099
307a=3078+309a 307c=307b+3099 307d=307b+309a 3094=3046+3099 309e=309d+3099
30ac=30ab+3099 30ae=30ad+3099 30b0=30af+3099 30b2=30b1+3099 30b4=30b3+3099
30b6=30b5+3099 30b8=30b7+3099 30ba=30b9+3099 30bc=30bb+3099 30be=30bd+3099
30c0=30bf+3099 30c2=30c1+3099 30c5=30c4+3099 30c7=30c6+3099 30c9=30c8+3099
30d0=30cf+3099 30d1=30cf+309a 30d3=30d2+3099 30d4=30d2+309a 30d6=30d5+3099
30d7=30d5+309a 30d9=30d8+3099 30da=30d8+309a 30dc=30db+3099 30dd=30db+309a
30f4=30a6+3099 30f7=30ef+3099 30f8=30f0+3099 30f9=30f1+3099 30fa=30f2+3099
30fe=30fd+3099 a640=a641 a642=a643 a644=a645 a646=a647 a648=a649 a64a=a64b a64c=a64d
a64e=a64f a650=a651 a652=a653 a654=a655 a656=a657 a658=a659 a65a=a65b a65c=a65d
a65e=a65f a660=a661 a662=a663 a664=a665 a666=a667 a668=a669 a66a=a66b a66c=a66d
a680=a681 a682=a683 a684=a685 a686=a687 a688=a689 a68a=a68b a68c=a68d a68e=a68f
a690=a691 a692=a693 a694=a695 a696=a697 a698=a699 a69a=a69b a722=a723 a724=a725
a726=a727 a728=a729 a72a=a72b a72c=a72d a72e=a72f a732=a733 a734=a735 a736=a737
a738=a739 a73a=a73b a73c=a73d a73e=a73f a740=a741 a742=a743 a744=a745 a746=a747
a748=a749 a74a=a74b a74c=a74d a74e=a74f a750=a751 a752=a753 a754=a755 a756=a757
a758=a759 a75a=a75b a75c=a75d a75e=a75f a760=a761 a762=a763 a764=a765 a766=a767
a768=a769 a76a=a76b a76c=a76d a76e=a76f a779=a77a a77b=a77c a77d=1d79 a77e=a77f
a780=a781 a782=a783 a784=a785 a786=a787 a78b=a78c a78d=265 a790=a791 a792=a793 a796=a797
a798=a799 a79a=a79b a79c=a79d a79e=a79f a7a0=a7a1 a7a2=a7a3 a7a4=a7a5 a7a6=a7a7
a7a8=a7a9 a7aa=266 a7ab=25c a7ac=261 a7ad=26c a7ae=26a a7b0=29e a7b1=287 a7b2=29d
a7b3=ab53 a7b4=a7b5 a7b6=a7b7 a7b8=a7b9 a7ba=a7bb a7bc=a7bd a7be=a7bf a7c0=a7c1
a7c2=a7c3 a7c4=a794 a7c5=282 a7c6=1d8e a7c7=a7c8 a7c9=a7ca a7d0=a7d1 a7d6=a7d7 a7d8=a7d9
a7f5=a7f6 f900=8c48 f901=66f4 f902=8eca f903=8cc8 f904=6ed1 f905=4e32 f906=53e5
f907=9f9c f908=9f9c f909=5951 f90a=91d1 f90b=5587 f90c=5948 f90d=61f6 f90e=7669
f90f=7f85 f910=863f f911=87ba f912=88f8 f913=908f f914=6a02 f915=6d1b f916=70d9
f917=73de f918=843d f919=916a f91a=99f1 f91b=4e82 f91c=5375 f91d=6b04 f91e=721b
f91f=862d f920=9e1e f921=5d50 f922=6feb f923=85cd f924=8964 f925=62c9 f926=81d8
f927=881f f928=5eca f929=6717 f92a=6d6a f92b=72fc f92c=90ce f92d=4f86 f92e=51b7
f92f=52de f930=64c4 f931=6ad3 f932=7210 f933=76e7 f934=8001 f935=8606 f936=865c
f937=8def f938=9732 f939=9b6f f93a=9dfa f93b=788c f93c=797f f93d=7da0 f93e=83c9
f93f=9304 f940=9e7f f941=8ad6 f942=58df f943=5f04 f944=7c60 f945=807e f946=7262
f947=78ca f948=8cc2 f949=96f7 f94a=58d8 f94b=5c62 f94c=6a13 f94d=6dda f94e=6f0f
f94f=7d2f f950=7e37 f951=964b f952=52d2 f953=808b f954=51dc f955=51cc f956=7a1c
f957=7dbe f958=83f1 f959=9675 f95a=8b80 f95b=62cf f95c=6a02 f95d=8afe f95e=4e39
f95f=5be7 f960=6012 f961=7387 f962=7570 f963=5317 f964=78fb f965=4fbf f966=5fa9
f967=4e0d f968=6ccc f969=6578 f96a=7d22 f96b=53c3 f96c=585e f96d=7701 f96e=8449
f96f=8aaa f970=6bba f971=8fb0 f972=6c88 f973=62fe f974=82e5 f975=63a0 f976=7565
f977=4eae f978=5169 f979=51c9 f97a=6881 f97b=7ce7 f97c=826f f97d=8ad2 f97e=91cf
f97f=52f5 f980=5442 f981=5973 f982=5eec f983=65c5 f984=6ffe f985=792a f986=95ad
f987=9a6a f988=9e97 f989=9ece f98a=529b f98b=66c6 f98c=6b77 f98d=8f62 f98e=5e74
f98f=6190 f990=6200 f991=649a f992=6f23 f993=7149 f994=7489 f995=79ca f996=7df4
f997=806f f998=8f26 f999=84ee f99a=9023 f99b=934a f99c=5217 f99d=52a3 f99e=54bd
f99f=70c8 f9a0=88c2 f9a1=8aaa f9a2=5ec9 f9a3=5ff5 f9a4=637b f9a5=6bae f9a6=7c3e
f9a7=7375 f9a8=4ee4 f9a9=56f9 f9aa=5be7 f9ab=5dba f9ac=601c f9ad=73b2 f9ae=7469
f9af=7f9a f9b0=8046 f9b1=9234 f9b2=96f6 f9b3=9748 f9b4=9818 f9b5=4f8b f9b6=79ae
f9b7=91b4 f9b8=96b8 f9b9=60e1 f9ba=4e86 f9bb=50da f9bc=5bee f9bd=5c3f f9be=6599
f9bf=6a02 f9c0=71ce f9c1=7642 f9c2=84fc f9c3=907c f9c4=9f8d f9c5=6688 f9c6=962e
f9c7=5289 f9c8=677b f9c9=67f3 f9ca=6d41 f9cb=6e9c f9cc=7409 f9cd=7559 f9ce=786b
f9cf=7d10 f9d0=985e f9d1=516d f9d2=622e f9d3=9678 f9d4=502b f9d5=5d19 f9d6=6dea
f9d7=8f2a f9d8=5f8b f9d9=6144 f9da=6817 f9db=7387 f9dc=9686 f9dd=5229 f9de=540f
f9df=5c65 f9e0=6613 f9e1=674e f9e2=68a8 f9e3=6ce5 f9e4=7406 f9e5=75e2 f9e6=7f79
f9e7=88cf f9e8=88e1 f9e9=91cc f9ea=96e2 f9eb=533f f9ec=6eba f9ed=541d f9ee=71d0
f9ef=7498 f9f0=85fa f9f1=96a3 f9f2=9c57 f9f3=9e9f f9f4=6797 f9f5=6dcb f9f6=81e8
f9f7=7acb f9f8=7b20 f9f9=7c92 f9fa=72c0 f9fb=7099 f9fc=8b58 f9fd=4ec0 f9fe=8336
f9ff=523a fa00=5207 fa01=5ea6 fa02=62d3 fa03=7cd6 fa04=5b85 fa05=6d1e fa06=66b4
fa07=8f3b fa08=884c fa09=964d fa0a=898b fa0b=5ed3 fa0c=5140 fa0d=55c0 fa10=585a
fa12=6674 fa15=51de fa16=732a fa17=76ca fa18=793c fa19=795e fa1a=7965 fa1b=798f
fa1c=9756 fa1d=7cbe fa1e=7fbd fa20=8612 fa22=8af8 fa25=9038 fa26=90fd fa2a=98ef
fa2b=98fc fa2c=9928 fa2d=9db4 fa2e=90de fa2f=96b7 fa30=4fae fa31=50e7 fa32=514d
fa33=52c9 fa34=52e4 fa35=5351 fa36=559d fa37=5606 fa38=5668 fa39=5840 fa3a=58a8
fa3b=5c64 fa3c=5c6e fa3d=6094 fa3e=6168 fa3f=618e fa40=61f2 fa41=654f fa42=65e2
fa43=6691 fa44=6885 fa45=6d77 fa46=6e1a fa47=6f22 fa48=716e fa49=722b fa4a=7422
fa4b=7891 fa4c=793e fa4d=7949 fa4e=7948 fa4f=7950 fa50=7956 fa51=795d fa52-fa53=798d
fa54=7a40 fa55=7a81 fa56=7bc0 fa57=7df4 fa58=7e09 fa59=7e41 fa5a=7f72 fa5b=8005
fa5c=81ed fa5d=8279 fa5e=8279 fa5f=8457 fa60=8910 fa61=8996 fa62=8b01 fa63=8b39
fa64=8cd3 fa65=8d08 fa66=8fb6 fa67=9038 fa68=96e3 fa69=97ff fa6a=983b fa6b=6075
fa6c=242ee fa6d=8218 fa70=4e26 fa71=51b5 fa72=5168 fa73=4f80 fa74=5145 fa75=5180
fa76=52c7 fa77=52fa fa78=559d fa79=5555 fa7a=5599 fa7b=55e2 fa7c=585a fa7d=58b3
fa7e=5944 fa7f=5954 fa80=5a62 fa81=5b28 fa82=5ed2 fa83=5ed9 fa84=5f69 fa85=5fad
fa86=60d8 fa87=614e fa88=6108 fa89=618e fa8a=6160 fa8b=61f2 fa8c=6234 fa8d=63c4
fa8e=641c fa8f=6452 fa90=6556 fa91=6674 fa92=6717 fa93=671b fa94=6756 fa95=6b79
fa96=6bba fa97=6d41 fa98=6edb fa99=6ecb fa9a=6f22 fa9b=701e fa9c=716e fa9d=77a7
fa9e=7235 fa9f=72af faa0=732a faa1=7471 faa2=7506 faa3=753b faa4=761d faa5=761f
faa6=76ca faa7=76db faa8=76f4 faa9=774a faaa=7740 faab=78cc faac=7ab1 faad=7bc0
faae=7c7b faaf=7d5b fab0=7df4 fab1=7f3e fab2=8005 fab3=8352 fab4=83ef fab5=8779
fab6=8941 fab7=8986 fab8=8996 fab9=8abf faba=8af8 fabb=8acb fabc=8b01 fabd=8afe
fabe=8aed fabf=8b39 fac0=8b8a fac1=8d08 fac2=8f38 fac3=9072 fac4=9199 fac5=9276
fac6=967c fac7=96e3 fac8=9756 fac9=97db faca=97ff facb=980b facc=983b facd=9b12
face=9f9c facf=2284a fad0=22844 fad1=233d5 fad2=3b9d fad3=4018 fad4=4039 fad5=25249
fad6=25cd0 fad7=27ed3 fad8=9f43 fad9=9f8e fb1d=5d9+5b4 fb1f=5f2+5b7 fb2a=5e9+5c1
fb2b=5e9+5c2 fb2c=5e9+5bc+5c1 fb2d=5e9+5bc+5c2 fb2e=5d0+5b7 fb2f=5d0+5b8 fb30=5d0+5bc
fb31=5d1+5bc fb32=5d2+5bc fb33=5d3+5bc fb34=5d4+5bc fb35=5d5+5bc fb36=5d6+5bc
fb38=5d8+5bc fb39=5d9+5bc fb3a=5da+5bc fb3b=5db+5bc fb3c=5dc+5bc fb3e=5de+5bc
fb40=5e0+5bc fb41=5e1+5bc fb43=5e3+5bc fb44=5e4+5bc fb46=5e6+5bc fb47=5e7+5bc
fb48=5e8+5bc fb49=5e9+5bc fb4a=5ea+5bc fb4b=5d5+5b9 fb4c=5d1+5bf fb4d=5db+5bf
fb4e=5e4+5bf ff21-ff3a=ff41 10400-10427=10428 104b0-104d3=104d8 10570-1057a=10597
1057c-1058a=105a3 1058c-10592=105b3 10594-10595=105bb 10c80-10cb2=10cc0
1109a=11099+110ba 1109c=1109b+110ba 110ab=110a5+110ba 1112e=11131+11127
1112f=11132+11127 1134b=11347+1133e 1134c=11347+11357 114bb=114b9+114ba
114bc=114b9+114b0 114be=114b9+114bd 115ba=115b8+115af 115bb=115b9+115af
118a0-118bf=118c0 11938=11935+11930 16e40-16e5f=16e60 1d15e=1d157+1d165
1d15f=1d158+1d165 1d160=1d158+1d165+1d16e 1d161=1d158+1d165+1d16f
1d162=1d158+1d165+1d170 1d163=1d158+1d165+1d171 1d164=1d158+1d165+1d172
1d1bb=1d1b9+1d165 1d1bc=1d1ba+1d165 1d1bd=1d1b9+1d165+1d16e 1d1be=1d1ba+1d165+1d16e
1d1bf=1d1b9+1d165+1d16f 1d1c0=1d1ba+1d165+1d16f 1e900-1e921=1e922 2f800=4e3d 2f801=4e38
2f802=4e41 2f803=20122 2f804=4f60 2f805=4fae 2f806=4fbb 2f807=5002 2f808=507a 2f809=5099
2f80a=50e7 2f80b=50cf 2f80c=349e 2f80d=2063a 2f80e=514d 2f80f=5154 2f810=5164 2f811=5177
2f812=2051c 2f813=34b9 2f814=5167 2f815=518d 2f816=2054b 2f817=5197 2f818=51a4
2f819=4ecc 2f81a=51ac 2f81b=51b5 2f81c=291df 2f81d=51f5 2f81e=5203 2f81f=34df 2f820=523b
2f821=5246 2f822=5272 2f823=5277 2f824=3515 2f825=52c7 2f826=52c9 2f827=52e4 2f828=52fa
2f829-2f82a=5305 2f82b=5317 2f82c=5349 2f82d=5351 2f82e=535a 2f82f=5373 2f830=537d
2f831=537f 2f832=537f 2f833=537f 2f834=20a2c 2f835=7070 2f836=53ca 2f837=53df
2f838=20b63 2f839=53eb 2f83a=53f1 2f83b=5406 2f83c=549e 2f83d=5438 2f83e=5448 2f83f=5468
2f840=54a2 2f841=54f6 2f842=5510 2f843=5553 2f844=5563 2f845=5584 2f846=5584 2f847=5599
2f848=55ab 2f849=55b3 2f84a=55c2 2f84b=5716 2f84c=5606 2f84d=5717 2f84e=5651 2f84f=5674
2f850=5207 2f851=58ee 2f852=57ce 2f853=57f4 2f854=580d 2f855=578b 2f856=5832 2f857=5831
2f858=58ac 2f859=214e4 2f85a=58f2 2f85b=58f7 2f85c=5906 2f85d=591a 2f85e=5922 2f85f=5962
2f860=216a8 2f861=216ea 2f862=59ec 2f863=5a1b 2f864=5a27 2f865=59d8 2f866=5a66
2f867=36ee 2f868=36fc 2f869=5b08 2f86a=5b3e 2f86b=5b3e 2f86c=219c8 2f86d=5bc3 2f86e=5bd8
2f86f=5be7 2f870=5bf3 2f871=21b18 2f872=5bff 2f873=5c06 2f874=5f53 2f875=5c22 2f876=3781
2f877=5c60 2f878=5c6e 2f879=5cc0 2f87a=5c8d 2f87b=21de4 2f87c=5d43 2f87d=21de6
2f87e=5d6e 2f87f=5d6b 2f880=5d7c 2f881-2f882=5de1 2f883=382f 2f884=5dfd 2f885=5e28
2f886=5e3d 2f887=5e69 2f888=3862 2f889=22183 2f88a=387c 2f88b=5eb0 2f88c=5eb3 2f88d=5eb6
2f88e=5eca 2f88f=2a392 2f890=5efe 2f891=22331 2f892=22331 2f893=8201 2f894=5f22
2f895=5f22 2f896=38c7 2f897=232b8 2f898=261da 2f899=5f62 2f89a=5f6b 2f89b=38e3
2f89c=5f9a 2f89d=5fcd 2f89e=5fd7 2f89f=5ff9 2f8a0=6081 2f8a1=393a 2f8a2=391c 2f8a3=6094
2f8a4=226d4 2f8a5=60c7 2f8a6=6148 2f8a7=614c 2f8a8=614e 2f8a9=614c 2f8aa=617a 2f8ab=618e
2f8ac=61b2 2f8ad=61a4 2f8ae=61af 2f8af=61de 2f8b0=61f2 2f8b1=61f6 2f8b2=6210 2f8b3=621b
2f8b4=625d 2f8b5=62b1 2f8b6=62d4 2f8b7=6350 2f8b8=22b0c 2f8b9=633d 2f8ba=62fc 2f8bb=6368
2f8bc=6383 2f8bd=63e4 2f8be=22bf1 2f8bf=6422 2f8c0=63c5 2f8c1=63a9 2f8c2=3a2e 2f8c3=6469
2f8c4=647e 2f8c5=649d 2f8c6=6477 2f8c7=3a6c 2f8c8=654f 2f8c9=656c 2f8ca=2300a 2f8cb=65e3
2f8cc=66f8 2f8cd=6649 2f8ce=3b19 2f8cf=6691 2f8d0=3b08 2f8d1=3ae4 2f8d2=5192 2f8d3=5195
2f8d4=6700 2f8d5=669c 2f8d6=80ad 2f8d7=43d9 2f8d8=6717 2f8d9=671b 2f8da=6721 2f8db=675e
2f8dc=6753 2f8dd=233c3 2f8de=3b49 2f8df=67fa 2f8e0=6785 2f8e1=6852 2f8e2=6885
2f8e3=2346d 2f8e4=688e 2f8e5=681f 2f8e6=6914 2f8e7=3b9d 2f8e8=6942 2f8e9=69a3 2f8ea=69ea
2f8eb=6aa8 2f8ec=236a3 2f8ed=6adb 2f8ee=3c18 2f8ef=6b21 2f8f0=238a7 2f8f1=6b54
2f8f2=3c4e 2f8f3=6b72 2f8f4=6b9f 2f8f5-2f8f6=6bba 2f8f7=23a8d 2f8f8=21d0b 2f8f9=23afa
2f8fa=6c4e 2f8fb=23cbc 2f8fc=6cbf 2f8fd=6ccd 2f8fe=6c67 2f8ff=6d16 2f900=6d3e 2f901=6d77
2f902=6d41 2f903=6d69 2f904=6d78 2f905=6d85 2f906=23d1e 2f907=6d34 2f908=6e2f 2f909=6e6e
2f90a=3d33 2f90b=6ecb 2f90c=6ec7 2f90d=23ed1 2f90e=6df9 2f90f=6f6e 2f910=23f5e
2f911=23f8e 2f912=6fc6 2f913=7039 2f914=701e 2f915=701b 2f916=3d96 2f917=704a 2f918=707d
2f919=7077 2f91a=70ad 2f91b=20525 2f91c=7145 2f91d=24263 2f91e=719c 2f91f=243ab
2f920=7228 2f921=7235 2f922=7250 2f923=24608 2f924=7280 2f925=7295 2f926=24735
2f927=24814 2f928=737a 2f929=738b 2f92a=3eac 2f92b=73a5 2f92c=3eb8 2f92d=3eb8 2f92e=7447
2f92f=745c 2f930=7471 2f931=7485 2f932=74ca 2f933=3f1b 2f934=7524 2f935=24c36 2f936=753e
2f937=24c92 2f938=7570 2f939=2219f 2f93a=7610 2f93b=24fa1 2f93c=24fb8 2f93d=25044
2f93e=3ffc 2f93f=4008 2f940=76f4 2f941=250f3 2f942=250f2 2f943=25119 2f944=25133
2f945-2f946=771e 2f947=771f 2f948=774a 2f949=4039 2f94a=778b 2f94b=4046 2f94c=4096
2f94d=2541d 2f94e=784e 2f94f=788c 2f950=78cc 2f951=40e3 2f952=25626 2f953=7956
2f954=2569a 2f955=256c5 2f956=798f 2f957=79eb 2f958=412f 2f959=7a40 2f95a=7a4a
2f95b=7a4f 2f95c=2597c 2f95d=25aa7 2f95e=25aa7 2f95f=7aee 2f960=4202 2f961=25bab
2f962=7bc6 2f963=7bc9 2f964=4227 2f965=25c80 2f966=7cd2 2f967=42a0 2f968=7ce8 2f969=7ce3
2f96a=7d00 2f96b=25f86 2f96c=7d63 2f96d=4301 2f96e=7dc7 2f96f=7e02 2f970=7e45 2f971=4334
2f972=26228 2f973=26247 2f974=4359 2f975=262d9 2f976=7f7a 2f977=2633e 2f978=7f95
2f979=7ffa 2f97a=8005 2f97b=264da 2f97c=26523 2f97d=8060 2f97e=265a8 2f97f=8070
2f980=2335f 2f981=43d5 2f982=80b2 2f983=8103 2f984=440b 2f985=813e 2f986=5ab5
2f987=267a7 2f988=267b5 2f989=23393 2f98a=2339c 2f98b=8201 2f98c=8204 2f98d=8f9e
2f98e=446b 2f98f=8291 2f990=828b 2f991=829d 2f992=52b3 2f993=82b1 2f994=82b3 2f995=82bd
2f996=82e6 2f997=26b3c 2f998=82e5 2f999=831d 2f99a=8363 2f99b=83ad 2f99c=8323 2f99d=83bd
2f99e=83e7 2f99f=8457 2f9a0=8353 2f9a1=83ca 2f9a2=83cc 2f9a3=83dc 2f9a4=26c36
2f9a5=26d6b 2f9a6=26cd5 2f9a7=452b 2f9a8=84f1 2f9a9=84f3 2f9aa=8516 2f9ab=273ca
2f9ac=8564 2f9ad=26f2c 2f9ae=455d 2f9af=4561 2f9b0=26fb1 2f9b1=270d2 2f9b2=456b
2f9b3=8650 2f9b4=865c 2f9b5=8667 2f9b6=8669 2f9b7=86a9 2f9b8=8688 2f9b9=870e 2f9ba=86e2
2f9bb=8779 2f9bc=8728 2f9bd=876b 2f9be=8786 2f9bf=45d7 2f9c0=87e1 2f9c1=8801 2f9c2=45f9
2f9c3=8860 2f9c4=8863 2f9c5=27667 2f9c6=88d7 2f9c7=88de 2f9c8=4635 2f9c9=88fa 2f9ca=34bb
2f9cb=278ae 2f9cc=27966 2f9cd=46be 2f9ce=46c7 2f9cf=8aa0 2f9d0=8aed 2f9d1=8b8a
2f9d2=8c55 2f9d3=27ca8 2f9d4=8cab 2f9d5=8cc1 2f9d6=8d1b 2f9d7=8d77 2f9d8=27f2f
2f9d9=20804 2f9da=8dcb 2f9db=8dbc 2f9dc=8df0 2f9dd=208de 2f9de=8ed4 2f9df=8f38
2f9e0=285d2 2f9e1=285ed 2f9e2=9094 2f9e3=90f1 2f9e4=9111 2f9e5=2872e 2f9e6=911b
2f9e7=9238 2f9e8-2f9e9=92d7 2f9ea=927c 2f9eb=93f9 2f9ec=9415 2f9ed=28bfa 2f9ee=958b
2f9ef=4995 2f9f0=95b7 2f9f1=28d77 2f9f2=49e6 2f9f3=96c3 2f9f4=5db2 2f9f5=9723
2f9f6=29145 2f9f7=2921a 2f9f8=4a6e 2f9f9=4a76 2f9fa=97e0 2f9fb=2940a 2f9fc=4ab2
2f9fd=29496 2f9fe=980b 2f9ff=980b 2fa00=9829 2fa01=295b6 2fa02=98e2 2fa03=4b33
2fa04=9929 2fa05=99a7 2fa06=99c2 2fa07=99fe 2fa08=4bce 2fa09=29b30 2fa0a=9b12 2fa0b=9c40
2fa0c=9cfd 2fa0d=4cce 2fa0e=4ced 2fa0f=9d67 2fa10=2a0ce 2fa11=4cf8 2fa12=2a105
2fa13=2a20e 2fa14=2a291 2fa15=9ebb 2fa16=4d56 2fa17=9ef9 2fa18=9efe 2fa19=9f05
2fa1a=9f0f 2fa1b=9f16 2fa1c=9f3b 2fa1d=2a600
`;
  // END TABLE

  exports.BertTokenizer = BertTokenizer;
  exports.loadCharacterTable = loadCharacterTable;
})(typeof module === "object" && module.exports ? module.exports : globalThis);
