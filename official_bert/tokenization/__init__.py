"""Text -> WordPiece ids, in Python and in a TensorFlow graph.

Follows `tokenization.py` of google-research/bert for every Unicode string.
"""

from official_bert.tokenization.basic import BasicTokenizer
from official_bert.tokenization.full import FullTokenizer
from official_bert.tokenization.vocabulary import load_vocab
from official_bert.tokenization.wordpiece import WordpieceTokenizer

__all__ = ["BasicTokenizer", "FullTokenizer", "WordpieceTokenizer", "load_vocab"]
