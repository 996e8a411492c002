"""Models that operators load and unload over HTTP, by Triton's client unmodified, and by who is not in order."""

import base64
import json

import numpy
import pytest
import tritonclient.grpc as grpc_client
import tritonclient.http as triton
from tritonclient.utils import InferenceServerException

from certificates import Authority
from conftest import DENSE, SHIPPED, SPARSE, lasting_server, wait_until
from plain_http import Connection, ask, error_of, request

EXPLICIT = ['--model-control=explicit', '--http-control-address=127.0.0.1:0', '--http-address=127.0.0.1:0']


def image_input(image):
    tensor = triton.InferInput('image', list(image.shape), 'FP32')
    tensor.set_data_from_numpy(image)
    return [tensor]


def states(client):
    return {model['name']: (model.get('state'), model.get('reason')) for model in client.get_model_repository_index()}


def refusal(call, *arguments, **named):
    with pytest.raises(InferenceServerException) as raised:
        call(*arguments, **named)
    return raised.value.message()


def test_tritonclient_loads_and_unloads(start, repository, test_images):
    repository.shipped().identity()
    server = start(repository, *EXPLICIT)
    with triton.InferenceServerClient(server.rest) as client, \
            triton.InferenceServerClient(server.http_control) as control:
        assert states(client) == {SPARSE: ('UNAVAILABLE', 'not loaded'), 'identity': ('UNAVAILABLE', 'not loaded')}
        assert not client.is_model_ready(SPARSE)
        control.load_model(SPARSE)
        assert client.is_model_ready(SPARSE, '1')
        assert client.infer(SPARSE, image_input(test_images[0][:1])).as_numpy('logits').shape == (1, 10)
        assert states(control)[SPARSE] == ('READY', '')
        control.unload_model(SPARSE)
        assert not client.is_model_ready(SPARSE)
        wait_until(lambda: states(client)[SPARSE] == ('UNAVAILABLE', 'unloaded'), 30, 'the end of the model')
        assert 'there is no model' in refusal(control.load_model, 'nobody')
        assert 'an address for operators' in refusal(client.load_model, SPARSE)
        assert 'an address for operators' in refusal(client.unload_model, SPARSE)
        assert 'this address is for operators' in refusal(control.infer, SPARSE, image_input(test_images[0][:1]))
        assert 'control' not in json.loads((server.log_file.parent / 'ports.json').read_text()), 'gRPC takes no orders'
    status, _, answer = ask(server, '/v2/repository/models/identity/load', address=server.http_control)
    assert (status, json.loads(answer)) == (200, {'name': 'identity', 'load': True})
    status, _, answer = ask(server, '/v2/repository/models/identity/unload', address=server.http_control)
    assert (status, json.loads(answer)) == (200, {'name': 'identity', 'unload': True})
    assert server.stop() == 0


def test_tritonclient_brings_a_model(start, repository, test_images):
    repository.identity()
    server = start(repository, *EXPLICIT, '--allow-load-overrides')
    with triton.InferenceServerClient(server.rest) as client, \
            triton.InferenceServerClient(server.http_control) as control:
        files = {'file:1/model.onnx': (SHIPPED / f'{DENSE}.onnx').read_bytes()}
        control.load_model('brought', config='{"max_batch_size": 4}', files=files)
        dense = client.infer('brought', image_input(test_images[0][:4])).as_numpy('logits')
        assert client.get_model_config('brought')['max_batch_size'] == 4
        files['file:1/model.onnx'] = (SHIPPED / f'{SPARSE}.onnx').read_bytes()
        control.load_model('brought', config='{"max_batch_size": 4}', files=files)
        assert not numpy.array_equal(client.infer('brought', image_input(test_images[0][:4])).as_numpy('logits'), dense)
        assert "'config' is missing" in refusal(control.load_model, 'brought', files={'file:1/model.onnx': b'x'})
        assert "model 'brought' failed to load" in refusal(control.load_model, 'brought', config='{}',
                                                           files={'file:1/model.onnx': b'no model'})
        assert '..' in refusal(control.load_model, 'brought', config='{}', files={'file:../x': b'no model'})
        assert client.is_model_ready('brought'), 'what served goes on'
        control.unload_model('brought')
        assert not client.is_model_ready('brought')
        control.load_model('identity', config=json.dumps({'backend': 'identity', 'max_batch_size': 3, 'input': [
            {'name': 'INPUT0', 'data_type': 'TYPE_FP32', 'dims': [16]}], 'output': [
                {'name': 'OUTPUT0', 'data_type': 'TYPE_FP32', 'dims': [16]}]}))
        assert client.get_model_config('identity')['max_batch_size'] == 3
    assert server.stop() == 0


