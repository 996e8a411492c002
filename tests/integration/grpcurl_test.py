"""grpcurl, which knows the service by reflection alone, against a real server."""

import base64
import json
import pathlib
import struct
import subprocess
import sysconfig

import pytest

from certificates import Authority
GRPCURL = pathlib.Path(sysconfig.get_path('scripts')) / 'grpcurl'
SERVICE = 'inference.GRPCInferenceService'
VALUES = [float(value) for value in range(16)]

pytestmark = pytest.mark.skipif(not GRPCURL.exists(), reason='the package with grpcurl is for x86-64 alone')


def grpcurl(*arguments):
    return subprocess.run([GRPCURL, '-max-time', '60', *map(str, arguments)], capture_output=True, text=True,
                          timeout=90)


def answer(*arguments):
    result = grpcurl(*arguments)
    assert result.returncode == 0, result.stderr
    return result.stdout


def call(server, method, request, *flags):
    return json.loads(answer('-plaintext', *flags, '-d', json.dumps(request), server.grpc, method))


def objects(text):
    """The JSON objects that were printed one after the other."""
    read = []
    while text := text.strip():
        value, end = json.JSONDecoder().raw_decode(text)
        read.append(value)
        text = text[end:]
    return read


def infer_request(model, **contents):
    return {'model_name': model, 'inputs': [{'name': 'INPUT0', 'datatype': 'FP32', 'shape': [1, 16], **contents}]}


def test_services_and_messages_are_described(shared_server):
    services = answer('-plaintext', shared_server.grpc, 'list').split()
    assert SERVICE in services and 'grpc.health.v1.Health' in services
    assert f'{SERVICE}.ModelStreamInfer' in answer('-plaintext', shared_server.grpc, 'list', SERVICE).split()
    described = answer('-plaintext', shared_server.grpc, 'describe', 'inference.ModelInferRequest')
    assert 'repeated bytes raw_input_contents = 7;' in described


def test_health(shared_server):
    for service in ('', 'liveness', 'identity'):
        assert call(shared_server, 'grpc.health.v1.Health/Check', {'service': service}) == {'status': 'SERVING'}


def test_infer_with_typed_and_with_raw_contents(shared_server):
    raw = base64.b64encode(struct.pack('<16f', *VALUES)).decode()
    for request in (infer_request('identity', contents={'fp32_contents': VALUES}),
                    {**infer_request('identity'), 'raw_input_contents': [raw]}):
        response = call(shared_server, f'{SERVICE}/ModelInfer', request)
        assert response['model_version'] == '1'
        assert struct.unpack('<16f', base64.b64decode(response['raw_output_contents'][0])) == tuple(VALUES)


def test_a_stream_of_requests(shared_server):
    requests = ''.join(json.dumps({**infer_request(model, contents={'fp32_contents': VALUES}), 'id': str(i)})
                       for i, model in enumerate(['identity', 'nobody', 'identity']))
    printed = answer('-plaintext', '-d', requests, shared_server.grpc, f'{SERVICE}/ModelStreamInfer')
    good, bad, last = objects(printed)
    assert good['infer_response']['id'] == '0' and last['infer_response']['id'] == '2'
    assert "there is no model 'nobody'" in bad['error_message']


def test_errors_have_code_and_message(shared_server):
    result = grpcurl('-plaintext', '-d', '{"name": "nobody"}', shared_server.grpc, f'{SERVICE}/ModelMetadata')
    assert result.returncode != 0
    assert 'Code: NotFound' in result.stderr and "there is no model 'nobody'" in result.stderr


def test_tls_and_a_token(start, repository, tmp_path):
    authority, tokens = Authority(tmp_path), tmp_path / 'tokens'
    pair = authority.issue('server')
    tokens.write_text('metadata,reflection a-token-of-many-letters\n')
    server = start(repository.identity(), f'--tls-cert={pair.certificate}', f'--tls-key={pair.key}',
                   f'--auth-tokens={tokens}')
    metadata = ['-d', '{"name": "identity"}', server.grpc, f'{SERVICE}/ModelMetadata']
    shown = ['-cacert', authority.certificate, '-H', 'authorization: Bearer a-token-of-many-letters']
    assert json.loads(answer(*shown, *metadata))['versions'] == ['1']
    assert 'code = Unauthenticated' in grpcurl('-cacert', authority.certificate, *metadata).stderr
    assert grpcurl('-plaintext', *metadata).returncode != 0
