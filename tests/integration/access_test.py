"""Who may do what: every RPC and every path of HTTP, with no, a wrong and each class's token."""

import json
import re
import subprocess
import urllib.error
import urllib.request

import grpc
import numpy
import pytest
import tritonclient.grpc as triton
from google.protobuf import descriptor_pb2
from tritonclient.grpc import service_pb2
from tritonclient.utils import InferenceServerException

from certificates import Authority
from conftest import ROOT, START_SECONDS, lasting_server, program, wait_until

CLASSES = ('infer', 'metadata', 'control', 'metrics', 'reflection')
TOKENS = {name: f'token-of-class-{name}' for name in CLASSES}
LIMITED, OTHER, BOTH = 'token-of-identity-alone', 'token-of-another-model', 'token-of-metadata-and-control'

# The class of each RPC. One that is missing here, or has another class, is not open by mistake.
EXPECTED = {
    'inference.GRPCInferenceService': {
        'probe': ['ServerLive', 'ServerReady'],
        'infer': ['ModelInfer', 'ModelStreamInfer'],
        'metadata': ['ModelReady', 'ServerMetadata', 'ModelMetadata', 'ModelConfig', 'ModelStatistics',
                     'RepositoryIndex', 'TraceSetting', 'LogSettings'],
        'control': ['RepositoryModelLoad', 'RepositoryModelUnload', 'SystemSharedMemoryStatus',
                    'SystemSharedMemoryRegister', 'SystemSharedMemoryUnregister', 'CudaSharedMemoryStatus',
                    'CudaSharedMemoryRegister', 'CudaSharedMemoryUnregister'],
    },
    'grpc.health.v1.Health': {'probe': ['Check', 'Watch']},
    'grpc.reflection.v1.ServerReflection': {'reflection': ['ServerReflectionInfo']},
    'grpc.reflection.v1alpha.ServerReflection': {'reflection': ['ServerReflectionInfo']},
}
CONTROL_LISTENER = {'RepositoryModelLoad', 'RepositoryModelUnload'}  # served there alone
# Over HTTP: {model} stands for a name, with a version or without, {region} for that of shared memory; a body, where
# there is one, for POST. Behind the class is the status of who may ask; settings are changed by who may read them, too.
REST_CALLS = {
    **{f'{above}/{path}': [(b'{}', 'infer', status)] for above in ('', '/v2/models/{model}') for path, status in (
        ('decode', 400), ('embed', 400), ('embed_all', 400), ('embed_sparse', 424), ('predict', 400), ('rerank', 400),
        ('similarity', 400), ('tokenize', 400))},
    '/health': [(None, 'probe', 200)],
    '/info': [(None, 'metadata', 404)],  # of a model of texts, which is not there
    '/v1/embeddings': [(b'{}', 'infer', 400)],
    '/v2': [(None, 'metadata', 200)],
    '/v2/health/live': [(None, 'probe', 200)],
    '/v2/health/ready': [(None, 'probe', 200)],
    '/v2/logging': [(None, 'metadata', 200), (b'{}', 'metadata', 200), (b'{"log_verbose_level": 0}', 'both', 200)],
    '/v2/models/stats': [(None, 'metadata', 200)],
    '/v2/models/{model}': [(None, 'metadata', 200)],
    '/v2/models/{model}/config': [(None, 'metadata', 200)],
    '/v2/models/{model}/info': [(None, 'metadata', 400)],  # it takes no texts
    '/v2/models/{model}/infer': [(b'{}', 'infer', 400)],
    '/v2/models/{model}/ready': [(None, 'metadata', 200)],
    '/v2/models/{model}/stats': [(None, 'metadata', 200)],
    '/v2/models/{model}/trace/setting': [(None, 'metadata', 200), (b'{"trace_rate": "7"}', 'both', 400)],
    '/v2/repository/index': [(b'{}', 'metadata', 200)],
    '/v2/repository/models/{model}/unload': [(b'{}', 'control', 200)],
    '/v2/repository/models/{model}/load': [(b'{}', 'control', 200)],
    '/v2/trace/setting': [(None, 'metadata', 200), (b'{"trace_rate": "7"}', 'both', 400)],
    **{f'/v2/{kind}sharedmemory/{path}': [(body, 'control', 501)] for kind in ('system', 'cuda') for path, body in (
        ('status', None), ('unregister', b''), ('region/{region}/status', None), ('region/{region}/unregister', b''),
        ('region/{region}/register',
         b'{"key": "k", "raw_handle": {"b64": ""}, "device_id": 0, "byte_size": 1}'))}}
