"""The names of released models, and their locations.

Users can write these names without an owner. Other models of Hugging Face and
Kaggle are available as `owner/name`.
"""

import dataclasses
import difflib

from official_bert import parameter_count
from official_bert.config import BertConfig

GOOGLE, HUGGING_FACE, KAGGLE = "Google", "Hugging Face", "Kaggle"

# Google's releases: https://github.com/google-research/bert#pre-trained-models
RELEASES = "https://storage.googleapis.com/bert_models"

UNCASED, CASED = "uncased", "cased"
ENGLISH, CHINESE, GERMAN = "English", "Chinese", "German"
MOST_NAMES = 3


@dataclasses.dataclass(frozen=True)
class KnownModel:
    """A released model.

    Attributes:
      name: the name that users write.
      source: `GOOGLE`, `HUGGING_FACE` or `KAGGLE`.
      location: a link to a zip file, a repository id, or a handle with its
        version.
      layers, hidden_size, vocab_size: sizes, as in `BertConfig`.
      casing: `UNCASED` or `CASED`.
      languages: a short description.
      positions: `max_position_embeddings`.
    """

    name: str
    source: str
    location: str
    layers: int
    hidden_size: int
    vocab_size: int
    casing: str
    languages: str
    positions: int = 512

    @property
    def config(self) -> BertConfig:
        """Return a `BertConfig` with the model's sizes."""
        return BertConfig(
            vocab_size=self.vocab_size,
            hidden_size=self.hidden_size,
            num_hidden_layers=self.layers,
            # MiniLM has smaller heads.
            num_attention_heads=12
            if self.hidden_size == 384
            else self.hidden_size // 64,
            intermediate_size=4 * self.hidden_size,
            max_position_embeddings=self.positions,
            type_vocab_size=2,
        )

    @property
    def parameters(self) -> int:
        """Return the number of parameters of the encoder with its pooler."""
        parts = parameter_count.parameter_parts(self.config)
        return sum(p.exact for p in parts if p.group == parameter_count.ENCODER)


# (layers, hidden size); see `KnownModel`.
BASE, LARGE = (12, 768), (24, 1024)
MINI_LM_3, MINI_LM_6, MINI_LM_12 = (3, 384), (6, 384), (12, 384)

# (vocabulary size, casing, languages)
EN_UNCASED = (30522, UNCASED, ENGLISH)
EN_CASED = (28996, CASED, ENGLISH)
# Chinese BERT: Latin letters are lowercased.
ZH = (21128, UNCASED, CHINESE)
MULTI_UNCASED = (105879, UNCASED, "102 languages")
MULTI_CASED = (119547, CASED, "104 languages")
DBMDZ = 31102

# Folder of `RELEASES` -> name, size and vocabulary.
_GOOGLE: dict[str, list[tuple]] = {
    "2018_10_18": [
        ("uncased_L-12_H-768_A-12", BASE, EN_UNCASED),
        ("uncased_L-24_H-1024_A-16", LARGE, EN_UNCASED),
        ("cased_L-12_H-768_A-12", BASE, EN_CASED),
        ("cased_L-24_H-1024_A-16", LARGE, EN_CASED),
    ],
    "2019_05_30": [
        ("wwm_uncased_L-24_H-1024_A-16", LARGE, EN_UNCASED),
        ("wwm_cased_L-24_H-1024_A-16", LARGE, EN_CASED),
    ],
    "2018_11_23": [("multi_cased_L-12_H-768_A-12", BASE, MULTI_CASED)],
    "2018_11_03": [
        ("multilingual_L-12_H-768_A-12", BASE, MULTI_UNCASED),
        ("chinese_L-12_H-768_A-12", BASE, ZH),
    ],
    # 23 of the 24 small models. BERT-Base is missing because its name equals
    # that of the 2018 model.
    "2020_02_20": [
        (f"uncased_L-{layers}_H-{size}_A-{size // 64}", (layers, size), EN_UNCASED)
        for layers in (2, 4, 6, 8, 10, 12)
        for size in (128, 256, 512, 768)
        if (layers, size) != BASE
    ],
}

# Names without an owner; Hugging Face redirects them to google-bert.
_HUGGING_FACE = [
    ("bert-base-uncased", BASE, EN_UNCASED),
    ("bert-large-uncased", LARGE, EN_UNCASED),
    ("bert-base-cased", BASE, EN_CASED),
    ("bert-large-cased", LARGE, EN_CASED),
    ("bert-large-uncased-whole-word-masking", LARGE, EN_UNCASED),
    ("bert-large-cased-whole-word-masking", LARGE, EN_CASED),
    ("bert-base-multilingual-uncased", BASE, MULTI_UNCASED),
    ("bert-base-multilingual-cased", BASE, MULTI_CASED),
    ("bert-base-chinese", BASE, ZH),
    ("bert-base-german-cased", BASE, (30000, CASED, GERMAN)),
    ("bert-base-german-dbmdz-cased", BASE, (DBMDZ, CASED, GERMAN)),
    ("bert-base-german-dbmdz-uncased", BASE, (DBMDZ, UNCASED, GERMAN)),
    ("bert-large-uncased-whole-word-masking-finetuned-squad", LARGE, EN_UNCASED),
    ("bert-large-cased-whole-word-masking-finetuned-squad", LARGE, EN_CASED),
    ("bert-base-cased-finetuned-mrpc", BASE, EN_CASED),
]

