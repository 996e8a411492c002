"""Weights that files store in halves, doubles or bytes, and that graphs cast or scale when they run, before or behind
what takes rows of them: encoders are planned whole all the same, and convolutional networks too."""

import numpy
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import conformance_test
import encoders_test
import make_cnns  # noqa: F401, adds to make_models.MODELS
import make_encoders
import make_models

LARGE = 64  # elements, at least, of what is stored otherwise


def halves(store, array):
    return store.node('Cast', [store.constant(array.astype(numpy.float16))], to=TensorProto.FLOAT)


def brain_halves(store, array):
    name = store.name()
    bits = (array.view(numpy.uint32) >> 16).astype(numpy.uint16)  # towards 0
    store.initializers.append(helper.make_tensor(name, TensorProto.BFLOAT16, array.shape, bits.tobytes(), raw=True))
    return store.node('Cast', [name], to=TensorProto.FLOAT)


def doubles(store, array):
    return store.node('Cast', [store.constant(array.astype(numpy.float64))], to=TensorProto.FLOAT)


def step(array, axis=None):
    return (numpy.abs(array).max(axis, keepdims=axis is not None) / 127 + 1e-9).astype(numpy.float32)


def bytes_scaled(store, array):
    scale = step(array)
    real = store.node('Cast', [store.constant(numpy.rint(array / scale).astype(numpy.int8))], to=TensorProto.FLOAT)
    return store.node('Mul', [real, store.constant(scale)])


def bytes_centred(store, array):
    scale = step(array, tuple(range(array.ndim - 1)))
    wholes = (numpy.rint(array / scale) + 128).clip(0, 255).astype(numpy.uint8)
    real = store.node('Cast', [store.constant(wholes)], to=TensorProto.FLOAT)
    centred = store.node('Sub', [real, store.constant(numpy.float32(128))])
    return store.node('Mul', [store.constant(scale), centred])


def bytes_of_halves(store, array):
    """Bytes whose scale is a half, so that what DequantizeLinear makes of them is."""
    scale = step(array).astype(numpy.float16)
    wholes = store.constant(numpy.rint(array / scale.astype(numpy.float32)).astype(numpy.int8))
    half = store.node('DequantizeLinear', [wholes, store.constant(scale)])
    return store.node('Cast', [half], to=TensorProto.FLOAT)


def turned(store, array):
    stored = halves(store, numpy.ascontiguousarray(array.T))
    return store.node('Transpose', [stored], perm=list(range(array.ndim))[::-1])


WEIGHTS = {way.__name__: way for way in
           (halves, brain_halves, doubles, bytes_scaled, bytes_centred, bytes_of_halves, turned)}


def rows_of_halves(store, array, ids):
    return store.node('Cast', [store.rows(array.astype(numpy.float16), ids)], to=TensorProto.FLOAT)


def rows_of_halves_scaled(store, array, ids):
    by = numpy.float16(2)
    scaled = store.node('Mul', [store.rows((array / 2).astype(numpy.float16), ids), store.constant(by)])
    return store.node('Cast', [scaled], to=TensorProto.FLOAT)


def rows_of_bytes(store, array, ids):
    scale = step(array, 0)[0]
    rows = store.rows((numpy.rint(array / scale) + 128).clip(0, 255).astype(numpy.uint8), ids)
    centred = store.node('Sub', [store.node('Cast', [rows], to=TensorProto.FLOAT), store.constant(numpy.float32(128))])
    return store.node('Mul', [centred, store.constant(scale)])


def rows_dequantised(store, array, ids):
    scale = step(array)
    rows = store.rows(numpy.rint(array / scale).astype(numpy.int8), ids)
    return store.node('DequantizeLinear', [rows, store.constant(scale)])


def rows_with_steps(store, array, ids):
    scale = step(array, 1)
    rows = store.rows(numpy.rint(array / scale).astype(numpy.int8), ids)
    return store.node('Mul', [store.node('Cast', [rows], to=TensorProto.FLOAT), store.rows(scale, ids)])


TABLES = {way.__name__: way for way in
          (rows_of_halves, rows_of_halves_scaled, rows_of_bytes, rows_dequantised, rows_with_steps)}


class Store:
    """The model with its weights stored otherwise: `weight` and `table` say how, each None for as they are."""

    def __init__(self, model, weight, table):
        self.nodes, self.initializers, self.count = [], [], 0
        graph = model.graph
        arrays = {i.name: numpy_helper.to_array(i) for i in graph.initializer}
        large = {name for name, array in arrays.items()
                 if array.dtype == numpy.float32 and array.ndim > 1 and array.size >= LARGE}
        made = {name: weight(self, arrays[name]) for name in large} if weight else {}
        for node in graph.node:
            if table and node.op_type == 'Gather' and node.input[0] in large:
                self.nodes.append(helper.make_node('Identity', [table(self, arrays[node.input[0]], node.input[1])],
                                                   node.output))
                continue
            for i, name in enumerate(node.input):
                node.input[i] = made.get(name, name)
            self.nodes.append(node)
        kept = [i for i in graph.initializer if i.name not in made]
        nodes = [onnx.NodeProto.FromString(node.SerializeToString()) for node in self.nodes]
        del graph.node[:], graph.initializer[:]
        graph.node.extend(nodes)
        graph.initializer.extend(kept + self.initializers)

    def name(self):
        self.count += 1
        return f'stored{self.count}'

    def constant(self, array):
        self.initializers.append(numpy_helper.from_array(numpy.asarray(array), self.name()))
        return self.initializers[-1].name

    def node(self, operator, inputs, **attributes):
        output = self.name()
        self.nodes.append(helper.make_node(operator, inputs, [output], name=output, **attributes))
        return output

    def rows(self, array, ids):
        return self.node('Gather', [self.constant(array), ids])


def check_encoder(model, folder):
    file = folder / 'model.onnx'
    onnx.save(model, file)
    inputs = encoders_test.draw_inputs(model)
    actual, said = conformance_test.run_model(file, inputs, folder)
    assert 'interpreter' not in said, said
    encoders_test.assert_close(actual, conformance_test.expected_outputs(file, inputs), inputs['attention_mask'])


def of_opset(model, opset):
    """Scales of halves are ONNX's from opset 19 on."""
    model.opset_import[0].version = max(model.opset_import[0].version, opset)
    return model


@pytest.mark.parametrize('weight', WEIGHTS)
def test_encoder_with_stored_weights(weight, tmp_path):
    model = make_encoders.build('bert_opset17' if weight == 'bytes_of_halves' else 'bert_opset14')
    Store(model, WEIGHTS[weight], None)
    check_encoder(of_opset(model, 19) if weight == 'bytes_of_halves' else model, tmp_path)


@pytest.mark.parametrize('table', TABLES)
def test_encoder_with_stored_tables(table, tmp_path):
    model = make_encoders.build('bert_opset14')
    Store(model, None, TABLES[table])
    check_encoder(model, tmp_path)


@pytest.mark.parametrize('weight', ('halves', 'bytes_scaled'))
def test_network_with_stored_weights(weight, tmp_path):
    model = make_models.build('mobilenet_v3_small', 17)
    Store(model, WEIGHTS[weight], None)
    onnx.save(model, tmp_path / 'model.onnx')
    inputs = conformance_test.draw_inputs(model)
    conformance_test.check(tmp_path / 'model.onnx', inputs, tmp_path)
    assert 'interpreter' not in conformance_test.run_model(tmp_path / 'model.onnx', inputs, tmp_path)[1]
