"""Writes what the fuzz targets start from: small models and configurations, right and wrong.

    make_seeds.py PACKED_SEEDS DIRECTORY    fills a folder of DIRECTORY for each target; PACKED_SEEDS is the program of
                                            that name
"""

import json
import pathlib
import subprocess
import sys

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper
from tritonclient.grpc import service_pb2

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS / 'integration'))
import make_models  # noqa: E402

MAX_BYTES = 32 << 10  # of a model: in larger ones, nearly every mutation only changes a weight
MAX_NODE_BYTES = 2 << 10

CONFIGS = {
    'json': '{"name": "model", "backend": "identity", "max_batch_size": 2, "input": [{"name": "X", "data_type": '
            '"TYPE_FP32", "dims": ["4"]}], "output": [{"name": "Y", "data_type": "TYPE_FP32", "dims": ["4"]}], '
            '"parameters": {"execute_delay_ms": {"string_value": "1"}}}',
    'identity': '''
        name: "model" backend: "identity" max_batch_size: 8
        input [ { name: "INPUT0" data_type: TYPE_FP32 dims: [ 16 ] } ]
        output [ { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ 16 ] } ]
        parameters { key: "execute_delay_ms" value { string_value: "5" } }
        dynamic_batching { }
        ''',
    'file': '''
        platform: "onnxruntime_onnx" max_batch_size: 4
        input { name: "image" data_type: TYPE_FP32 dims: [ 1, 28, 28 ] }
        output { name: "logits" data_type: TYPE_FP32 dims: [ -1 ] }
        instance_group [ { count: 2 kind: KIND_CPU } ]
        ''',
    'batching': '''
        # Batches of up to eight.
        dynamic_batching {
          preferred_batch_size: [ 4, 8 ] max_queue_delay_microseconds: 100
          default_queue_policy {
            default_timeout_microseconds: 1000000 allow_timeout_override: true max_queue_size: 64
          }
        }
        ''',
    'priorities': '''
        dynamic_batching {
          priority_levels: 3 default_priority_level: 2 default_queue_policy { timeout_action: DELAY }
          priority_queue_policy { key: 3 value { max_queue_size: 7 default_timeout_microseconds: 5000 } }
        }
        model_warmup { name: "w" batch_size: 4 inputs { key: "image" value { data_type: TYPE_FP32 zero_data: true } } }
        ''',
    'unsupported': 'sequence_batching { } optimization { cuda { graphs: true } } version_policy { all { } }',
    'accepted': 'input { name: "x" data_type: TYPE_FP32 dims: [ -1, 8 ] reshape { shape: [ 2, -1, 4 ] } } optimization { '
                'cuda { graphs: true } } default_model_filename: "a.onnx" parameters { key: "session.a" value { } }',
    'malformed': 'max_batch_size: 99999999999999999999 input [ { name: "a\\377" ',
}


# A byte that says what they are: a file of tokens, or a call's name, a line feed, and its header.
AUTHORIZATIONS = {
    'tokens': b'\0# of all\nall Nq8c0vJm5sWlYx2R\ninfer,metadata models=bert,tiny hP3kEw7uZt1oGd9A\n',
    'infer': b'\1/inference.GRPCInferenceService/ModelInfer\nBearer Nq8c0vJm5sWlYx2R',
    'load': b'\1/inference.GRPCInferenceService/RepositoryModelLoad\nbearer hP3kEw7uZt1oGd9A',
    'live': b'\1/livez\n', 'metrics': b'\1/metrics\nBasic Nq8c0vJm5sWlYx2R',
}


def small_graph(initializers=(), sparse_initializers=()):
    node = helper.make_node('Gemm', ['x', 'w'], ['y'])
    return helper.make_graph([node], 'seed', [helper.make_tensor_value_info('x', TensorProto.FLOAT, ['n', 4])],
                             [helper.make_tensor_value_info('y', TensorProto.FLOAT, None)], list(initializers),
                             sparse_initializer=list(sparse_initializers))


