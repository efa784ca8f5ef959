// Words of a text for a tagger. It equals official_bert's `split_words` and `joined`.

const PUNCTUATION = 5;
const CJK = 6;
const WITHIN_WORDS = "-.'’/&_@";
const WITHIN_NUMBERS = ",:";
const APOSTROPHES = "'’";
const DIGITS = "0123456789";
// Endings that form a word together with the apostrophe before them.
const CLITICS = new Set(
  ["s", "d", "m", "ll", "re", "ve"].flatMap((one) => [one, one.toUpperCase()]),
);

/**
 * Returns [[start, end], ...] of the words of a text.
 * @param {object} casedTokenizer A `BertTokenizer` that does not lower-case.
 * @param {string} text
 * @param {boolean} asColumns Whether "U.S." is one word, like in CoNLL's columns.
 */
export function splitWords(casedTokenizer, text, asColumns) {
  const offsets = casedTokenizer
    .splitWords(text)
    .map((word) => [word[0].start, word[word.length - 1].end]);
  return asColumns ? joinWords(text, offsets, casedTokenizer.table.category) : offsets;
}

function joinWords(text, offsets, category) {
  const words = offsets.map(([start, end], index) => {
    const characters = Array.from(text.slice(start, end));
    const first = characters[0];
    const kind = category[first.codePointAt(0)];
    return {
      touches: index > 0 && offsets[index - 1][1] === start,
      isWord: kind !== PUNCTUATION && kind !== CJK,
      first,
      last: characters[characters.length - 1],
      length: characters.length,
      isClitic: CLITICS.has(text.slice(start, end)),
    };
  });
  const found = [];
  goesOn(words).forEach((isJoined, index) => {
    if (isJoined) {
      found[found.length - 1][1] = offsets[index][1];
    } else {
      found.push([...offsets[index]]);
    }
  });
  return found;
}

// Returns for each word whether it is joined to the word before it.
function goesOn(words) {
  const each = (value) => words.map(value);
  const before = (values, index) => index > 0 && values[index - 1];
  const after = (values, index) => index + 1 < values.length && values[index + 1];

  const startsWithDigit = each((one) => DIGITS.includes(one.first));
  const endsWithDigit = each((one) => DIGITS.includes(one.last));
  const isWord = each((one) => one.isWord);
  const isApostrophe = each((one) => APOSTROPHES.includes(one.first));
  // "J.", "U.S.", but not "'s."
  const isInitial = each(
    (one, index) =>
      one.isWord &&
      one.length === 1 &&
      !startsWithDigit[index] &&
      !(one.touches && before(isApostrophe, index)),
  );
  const endsInitial = each(
    (one, index) => one.touches && one.first === "." && before(isInitial, index),
  );
  const isTouchingWord = each((one) => one.touches && one.isWord);
  const within = each((one, index) => {
    const inNumber = before(endsWithDigit, index) && after(startsWithDigit, index);
    const mayJoin =
      WITHIN_WORDS.includes(one.first) ||
      (WITHIN_NUMBERS.includes(one.first) && inNumber);
    const isBetween =
      one.touches &&
      (before(isWord, index) || before(endsInitial, index)) &&
      after(isTouchingWord, index);
    return mayJoin && isBetween;
  });
  // "'s" starts a word, unless the word continues, as in "d'Italia".
  const endsAsClitic = each(
    (one, index) => one.touches && one.isClitic && !after(within, index),
  );
  const beginsClitic = each(
    (_, index) => isApostrophe[index] && after(endsAsClitic, index),
  );
  const joins = each((_, index) => within[index] && !beginsClitic[index]);
  return each(
    (one, index) =>
      joins[index] ||
      endsInitial[index] ||
      (one.touches &&
        one.isWord &&
        (before(joins, index) || before(beginsClitic, index))),
  );
}
