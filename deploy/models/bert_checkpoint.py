"""Checkpoint folders of encoders of BERT's kind, read as if each were BERT's, and written again with other weights.

BERT, RoBERTa, XLM-RoBERTa, CamemBERT, DistilBERT and ELECTRA differ in the names of tensors, in which position a text
begins at, and in whether there are types of tokens. `Checkpoint` hides that: its tensors have BERT's names and begin at
position 0. Its folder may be one of Sentence Transformers, whose other files are copied as they are.
"""

import dataclasses
import json
import pathlib
import re
import shutil

import numpy as np
from safetensors import numpy as safetensors

import sparse_bitmask

WEIGHTS = 'model.safetensors'
LAYER = re.compile(r'encoder\.layer\.\d+\.')
PADDED = ('roberta', 'xlm-roberta', 'camembert')  # positions count from behind the padding token's number
KINDS = ('bert', 'distilbert', 'electra', *PADDED)
DISTILBERT = {'transformer.layer.': 'encoder.layer.', 'attention.q_lin': 'attention.self.query',
              'attention.k_lin': 'attention.self.key', 'attention.v_lin': 'attention.self.value',
              'attention.out_lin': 'attention.output.dense', 'sa_layer_norm': 'attention.output.LayerNorm',
              'ffn.lin1': 'intermediate.dense', 'ffn.lin2': 'output.dense', 'output_layer_norm': 'output.LayerNorm'}
DISTILBERT_CONFIG = {'dim': 'hidden_size', 'hidden_dim': 'intermediate_size', 'n_heads': 'num_attention_heads',
                     'n_layers': 'num_hidden_layers', 'activation': 'hidden_act'}
DEFAULTS = {'hidden_act': 'gelu', 'layer_norm_eps': 1e-12}
# What a copy of a folder leaves out: weights in any form, what they were made of, and the page about them.
LEFT_OUT = ('*.safetensors', '*.bin', '*.onnx', '*.h5', '*.msgpack', '*.ot', '*.index.json', 'README.md', '.git*',
            'onnx', 'openvino', 'training', 'int8')


@dataclasses.dataclass
class Checkpoint:
    folder: pathlib.Path
    config: dict   # as BERT's config.json
    tensors: dict  # float32, by BERT's names
    names: dict    # of tensors of layers: BERT's name -> the name in the file


def bert_name(kind, name):
    """BERT's name of a tensor; heads' tensors have others, which nobody asks for."""
    name = re.sub(r'^(bert|roberta|distilbert|electra)\.', '', name)
    if kind == 'distilbert':
        for theirs, ours in DISTILBERT.items():
            name = name.replace(theirs, ours)
    return name


def read_config(folder):
    """config.json as if it were BERT's; ValueError, naming what it says, for other kinds of model."""
    file = folder / 'config.json'
    config = DEFAULTS | json.loads(file.read_text(encoding='utf-8'))
    kind = config.get('model_type', 'bert')
    if kind not in KINDS:
        raise ValueError(f'{file}: model_type is {kind!r}; only {", ".join(KINDS)} can be read')
    if config.get('position_embedding_type', 'absolute') != 'absolute':
        raise ValueError(f'{file}: position_embedding_type is {config["position_embedding_type"]!r}, not absolute')
    config |= {ours: config[theirs] for theirs, ours in DISTILBERT_CONFIG.items()
               if kind == 'distilbert' and theirs in config}
    if config.get('embedding_size', config['hidden_size']) != config['hidden_size']:
        raise ValueError(f'{file}: embedding_size is not hidden_size, which can not be read')
    return kind, config


def stored_tensors(folder):
    file = folder / WEIGHTS
    if not file.is_file():
        raise FileNotFoundError(f'{file} is not there; convert_checkpoint.py makes it of PyTorch\'s files')
    try:
        return safetensors.load_file(file)
    except (TypeError, KeyError, AttributeError) as error:
        raise ValueError(f'{file}: it has tensors of a type that NumPy has not ({error}); store them as float32') from error


