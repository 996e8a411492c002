"""Transformer encoders, in every spelling of make_encoders.py: the optimised plan takes them, and what it computes
equals ONNX Runtime's outputs where the mask is 1."""

import json
import pathlib
import struct
import subprocess
import sys

import numpy
import onnx
import pytest

import make_encoders
from conformance_test import expected_outputs, run_model

TOLERANCE = 2e-4  # largest difference over largest magnitude, per output
BATCH, LENGTH = 3, 21

PER_TOKEN = {'last_hidden_state', 'logits', 'start_logits', 'end_logits'}

# What no plan takes: they read padding as if it were text, so that packing would change them.
FALL_BACK = {'head_mean_of_all', 'head_mean_of_all_opset11'}


def draw_inputs(model, lengths=(LENGTH, 13, 1)):
    """Drawn ids, and masks that leave so many tokens; as the model fixes its dimensions."""
    random = numpy.random.default_rng(1)
    inputs = {}
    for value in model.graph.input:
        batch, length = (d.dim_value for d in value.type.tensor_type.shape.dim)
        shape = (batch or BATCH, length or LENGTH)
        if value.name == 'attention_mask':
            kept = numpy.resize(lengths, shape[0])[:, None]
            inputs[value.name] = (numpy.arange(shape[1]) < kept).astype(numpy.int64)
        elif value.name == 'position_ids':
            inputs[value.name] = numpy.tile(numpy.arange(shape[1]), (shape[0], 1))
        else:
            limit = make_encoders.TYPES if value.name == 'token_type_ids' else make_encoders.VOCABULARY
            inputs[value.name] = random.integers(0, limit, shape)
    return inputs


def assert_close(actual, expected, mask):
    """Outputs per token, [batch, length, ...], are compared where the mask is 1, and are 0 elsewhere."""
    assert actual.keys() == expected.keys()
    for name, array in expected.items():
        assert actual[name].shape == array.shape, name
        difference = numpy.abs(actual[name] - array)
        if mask is not None and array.shape[:2] == mask.shape and name in PER_TOKEN:
            assert not actual[name][mask == 0].any(), name
            difference = difference[mask == 1]
        difference = difference.max() / numpy.abs(array).max()
        assert difference <= TOLERANCE, f'{name}: {difference}'


@pytest.mark.parametrize('name', make_encoders.ENCODERS)
def test_encoder(name, tmp_path):
    model = make_encoders.build(name)
    file = tmp_path / 'model.onnx'
    onnx.save(model, file)
    inputs = draw_inputs(model)
    actual, said = run_model(file, inputs, tmp_path)
    assert ('interpreter' in said) == (name in FALL_BACK), said
    mask = None if name in FALL_BACK else inputs.get('attention_mask')
    assert_close(actual, expected_outputs(file, inputs), mask)


def test_sparse_transformer(tmp_path):
    """The generator of the benchmark's model: a mask from positions and a constant, larger than what is listed."""
    file = tmp_path / 'model.onnx'
    generator = pathlib.Path(__file__).resolve().parents[1] / 'bench' / 'sparse_transformer.py'
    subprocess.run([sys.executable, generator, file, '--tokens=300', '--layers=2', '--hidden=64', '--heads=2',
                    '--filter=96', '--width=20'], check=True)
    inputs = {'input_ids': numpy.random.default_rng(1).integers(0, 256, (2, 300))}
    actual, said = run_model(file, inputs, tmp_path)
    assert 'interpreter' not in said
    assert_close(actual, expected_outputs(file, inputs), None)


def test_sparse_transformer_of_vectors(tmp_path):
    """The same with a mask that eight queries share, which plans in INT8 attend to through bytes."""
    file = tmp_path / 'model.onnx'
    generator = pathlib.Path(__file__).resolve().parents[1] / 'bench' / 'sparse_transformer.py'
    subprocess.run([sys.executable, generator, file, '--tokens=304', '--layers=1', '--hidden=128', '--heads=2',
                    '--filter=96', '--vectors=8', '--share=0.1'], check=True)
    inputs = {'input_ids': numpy.random.default_rng(1).integers(0, 256, (2, 304))}
    actual, said = run_model(file, inputs, tmp_path)
    assert 'interpreter' not in said
    assert_close(actual, expected_outputs(file, inputs), None)


CHECKPOINTS = pathlib.Path(__file__).resolve().parents[1] / 'testdata' / 'checkpoints'
ALL_CHECKPOINTS = sorted(path.parent for path in CHECKPOINTS.glob('*/config.json'))
# Its angles depend on the length. Regions compute what stands at padding, too.
IN_REGIONS = {'nomic_bert_interleaved'}
IN_BYTES = [folder for folder in ALL_CHECKPOINTS if folder.name.startswith('bert_int8')]  # quantised_encoders_test.py


def read_safetensors(file):
    data = file.read_bytes()
    (length,) = struct.unpack_from('<Q', data)
    types = {'F32': numpy.float32, 'I64': numpy.int64}
    return {name: numpy.frombuffer(data[8 + length:][slice(*entry['data_offsets'])],
                                   types[entry['dtype']]).reshape(entry['shape'])
            for name, entry in json.loads(data[8:8 + length]).items() if name != '__metadata__'}


@pytest.mark.parametrize('folder', [folder for folder in ALL_CHECKPOINTS if folder not in IN_BYTES],
                         ids=lambda folder: folder.name)
def test_checkpoint(folder, tmp_path):
    """The expected outputs are those of Hugging Face's own classes (make_checkpoints.py)."""
    tensors = read_safetensors(folder / 'expected.safetensors')
    inputs = {name: array for name, array in tensors.items() if array.dtype == numpy.int64}
    outputs = {name: array for name, array in tensors.items() if array.dtype != numpy.int64}
    actual, said = run_model(folder, inputs, tmp_path)
    in_regions = folder.name in IN_REGIONS
    assert ('interpreter' in said) == in_regions
    assert outputs and inputs
    assert_close(actual, outputs, None if in_regions else inputs.get('attention_mask'))