ORDERS = {'/v2/repository/models/{model}/load', '/v2/repository/models/{model}/unload'}  # at one address alone
PATHS = {'/': 'probe', '/status': 'metrics', '/metrics': 'metrics', '/livez': 'probe', '/readyz': 'probe',
         '/startupz': 'probe'}


@pytest.fixture(scope='module')
def methods(tmp_path_factory):
    """(class, path, whether clients and the server stream) of every RPC in proto/."""
    file = tmp_path_factory.mktemp('proto') / 'services.pb'
    sources = [source.name for source in (ROOT / 'proto').glob('*.proto') if 'service ' in source.read_text()]
    subprocess.run(['protoc', f'-I{ROOT}', f'--descriptor_set_out={file}', '--include_imports',
                    *(f'proto/{name}' for name in sources)], check=True, cwd=ROOT)
    found = []
    for source in descriptor_pb2.FileDescriptorSet.FromString(file.read_bytes()).file:
        for service in source.service:
            name = f'{source.package}.{service.name}'
            of_class = {method: kind for kind, names in EXPECTED[name].items() for method in names}
            found += [(of_class[method.name], f'/{name}/{method.name}', method.client_streaming,
                       method.server_streaming) for method in service.method]
    assert len(found) >= 22
    return found


@pytest.fixture(scope='module')
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp('files')
    (folder / 'tokens').write_text(
        '# who may do what\n' + ''.join(f'{name} {token}\n' for name, token in TOKENS.items()) +
        f'\ninfer,metadata  models=identity,text  {LIMITED}\ninfer,metadata models=slow {OTHER}\n'
        f'metadata,control {BOTH}\n')
    return folder


@pytest.fixture(scope='module')
def server(tmp_path_factory, files):
    with lasting_server(tmp_path_factory.mktemp('access'), f'--auth-tokens={files / "tokens"}',
                        '--metrics-auth', '--http-address=127.0.0.1:0', '--http-control-address=127.0.0.1:0',
                        '--model-control=explicit', '--load-model=*') as server:
        yield server


def bearing(token):
    return [] if token is None else [('authorization', f'Bearer {token}')]


def call(channel, method, token, request=b''):
    """(code, details) of one call, of which nothing but the first answer is read."""
    _, path, asks_many, answers_many = method
    kind = {(False, False): channel.unary_unary, (False, True): channel.unary_stream,
            (True, True): channel.stream_stream}[asks_many, answers_many]
    try:
        answer = kind(path)(iter([request]) if asks_many else request, metadata=bearing(token), timeout=30)
        if answers_many:
            next(iter(answer), None)
            answer.cancel()
    except grpc.RpcError as error:
        return error.code(), error.details()
    return grpc.StatusCode.OK, ''


REFUSED = {grpc.StatusCode.UNAUTHENTICATED: 'this call needs a valid token: authorization: Bearer TOKEN',
           grpc.StatusCode.PERMISSION_DENIED: 'this token does not allow this call'}


def check_every_call(channel, methods):
    for method in methods:
        kind, path, *_ = method
        for token in (None, 'token-that-nobody-has', *TOKENS.values()):
            code, details = call(channel, method, token)
            if path.rpartition('/')[2] in CONTROL_LISTENER and token == TOKENS[kind]:
                assert code == grpc.StatusCode.PERMISSION_DENIED and '--control-address' in details
            elif kind == 'probe' or token == TOKENS[kind]:
                assert code not in REFUSED, (path, token, details)
            else:
                wanted = grpc.StatusCode.PERMISSION_DENIED if token in TOKENS.values() else \
                    grpc.StatusCode.UNAUTHENTICATED
                assert (code, details) == (wanted, REFUSED[wanted]), (path, token)


def test_every_rpc_with_every_token(server, methods):
    with grpc.insecure_channel(server.grpc) as channel:
        check_every_call(channel, methods)
    text = server_metrics(server)
    for reason in ('unauthenticated', 'permission_denied'):
        assert int(re.search(f'swizzle_refused_calls_total{{reason="{reason}"}} ([0-9]+)', text)[1]) > 30


def test_every_rpc_over_tls(tmp_path_factory, files, methods):
    folder = tmp_path_factory.mktemp('tls')
    authority = Authority(folder)
    pair = authority.issue('server')
    with lasting_server(folder, f'--auth-tokens={files / "tokens"}', f'--tls-cert={pair.certificate}',
                        f'--tls-key={pair.key}') as server:
        credentials = grpc.ssl_channel_credentials(authority.pem())
        with grpc.secure_channel(server.grpc, credentials) as channel:
            check_every_call(channel, methods)
        assert 'plain text' not in server.log()


