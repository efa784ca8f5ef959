"""Golden vectors: texts and their ids, to check a port of the tokenizer.

docs/reference/tokenizer.md describes the tokenizer and this file. The texts are typical
sources of tokenizer bugs; their ids depend on the vocabulary.
"""

import hashlib
import json
import os
from collections.abc import Iterable
from typing import Any

from official_bert import files
from official_bert.tables.examples import Example
from official_bert.tasks.classifier.features import convert_example, pad_features
from official_bert.tokenization.full import FullTokenizer

FILE_NAME = "golden_tokens.json"

TEXTS = (
    # Plain text.
    "",
    "The boats came home before the storm, all but one.",
    "It's 3.14159 (or so), isn't it?  $5+5=10; a_b^c~d|e`f <g> #h @i %j &k *l",
    "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~",
    "state-of-the-art e-mail@host.example http://host.example/a?b=c&d=%20",
    "1,000,000.00 1e-5 0x1F 2nd H2O",
    "[MASK] [CLS] [SEP] [PAD] [UNK] [mask] a[MASK]b [ MASK ] [unused0]",
    "##ing a##b ## # #a un##known",
    # White space.
    " ",
    " \t\n\r ",
    "  two  spaces  around  ",
    "tab\there line\nbreak return\rhere both\r\nof them",
    # Word separators and removed characters: \v, \f, U+001C, U+0085 are
    # removed.
    "a\vb a\fb a\x1cb a\x1db a\x1eb a\x1fb a\x85b",
    "a\u2028b a\u2029b",
    "".join(
        f"a{space}b " for space in map(chr, (0xA0, 0x1680, *range(0x2000, 0x200B)))
    ),
    "a\u202fb a\u205fb a\u3000b",
    "a\u180eb a\u200bb a\u2060b a\ufeffb \ufeffa b\ufeff",
    "\u00a0\u3000",
    # Control characters, and code points without a character.
    "a\0b \0 a\x01b a\x07b a\x08b a\x1bb a\x7fb a\x80b a\x9fb",
    "soft\u00adhyphen non\u2011breaking left\u200emark right\u200fmark",
    "a\u200cb a\u200db a\u2061b a\u206ab",
    "\u202aembedded\u202c \u202eoverridden\u202c \u2066isolated\u2069",
    "a\ufffdb \ufffd",
    "a\ufffcb a\ufff9b",
    "\u0600\u0661 \u06dd \u070f \U000110bd \U000e0001\U000e0041 a\U000e0020b",
    # Noncharacters and unassigned code points are kept.
    "\ufdd0 \uffff \U0001fffe \U0010ffff a\ufffeb a\u0378b a\U000e0080b",
    "\ue000 a\uf8ffb \U000f0000 \U0010fffd",
    # Accents and cases.
    "Zoë's café in São Paulo naïve façade Ångström",
    "Zoe\u0308's cafe\u0301 in Sa\u0303o Paulo nai\u0308ve fac\u0327ade "
    "A\u030angstro\u0308m",
    "Việt Nam Tiê\u0301ng Vie\u0323\u0302t ở đâu",
    "\u1ec7 e\u0323\u0302 e\u0302\u0323 \u0065\u0301\u0327 \u0229\u0301",
    "\u0301 a \u0301b \u0301\u0302 a\u0301 \u0301",
    "a\u0301\u200d\u0302b a\0\u0301b",
    "e\u0301! !\u0301 !\u0301e (\u0301)",
    "İstanbul Iğdır ısı I\u0307 i\u0307 \u0130\u0301 TITLE title",
    "groß GROẞ ẞ straße STRASSE",
    "ΟΔΥΣΣΕΥΣ Οδυσσεύς Σ ΣΣ ΑΣ ΑΣΑ ΑΣ. ΑΣ'Α ΑΣ\u00ad Α\u0301Σ ΑΣ\u0301 ΑΣ\u0301Α",
    "1Σ Σ1 Α Σ ΑΣ Α Α.Σ Α:Σ Α王Σ ΑΣ王Α aΣb σς",
    "ᾈ ᾳ ᾼ ΐ Ώ ῼ Ώρα Ά έ ϴ ϒ ϓ",
    "Ａｂｃ１２３￥ ﬁ ﬂ ŉ ǰ ½ ² ™ № Ⅷ ⓐ Ⓐ ℃ \u212a \u212b \u2126 \u00b5",
    "ǅ Ǆ ǆ ǈ ǋ ǲ Ⱥ Ɐ Ʞ ꟽ",
    "Ꭰ ꭰ Ა ა Ꙁ Ж Ѐ Ӂ Ԛ Ա 𐐀 𐐨 𞤀 𑢠",
    "Ø ø Đ đ Ł ł Æ æ Œ œ Þ þ Ŋ ŋ Ħ",
    # NFD changes ASCII meaning: the Greek question mark becomes a semicolon,
    # `≠` an `=`.
    "a\u037eb a\u1fefb a\u2000b ≠ a≠b ≮ a\u226fb \u2260",
    "\u0340\u0341\u0343\u0344\u0345\u0374\u0387",
    # These marks are kept, but NFD changes their order.
    "a\u302e\u0301b a\u0301\u302eb a\u1b44\u302eb a\u302e\u1b44b \U0001d15e\U0001d16d",
    "a\u0323\u0307\u0323b q\u0307\u0323 q\u0323\u0307 \u0f73\u0f75\u0f81 a\u0345\u0301",
    "Z\u0351\u036b\u0343\u036aA\u0327\u0321\u0322L\u0301\u0316\u0335G\u0489O\u20dd",
    # Scripts.
    "我们明天早上八点在车站见面。BERT模型2018年。",
    "王 师父 \u3400\u4dbf \u9fff \ufa0e\ufa2d \uf900 \u3007 々 〇",
    "\U00020000\U0002a6df \U0002a700\U0002b73f \U0002b740\U0002b81f "
    "\U0002b820\U0002ceaf",
    "a\U0002ceb0b \U0002ebe0 \U00030000 \U0002f800\U0002fa1f\U0002fa20",
    "⺀⼀ ㆒ ㈠ ㊀ ㋿",
    "ひらがな カタカナ ｶﾞ が か\u3099 パ ハ\u309a ー・「」",
    "한국어 각 \u1100\u1161\u11a8 한\u1100 힣 ㄱ ﾡ 대한민국2002",
    "שלום עולם שָׁלוֹם \u05d0\u05be\u05d1 יִ ״",
    "مرحبا بالعالم مُحَمَّد آ أ إ ـ لا ٣؟ \ufdf2 \u200fابجد",
    "नमस्ते कैसे हो? क़ क\u093c हिन्दी। ড় বাংলা",
    "தமிழ் కౌ ಕೋ മലയാളം සිංහල",
    "ภาษาไทย ลาว ទេស မြန်မာ བོད་ཡིག །",
    "Привет, мир! Ёлка йод и\u0306 Ї ґ Ѣ",
    "Հայերեն ქართული አማርኛ። ᏣᎳᎩ ᠮᠣᠩᠭᠣᠯ\u180bᠡ",
    "𝔸𝕓 𝒜 𝟙𝟚 𐌀 𒀀 𓀀 🄰",
    # Symbols and punctuation.
    "😀 👍🏽 👩\u200d💻 👨\u200d👩\u200d👧 "
    "🏳\ufe0f\u200d🌈 🇩🇪 1\ufe0f\u20e3 ❤\ufe0f ☺ a😀b",
    "\U0001fae0 \U0001f6d8 \U0001faf7",
    "« » “ ” ‘ ’ ‚ „ – — ― … ‐ ‑ ‒ · • ¡ ¿ § ¶",
    "、。，．！？（）［］｛｝「」〜",
    "€ £ ¥ ¢ ₿ × ÷ ± ° © ® ™ → ∞ √ ∑ ≤ ¬ ¦ ´ ¨ ¯ ¸",
    "a€b a°b a×b a–b a’b a…b a＋b a‑b a·b",
    "\u055a \u0589 \u060c \u061b \u0964 \u104a \u1362 \u166e \u2e2f \u2cf9 \U00010100 "
    "\U0001e95e",
    # Long words.
    "a" * 199 + " " + "a" * 200 + " " + "a" * 201,
    "é" * 200 + " " + "e\u0301" * 200 + " " + "é" * 201,
    # Counted in characters (not UTF-16), after decomposition and accent
    # removal.
    "각" * 67 + " " + "각" * 66,
    "😀" * 200 + " " + "😀" * 201,
    "a" * 150 + "\u00ad" * 60,
    "a" * 100 + "-" + "a" * 101,
    "王" * 210,
    "!" * 210,
)

