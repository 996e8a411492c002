"""Encoders in whole numbers, pruned: quantised dynamically and statically by ONNX Runtime, and by swizzle-pack quantize.
They are planned whole, and no farther from the FP32 model than ONNX Runtime is."""

import json
import subprocess

import numpy
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import QuantFormat, QuantType, quantize_dynamic, quantize_static

import conformance_test
import encoders_test
import make_architectures
import make_encoders
import text_architectures  # noqa: F401: it adds to those of make_architectures
from conftest import program
from quantised_test import Calibration, noise, report_of

LENGTHS = (60, 1, 17, 33)
MUCH = 0.02  # noise over signal, of models with drawn weights


@pytest.fixture
def encoder(monkeypatch, tmp_path, request):
    """The file of a small pruned encoder, and a ragged batch."""
    name = getattr(request, 'param', 'bert_opset14')
    spelling = make_encoders.DEFAULT | make_encoders.ENCODERS[name] | {
        'hidden': 64, 'inner': 128, 'sparsity': 0.9, 'head': 'pooler'}
    monkeypatch.setitem(make_encoders.ENCODERS, name, spelling)
    file = tmp_path / 'plain.onnx'
    onnx.save(make_encoders.build(name), file)
    random = numpy.random.default_rng(3)
    shape = (len(LENGTHS), max(LENGTHS))
    mask = (numpy.arange(shape[1]) < numpy.array(LENGTHS)[:, None]).astype(numpy.int64)
    return file, {'input_ids': random.integers(0, make_encoders.VOCABULARY, shape), 'attention_mask': mask,
                  'token_type_ids': random.integers(0, make_encoders.TYPES, shape)}


def visible(outputs, mask):
    """Outputs without what stands at masked tokens, in one array."""
    return numpy.concatenate([(array[mask != 0] if array.ndim == 3 else array).ravel() for array in outputs.values()])


def kernels(file):
    """The kernels of linear layers with zeros."""
    return [layer['kernel'] for layer in report_of(file)['layers'] if layer['op'] == 'Conv']


def check(file, plain, inputs, folder, worst=1.1, dense_in_bytes=True):
    """Planned on whole numbers, and about as near to the FP32 model as ONNX Runtime is on the same file, or nearer."""
    assert not report_of(file).get('fallback')
    in_bytes = [kernel for kernel in kernels(file) if dense_in_bytes or '_dense_' not in kernel]
    assert len(in_bytes) > 6 and all('_u8_' in kernel for kernel in in_bytes), kernels(file)
    mask = inputs['attention_mask']
    real = visible(conformance_test.expected_outputs(plain, inputs), mask)
    theirs = visible(conformance_test.expected_outputs(file, inputs), mask)
    actual, said = conformance_test.run_model(file, inputs, folder)
    assert not said
    ours = visible(actual, mask)
    assert noise(theirs, real) < MUCH
    assert noise(ours, real) < worst * noise(theirs, real)
    assert noise(ours, theirs) < MUCH
    return actual


@pytest.mark.parametrize('weights, per_channel', ((QuantType.QInt8, True), (QuantType.QInt8, False), (QuantType.QUInt8, False)))
def test_dynamic(weights, per_channel, encoder, tmp_path):
    """Linear layers, and tables of embeddings in whole numbers. Weights of UINT8 may lie further from their zero point
    than signed bytes reach: sparse ones are summed of two, the pooler's dense one runs in FP32."""
    plain, inputs = encoder
    file = tmp_path / 'model.onnx'
    quantize_dynamic(plain, file, weight_type=weights, per_channel=per_channel)
    operators = {node.op_type for node in onnx.load(file).graph.node}
    assert {'DynamicQuantizeLinear', 'MatMulInteger', 'DequantizeLinear'} <= operators
    check(file, plain, inputs, tmp_path, dense_in_bytes=weights == QuantType.QInt8)


def operators(file):
    return {node.op_type for node in onnx.load(file).graph.node}