def sparse_model(by_axis):
    values = numpy_helper.from_array(numpy.array([1, 2, 3], numpy.float32), 'w')
    indices = [[0, 1], [2, 2], [3, 0]] if by_axis else [1, 8, 9]
    indices = numpy_helper.from_array(numpy.array(indices, numpy.int64))
    return small_graph(sparse_initializers=[helper.make_sparse_tensor(values, indices, [4, 3])])


def external_model():
    """Of the file that onnx_fuzz finds beside every model: data, of 64 bytes."""
    weight = numpy_helper.from_array(numpy.zeros((4, 3), numpy.float32), 'w')
    onnx.external_data_helper.set_external_data(weight, 'data', 8, 48, checksum='0')
    weight.ClearField('raw_data')
    return small_graph([weight])


def write_models(directory):
    for name in make_models.MODELS:
        for opset in make_models.OPSETS:
            content = make_models.build(name, opset).SerializeToString()
            if len(content) <= MAX_BYTES:
                (directory / f'{name}_opset{opset}').write_bytes(content)
    for name, graph in (('sparse_linear', sparse_model(False)), ('sparse_by_axis', sparse_model(True)),
                        ('external', external_model())):
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17)], ir_version=8)
        (directory / name).write_bytes(model.SerializeToString())


def write_node_models(directory):
    """A model of each of ONNX's own tests of operators, which are small: what the interpreter runs, and more."""
    tests = pathlib.Path(onnx.__file__).parent / 'backend' / 'test' / 'data' / 'node'
    for model in sorted(tests.glob('*/model.onnx')):
        content = model.read_bytes()
        if len(content) <= MAX_NODE_BYTES:
            (directory / model.parent.name).write_bytes(content)


def drawn(*shape):
    return numpy.random.default_rng(len(shape)).standard_normal(shape).astype(numpy.float32) / 4


def node(op, inputs, output, **attributes):
    """Names of inputs stand apart by one space each; two leave one out."""
    return helper.make_node(op, inputs.split(' '), [output], **attributes)


def attention_nodes():
    """Two heads of four channels, of tokens x; behind them their sum."""
    heads = [[node('MatMul', f'x w{name}', f'{name}1'), node('Reshape', f'{name}1 heads', f'{name}2'),
              node('Transpose', f'{name}2', f'{name}3', perm=[0, 2, 3, 1] if name == 'k' else [0, 2, 1, 3])]
             for name in 'qkv']
    return sum(heads, []) + [
        node('MatMul', 'q3 k3', 'scores'), node('Mul', 'scores half', 'scaled'), node('Softmax', 'scaled', 'powers'),
        node('MatMul', 'powers v3', 'sums'), node('Transpose', 'sums', 'tokens', perm=[0, 2, 1, 3]),
        node('Reshape', 'tokens joined', 'y')]


