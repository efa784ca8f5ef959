"""What a pre-trained model is used for: tasks, their files, and who answers.

A family (classifier, squad, ner, choice) is files of one prefix, to be read in this
order: `_files` (of classifiers `_data`, and GLUE's below), what is in a user's files;
`_features`, what the model reads; the family's own name (a classifier's task is
`classifier_task`), its task, objective and evaluation; `_predictor`, what answers; and
`_reports`, what is written of whole sets. Beside them are `ner_words`, `ner_sentences`,
`ner_conll` and `ner_json`; `squad_answers`, `squad_texts` and `squad_scores`.

* Tables of one's own: `delimited`, `json_lines`, then `tables`, then `table_columns`
  and `labels`, then `own_data`, then `dev_split`; all become `examples`.
* GLUE: `glue_tasks`, `glue_files`, `glue_tfds`, `glue_submission`.
* Training any of them: `batches`, `fine_tuning`, `sweep`, `model_card`.
* Asking: `model_inputs`, `windows`, `scoring`, `task_file`, `fine_tuned`,
  `tflite_model`, `predictor`, `prediction_inputs`.
* Pre-trained models: `fill_mask`, `likelihood`, `attention`, `attention_picture`,
  `feature_extraction`, `feature_files`, `encoder_predictor`.
"""