@pytest.mark.parametrize('level, fused', (('EXTENDED', 'DynamicQuantizeMatMul'), ('BASIC', 'MatMulInteger')))
def test_optimised(level, fused, encoder, tmp_path):
    """As ONNX Runtime's optimiser saves what was quantised dynamically."""
    plain, inputs = encoder
    quantised, file = tmp_path / 'quantised.onnx', tmp_path / 'model.onnx'
    quantize_dynamic(plain, quantised, weight_type=QuantType.QInt8, per_channel=True)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, f'ORT_ENABLE_{level}')
    options.optimized_model_filepath = str(file)
    onnxruntime.InferenceSession(str(quantised), options, providers=['CPUExecutionProvider'])
    assert fused in operators(file)
    check(file, plain, inputs, tmp_path)


@pytest.mark.parametrize('encoder', ('fused',), indirect=True)
def test_fused(encoder, tmp_path):
    """Attention in one operator becomes QAttention."""
    plain, inputs = encoder
    inputs = {name: array.astype(numpy.int32) if graph_type(plain, name) == TensorProto.INT32 else array
              for name, array in inputs.items()}
    file = tmp_path / 'model.onnx'
    quantize_dynamic(plain, file, weight_type=QuantType.QInt8, extra_options={'DefaultTensorType': TensorProto.FLOAT})
    assert 'QAttention' in operators(file)
    check(file, plain, inputs, tmp_path)


def graph_type(file, name):
    return next(value.type.tensor_type.elem_type for value in onnx.load(file).graph.input if value.name == name)


def test_static_integers(encoder, tmp_path):
    """MatMulInteger behind a static scale, its bias added as INT32, as SparseML exports it."""
    plain, inputs = encoder
    file = tmp_path / 'model.onnx'
    quantize_dynamic(plain, file, weight_type=QuantType.QInt8, per_channel=True)
    model = onnx.load(file)
    make_static(model, inputs)
    onnx.save(model, file)
    assert 'DynamicQuantizeLinear' not in operators(file)
    check(file, plain, inputs, tmp_path, worst=1.3)


def make_static(model, inputs):
    """Scales become constants that hold the activations of these inputs, and biases INT32."""
    graph = model.graph
    constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    probe = onnx.ModelProto.FromString(model.SerializeToString())
    dynamic = [node for node in graph.node if node.op_type == 'DynamicQuantizeLinear']
    del probe.graph.output[:]
    probe.graph.output.extend(helper.make_empty_tensor_value_info(name) for node in dynamic for name in node.output[1:])
    session = onnxruntime.InferenceSession(probe.SerializeToString(), providers=['CPUExecutionProvider'])
    values = dict(zip((output.name for output in session.get_outputs()), session.run(None, inputs)))

    def constant(name, array):
        constants[name] = numpy.asarray(array)
        graph.initializer.append(numpy_helper.from_array(constants[name], name))

    for node in dynamic:
        for name in node.output[1:]:
            constant(name, values[name])
        node.op_type, outputs = 'QuantizeLinear', list(node.output)
        node.input.extend(outputs[1:])
        del node.output[1:]
    for mul in [node for node in graph.node if node.op_type == 'Mul' and all(name in constants for name in node.input)]:
        constant(mul.output[0], constants[mul.input[0]] * constants[mul.input[1]])
        graph.node.remove(mul)
    readers = {name: node for node in graph.node for name in node.input}
    for integer in [node for node in graph.node if node.op_type == 'MatMulInteger']:
        cast = readers[integer.output[0]]
        mul = readers[cast.output[0]]
        add = readers[mul.output[0]]
        bias = next(name for name in add.input if name != mul.output[0])
        scale = next(name for name in mul.input if name != cast.output[0])
        if add.op_type != 'Add' or bias not in constants:
            continue
        whole = bias + '.' + mul.name
        constant(whole, numpy.rint(constants[bias] / constants[scale]).astype(numpy.int32))
        place = list(graph.node).index(cast)
        graph.node.insert(place, helper.make_node('Add', [integer.output[0], whole], [whole + '.sums'], name=whole))
        cast.input[0] = whole + '.sums'
        mul.output[0] = add.output[0]
        graph.node.remove(add)


def test_sequences_do_not_touch(encoder, tmp_path):
    """Each token has a scale of its own: a sequence alone gives the bits that it gives in a batch."""
    plain, inputs = encoder
    file = tmp_path / 'model.onnx'
    quantize_dynamic(plain, file, weight_type=QuantType.QInt8, per_channel=True)
    together, _ = conformance_test.run_model(file, inputs, tmp_path)
    for i, length in enumerate(LENGTHS):
        alone, _ = conformance_test.run_model(file, {name: array[i:i + 1, :length] for name, array in inputs.items()},
                                              tmp_path)
        for name, array in alone.items():
            batched = together[name][i:i + 1]
            assert numpy.array_equal(array, batched[:, :length] if array.ndim == 3 else batched), (i, name)


