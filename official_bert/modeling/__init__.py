"""The model as Keras 3 layers: embeddings, Transformer blocks, encoder, heads.

`BertEncoder` follows `BertModel` of google-research/bert.
"""

import os

from official_bert.errors import UserError

if os.environ.get("TF_USE_LEGACY_KERAS", "").lower() in ("1", "true"):
    raise UserError(
        "TF_USE_LEGACY_KERAS is set, so tf.keras is Keras 2. Keras 2 models cannot "
        "contain these Keras 3 layers. Unset it and start again."
    )