def test_an_ensemble_goes_with_its_steps(start, repository):
    repository.identity('first').identity('second')
    repository.config('chain', '''
        platform: "ensemble" max_batch_size: 8
        input [ { name: "INPUT" data_type: TYPE_FP32 dims: [ 16 ] } ]
        output [ { name: "OUTPUT" data_type: TYPE_FP32 dims: [ 16 ] } ]
        ensemble_scheduling { step [
          { model_name: "first" model_version: -1 input_map { key: "INPUT0" value: "INPUT" }
            output_map { key: "OUTPUT0" value: "between" } },
          { model_name: "second" model_version: -1 input_map { key: "INPUT0" value: "between" }
            output_map { key: "OUTPUT0" value: "OUTPUT" } } ] }''')
    server = start(repository, *EXPLICIT)
    with triton.InferenceServerClient(server.http_control) as control:
        control.load_model('chain')
        assert {name for name, (state, _) in states(control).items() if state == 'READY'} == {'chain', 'first', 'second'}
        control.unload_model('chain', unload_dependents=True)
        wait_until(lambda: not [name for name, (state, _) in states(control).items() if state == 'READY'], 30,
                   'the end of the steps')


@pytest.fixture(scope='module')
def server(tmp_path_factory):
    with lasting_server(tmp_path_factory.mktemp('orders'), *EXPLICIT, '--load-model=*') as server:
        yield server


def order(parameters):
    return json.dumps({'parameters': parameters})


@pytest.mark.parametrize('action, body, status, text', [
    ('load', '{', 400, 'no JSON'), ('load', '[]', 400, 'must be a JSON object'), ('load', '7', 400, 'must be a JSON object'),
    ('load', '{"parameters": 7}', 400, 'must be an object'), ('load', '{"parameters": []}', 400, 'must be an object'),
    ('load', '{"parameters": {"config": ["{}"]}}', 400, "parameter 'config' must be"),
    ('load', '{"parameters": {"config": null}}', 400, "parameter 'config' must not be null"),
    ('load', '{"parameters": {"config": 1.5}}', 400, "parameter 'config' must not be a fraction"),
    ('load', '{"parameters": {"config": "{}", "config": "{}"}}', 400, 'is there twice'),
    ('load', '{"more": ' + '[' * 5000 + ']' * 5000 + '}', 400, 'nests deeper'),
    ('load', order({str(i): True for i in range(1025)}), 400, 'more than 1024'),
    ('load', order({'other': True}), 400, "there is no parameter 'other'"),
    ('load', order({'file:1/model.onnx': 'no base64!'}), 400, "'file:1/model.onnx' is no base64"),
    ('load', order({'file:1/model.onnx': base64.b64encode(b'x').decode()}), 403, '--allow-load-overrides'),
    ('load', order({'config': '{}'}), 403, '--allow-load-overrides'),
    ('unload', order({'unload_dependents': 'yes'}), 400, 'is true or false'),
    ('unload', order({'unload': True}), 400, "there is no parameter 'unload'"),
    ('load', ' ' * (1 << 20) + ' ', 413, 'more than 1048576 bytes'),
    ('unload', ' ' * (1 << 16) + ' ', 413, 'more than 65536 bytes'),
])
def test_wrong_orders(server, action, body, status, text):
    path = f'/v2/repository/models/identity/{action}'
    code, error = error_of(ask(server, path, body, address=server.http_control))
    assert code == status and text in error, error
    assert ask(server, '/v2/models/identity/ready', method='GET')[0] == 200


def test_what_nobody_knows_beside_the_parameters(server):
    for body in ('{}', '', '{"parameters": {}}', '{"id": [{"a": 1}], "parameters": {}, "b": null}', ' ' * 100000 + '{}'):
        assert ask(server, '/v2/repository/models/text/load', body, address=server.http_control)[0] == 200