@pytest.mark.parametrize('operators', (['MatMul', 'Gemm'], ['MatMul', 'Gemm', 'Add', 'Softmax', 'Gather']))
@pytest.mark.parametrize('activations', (QuantType.QUInt8, QuantType.QInt8))
def test_static(operators, activations, encoder, tmp_path):
    plain, inputs = encoder
    file = tmp_path / 'model.onnx'
    quantize_static(plain, file, Calibration(inputs), quant_format=QuantFormat.QDQ, per_channel=True,
                    op_types_to_quantize=operators, activation_type=activations, weight_type=QuantType.QInt8)
    check(file, plain, inputs, tmp_path)


def respell(graph, op):
    """Products between DequantizeLinear and QuantizeLinear become QLinearMatMul, or those of what is dequantised
    MatMulInteger, Cast and Mul: weights' and attention's, as SparseML writes both."""
    constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    makers = {name: node for node in graph.node for name in node.output}
    readers = {}
    for node in graph.node:
        for name in node.input:
            readers.setdefault(name, []).append(node)
    for matmul in [node for node in graph.node if node.op_type == 'MatMul']:
        pairs = [makers.get(name) for name in matmul.input]
        assert all(pair is not None and pair.op_type == 'DequantizeLinear' for pair in pairs)
        a, b = (list(pair.input) for pair in pairs)
        y, place = matmul.output[0], list(graph.node).index(matmul)
        graph.node.remove(matmul)
        if op == 'QLinearMatMul':
            (quantise,) = readers[y]
            assert quantise.op_type == 'QuantizeLinear'
            inputs = a + b + list(quantise.input[1:])
            graph.node.insert(place, helper.make_node(op, inputs, [quantise.output[0]], name=y))
            graph.node.remove(quantise)
            continue
        graph.initializer.append(numpy_helper.from_array(constants[a[1]] * constants[b[1]], y + '.rescale'))
        nodes = [helper.make_node(op, [a[0], b[0], a[2], b[2]], [y + '.sums'], name=y),
                 helper.make_node('Cast', [y + '.sums'], [y + '.cast'], name=y + '.cast', to=TensorProto.FLOAT),
                 helper.make_node('Mul', [y + '.cast', y + '.rescale'], [y], name=y + '.rescaled')]
        for i, node in enumerate(nodes):
            graph.node.insert(place + i, node)


@pytest.mark.parametrize('op', ('MatMulInteger', 'QLinearMatMul'))
def test_products(op, encoder, tmp_path):
    """Products of whole numbers in operators of their own, of attention, too."""
    plain, inputs = encoder
    file = tmp_path / 'model.onnx'
    quantize_static(plain, file, Calibration(inputs), quant_format=QuantFormat.QDQ, activation_type=QuantType.QUInt8,
                    op_types_to_quantize=['MatMul', 'Gemm'], weight_type=QuantType.QInt8)
    model = onnx.load(file)
    respell(model.graph, op)
    onnx.save(model, file)
    assert op in operators(file) and 'MatMul' not in operators(file)
    check(file, plain, inputs, tmp_path)


@pytest.mark.parametrize('folder', encoders_test.IN_BYTES, ids=lambda folder: folder.name)
def test_checkpoint(folder, tmp_path):
    """What compressed-tensors wrote is planned on whole numbers, and as near to what the package's own model answers as
    steps of activations allow."""
    assert not report_of(folder).get('fallback')
    assert all('_u8_' in kernel for kernel in kernels(folder)), kernels(folder)
    tensors = encoders_test.read_safetensors(folder / 'expected.safetensors')
    inputs = {name: array for name, array in tensors.items() if array.dtype == numpy.int64}
    actual, said = conformance_test.run_model(folder, inputs, tmp_path)
    assert not said
    mask = inputs['attention_mask']
    theirs = visible({name: tensors[name] for name in actual}, mask)
    assert noise(visible(actual, mask), theirs) < 1e-4