def region_models():
    """(name, nodes, the input's shape, constants) of models of several regions each."""
    yield 'attention', attention_nodes(), ['n', 't', 8], {
        **{f'w{name}': drawn(8, 8) for name in 'qkv'}, 'half': numpy.float32(.5),
        'heads': numpy.array([0, -1, 2, 4]), 'joined': numpy.array([0, -1, 8])}
    yield 'tokens', [
        node('MatMul', 'x w', 'm'), node('ReduceMean', 'm axes', 'mean'), node('Sub', 'm mean', 'c'),
        node('Mul', 'c c', 'cc'), node('ReduceMean', 'cc axes', 'variance'), node('Add', 'variance small', 'v'),
        node('Sqrt', 'v', 'root'), node('Div', 'c root', 'd'), node('Mul', 'd scale', 's'), node('Div', 's two', 'g'),
        node('Erf', 'g', 'e'), node('Add', 'e one', 'f'), node('Mul', 's f', 'p'), node('CumSum', 'p first', 'q'),
        node('MatMul', 'q w', 'y'),
    ], ['n', 8], {'w': drawn(8, 8), 'axes': numpy.array([-1]), 'small': numpy.float32(1e-5), 'scale': drawn(8),
                  'two': numpy.float32(2 ** .5), 'one': numpy.float32(1), 'first': numpy.array(0)}
    yield 'planes', [
        node('Conv', 'x w', 'a', pads=[1, 1, 1, 1]), node('Relu', 'a', 'b'),
        node('MaxPool', 'b', 'c', kernel_shape=[2, 2], strides=[2, 2]),
        node('Resize', 'c  scales', 'd', mode='nearest'), node('Concat', 'd b', 'e', axis=1),
        node('ConvTranspose', 'e u', 'f', strides=[2, 2]), node('CumSum', 'f last', 'g'), node('Conv', 'g w', 'y'),
    ], ['n', 4, 8, 8], {'w': drawn(4, 4, 3, 3), 'u': drawn(8, 4, 2, 2), 'scales': numpy.array([1, 1, 2, 2], 'f4'),
                        'last': numpy.array(3)}
    yield 'gated', [
        node('Conv', 'x w', 'a'), node('GlobalAveragePool', 'a', 'b'), node('Conv', 'b w', 'c'),
        node('HardSigmoid', 'c', 'd'), node('Mul', 'a d', 'e'), node('Split', 'e', 'f', axis=1, num_outputs=1),
        node('Tile', 'f twice', 'g'), node('Flatten', 'g', 'h'), node('Gemm', 'h v', 'y', transB=1),
    ], [1, 4, 2, 2], {'w': drawn(4, 4, 1, 1), 'twice': numpy.array([1, 1, 1, 2]), 'v': drawn(3, 32)}


def write_region_models(directory):
    for name, nodes, shape, constants in region_models():
        graph = helper.make_graph(
            nodes, 'seed', [helper.make_tensor_value_info('x', TensorProto.FLOAT, shape)],
            [helper.make_tensor_value_info('y', TensorProto.FLOAT, None)],
            [numpy_helper.from_array(numpy.asarray(array), constant) for constant, array in constants.items()])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid('', 18)], ir_version=8)
        (directory / name).write_bytes(model.SerializeToString())


def safetensors(header, data=b''):
    return len(header).to_bytes(8, 'little') + header + data


SAFETENSORS = {
    'empty': safetensors(b'{}  '),
    'scalar': safetensors(b'{"__metadata__":{"format":"pt"},'
                          b'"t":{"dtype":"F16","shape":[],"data_offsets":[0,2]}}', b'ab'),
    'no_elements': safetensors(b'{"a":{"dtype":"F64","shape":[0,3],"data_offsets":[4,4]},'
                               b'"b":{"dtype":"BF16","shape":[2],"data_offsets":[0,4]}}', b'abcd'),
    'gap': safetensors(b'{"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}', b'ab'),
    'twice': safetensors(b'{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{}}', b'a'),
}
BITMASK = safetensors(b'{"p.shape":{"dtype":"I64","shape":[2],"data_offsets":[0,16]},'
                      b'"p.row_offsets":{"dtype":"I64","shape":[2],"data_offsets":[16,32]},'
                      b'"p.compressed":{"dtype":"F32","shape":[3],"data_offsets":[32,44]},'
                      b'"p.bitmask":{"dtype":"U8","shape":[2,1],"data_offsets":[44,46]}}',
                      numpy.array([2, 4, 0, 1], '<i8').tobytes() + numpy.array([5, 6, 7], '<f4').tobytes() + b'\2\x09')
TWO_FOUR = safetensors(b'{"p.shape":{"dtype":"I64","shape":[2,1],"data_offsets":[0,16]},'
                       b'"p.compressed":{"dtype":"F16","shape":[1,4],"data_offsets":[16,24]},'
                       b'"p.bitmask":{"dtype":"U8","shape":[1,1],"data_offsets":[24,25]}}',
                       numpy.array([1, 8], '<i8').tobytes() + numpy.ones(4, '<f2').tobytes() + b'\x53')


