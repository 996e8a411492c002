"""ONNX's own test cases on the interpreter, and models that only it takes, through the tool and the server."""

import concurrent.futures
import json
import pathlib
import re
import subprocess

import numpy
import onnx
import onnxruntime
import pytest
import tritonclient.grpc as triton
import tritonclient.utils as triton_utils

from conftest import ROOT, program

DATA = pathlib.Path('/usr/share/libonnx-testdata/data')
TABLE = ROOT / 'tests' / 'conformance' / 'ONNX_NODE_TESTS.md'

needs_data = pytest.mark.skipif(not DATA.is_dir(), reason='libonnx-testdata is not installed: apt-get install it')


def run_cases(*arguments):
    return subprocess.run([program('onnx_node_tests'), DATA, *arguments], capture_output=True, text=True, timeout=600)


@needs_data
def test_every_case_of_supported_operators_passes():
    result = run_cases()
    counts = {suite: tuple(map(int, (passed, failed, unsupported))) for suite, passed, failed, unsupported in
              re.findall(r'^([\w-]+): (\d+) passed, (\d+) failed, (\d+) not supported', result.stdout, re.MULTILINE)}
    assert result.returncode == 0, result.stdout
    assert all(failed == 0 for _, failed, _ in counts.values()), result.stdout
    assert sum(counts['node']) == 932 and counts['node'][0] >= 800
    assert sum(counts['pytorch-converted']) == counts['pytorch-converted'][0] == 82
    assert counts['simple'][0] >= 20


def test_what_is_known_of_operators_holds():
    """In the cases of the package onnx, which is newer than Debian's."""
    cases = pathlib.Path(onnx.__file__).parent / 'backend' / 'test' / 'data'
    result = subprocess.run([program('onnx_node_tests'), cases, '--facts'], capture_output=True, text=True, timeout=600)
    assert result.returncode == 0, result.stdout
    held, = re.findall(r'(\d+) operators held, 0 wrong', result.stdout)
    assert int(held) >= 178, result.stdout


@needs_data
def test_table_is_current():
    assert run_cases('--table').stdout == TABLE.read_text(), \
        f'write it again: onnx_node_tests {DATA} --table > {TABLE.relative_to(ROOT)}'


def make_model(path):
    """Two free dimensions, integer inputs and operators that no plan has."""
    float_type, int_type = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64
    random = numpy.random.default_rng(1)
    table = onnx.numpy_helper.from_array(random.normal(size=(20, 8)).astype(numpy.float32), 'table')
    nodes = [onnx.helper.make_node('Gather', ['table', 'ids'], ['embedded']),
             onnx.helper.make_node('Erf', ['embedded'], ['erf']),
             onnx.helper.make_node('Transpose', ['erf'], ['turned'], perm=[0, 2, 1]),
             onnx.helper.make_node('MatMul', ['erf', 'turned'], ['scores']),
             onnx.helper.make_node('Softmax', ['scores'], ['y'], axis=-1)]
    graph = onnx.helper.make_graph(
        nodes, 'attention', [onnx.helper.make_tensor_value_info('ids', int_type, ['N', 'L'])],
        [onnx.helper.make_tensor_value_info('y', float_type, ['N', 'L', 'L'])], [table])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid('', 13)], ir_version=8)
    onnx.save(model, path)
    return path


