"""The model as Keras 3 layers: embeddings, Transformer blocks, encoder, heads.

`BertEncoder` follows `BertModel` of google-research/bert.
"""

import os

from official_bert.errors import UserError

if os.environ.get("TF_USE_LEGACY_KERAS", "").lower() in ("1", "true"):
    raise UserError(
        "TF_USE_LEGACY_KERAS is set: it makes tf.keras Keras 2, whose models cannot "
        "hold these Keras 3 layers; unset it and start again."
    )