def write_checkpoints(files, whole):
    """safetensors files, and these behind their configurations."""
    for name, content in SAFETENSORS.items():
        (files / name).write_bytes(content)
    for name, content in (('bitmask', BITMASK), ('two_four', TWO_FOUR)):
        (files / name).write_bytes(content)
        (whole / name).write_bytes(b'{}\0' + content)
    for folder in sorted((TESTS / 'testdata' / 'checkpoints').iterdir()):
        if folder.is_dir():
            content = (folder / 'model.safetensors').read_bytes()
            (files / folder.name).write_bytes(content)
            (whole / folder.name).write_bytes((folder / 'config.json').read_bytes() + b'\0' + content)


def posted(path, body):
    return b'POST /v2/%s HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n%s' % (path.encode(), len(body), body)


HTTP = {
    'metrics': b'GET /metrics HTTP/1.1\r\nHost: localhost:8002\r\nAccept: */*\r\n\r\n',
    'query': b'HEAD /v2/health/ready?verbose=1 HTTP/1.0\r\n\r\n',
    'post': b'POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc',
    'short': b'GET',
    'long': b'GET /' + b'a' * 1100 + b' HTTP/1.1\r\n\r\n',
    'chunks': b'POST /v2/logging HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3;a=b\r\n{"a\r\n4\r\n": 1\r\n1\r\n}'
              b'\r\n0\r\nA: b\r\n\r\n',
    'expects': b'POST /v2/logging HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n{}',
    'several': posted('models/m/versions/1/infer', b'{}') + b'GET /v2 HTTP/1.1\r\nConnection: close\r\n\r\n',
    'load': posted('repository/models/m/load', b'{"parameters": {"config": "{}", "file:1/model.onnx": "QUJD", "n": -1}}'),
    'unload': posted('repository/models/a%20b/unload', b'{"x": [1], "parameters": {"unload_dependents": true}}'),
    'log': posted('logging', b'{"log_info": true, "log_verbose_level": 1, "log_format": "default"}'),
    'trace': posted('trace/setting', b'{"trace_level": ["OFF"], "trace_rate": "7", "trace_count": null}'),
    'region': posted('systemsharedmemory/region/r/register', b'{"key": "/k", "offset": 0, "byte_size": 64}'),
    'device': posted('cudasharedmemory/region/r/register',
                     b'{"raw_handle": {"b64": "QUJD"}, "device_id": 0, "byte_size": 64}'),
}


def infer_requests():
    """Requests that model_infer_fuzz's models take, raw and typed, and some that they don't."""
    raw = service_pb2.ModelInferRequest(model_name='model', id='1')
    raw.inputs.add(name='X', datatype='FP32', shape=[2, 4])
    raw.inputs.add(name='N', datatype='INT64', shape=[2, 3])
    raw.raw_input_contents.extend([bytes(32), bytes(48)])
    raw.outputs.add(name='N')
    raw.parameters['timeout'].int64_param = 1000
    typed = service_pb2.ModelInferRequest(model_name='model')
    typed.inputs.add(name='X', datatype='UINT8', shape=[1, 2, 3]).contents.uint_contents.extend(range(6))
    typed.inputs.add(name='N', datatype='BOOL', shape=[1]).contents.bool_contents.append(True)
    text = service_pb2.ModelInferRequest(model_name='model')
    text.inputs.add(name='X', datatype='BYTES', shape=[2]).contents.bytes_contents.extend([b'a', b''])
    text_raw = service_pb2.ModelInferRequest(model_name='model')
    text_raw.inputs.add(name='X', datatype='BYTES', shape=[1])
    text_raw.raw_input_contents.append(b'\1\0\0\0a')
    half = service_pb2.ModelInferRequest(model_name='model')
    half.inputs.add(name='X', datatype='FP16', shape=[0, 1 << 62])
    half.raw_input_contents.append(b'')
    messages = {'raw': raw, 'typed': typed, 'text': text, 'text_raw': text_raw, 'half': half}
    return {name: message.SerializeToString() for name, message in messages.items()}


