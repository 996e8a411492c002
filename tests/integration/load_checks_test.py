"""No model is ready that no request can satisfy, a model's fault is never a client's, and what zeros bring nothing to
is said."""

import json
import subprocess

import grpc
import numpy
import pytest
from onnx import TensorProto, helper, numpy_helper
from tritonclient.grpc import service_pb2, service_pb2_grpc

from conftest import program, wait_until

RANDOM = numpy.random.default_rng(3)


def weight(*shape):
    return RANDOM.normal(0, 0.2, shape).astype(numpy.float32)


def node(op, inputs, output, **attributes):
    return helper.make_node(op, inputs.split(), [output], name=f'the_{op}', **attributes)


def model(nodes, shape, constants, opset=17, kind=TensorProto.FLOAT, result=None):
    """Reads x and makes y; constants by name."""
    graph = helper.make_graph(
        nodes, 'graph', [helper.make_tensor_value_info('x', kind, shape)],
        [helper.make_tensor_value_info('y', TensorProto.FLOAT, result)],
        [numpy_helper.from_array(numpy.asarray(array), name) for name, array in constants.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid('', opset)], ir_version=8).SerializeToString()


# name -> a model that is well formed, what it is refused for, and whose fault that is
MODEL, SERVER = 'the model is at fault', 'the server lacks that'
HOPELESS = {
    'product': (model([node('MatMul', 'x w', 'h'), node('Tan', 'h', 'y')], ('N', 8), {'w': weight(9, 4)}),
                ['the_MatMul', '[9,4]', MODEL]),
    'bias': (model([node('Gemm', 'x w b', 'h'), node('Tan', 'h', 'y')], ('N', 3),
                   {'w': weight(3, 1), 'b': weight(1, 4)}), ['the_Gemm', MODEL]),
    'types': (model([node('Mul', 'x n', 'h'), node('Tan', 'h', 'y')], ('N', 'L', 8),
                    {'n': numpy.int64(3)}), ['the_Mul', 'FP32 and INT64', MODEL]),
    'axis': (model([node('Tan', 'x', 'h'), node('Softmax', 'h', 'y', axis=3)], ('N', 'L', 8), {}),
             ['the_Softmax', 'axis 3', MODEL]),
    'channels': (model([node('Tan', 'x', 'h'), node('Conv', 'h w', 'y')], ('N', 4, 'H', 'W'),
                       {'w': weight(8, 3, 3, 3)}), ['the_Conv', MODEL]),
    'halves': (model([node('Det', 'x', 'y')], (4, 3), {}), ['the_Det', MODEL]),
    'concatenated': (model([node('Concat', 'x c', 'h', axis=0), node('Tan', 'h', 'y')], ('N', 5), {'c': weight(2, 6)}),
                     ['the_Concat', MODEL]),
    'attribute': (model([node('Tan', 'x', 'h'), node('DepthToSpace', 'h', 'y', blocksize=2)], ('N', 6, 'H', 'W'), {}),
                  ['the_DepthToSpace', MODEL]),
    'declared': (model([node('ArgMax', 'x', 'y', axis=1)], ('N', 6), {}), ["output 'y' is declared as FP32", MODEL]),
    'volumes': (model([node('GridSample', 'x g', 'y')], (1, 2, 3, 4, 5), {'g': weight(1, 3, 4, 5, 3)}, 20),
                ['the_GridSample', SERVER]),
}


@pytest.fixture(scope='module')
def served(tmp_path_factory):
    from conftest import QUICK_START, Repository, Server
    directory = tmp_path_factory.mktemp('checked')
    (directory / 'models').mkdir()
    repository = Repository(directory / 'models')
    for name, (content, _) in HOPELESS.items():
        repository.file(name, 'model.onnx', content)
    repository.file('window', 'model.onnx', model([node('Conv', 'x w', 'h', strides=[128]), node('Tan', 'h', 'y')],
                                                   ('N', 1, 'T'), {'w': weight(8, 1, 400)}))
    repository.file('configured', 'model.onnx', model(
        [node('Reshape', 'x s', 'h'), node('MatMul', 'h w', 'p'), node('Tan', 'p', 'y')], ('N', 'H', 'W'),
        {'s': numpy.array([0, 17 * 19]), 'w': weight(17 * 19, 8)}, result=('N', 8)))
    repository.config('configured', 'input [ { name: "x" data_type: TYPE_FP32 dims: [ -1, 17, 19 ] } ]')
    repository.file('branches', 'model.onnx', branches())
    repository.file('interpreted', 'model.onnx', model(
        [node('Cast', 'x', 'c', to=TensorProto.INT64), node('Range', 'zero c one', 'r'),
         node('Cast', 'r', 'f', to=TensorProto.FLOAT), node('Reshape', 'f s', 'm'), node('MatMul', 'm w', 'y')], (),
        {'zero': numpy.int64(7), 'one': numpy.int64(2), 's': numpy.array([2, 8]), 'w': weight(8, 4)}, result=(2, 4)))
    server = Server(repository, directory, *QUICK_START, '--ready=any')
    try:
        yield server
        assert server.stop() == 0, server.log()
    finally:
        server.kill()


