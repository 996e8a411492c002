"""A folder of Sentence Transformers with a tiny BERT of drawn weights, for the tests that make and measure encoders."""

import json

import numpy as np
from safetensors.numpy import save_file

HIDDEN, HEADS, INNER, LAYERS, POSITIONS = 64, 4, 128, 2, 64
SPECIAL = ['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]']


def tensors_of(vocabulary):
    rng = np.random.default_rng(1)

    def drawn(*shape):
        return rng.normal(0, 0.3, shape).astype(np.float32)

    tensors = {'embeddings.word_embeddings.weight': drawn(vocabulary, HIDDEN),
               'embeddings.position_embeddings.weight': drawn(POSITIONS, HIDDEN),
               'embeddings.token_type_embeddings.weight': drawn(2, HIDDEN)}
    norms = ['embeddings.LayerNorm']
    for i in range(LAYERS):
        prefix = f'encoder.layer.{i}'
        shapes = {f'attention.self.{part}': (HIDDEN, HIDDEN) for part in ('query', 'key', 'value')}
        shapes |= {'attention.output.dense': (HIDDEN, HIDDEN), 'intermediate.dense': (INNER, HIDDEN),
                   'output.dense': (HIDDEN, INNER)}
        for name, shape in shapes.items():
            tensors[f'{prefix}.{name}.weight'], tensors[f'{prefix}.{name}.bias'] = drawn(*shape), drawn(shape[0])
        norms += [f'{prefix}.attention.output.LayerNorm', f'{prefix}.output.LayerNorm']
    for name in norms:
        tensors[f'{name}.weight'], tensors[f'{name}.bias'] = 1 + drawn(HIDDEN), drawn(HIDDEN)
    return tensors


def write_encoder(folder, words):
    """The folder, whose tokeniser knows these words, and cuts them off after 32 tokens."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    vocabulary = {word: i for i, word in enumerate([*SPECIAL, *words, *'abcdefghijklmnopqrstuvwxyz.,0123456789'])}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token='[UNK]'))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single='[CLS] $A [SEP]', special_tokens=[('[CLS]', 2), ('[SEP]', 3)])
    (folder / '1_Pooling').mkdir(parents=True)
    tokenizer.save(str(folder / 'tokenizer.json'))
    save_file(tensors_of(len(vocabulary)), folder / 'model.safetensors', metadata={'format': 'pt'})

    def write(path, content):
        (folder / path).write_text(json.dumps(content), encoding='utf-8')

    write('config.json', {'model_type': 'bert', 'hidden_size': HIDDEN, 'num_attention_heads': HEADS, 'hidden_act': 'gelu',
                          'num_hidden_layers': LAYERS, 'intermediate_size': INNER, 'layer_norm_eps': 1e-12,
                          'max_position_embeddings': POSITIONS, 'type_vocab_size': 2, 'vocab_size': len(vocabulary)})
    write('modules.json', [{'idx': i, 'name': str(i), 'path': path, 'type': f'sentence_transformers.models.{kind}'}
                           for i, (path, kind) in enumerate((('', 'Transformer'), ('1_Pooling', 'Pooling'),
                                                             ('2_Normalize', 'Normalize')))])
    write('1_Pooling/config.json', {'word_embedding_dimension': HIDDEN, 'pooling_mode_mean_tokens': True})
    write('sentence_bert_config.json', {'max_seq_length': 32, 'do_lower_case': False})
    (folder / 'README.md').write_text('# The dense one\n', encoding='utf-8')
