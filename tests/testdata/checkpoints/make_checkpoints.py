"""Makes the checkpoints of this folder: tiny encoders with random weights and what Hugging Face's models answer.

Not run by the tests, which read the results. It needs what wrote the real files of these formats:
    pip install torch 'transformers<5' safetensors compressed-tensors==0.14.0.1
    python make_checkpoints.py
Each folder holds config.json, model.safetensors, and expected.safetensors with a model's inputs and outputs.
"""

import pathlib
import shutil

import torch
from compressed_tensors.compressors import ModelCompressor
from compressed_tensors.config import BitmaskConfig, Sparse24BitMaskConfig
from safetensors.torch import save_file
from transformers import (BertConfig, BertModel, DistilBertConfig, DistilBertModel, RobertaConfig, RobertaModel)

FOLDER = pathlib.Path(__file__).parent
HEADS, HEAD_SIZE, INNER, LAYERS, WORDS, POSITIONS = 2, 4, 12, 2, 20, 10
HIDDEN = HEADS * HEAD_SIZE

COMMON = {'vocab_size': WORDS, 'hidden_size': HIDDEN, 'num_attention_heads': HEADS, 'num_hidden_layers': LAYERS,
          'intermediate_size': INNER, 'max_position_embeddings': POSITIONS, 'attn_implementation': 'eager'}


def randomise(model):
    """Weights that matter: as they come from transformers, biases are 0 and every LayerNorm is alike."""
    for parameter in model.parameters():
        parameter.data = torch.randn_like(parameter) * (0.5 if parameter.dim() == 2 else 0.2)
        if parameter.dim() == 1:
            parameter.data += 0.5
    return model.eval()


def prune(model, two_four):
    for module in model.modules():
        if not isinstance(module, torch.nn.Linear):
            continue
        weight = module.weight.data
        if two_four:
            weight.view(-1, 4).scatter_(1, weight.view(-1, 4).abs().topk(2, dim=1, largest=False).indices, 0)
        else:
            weight[torch.rand_like(weight) < 0.7] = 0
    return model


def expected(model, with_types, folder):
    """Of two sequences, of 7 and 4 tokens, the second padded with token 1, RoBERTa's padding."""
    ids = torch.tensor([[2, 5, 7, 11, 13, 17, 19], [3, 4, 6, 8, 1, 1, 1]])
    mask = torch.tensor([[1, 1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 0, 0, 0]])
    inputs = {'input_ids': ids, 'attention_mask': mask}
    if with_types:
        inputs['token_type_ids'] = torch.tensor([[0, 0, 0, 1, 1, 1, 1], [0, 1, 1, 1, 0, 0, 0]])
    with torch.no_grad():
        answer = model(**inputs)
    tensors = dict(inputs, last_hidden_state=answer.last_hidden_state)
    if 'pooler_output' in answer:
        tensors['pooler_output'] = answer.pooler_output
    save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, folder / 'expected.safetensors')


def save(name, model, with_types=True, compression=None):
    folder = FOLDER / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    expected(model, with_types, folder)
    model.config.save_pretrained(folder)
    state = model.state_dict()
    if compression is not None:
        compressor = ModelCompressor(sparsity_config=compression)
        state = compressor.compress(model)
        compressor.update_config(folder)
    save_file({key: tensor.contiguous() for key, tensor in state.items()}, folder / 'model.safetensors',
              metadata={'format': 'pt'})


def main():
    torch.manual_seed(4)
    bert = randomise(BertModel(BertConfig(**COMMON, type_vocab_size=2)))
    bert.prune_heads({1: [0]})
    save('bert', bert)
    save('bert_bitmask', prune(randomise(BertModel(BertConfig(**COMMON))), two_four=False),
         compression=BitmaskConfig(format='sparse-bitmask', targets=['Linear'], sparsity_structure='unstructured'))
    save('bert_24_bitmask', prune(randomise(BertModel(BertConfig(**COMMON))), two_four=True),
         compression=Sparse24BitMaskConfig(format='sparse-24-bitmask', targets=['Linear'], sparsity_structure='2:4'))
    save('roberta', randomise(RobertaModel(RobertaConfig(**COMMON, type_vocab_size=1, hidden_act='gelu_new'))), False)
    distil = DistilBertConfig(vocab_size=WORDS, dim=HIDDEN, n_heads=HEADS, n_layers=LAYERS, hidden_dim=INNER,
                              max_position_embeddings=POSITIONS, activation='relu', attn_implementation='eager')
    save('distilbert', randomise(DistilBertModel(distil)), False)


if __name__ == '__main__':
    main()