def read(folder):
    """Returns the Checkpoint; raises OSError or ValueError, naming the file."""
    folder = pathlib.Path(folder)
    kind, config = read_config(folder)
    stored = stored_tensors(folder)
    names = {bert_name(kind, name): name for name in stored}
    tensors = {ours: stored[theirs].astype(np.float32) for ours, theirs in names.items()
               if stored[theirs].dtype.kind == 'f'}
    required = ('embeddings.word_embeddings.weight', 'embeddings.position_embeddings.weight',
                'encoder.layer.0.attention.self.query.weight')
    if missing := [name for name in required if name not in tensors]:
        raise ValueError(f'{folder / WEIGHTS}: there is no {missing[0]}')
    positions = tensors['embeddings.position_embeddings.weight']
    if kind in PADDED:
        positions = positions[config.get('pad_token_id', 1) + 1:]
    tensors['embeddings.position_embeddings.weight'] = np.ascontiguousarray(positions)
    tensors.setdefault('embeddings.token_type_embeddings.weight', np.zeros((2, positions.shape[1]), np.float32))
    config |= {'model_type': 'bert', 'max_position_embeddings': len(positions)}
    return Checkpoint(folder, config, tensors, {ours: theirs for ours, theirs in names.items() if LAYER.match(ours)})


def copy_files(folder, out):
    """Copies all but the weights: tokeniser, configuration, modules."""
    shutil.copytree(folder, out, ignore=shutil.ignore_patterns(*LEFT_OUT), dirs_exist_ok=True)
    for module in folder.glob('*/model.safetensors'):  # of Dense modules
        if (out / module.parent.name).is_dir():
            shutil.copyfile(module, out / module.parent.name / WEIGHTS)


def joined(checkpoint, tensors):
    """Returns the checkpoint's tensors, by BERT's names, with these of layers in their places, all float32."""
    for name, value in tensors.items():
        if name not in checkpoint.names or checkpoint.tensors[name].shape != value.shape:
            raise ValueError(f'{name} {list(value.shape)} is not a tensor of {checkpoint.folder}')
    return checkpoint.tensors | {name: value.astype(np.float32) for name, value in tensors.items()}


def sparsity_config(weights):
    """Returns what config.json of a compressed-tensors checkpoint says of these sparse matrices."""
    zeros = sum(weight.size - np.count_nonzero(weight) for weight in weights)
    return {'quant_method': 'compressed-tensors', 'sparsity_config': {
        'format': 'sparse-bitmask', 'targets': ['Linear'], 'ignore': ['pooler.dense'],
        'global_sparsity': round(100 * float(zeros) / sum(weight.size for weight in weights), 2),
        'sparsity_structure': 'unstructured'}}


def write(checkpoint, tensors, out, compressed=False):
    """Writes a folder as the checkpoint's, with these tensors of layers in their places, in the types that it has.

    Zeros are stored, or with `compressed` the matrices among `tensors` are sparse-bitmask in model.safetensors.
    """
    joined(checkpoint, tensors)  # refuses what does not fit
    stored = stored_tensors(checkpoint.folder)
    for name, value in tensors.items():
        theirs = checkpoint.names[name]
        stored[theirs] = value.astype(stored[theirs].dtype)
    sparse = {checkpoint.names[name] for name, value in tensors.items() if value.ndim == 2} if compressed else set()
    out.mkdir(parents=True, exist_ok=True)
    copy_files(checkpoint.folder, out)
    if compressed:
        config = json.loads((checkpoint.folder / 'config.json').read_text(encoding='utf-8'))
        config['quantization_config'] = sparsity_config([stored[name] for name in sorted(sparse)])
        (out / 'config.json').write_text(json.dumps(config, indent=2) + '\n', encoding='utf-8')
    temporary = out / f'{WEIGHTS}.part'
    sparse_bitmask.save(temporary, stored, sparse)
    temporary.replace(out / WEIGHTS)