def rest_requests():
    """Bodies of requests by HTTP, behind the number of their bytes that are JSON."""
    def body(request, tensors=b''):
        text = request.encode() if isinstance(request, str) else json.dumps(request).encode()
        return len(text).to_bytes(2, 'little') + text + tensors
    value = {'name': 'X', 'datatype': 'FP32', 'shape': [1, 2], 'data': [[1, -2.5e3]]}
    binary = {'name': 'N', 'datatype': 'INT64', 'shape': [1], 'parameters': {'binary_data_size': 8}}
    words = {'data': ['a', '\u00e4'], 'shape': [2], 'datatype': 'BYTES', 'name': 'S'}
    return {
        'json': body({'id': '7', 'inputs': [value], 'outputs': [{'name': 'Y', 'parameters': {'classification': 2}}]}),
        'mixed': body({'inputs': [value, binary, words], 'parameters': {'binary_data_output': True, 'timeout': 9}},
                      bytes(8)),
        'all_types': body({'inputs': [{'datatype': datatype, 'shape': [1], 'data': [1]} for datatype in (
            'BOOL', 'INT8', 'UINT8', 'INT16', 'UINT16', 'INT32', 'UINT32', 'UINT64', 'FP16', 'BF16', 'FP64')]}),
        'deep': body('{"x": ' + '[' * 70 + ']' * 70 + '}'),
        'shared': body({'inputs': [{'name': 'X', 'parameters': {'shared_memory_region': 'r'}}], 'more': {'a': [None]}}),
    }


def setting_changes():
    """What settings_fuzz reads: a byte that says what it is, and headers or a message."""
    traces = service_pb2.TraceSettingRequest()
    for name, values in {'trace_level': ['TIMESTAMPS'], 'trace_rate': ['100'], 'trace_count': ['-1'],
                         'log_frequency': ['0'], 'trace_mode': ['opentelemetry'], 'trace_file': []}.items():
        traces.settings[name].value.extend(values)
    log = service_pb2.LogSettingsRequest()
    log.settings['log_info'].bool_param = True
    log.settings['log_verbose_level'].uint32_param = 1
    log.settings['log_format'].string_param = 'ISO8601'
    log.settings['log_file'].string_param = ''
    return {'context': b'\0' + b'00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\nvendor=1',
            'traces': b'\1' + traces.SerializeToString(), 'log': b'\2' + log.SerializeToString()}


def text_requests():
    """What text_request_fuzz reads: a byte that says of which endpoint, and JSON."""
    requests = {
        'openai': (0, {'model': 'm', 'input': ['a', 'b\u00e4'], 'encoding_format': 'base64', 'dimensions': 4}),
        'embed': (1, {'inputs': 'a', 'truncate': False, 'normalize': True, 'prompt_name': 'query'}),
        'similarity': (2, {'inputs': {'source_sentence': 'a', 'sentences': ['b', '']}, 'parameters': {'truncate': True}}),
        'rerank': (3, {'query': 'a', 'texts': ['b', ''], 'raw_scores': True, 'return_text': True}),
        'predict': (4, {'inputs': [['a'], ['b', 'c']], 'truncation_direction': 'Right'}),
        'pair': (4, {'inputs': ['a', 'b']}),
    }
    return {name: bytes([endpoint]) + json.dumps(body).encode() for name, (endpoint, body) in requests.items()}