def test_pack_runs_and_inspects_what_no_plan_takes(tmp_path):
    model = make_model(tmp_path / 'model.onnx')
    ids = numpy.array([[1, 2, 3, 19], [0, 0, 5, 6]])
    numpy.save(tmp_path / 'ids.npy', ids)
    tool = program('swizzle-pack')
    run = subprocess.run([tool, 'run', model, '--input', f'ids={tmp_path}/ids.npy', f'--output-dir={tmp_path}/out'],
                         capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr
    assert 'all 5 nodes run on the interpreter' in run.stderr
    session = onnxruntime.InferenceSession(str(model), providers=['CPUExecutionProvider'])
    expected, = session.run(None, {'ids': ids})
    numpy.testing.assert_allclose(numpy.load(tmp_path / 'out' / 'y.npy'), expected, rtol=2e-4, atol=1e-6)

    inspect = subprocess.run([tool, 'inspect', model, '-o', 'json'], capture_output=True, text=True, timeout=300)
    assert inspect.returncode == 0, inspect.stderr
    report = json.loads(inspect.stdout)
    assert report['fallback'] and report['fallback_reason']
    assert [node['op'] for node in report['fallback_nodes']] == ['Gather', 'Erf', 'Transpose', 'MatMul', 'Softmax']


def infer(client, model, name, array, output):
    tensor = triton.InferInput(name, array.shape, triton_utils.np_to_triton_dtype(array.dtype))
    tensor.set_data_from_numpy(array)
    return client.infer(model, [tensor]).as_numpy(output)


def test_server_serves_what_no_plan_takes(repository, start, tmp_path):
    repository.file('attention', 'model.onnx', make_model(tmp_path / 'model.onnx'))
    server = start(repository)
    client = triton.InferenceServerClient(server.grpc)
    metadata = json.loads(subprocess.run(
        [program('swizzle'), f'--address={server.grpc}', 'metadata', 'attention', '-o', 'json'], capture_output=True,
        text=True, timeout=60, check=True).stdout)
    assert metadata['properties']['swizzle_fallback'] == 'all'
    assert 'Erf:1' in metadata['properties']['swizzle_fallback_nodes']
    assert [int(size) for size in metadata['inputs'][0]['shape']] == [-1, -1]
    assert 'interpreter' in server.log() and 'Erf:1' in server.log()
    session = onnxruntime.InferenceSession(str(tmp_path / 'model.onnx'), providers=['CPUExecutionProvider'])
    for shape in ((1, 1), (3, 5), (2, 17)):
        ids = numpy.random.default_rng(2).integers(0, 20, shape)
        expected, = session.run(None, {'ids': ids})
        numpy.testing.assert_allclose(infer(client, 'attention', 'ids', ids, 'y'), expected, rtol=2e-4, atol=1e-6)
    with pytest.raises(triton_utils.InferenceServerException, match='index 20 is not one of 20'):
        infer(client, 'attention', 'ids', numpy.array([[20]]), 'y')


def test_server_forms_batches_where_rows_are_independent(repository, start, tmp_path):
    tensor = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph([onnx.helper.make_node('Elu', ['x'], ['e']),
                                    onnx.helper.make_node('LogSoftmax', ['e'], ['y'])], 'rows',
                                   [tensor('x', onnx.TensorProto.FLOAT, ['N', 4])],
                                   [tensor('y', onnx.TensorProto.FLOAT, ['N', 4])])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid('', 13)], ir_version=8)
    onnx.save(model, tmp_path / 'model.onnx')
    repository.file('rows', 'model.onnx', tmp_path / 'model.onnx')
    repository.config('rows', 'dynamic_batching { max_queue_delay_microseconds: 50000 }')
    server = start(repository)
    client = triton.InferenceServerClient(server.grpc)
    assert client.get_model_config('rows', as_json=True)['config']['max_batch_size'] == 64
    session = onnxruntime.InferenceSession(str(tmp_path / 'model.onnx'), providers=['CPUExecutionProvider'])
    random = numpy.random.default_rng(3)
    arrays = [random.normal(size=(rows, 4)).astype(numpy.float32) for rows in (1, 2, 3, 4, 5, 6)]
    with concurrent.futures.ThreadPoolExecutor(len(arrays)) as threads:
        results = list(threads.map(lambda array: infer(client, 'rows', 'x', array, 'y'), arrays))
    for array, result in zip(arrays, results):
        numpy.testing.assert_allclose(result, session.run(None, {'x': array})[0], rtol=2e-4, atol=1e-6)
    statistics = client.get_inference_statistics('rows', as_json=True)['model_stats'][0]
    assert int(statistics['inference_count']) == 21
    assert int(statistics['execution_count']) < len(arrays)