SHORT = "The boats came home."
LONG = "A boat that came home before the storm lay on the sand until the evening, dry."
# (text, text_b, max_seq_length); text_b None for single texts.
PAIRS = (
    (SHORT, None, 32),
    (LONG, None, 10),
    (LONG, None, 3),
    ("", None, 8),
    (SHORT, "", 16),
    (SHORT, " \u200b\n", 8),
    ("", SHORT, 8),
    (SHORT, LONG, 128),
    (SHORT, LONG, 16),
    (LONG, SHORT, 16),
    (LONG, LONG, 16),
    (LONG, LONG, 17),
    # No room for the second text, or for both.
    (LONG, LONG, 4),
    (LONG, LONG, 3),
    ("Où est-ce ?", "在车站。😀", 24),
)


def write(path: str | os.PathLike[str], tokenizer: FullTokenizer) -> None:
    """Write the golden vectors of a vocabulary; the output is deterministic.

    Args:
      path: the JSON file to write: one vector per line, escaped to ASCII,
        because editors that normalize Unicode would corrupt the file.
      tokenizer: a `FullTokenizer`.
    """
    fields = []
    for name, value in make(tokenizer).items():
        if isinstance(value, list):
            lines = ",\n".join(f"    {json.dumps(vector)}" for vector in value)
            fields.append(f'  "{name}": [\n{lines}\n  ]')
        else:
            fields.append(f'  "{name}": {json.dumps(value)}')
    files.write_text(path, "{\n" + ",\n".join(fields) + "\n}\n")