def shared_memory_calls():
    """What shared_memory_fuzz reads: a byte that says which call it is, one how long it is, and a message or a name."""
    def call(which, content):
        return bytes([which, len(content)]) + content

    def tensor(bytes_, offset):
        request = service_pb2.ModelInferRequest()
        parameters = request.inputs.add().parameters
        parameters['shared_memory_region'].string_param = 'r'
        parameters['shared_memory_byte_size'].int64_param = bytes_
        parameters['shared_memory_offset'].int64_param = offset
        return call(3, request.SerializeToString())

    region = call(0, service_pb2.SystemSharedMemoryRegisterRequest(
        name='r', key='/swizzle-fuzz-a', offset=64, byte_size=1024).SerializeToString())
    away = call(1, service_pb2.SystemSharedMemoryUnregisterRequest(name='r').SerializeToString())
    device = call(5, service_pb2.CudaSharedMemoryRegisterRequest(
        name='r', raw_handle=bytes(range(16)), device_id=0, byte_size=1024).SerializeToString())
    device_away = call(6, service_pb2.CudaSharedMemoryUnregisterRequest(name='r').SerializeToString())
    return {'used': region + tensor(128, 8) + call(2, b'r') + away, 'all': region + call(2, b'') + call(1, b''),
            'on_a_device': device + tensor(128, 8) + tensor(1024, 1) + region + device_away + tensor(8, 0),
            'shrunk': region + call(4, b'\3') + tensor(128, 8) + call(4, b'\x80') + tensor(1024, 0),
            'beyond': region + tensor(1024, 1) + region}


def write_arrays(directory):
    arrays = {'layer/weight': numpy.arange(6, dtype='<f4').reshape(2, 3), 'whole': numpy.array([1, -2], '<i8'),
              'none': numpy.zeros((0, 3), '<f2'), 'scalar': numpy.array(True)}
    for name, array in arrays.items():
        numpy.save(directory / name.replace('/', '_'), array)
    numpy.savez(directory / 'whole_archive', **arrays)
    numpy.savez(directory / 'one', a=numpy.ones(3, '|u1'))
    numpy.savez(directory / 'by_columns', a=numpy.asfortranarray(numpy.ones((2, 3), '<f8')))
    numpy.savez_compressed(directory / 'compressed', a=numpy.zeros(9, '<u2'))
    numpy.lib.format.write_array((directory / 'version_2').open('wb'), numpy.ones(2, '<u4'), (2, 0))


def tokenizer_files():
    """As tokenizer_fuzz has them: what the file is, how long the text, the text, the file."""
    def seed(kind, text, file):
        return bytes([kind]) + len(text.encode()).to_bytes(2, 'little') + text.encode() + file

    words = {'type': 'WordLevel', 'vocab': {'a': 0, 'b': 1, '<unk>': 2}, 'unk_token': '<unk>'}
    pieces = {'type': 'WordPiece', 'vocab': {'[UNK]': 0, 'a': 1, '##b': 2, '中': 3}, 'unk_token': '[UNK]'}
    pairs = {'type': 'BPE', 'vocab': {'Ġ': 0, 'a': 1, 'Ġa': 2, '<0x62>': 3, '<unk>': 4}, 'merges': ['Ġ a'],
             'unk_token': '<unk>', 'byte_fallback': True, 'fuse_unk': True}
    scored = {'type': 'Unigram', 'unk_id': 0, 'vocab': [['<unk>', 0.0], ['▁', -2.5], ['a', -1.5], ['▁a', -1.0]]}
    normalizers = [{'type': name} for name in ('NFC', 'NFKD', 'Lowercase', 'StripAccents', 'Nmt', 'BertNormalizer')] + [
        {'type': 'Replace', 'pattern': {'Regex': ' {2,}'}, 'content': ' '}, {'type': 'Prepend', 'prepend': '▁'},
        {'type': 'Strip', 'strip_left': True, 'strip_right': True},
        {'type': 'Precompiled', 'precompiled_charsmap': 'CAAAAAAAAAAAAAAAYQA='}]
    splits = [{'type': name} for name in ('BertPreTokenizer', 'Whitespace', 'WhitespaceSplit', 'Digits')] + [
        {'type': 'Split', 'pattern': {'Regex': '[^\\s]+|\\s+(?!\\S)'}, 'behavior': 'MergedWithNext',
         'invert': True},
        {'type': 'Punctuation', 'behavior': 'Contiguous'}, {'type': 'CharDelimiterSplit', 'delimiter': 'b'}]
    template = {'type': 'TemplateProcessing', 'single': [{'Sequence': {'id': 'A', 'type_id': 0}}],
                'pair': [{'Sequence': {'id': 'A', 'type_id': 0}}, {'SpecialToken': {'id': 'a', 'type_id': 1}},
                         {'Sequence': {'id': 'B', 'type_id': 1}}], 'special_tokens': {'a': {'ids': [0]}}}
    added = [{'id': 5, 'content': '[X]', 'lstrip': True, 'rstrip': True, 'special': True},
             {'id': 6, 'content': 'A b', 'single_word': True, 'normalized': True}]
    files = {
        'words': {'model': words, 'pre_tokenizer': {'type': 'Sequence', 'pretokenizers': splits},
                  'post_processor': template},
        'pieces': {'model': pieces, 'normalizer': {'type': 'Sequence', 'normalizers': normalizers},
                   'added_tokens': added, 'pre_tokenizer': splits[0],
                   'truncation': {'max_length': 3, 'strategy': 'OnlyFirst'},
                   'post_processor': {'type': 'BertProcessing', 'cls': ['a', 1], 'sep': ['[UNK]', 0]}},
        'pairs': {'model': pairs, 'pre_tokenizer': {'type': 'ByteLevel', 'add_prefix_space': True},
                  'post_processor': {'type': 'RobertaProcessing', 'cls': ['a', 1], 'sep': ['a', 1]}},
        'scored': {'model': scored, 'pre_tokenizer': {'type': 'Metaspace', 'prepend_scheme': 'first'}}}
    text = "a  b [X] A b don't é中😀 ａ1½\n "
    seeds = {name: seed(0, text, json.dumps(file).encode()) for name, file in files.items()}
    kinds = ((b'<unk>', b'\2'), (b'<s>', b'\3'), (b'</s>', b'\3'), ('▁a'.encode(), b'\1'))
    model = b''.join(b'\n' + bytes([len(piece) + 9]) + b'\n' + bytes([len(piece)]) + piece + b'\x15\0\0\x80\xbf\x18'
                     + kind for piece, kind in kinds)
    return seeds | {'bert': seed(1, text, b'[UNK]\n[CLS]\n[SEP]\na\n##b\n'), 'fairseq': seed(3, text, model),
                    'sentencepiece': seed(7, text, model)}