def branches():
    """x > 0 leads to what cannot be computed."""
    def branch(operator, **attributes):
        return helper.make_graph([helper.make_node(operator, ['x'], ['b'], name='within', **attributes)], 'branch', [],
                                 [helper.make_tensor_value_info('b', TensorProto.FLOAT, None)])
    return model([node('ReduceMax', 'x', 'top', keepdims=0), node('Greater', 'top zero', 'high'),
                  helper.make_node('If', ['high'], ['y'], name='the_If', then_branch=branch('Softmax', axis=7),
                                   else_branch=branch('Neg'))], (4,), {'zero': numpy.float32(0)}, result=(4,))


@pytest.fixture
def stub(served):
    with grpc.insecure_channel(served.grpc) as channel:
        stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
        wait_until(lambda: all(m.state in ('READY', 'UNAVAILABLE') for m in stub.RepositoryIndex(
            service_pb2.RepositoryIndexRequest()).models), 60, 'the end of loading')
        yield stub


def index(stub):
    return {m.name: m for m in stub.RepositoryIndex(service_pb2.RepositoryIndexRequest()).models}


def infer(stub, name, array):
    request = service_pb2.ModelInferRequest(model_name=name)
    request.inputs.add(name='x', datatype='FP32', shape=array.shape)
    request.raw_input_contents.append(array.astype(numpy.float32).tobytes())
    return stub.ModelInfer(request, timeout=60)


@pytest.mark.parametrize('name', HOPELESS)
def test_what_no_request_can_satisfy_is_refused(stub, name):
    entry = index(stub)[name]
    assert entry.state == 'UNAVAILABLE'
    for word in HOPELESS[name][1]:
        assert word in entry.reason


def test_a_request_that_is_too_short_is_the_clients_fault(stub):
    assert index(stub)['window'].state == 'READY'
    assert len(infer(stub, 'window', numpy.zeros((1, 1, 700))).outputs) == 1
    with pytest.raises(grpc.RpcError) as raised:
        infer(stub, 'window', numpy.zeros((1, 1, 30)))
    assert raised.value.code() == grpc.StatusCode.INVALID_ARGUMENT, raised.value.details()


def test_what_a_branch_cannot_compute_is_not_the_clients_fault(stub):
    assert index(stub)['branches'].state == 'READY'
    assert infer(stub, 'branches', -numpy.ones(4)).raw_output_contents[0] == numpy.ones(4, numpy.float32).tobytes()
    with pytest.raises(grpc.RpcError) as raised:
        infer(stub, 'branches', numpy.ones(4))
    assert raised.value.code() == grpc.StatusCode.FAILED_PRECONDITION, raised.value.details()
    assert 'the model is at fault' in raised.value.details()
    assert 'within' not in raised.value.details()


def properties(served, name):
    command = [program('swizzle'), f'--address={served.grpc}', 'metadata', name, '-o', 'json']
    said = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    return json.loads(said.stdout)['properties']


def warning(served, name):
    lines = [line for line in served.log().splitlines() if f'model={name} ' in line and 'model runs' in line]
    assert len(lines) == 1
    return lines[0]


def test_long_windows_and_configured_sizes_are_planned(stub, served):
    for name in ('window', 'configured'):
        assert index(stub)[name].state == 'READY', index(stub)[name].reason
        assert properties(served, name)['swizzle_regions'] != '0', warning(served, name)
        assert 'swizzle_zeros' not in properties(served, name)
    assert len(infer(stub, 'configured', numpy.zeros((2, 17, 19))).outputs) == 1


def test_what_zeros_bring_nothing_to_is_said(stub, served):
    said = properties(served, 'interpreted')['swizzle_zeros']
    assert said.startswith('zeros in its weights bring nothing, since no layer is planned')
    assert 'Reshape' in said
    assert 'bring nothing' in warning(served, 'interpreted')