def test_orders_of_who_leaves_are_carried_out(start, repository):
    repository.shipped()
    server = start(repository, *EXPLICIT)
    with Connection(server.http_control) as connection:
        connection.send(request(f'/v2/repository/models/{SPARSE}/load', '{}'))
    wait_until(lambda: ask(server, f'/v2/models/{SPARSE}/ready', method='GET')[0] == 200, 60, 'the model')
    assert server.stop() == 0


def test_files_are_bounded_together_with_requests(start, repository):
    repository.identity().identity('slow', delay_ms=5000)
    server = start(repository, *EXPLICIT, '--load-model=slow', '--allow-load-overrides', '--max-inflight-bytes=4000000')
    large = order({'config': '{}', 'file:1/model.onnx': 'A' * 2000000})
    with Connection(server.rest) as busy:
        busy.send(request('/v2/models/slow/infer', json.dumps({'inputs': [
            {'name': 'INPUT0', 'datatype': 'FP32', 'shape': [1, 16], 'data': [0] * 16}]})))
        wait_until(lambda: server.metric('swizzle_inflight_requests', model='slow') >= 1, 30, 'the request')
        status, error = error_of(ask(server, '/v2/repository/models/brought/load', large, address=server.http_control))
        assert status == 503 and 'no room for an order' in error
        assert ask(server, '/v2/repository/models/identity/load', '{}', address=server.http_control)[0] == 200
        assert busy.answer()[0] == 200

    def answered():
        """What is said of the order once the request before it has given its room back, as it does behind its answer."""
        said = error_of(ask(server, '/v2/repository/models/brought/load', large, address=server.http_control))
        return said if said[0] != 503 else None

    status, error = wait_until(answered, 30, 'the room')
    assert status == 500 and 'failed to load' in error, 'one alone has room'


def test_a_drain_ends_what_is_idle_and_answers_orders(start, repository):
    repository.identity('slow', delay_ms=1000).identity()
    server = start(repository, *EXPLICIT, '--load-model=slow', '--drain-delay=0')
    with Connection(server.http_control) as idle, grpc_client.InferenceServerClient(server.grpc) as client:
        idle.send(request('/v2/health/ready', method='GET'))
        assert idle.answer()[0] == 200
        tensor = grpc_client.InferInput('INPUT0', [1, 16], 'FP32')
        tensor.set_data_from_numpy(numpy.zeros((1, 16), numpy.float32))
        answers = []
        client.async_infer('slow', [tensor], callback=lambda result, error: answers.append(error))
        wait_until(lambda: answers or server.metric('swizzle_inflight_requests') >= 1, 30, 'the request')
        server.terminate()
        assert idle.answer() is None
        wait_until(lambda: answers == [None], 30, 'the answer')
    assert server.exit_code() == 0, server.log()


def test_tokens_and_client_certificates(repository, start, tmp_path):
    authority, foreign = Authority(tmp_path), Authority(tmp_path, 'foreign')
    pair, shown, wrong = authority.issue('server'), authority.issue('client'), foreign.issue('other')
    tokens = tmp_path / 'tokens'
    tokens.write_text('control token-of-an-operator\ninfer,metadata token-of-a-client\n'
                      'control models=other token-of-another-model\n')
    server = start(repository.identity(), *EXPLICIT, f'--tls-cert={pair.certificate}', f'--tls-key={pair.key}',
                   f'--tls-client-ca={authority.certificate}', f'--auth-tokens={tokens}')

    def client(its):
        return triton.InferenceServerClient(server.http_control, ssl=True, ssl_options={
            'ca_certs': str(authority.certificate), 'certfile': str(its.certificate), 'keyfile': str(its.key)})
    with client(shown) as good:
        for headers, said in (({}, 'needs a valid token'), ('token-of-a-client', 'does not allow this call'),
                              ('token-of-another-model', 'does not allow this model')):
            headers = {'Authorization': f'Bearer {headers}'} if headers else None
            assert said in refusal(good.load_model, 'identity', headers=headers)
            assert said in refusal(good.unload_model, 'identity', headers=headers)
        good.load_model('identity', headers={'Authorization': 'Bearer token-of-an-operator'})
        good.unload_model('identity', headers={'Authorization': 'Bearer token-of-an-operator'})
    with client(wrong) as bad, pytest.raises(OSError):
        bad.load_model('identity', headers={'Authorization': 'Bearer token-of-an-operator'})
    assert server.stop() == 0