# Model of the Kaggle owner "keras" -> presets with versions, as in
# `keras_hub/src/models/bert/bert_presets.py`. multilingual_e5_small is missing:
# its SentencePiece vocabulary is not readable by BERT's tokenizer.
_PRESETS: dict[str, list[tuple]] = {
    "bert": [
        ("bert_tiny_en_uncased", 3, (2, 128), EN_UNCASED),
        ("bert_small_en_uncased", 3, (4, 512), EN_UNCASED),
        ("bert_medium_en_uncased", 3, (8, 512), EN_UNCASED),
        ("bert_base_en_uncased", 3, BASE, EN_UNCASED),
        ("bert_base_en", 3, BASE, EN_CASED),
        ("bert_base_zh", 3, BASE, ZH),
        ("bert_base_multi", 3, BASE, MULTI_CASED),
        ("bert_large_en_uncased", 3, LARGE, EN_UNCASED),
        ("bert_large_en", 3, LARGE, EN_CASED),
        ("bert_tiny_en_uncased_sst2", 5, (2, 128), EN_UNCASED),
    ],
    "sentence-transformers": [
        ("all_minilm_l6_v2_en", 1, MINI_LM_6, EN_UNCASED),
        ("all_minilm_l6_v1_en", 1, MINI_LM_6, EN_UNCASED),
        ("all_minilm_l12_v2_en", 1, MINI_LM_12, EN_UNCASED),
        ("paraphrase_minilm_l3_v2_en", 1, MINI_LM_3, EN_UNCASED),
        ("paraphrase_minilm_l6_v2_en", 1, MINI_LM_6, EN_UNCASED),
        ("paraphrase_minilm_l12_v2_en", 1, MINI_LM_12, EN_UNCASED),
        ("multi_qa_minilm_l6_cos_v1_en", 1, MINI_LM_6, EN_UNCASED),
        ("multi_qa_minilm_l6_dot_v1_en", 1, MINI_LM_6, EN_UNCASED),
        ("msmarco_minilm_l6_cos_v5_en", 1, MINI_LM_6, EN_UNCASED),
        ("msmarco_minilm_l12_cos_v5_en", 1, MINI_LM_12, EN_UNCASED),
    ],
    "bge": [
        ("bge_small_en", 1, MINI_LM_12, EN_UNCASED),
        ("bge_base_en", 1, BASE, EN_UNCASED),
        ("bge_large_en", 1, LARGE, EN_UNCASED),
        ("bge_small_v1.5_en", 1, MINI_LM_12, EN_UNCASED),
        ("bge_base_v1.5_en", 1, BASE, EN_UNCASED),
        ("bge_large_v1.5_en", 1, LARGE, EN_UNCASED),
        ("bge_base_zh", 1, BASE, ZH),
        ("bge_large_zh", 1, LARGE, ZH),
        ("bge_small_v1.5_zh", 1, (4, 512), ZH),
        ("bge_base_v1.5_zh", 1, BASE, ZH),
        ("bge_large_v1.5_zh", 1, LARGE, ZH),
        ("bge_llm_embedder", 1, BASE, EN_UNCASED),
    ],
    "mxbai-embed": [
        ("mxbai_embed_large_v1_en", 1, LARGE, EN_UNCASED),
        ("mxbai_embed_2d_large_v1_en", 1, LARGE, EN_UNCASED),
        ("mxbai_embed_xsmall_v1_en", 1, MINI_LM_6, EN_UNCASED, 4096),
    ],
}


def _known(name, source, location, size, vocabulary, positions=512):
    layers, hidden_size = size
    vocab_size, casing, languages = vocabulary
    return KnownModel(
        name,
        source,
        location,
        layers,
        hidden_size,
        vocab_size,
        casing,
        languages,
        positions,
    )


MODELS = (
    *(
        _known(name, GOOGLE, f"{RELEASES}/{date}/{name}.zip", *row)
        for date, rows in _GOOGLE.items()
        for name, *row in rows
    ),
    *(
        _known(name, HUGGING_FACE, f"google-bert/{name}", *row)
        for name, *row in _HUGGING_FACE
    ),
    *(
        _known(name, KAGGLE, f"keras/{model}/keras/{name}/{version}", *row)
        for model, rows in _PRESETS.items()
        for name, version, *row in rows
    ),
)
BY_NAME = {model.name: model for model in MODELS}
BY_LOCATION = {model.location: model for model in MODELS}


def nearest(name: str) -> list[str]:
    """Return similar names in `MODELS`, the most similar first.

    Args:
      name: the user's text; an owner before a "/" is ignored.
    """
    short = name.rpartition("/")[2].lower()
    lower = {known.lower(): known for known in BY_NAME}
    matches = difflib.get_close_matches(short, lower, MOST_NAMES)
    return [lower[match] for match in matches]