@pytest.mark.parametrize('shown', ['', 'Bearer', 'Bearer ', 'Basic dG9rZW4=', f'Bearer  {TOKENS["metadata"]}',
                                   f'Bearer {TOKENS["metadata"]} ', f'Bearer {TOKENS["metadata"][:-1]}',
                                   f'Bearer {TOKENS["metadata"]}x', TOKENS['metadata']])
def test_what_is_no_token(server, shown):
    with grpc.insecure_channel(server.grpc) as channel:
        ask = channel.unary_unary('/inference.GRPCInferenceService/ServerMetadata')
        with pytest.raises(grpc.RpcError) as raised:
            ask(b'', metadata=[('authorization', shown)], timeout=30)
        assert raised.value.code() == grpc.StatusCode.UNAUTHENTICATED
        with pytest.raises(grpc.RpcError) as raised:
            ask(b'', metadata=bearing(TOKENS['metadata']) * 2, timeout=30)
        assert raised.value.code() == grpc.StatusCode.UNAUTHENTICATED
        ask(b'', metadata=[('authorization', f'bEaReR {TOKENS["metadata"]}')], timeout=30)


# ---- HTTP ----

def http(server, path, token=None, root=None, body=None):
    request = urllib.request.Request((root or server.metrics) + path, body)
    if token is not None:
        request.add_header('Authorization', f'Bearer {token}')
    try:
        with urllib.request.urlopen(request, timeout=10) as response:
            return response.status, response.read().decode(), response.headers
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode(), error.headers


def server_metrics(server):
    status, text, _ = http(server, '/metrics', TOKENS['metrics'])
    assert status == 200
    return text


def test_every_path_with_every_token(server):
    known = http(server, '/nowhere', None)[1]
    assert set(re.findall(r'/\w*', known)) == set(PATHS), 'a path without a class'
    for path, kind in PATHS.items():
        for token in (None, 'token-that-nobody-has', *TOKENS.values()):
            status, body, headers = http(server, path, token)
            if kind == 'probe' or token == TOKENS[kind]:
                assert status == 200, (path, token)
            else:
                assert status == (403 if token in TOKENS.values() else 401), (path, token)
                assert 'swizzle_' not in body
                assert (headers['WWW-Authenticate'] == 'Bearer') == (status == 401)
    assert http(server, '/nothing', TOKENS['metrics'])[0] == 404


def check_every_path(server, address, elsewhere):
    """`elsewhere`: the paths that this address does not serve, and what who may ask is told of that."""
    for path, calls in REST_CALLS.items():
        for body, kind, wanted in calls:
            may = {TOKENS.get(kind), BOTH if kind in ('metadata', 'control', 'both') else None} - {None}
            versions = re.fullmatch(r'/v2/models/{model}(/(?:config|infer|ready|stats))?', path) is not None
            for version in ('', '/versions/1') if versions else ('',):
                asked = path.format(model='identity' + version, region='r')
                for token in (None, 'token-that-nobody-has', BOTH, *TOKENS.values()):
                    status, text, headers = http(server, asked, token, address, body)
                    if token in may or kind == 'probe':
                        code, words = (403, elsewhere[path]) if path in elsewhere else (wanted, '')
                        assert status == code and words in text, (asked, token, text)
                        continue
                    known = token in TOKENS.values() or token == BOTH
                    code = grpc.StatusCode.PERMISSION_DENIED if known else grpc.StatusCode.UNAUTHENTICATED
                    assert (status, json.loads(text)['error']) == (403 if known else 401, REFUSED[code]), (asked, token)
                    assert (headers['WWW-Authenticate'] == 'Bearer') == (status == 401)
    assert http(server, '/metrics', TOKENS['metrics'], address)[0] == 404


def test_every_path_of_the_protocol_with_every_token(server):
    table = (ROOT / 'server/security/access_class.cc').read_text()
    rules = set(re.findall(r'"(/(?:v[12]|decode|embed|health|info|predict|rerank|similarity|tokenize)[^"]*)", k', table))
    assert rules == set(REST_CALLS), 'a path without a class, or of one that this test does not know'
    check_every_path(server, f'http://{server.rest}', dict.fromkeys(ORDERS, '--http-control-address'))
    assert http(server, '/v2', TOKENS['metadata'])[0] == 404