def quantize(model, output, *flags):
    done = subprocess.run([program('swizzle-pack'), 'quantize', str(model), str(output), *flags], capture_output=True,
                          text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_quantize(encoder, tmp_path):
    """What it writes runs on ONNX Runtime, too, and is the same packed; zeros stay."""
    plain, inputs = encoder
    file, packed = tmp_path / 'ours.onnx', tmp_path / 'ours.swz'
    assert '13 of 13 linear layers in whole numbers' in quantize(plain, file)
    ours = check(file, plain, inputs, tmp_path)
    quantize(plain, packed)
    again, _ = conformance_test.run_model(packed, inputs, tmp_path)
    for name, array in ours.items():
        assert noise(again[name][numpy.isfinite(array)], array[numpy.isfinite(array)]) < 1e-4
    weights = [onnx.numpy_helper.to_array(tensor) for tensor in onnx.load(file).graph.initializer
               if tensor.data_type == onnx.TensorProto.INT8 and len(tensor.dims) == 2]
    assert len(weights) == 13
    assert sum((array == 0).sum() for array in weights) / sum(array.size for array in weights) > 0.8


@pytest.mark.parametrize('sparsity', (0.0, 0.9))
@pytest.mark.parametrize('name', ('modernbert', 'qwen3'))
def test_quantize_turned(name, sparsity, tmp_path):
    """Encoders whose heads are turned by position, normalised by head or shared, and whose layers are gated."""
    plain, file, packed = (tmp_path / part for part in ('plain.onnx', 'ours.onnx', 'ours.swz'))
    onnx.save(make_architectures.build(name, make_architectures.SMALL[name], sparsity=sparsity), plain)
    random = numpy.random.default_rng(3)
    mask = (numpy.arange(max(LENGTHS)) < numpy.array(LENGTHS)[:, None]).astype(numpy.int64)
    inputs = {'input_ids': random.integers(0, make_architectures.VOCABULARY, mask.shape), 'attention_mask': mask}
    for output in (file, packed):
        assert '14 of 14 linear layers in whole numbers' in quantize(plain, output)
    ours = check(file, plain, inputs, tmp_path)
    again, said = conformance_test.run_model(packed, inputs, tmp_path)
    assert not said and noise(visible(again, mask), visible(ours, mask)) < 1e-4


@pytest.mark.parametrize('name', ('modernbert', 'qwen2', 'qwen3', 'nomic_bert'))
def test_quantize_checkpoint(name, tmp_path):
    """A checkpoint's folder becomes a packed model, as near to what the package's own model answers as bytes allow."""
    folder, packed = encoders_test.CHECKPOINTS / name, tmp_path / 'ours.swz'
    layers = 28 if name == 'modernbert' else 14
    assert f'{layers} of {layers} linear layers in whole numbers' in quantize(folder, packed)
    assert not report_of(packed).get('fallback')
    assert all('_u8_' in kernel for kernel in kernels(packed)), kernels(packed)
    tensors = encoders_test.read_safetensors(folder / 'expected.safetensors')
    inputs = {name: array for name, array in tensors.items() if array.dtype == numpy.int64}
    actual, said = conformance_test.run_model(packed, inputs, tmp_path)
    assert not said and actual
    mask = inputs['attention_mask']
    theirs = visible({name: tensors[name] for name in actual}, mask)
    assert 0 < noise(visible(actual, mask), theirs) < MUCH


@pytest.mark.parametrize('encoder', ('bert_opset11',), indirect=True)
def test_quantize_listed(encoder, tmp_path):
    """Of a file that lists its weights as inputs, too, it writes one that asks for none of them."""
    plain, inputs = encoder
    model = onnx.load(plain)
    model.ir_version = 3
    model.graph.input.extend(helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims)
                             for tensor in model.graph.initializer)
    onnx.save(model, plain)
    file = tmp_path / 'ours.onnx'
    quantize(plain, file)
    check(file, plain, inputs, tmp_path)


def test_quantize_skips(encoder, tmp_path):
    plain, _ = encoder
    names = [node.name for node in onnx.load(plain).graph.node if node.op_type == 'MatMul']
    file = tmp_path / 'ours.onnx'
    assert '12 of 13' in quantize(plain, file, f'--skip={names[0]}')
    assert sum(node.op_type == 'MatMulInteger' for node in onnx.load(file).graph.node) == 12
    assert json.dumps(report_of(file)).count('_u8_') > 0