def main():
    packed_seeds, root = sys.argv[1], pathlib.Path(sys.argv[2])
    directories = {name: root / name for name in ('onnx_fuzz', 'interpreter_fuzz', 'regions_fuzz', 'packed_fuzz',
                                                  'config_fuzz', 'safetensors_fuzz', 'compressed_tensors_fuzz',
                                                  'http_fuzz', 'model_infer_fuzz', 'npz_fuzz', 'rest_infer_fuzz',
                                                  'settings_fuzz', 'shared_memory_fuzz', 'authorization_fuzz',
                                                  'tokenizer_fuzz', 'text_request_fuzz')}
    for directory in directories.values():
        directory.mkdir(parents=True, exist_ok=True)
    write_models(directories['onnx_fuzz'])
    write_node_models(directories['interpreter_fuzz'])
    write_models(directories['regions_fuzz'])
    write_region_models(directories['regions_fuzz'])
    write_arrays(directories['npz_fuzz'])
    write_checkpoints(directories['safetensors_fuzz'], directories['compressed_tensors_fuzz'])
    subprocess.run([packed_seeds, directories['packed_fuzz']], check=True)
    for name, text in CONFIGS.items():
        (directories['config_fuzz'] / name).write_text(text)
    for target, seeds in (('http_fuzz', HTTP), ('rest_infer_fuzz', rest_requests()), ('model_infer_fuzz', infer_requests()),
                          ('settings_fuzz', setting_changes()), ('shared_memory_fuzz', shared_memory_calls()),
                          ('authorization_fuzz', AUTHORIZATIONS),
                          ('tokenizer_fuzz', tokenizer_files()), ('text_request_fuzz', text_requests())):
        for name, content in seeds.items():
            (directories[target] / name).write_bytes(content)


if __name__ == '__main__':
    main()