def test_every_path_of_the_protocol_for_operators(server):
    inferences = [path for path, calls in REST_CALLS.items() if calls[0][1] == 'infer']
    assert len(inferences) == 18
    check_every_path(server, f'http://{server.http_control}',
                     dict.fromkeys(inferences, 'this address is for operators'))


def test_models_that_a_token_may_not_use_over_http(server):
    def ask(path, token, body=None):
        return http(server, path, token, f'http://{server.rest}', body)
    request = json.dumps({'inputs': [{'name': 'INPUT0', 'datatype': 'FP32', 'shape': [1, 16],
                                      'data': [0] * 16}]}).encode()
    for model in ('identity', 'nobody'):
        for path, body in (('', None), ('/config', None), ('/ready', None), ('/stats', None), ('/infer', request)):
            status, text, _ = ask(f'/v2/models/{model}{path}', OTHER, body)
            assert (status, json.loads(text)['error']) == (403, 'this token does not allow this model')
    assert ask('/v2/models/identity/infer', LIMITED, request)[0] == 200
    assert {entry['name'] for entry in json.loads(ask('/v2/repository/index', LIMITED, b'')[1])} == {'identity', 'text'}
    assert {its['name'] for its in json.loads(ask('/v2/models/stats', LIMITED)[1])['model_stats']} == {
        'identity', 'text'}


def test_metrics_are_open_unless_asked_otherwise(repository, start, files):
    server = start(repository.identity(), f'--auth-tokens={files / "tokens"}')
    assert server.http('/metrics')[0] == 200
    assert 'plain text' in server.log(), 'tokens without TLS are warned of'


def test_readiness_names_no_model_to_who_shows_no_token(repository, start, files):
    repository.identity().file('broken', 'model.onnx', b'nothing')
    server = start(repository, f'--auth-tokens={files / "tokens"}', '--metrics-auth')
    status, body, _ = http(server, '/readyz')
    assert status == 503 and 'broken' not in body
    status, body, _ = http(server, '/readyz', TOKENS['metrics'])
    assert status == 503 and 'broken' in body


# ---- Tokens of some models ----

def client_of(server):
    return triton.InferenceServerClient(server.grpc)


def inputs():
    tensor = triton.InferInput('INPUT0', [1, 16], 'FP32')
    tensor.set_data_from_numpy(numpy.zeros((1, 16), numpy.float32))
    return [tensor]


@pytest.mark.parametrize('ask', [
    lambda client, model, headers: client.infer(model, inputs(), headers=headers),
    lambda client, model, headers: client.is_model_ready(model, headers=headers),
    lambda client, model, headers: client.get_model_metadata(model, headers=headers),
    lambda client, model, headers: client.get_model_config(model, headers=headers),
    lambda client, model, headers: client.get_inference_statistics(model, headers=headers),
    lambda client, model, headers: client.get_trace_settings(model, headers=headers),
], ids=['infer', 'ready', 'metadata', 'config', 'statistics', 'traces'])
def test_a_token_of_one_model_says_nothing_of_others(server, ask):
    headers = {'authorization': f'Bearer {LIMITED}'}
    with client_of(server) as client:
        ask(client, 'identity', headers)
        said = []
        for model in ('slow', 'nobody'):
            with pytest.raises(InferenceServerException) as raised:
                ask(client, model, headers)
            assert raised.value.status() == 'StatusCode.PERMISSION_DENIED'
            said.append(raised.value.message())
        assert said[0] == said[1] == 'this token does not allow this model'
        everything = {'authorization': f'Bearer {OTHER}'}
        ask(client, 'slow', everything)


def test_lists_hold_the_models_of_the_token(server):
    with client_of(server) as client:
        def models(token):
            headers = {'authorization': f'Bearer {token}'}
            index = client.get_model_repository_index(headers=headers).models
            statistics = client.get_inference_statistics(headers=headers).model_stats
            return {model.name for model in index}, {model.name for model in statistics}

        def denied():
            count = r'swizzle_refused_calls_total{reason="permission_denied"} (\d+)'
            return re.search(count, server_metrics(server))[1]

        before = denied()
        assert models(LIMITED) == ({'identity', 'text'},) * 2
        assert models(OTHER) == ({'slow'},) * 2
        assert len(models(TOKENS['metadata'])[0]) == 5
        assert denied() == before, 'what a list leaves out is no refusal'