def make(tokenizer: FullTokenizer) -> dict[str, Any]:
    """Return the golden vectors of a `FullTokenizer`.

    Returns:
      dict described in docs/reference/tokenizer.md: `do_lower_case`, `vocab_size`,
      `vocab_sha256`, `texts` and `pairs`.
    """
    vectors = []
    for text in dict.fromkeys([*TEXTS, *vocabulary_texts(tokenizer.vocab)]):
        tokens, offsets = tokenizer.tokenize_with_offsets(text)
        words, ids = tokenizer.basic_tokenizer.tokenize(text), tokenizer.encode(text)
        vector = {"text": text, "words": words, "tokens": tokens, "ids": ids}
        vectors.append(vector | {"offsets": offsets})
    # Equal to the SHA-256 of `vocab.txt`, unless that file has other line ends,
    # spaces that are stripped, or no final line end.
    lines = "".join(f"{piece}\n" for piece in tokenizer.vocab)
    return {
        "do_lower_case": tokenizer.do_lower_case,
        "vocab_size": len(tokenizer.vocab),
        "vocab_sha256": hashlib.sha256(lines.encode("utf-8")).hexdigest(),
        "texts": vectors,
        "pairs": [pair_vector(tokenizer, *pair) for pair in PAIRS],
    }


def vocabulary_texts(vocab: Iterable[str]) -> list[str]:
    """Return texts made of a vocabulary's tokens, separated and joined.

    About 240 tokens, spread over the vocabulary, are used, 12 per text.
    """
    pieces = [piece.removeprefix("##") for piece in vocab]
    pieces = pieces[:: max(1, len(pieces) // 240)]
    parts = [pieces[first : first + 12] for first in range(0, len(pieces), 12)]
    return [joint.join(part) for part in parts for joint in (" ", "")]


def pair_vector(
    tokenizer: FullTokenizer, text: str, text_b: str | None, max_seq_length: int
) -> dict[str, Any]:
    """Return a text or pair of texts with its padded row."""
    features = convert_example(
        Example("golden", text, text_b), tokenizer, max_seq_length
    )
    row = pad_features([features], max_seq_length)
    inputs = {"text": text, "text_b": text_b, "max_seq_length": max_seq_length}
    return inputs | {name: values[0].tolist() for name, values in row.items()}