def test_a_model_that_is_named_second_is_asked_about_too(server):
    """Of a field that comes twice the last counts."""
    request = service_pb2.ModelInferRequest(model_name='slow')
    request.inputs.add(name='INPUT0', datatype='FP32', shape=[1, 16])
    request.raw_input_contents.append(bytes(64))
    first = service_pb2.ModelInferRequest(model_name='identity').SerializeToString()
    with grpc.insecure_channel(server.grpc) as channel:
        for message in (first + request.SerializeToString(), request.SerializeToString() + first):
            code, _ = call(channel, ('infer', '/inference.GRPCInferenceService/ModelInfer', False, False), LIMITED,
                           message)
            assert code in (grpc.StatusCode.PERMISSION_DENIED, grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.OK)
            if code == grpc.StatusCode.OK:
                assert message.endswith(first)


@pytest.mark.parametrize('streams, rpc', [(False, 'Check'), (True, 'Watch')])
def test_health_of_models_is_for_those_who_may_know_them(server, streams, rpc):
    def health(service, token=None):
        with grpc.insecure_channel(server.grpc) as channel:
            return call(channel, ('probe', f'/grpc.health.v1.Health/{rpc}', False, streams), token,
                        b'\x0a' + bytes([len(service)]) + service.encode())[0].name

    for service in ('', 'liveness', 'inference.GRPCInferenceService'):
        assert health(service) == 'OK'
    for model in ('identity', 'nobody'):
        assert health(model) == 'UNAUTHENTICATED'
        assert health(model, TOKENS['infer']) == 'PERMISSION_DENIED'
    assert health('identity', LIMITED) == 'OK'
    assert health('slow', LIMITED) == health('nobody', LIMITED) == 'PERMISSION_DENIED'


# ---- The file ----

def test_a_replaced_file_counts_at_once(repository, start, tmp_path):
    file = tmp_path / 'tokens'
    file.write_text('first-token-0123456789\n')
    server = start(repository.identity(), f'--auth-tokens={file}')

    def may(token):
        with client_of(server) as client:
            try:
                client.infer('identity', inputs(), headers={'authorization': f'Bearer {token}'})
                return True
            except InferenceServerException as error:
                assert error.status() == 'StatusCode.UNAUTHENTICATED'
                return False

    def reloads(outcome):
        return server.metric('swizzle_credential_reloads_total', files='tokens', outcome=outcome)

    def put(text):
        """At once: no half of it is ever seen."""
        (tmp_path / 'new').write_text(text)
        (tmp_path / 'new').replace(file)

    assert may('first-token-0123456789') and not may('second-token-0123456789')
    put('second-token-0123456789\n')
    wait_until(lambda: reloads('replaced') == 1, 30, 'the new tokens')
    assert may('second-token-0123456789') and not may('first-token-0123456789')
    put('all short\n')
    wait_until(lambda: reloads('failed') == 1, 30, 'the failure')
    assert may('second-token-0123456789')
    assert 'line 1' in server.log() and 'token-0123456789' not in server.log()


@pytest.mark.parametrize('text, why', [
    ('', 'has no token'), ('# nothing\n\n', 'has no token'), ('infer short\n', 'line 1, has a token of fewer than 16'),
    ('\ninfre 0123456789abcdef\n', 'line 2, has a class'), ('infer models= 0123456789abcdef\n', 'without a model'),
    ('infer metadata 0123456789abcdef\n', 'more than CLASS'), ('infer 0123456789abcdef\ncontrol 0123456789abcdef\n',
                                                              'line 2, has the token of a line before'),
    ('infer 0123456789abcd\u00e9f\n', 'other characters'), ('infer ' + 'x' * 5000, 'more than 4096')])
def test_wrong_files_are_one_error_at_the_start(repository, tmp_path, text, why):
    file = tmp_path / 'tokens'
    file.write_text(text)
    result = subprocess.run([program('swizzle-server'), f'--model-repository={repository}', f'--auth-tokens={file}'],
                            capture_output=True, text=True, timeout=START_SECONDS)
    assert result.returncode == 1
    errors = [line for line in result.stderr.splitlines() if ' error ' in line]
    assert len(errors) == 1 and str(file) in errors[0] and why in errors[0], result.stderr
    assert '0123456789' not in result.stderr


def test_the_tool_sends_a_token(server, tmp_path):
    def metadata(*flags):
        return subprocess.run([program('swizzle'), f'--address={server.grpc}', 'metadata', 'identity', *flags],
                              capture_output=True, text=True, timeout=60)

    file = tmp_path / 'token'
    file.write_text(f'{TOKENS["metadata"]}\n')
    assert metadata(f'--token-file={file}').returncode == 0
    refused = metadata()
    assert refused.returncode == 1 and 'needs a valid token' in refused.stderr
    file.write_text('two words\n')
    assert metadata(f'--token-file={file}').returncode == 2
