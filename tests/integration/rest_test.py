"""The protocol over HTTP: Triton's client unmodified, curl, and clients that are not in order."""

import contextlib
import gzip
import json
import subprocess
import zlib

import numpy
import pytest
import tritonclient.grpc as grpc_client
import tritonclient.http as triton
from tritonclient.utils import InferenceServerException

from certificates import Authority
from conftest import SPARSE, lasting_server, wait_until
from plain_http import Connection, ask, error_of, request

FLAGS = ['--http-address=127.0.0.1:0', '--max-message-bytes=2097152']


@pytest.fixture(scope='module')
def server(tmp_path_factory):
    with lasting_server(tmp_path_factory.mktemp('rest'), *FLAGS) as server:
        yield server


@pytest.fixture
def client(server):
    with triton.InferenceServerClient(server.rest) as client:
        yield client


def tensor(data=None, name='INPUT0', datatype='FP32', shape=(1, 16), **more):
    return {'name': name, 'datatype': datatype, 'shape': list(shape),
            **({'data': data} if data is not None else {}), **more}


INFER = '/v2/models/identity/infer'
ROW = list(range(16))
VALID = json.dumps({'inputs': [tensor(ROW)]})


def triton_input(array, name='INPUT0', binary=True):
    from tritonclient.utils import np_to_triton_dtype
    given = triton.InferInput(name, list(array.shape), np_to_triton_dtype(array.dtype))
    given.set_data_from_numpy(array, binary_data=binary)
    return given


# ---- Triton's client ----

def test_what_there_is_over_http_is_what_there_is_over_grpc(server, client):
    other = grpc_client.InferenceServerClient(server.grpc)
    assert client.is_server_live() and client.is_server_ready() and client.is_model_ready(SPARSE)
    assert client.is_model_ready(SPARSE, '1') and not client.is_model_ready(SPARSE, '2')
    assert not client.is_model_ready('nobody')
    ours = client.get_server_metadata()
    theirs = other.get_server_metadata(as_json=True)
    assert ours['name'] == theirs['name'] and ours['version'] == theirs['version']
    assert set(ours['extensions']) == {*theirs['extensions'], 'binary_tensor_data'}
    ours, theirs = client.get_model_metadata(SPARSE), other.get_model_metadata(SPARSE)
    assert [ours['name'], ours['versions'], ours['platform']] == [theirs.name, list(theirs.versions), theirs.platform]
    assert ours['inputs'] == [{'name': i.name, 'datatype': i.datatype, 'shape': list(i.shape)} for i in theirs.inputs]
    assert all(isinstance(value, str) for value in ours['properties'].values()) and ours['properties']
    config = client.get_model_config('identity')
    assert config['max_batch_size'] == 8 and config['input'][0]['data_type'] == 'TYPE_FP32'
    assert config['input'][0]['dims'] == [16]
    assert {model['name'] for model in client.get_model_repository_index()} == {
        'identity', 'slow', 'text', 'bytes', SPARSE}
    assert all(model['state'] == 'READY' for model in client.get_model_repository_index())


@pytest.mark.parametrize('sent', [True, False])
@pytest.mark.parametrize('returned', [True, False])
def test_infers_in_json_and_in_bytes(client, sent, returned):
    array = numpy.linspace(-1, 1, 3 * 16, dtype=numpy.float32).reshape(3, 16)
    answer = client.infer('identity', [triton_input(array, binary=sent)], request_id='seven',
                          outputs=[triton.InferRequestedOutput('OUTPUT0', binary_data=returned)])
    numpy.testing.assert_array_equal(answer.as_numpy('OUTPUT0'), array)
    response = answer.get_response()
    assert (response['model_name'], response['model_version'], response['id']) == ('identity', '1', 'seven')
    assert response['parameters'].keys() == {'swizzle_queue_us', 'swizzle_compute_us'}




def test_strings(client):
    array = numpy.array([['one', 'ä', '', 'a "quote" and \\']], dtype=numpy.object_)
    for sent in (True, False):
        answer = client.infer('text', [triton_input(array, binary=sent)])
        assert [text.decode() for text in answer.as_numpy('OUTPUT0')[0]] == list(array[0])
        answer = client.infer('text', [triton_input(array, binary=sent)],
                              outputs=[triton.InferRequestedOutput('OUTPUT0', binary_data=False)])
        assert list(answer.as_numpy('OUTPUT0')[0]) == list(array[0])


def test_classes(client, test_images):
    image = test_images[0][:1]
    metadata = client.get_model_metadata(SPARSE)
    name, output = metadata['inputs'][0]['name'], metadata['outputs'][0]['name']
    scores = client.infer(SPARSE, [triton_input(image, name)]).as_numpy(output)
    for binary in (True, False):
        answer = client.infer(SPARSE, [triton_input(image, name)],
                              outputs=[triton.InferRequestedOutput(output, binary_data=binary, class_count=2)])
        first = answer.as_numpy(output)[0][0]
        first = first.decode() if isinstance(first, bytes) else first
        assert first.split(':')[1] == str(scores[0].argmax())


@pytest.mark.parametrize('how', ['gzip', 'deflate'])
def test_compressed_requests(client, how):
    array = numpy.arange(2 * 16, dtype=numpy.float32).reshape(2, 16)
    answer = client.infer('identity', [triton_input(array)], request_compression_algorithm=how,
                          response_compression_algorithm=how)
    numpy.testing.assert_array_equal(answer.as_numpy('OUTPUT0'), array)


def test_many_at_once(server):
    with triton.InferenceServerClient(server.rest, concurrency=16) as client:
        arrays = [numpy.full((1, 16), i, numpy.float32) for i in range(64)]
        under_way = [client.async_infer('identity', [triton_input(array)]) for array in arrays]
        for array, call in zip(arrays, under_way):
            numpy.testing.assert_array_equal(call.get_result().as_numpy('OUTPUT0'), array)


def test_statistics_count_them(server, client):
    def count():
        (stats,), = client.get_inference_statistics('identity').values()
        return stats['inference_stats']['success']['count']
    before = count()
    client.infer('identity', [triton_input(numpy.zeros((1, 16), numpy.float32))])
    assert count() == before + 1
    assert len(client.get_inference_statistics()['model_stats']) == 5


def test_every_type_in_either_form(repository, start):
    values = {'BOOL': [True, False], 'INT8': [-128, 127], 'UINT8': [0, 255], 'INT16': [-32768, 3], 'UINT16': [0, 65535],
              'INT32': [-2**31, 2**31 - 1], 'UINT32': [0, 2**32 - 1], 'INT64': [-2**63, 2**63 - 1],
              'UINT64': [0, 2**64 - 1], 'FP16': [0.5, 65504.0], 'FP32': [1 / 3, 3e38], 'FP64': [1 / 3, 1e308]}
    for datatype in values:
        repository.identity(datatype.lower(), datatype=datatype, dims='[ 2 ]')
    server = start(repository, *FLAGS)
    with triton.InferenceServerClient(server.rest) as client:
        for datatype, its in values.items():
            array = numpy.array([its], dtype=triton._infer_result.triton_to_np_dtype(datatype))
            expected = None
            for sent in (True, False):
                if datatype == 'FP16' and not sent:  # which the client refuses to write as JSON
                    body = json.dumps({'inputs': [tensor(its, datatype='FP16', shape=(1, 2))]})
                    status, _, answer = ask(server, '/v2/models/fp16/infer', body)
                    assert (status, json.loads(answer)['outputs'][0]['data']) == (200, its)
                    continue
                for returned in (True, False):
                    answer = client.infer(datatype.lower(), [triton_input(array, binary=sent)],
                                          outputs=[triton.InferRequestedOutput('OUTPUT0', binary_data=returned)])
                    expected = answer.as_numpy('OUTPUT0')
                    numpy.testing.assert_array_equal(expected, array)


# ---- What clients get wrong ----

@pytest.mark.parametrize('body, text', [
    ('', 'is no JSON'),
    ('{', 'is no JSON'),
    ('[]', 'must be an object'),
    ('7', 'must be an object'),
    ('{"inputs": 7}', "'inputs' of the request must be an array"),
    ('{"inputs": [7]}', 'arrays of objects'),
    ('{"inputs": [{"name": 7}]}', 'must be a string'),
    ('{"inputs": [], "inputs": []}', 'must be there once'),
    ('{"id": 7}', 'must be a string'),
    ('{"id": "\xff"}'.encode('latin-1'), 'is no JSON'),
    ('{"parameters": {"timeout": [1]}}', "parameter 'timeout' must be"),
    ('{"parameters": {"a": 1, "a": 2}}', 'is there twice'),
    ('{"parameters": {"binary_data_output": 1}}', 'must be true or false'),
    ('{"more": ' + '[' * 100000 + ']' * 100000 + '}', 'nests deeper'),
    (json.dumps({'inputs': [tensor()]}), "must have one of 'data'"),
    (json.dumps({'inputs': [tensor(ROW[1:])]}), 'has 60 bytes; FP32 [1,16] needs 64'),
    (json.dumps({'inputs': [tensor([*ROW[1:], 'x'])]}), 'an element that is no FP32'),
    (json.dumps({'inputs': [tensor([*ROW[1:], None])]}), 'an element that is no FP32'),
    (json.dumps({'inputs': [tensor([*ROW[1:], 1e300])]}), 'an element that is no FP32'),
    (json.dumps({'inputs': [tensor(ROW)]}).replace('15]', '1e999]'), 'a number that is too large'),
    (json.dumps({'inputs': [tensor(ROW, datatype='FP31')]}), "datatype 'FP31'; FP32 is expected"),
    (json.dumps({'inputs': [tensor(ROW, shape=(1, -16))]}), 'whole numbers of 0 or more'),
    (json.dumps({'inputs': [tensor(ROW, shape=(1, 2**70))]}), 'whole numbers of 0 or more'),
    (json.dumps({'inputs': [tensor(ROW, shape=[1] * 65)]}), 'more than 64 dimensions'),
    (json.dumps({'inputs': [tensor(ROW, name='other')]}), "no input 'other'"),
    (json.dumps({'inputs': [{}] * 1025}), 'more than 1024 inputs'),
    (json.dumps({'parameters': {str(i): 1 for i in range(1025)}}), 'more than 1024 parameters'),
    (json.dumps({'inputs': [tensor(ROW, parameters={'binary_data_size': 64})]}), "must have one of 'data'"),
    (json.dumps({'inputs': [tensor(parameters={'binary_data_size': 2**63})]}), 'and 0 bytes follow'),
    (json.dumps({'inputs': [tensor(parameters={'binary_data_size': -1})]}), 'must be a number of bytes'),
    (json.dumps({'inputs': [tensor(ROW)], 'outputs': [{'name': 'other'}]}), "no output 'other'"),
])
def test_wrong_requests(server, body, text):
    status, error = error_of(ask(server, INFER, body))
    assert status == 400 and text in error, error
    assert ask(server, INFER, VALID)[0] == 200


def test_data_before_its_type_and_nested_data(server):
    for body in ('{"inputs": [{"data": [[%s]], "shape": [1, 16], "datatype": "FP32", "name": "INPUT0"}]}',
                 '{"unknown": {"a": [1, {"b": null}]}, "inputs": [{"name": "INPUT0", "data": [%s], '
                 '"parameters": {}, "shape": [1, 16], "datatype": "FP32"}], "parameters": null}'):
        status, headers, answer = ask(server, INFER, body % ','.join(map(str, ROW)))
        assert status == 200 and headers['content-type'] == 'application/json'
        output, = json.loads(answer)['outputs']
        assert output == {'name': 'OUTPUT0', 'datatype': 'FP32', 'shape': [1, 16], 'data': ROW}


@pytest.mark.parametrize('length', ['-1', 'x', '', '99999999', '4', '18446744073709551616'])
def test_wrong_lengths_of_the_json(server, length):
    body = json.dumps({'inputs': [tensor(parameters={'binary_data_size': 64})]}).encode() + bytes(64)
    headers = {'Inference-Header-Content-Length': length}
    assert error_of(ask(server, INFER, body, **headers))[0] == 400


def test_bytes_that_are_no_inputs(server):
    part = json.dumps({'inputs': [tensor(parameters={'binary_data_size': 64})]}).encode()
    headers = {'Inference-Header-Content-Length': len(part)}
    status, error = error_of(ask(server, INFER, part + bytes(65), **headers))
    assert status == 400 and '1 bytes behind its JSON' in error
    assert ask(server, INFER, part + bytes(64), **headers)[0] == 200


def test_values_that_json_has_not(server):
    part = json.dumps({'inputs': [tensor(parameters={'binary_data_size': 64})]}).encode()
    headers = {'Inference-Header-Content-Length': len(part)}
    infinite = numpy.array([numpy.inf] * 16, numpy.float32).tobytes()
    status, error = error_of(ask(server, INFER, part + infinite, **headers))
    assert status == 400 and "output 'OUTPUT0' has an element that is not finite" in error and 'binary_data' in error


def test_errors_have_the_status_that_clients_expect(server, client):
    assert error_of(ask(server, '/v2/models/nobody/infer', VALID))[0] == 404
    assert error_of(ask(server, '/v2/models/identity/versions/7/infer', VALID))[0] == 404
    assert error_of(ask(server, '/v2/nothing'))[0] == 404
    assert error_of(ask(server, INFER, method='GET')) == (405, f"'{INFER}' takes POST")
    assert error_of(ask(server, '/v2', VALID))[0] == 405
    status, headers, _ = ask(server, '/v2/logging', method='DELETE')
    assert status == 405 and headers['allow'] == 'GET, HEAD, POST'
    assert error_of(ask(server, '/v2/repository/models/identity/versions/1/load'))[0] == 404
    assert error_of(ask(server, INFER, VALID, Content_Encoding='br'))[0] == 415
    assert error_of(ask(server, '/v2/repository/models/identity/load'))[0] == 403
    with pytest.raises(InferenceServerException, match="no input 'other'"):
        client.infer('identity', [triton_input(numpy.zeros((1, 16), numpy.float32), 'other')])
    with pytest.raises(InferenceServerException, match='nobody'):
        client.get_model_metadata('nobody')


# ---- Sizes ----

def test_bodies_are_bounded(server):
    with Connection(server.rest) as connection:
        connection.send(request(INFER, Content_Length=2097153))  # before any of it has come
        status, headers, _ = connection.answer()
        assert status == 413 and headers['connection'] == 'close'
    chunk = b'100000\r\n' + b' ' * 0x100000 + b'\r\n'
    with Connection(server.rest) as connection:
        connection.send(request(INFER, Content_Length=None, Transfer_Encoding='chunked'), chunk, chunk, b'2\r\n  \r\n')
        assert error_of(connection.answer())[0] == 413
    for body in (b' ' * 3000000, VALID.encode() + b' ' * 3000000):
        for packed, how in ((gzip.compress(body), 'gzip'), (zlib.compress(body), 'deflate')):
            status, error = error_of(ask(server, INFER, packed, Content_Encoding=how))
            assert status == 413 and 'without its compression' in error
    zeros = json.dumps({'inputs': [tensor([0] * 600000, shape=(1, 600000))]}, separators=(',', ':'))
    assert len(zeros) < 2097152 < 4 * 600000
    assert error_of(ask(server, INFER, zeros))[0] == 413
    assert ask(server, INFER, VALID)[0] == 200


def test_bodies_on_their_way_are_bounded_together(repository, start):
    server = start(repository.identity(), *FLAGS, '--transport-bytes=1000000')
    blank = b' ' * 900000
    with contextlib.ExitStack() as stack:
        def is_refused_beside_a_slow_body():  # unless it comes before the slow one, which is refused then
            slow = stack.enter_context(Connection(server.rest))
            slow.send(request(INFER, Content_Length=900000), b'{')
            return ask(server, INFER, blank)[0] == 503

        wait_until(is_refused_beside_a_slow_body, 30, 'the other body')
        assert 'on their way' in error_of(ask(server, INFER, blank))[1]
        assert ask(server, INFER, VALID)[0] == 200, 'small requests go on'
    wait_until(lambda: ask(server, INFER, blank)[0] == 400, 30, 'room')
    assert server.metric('swizzle_refused_calls_total', reason='inflight_bytes') > 0
    assert server.stop() == 0


def test_what_is_not_compressed_as_it_says(server):
    packed = gzip.compress(VALID.encode())
    assert ask(server, INFER, packed, Content_Encoding='gzip')[0] == 200
    for wrong in (VALID.encode(), packed[:40], b''):
        assert error_of(ask(server, INFER, wrong, Content_Encoding='gzip'))[0] == 400


def test_heads_are_bounded(server):
    with Connection(server.rest) as connection:
        connection.send(request('/v2', method='GET', X_Much='y' * 20000))
        assert error_of(connection.answer())[0] == 431


# ---- Connections ----

def test_one_after_the_other_and_at_once(server):
    with Connection(server.rest) as connection:
        for _ in range(3):
            connection.send(request(INFER, VALID))
            assert connection.answer()[0] == 200
        connection.send(*[request(INFER, json.dumps({'id': str(i), 'inputs': [tensor(ROW)]})) for i in range(20)])
        assert [json.loads(connection.answer()[2])['id'] for _ in range(20)] == [str(i) for i in range(20)]
        connection.send(request('/v2/health/live', method='GET', Connection='close'))
        assert connection.answer()[0] == 200 and connection.answer() is None


def test_chunks_and_expectations(server):
    body = VALID.encode()
    chunks = b''.join(b'%x;why=not\r\n%s\r\n' % (len(piece), piece)
                      for piece in (body[i:i + 7] for i in range(0, len(body), 7))) + b'0\r\nTrailer: x\r\n\r\n'
    with Connection(server.rest) as connection:
        for _ in range(2):
            connection.send(request(INFER, Content_Length=None, Transfer_Encoding='chunked'), chunks)
            assert connection.answer()[0] == 200
        connection.send(request(INFER, Content_Length=len(body), Expect='100-continue'))
        assert connection.answer()[0] == 100
        connection.send(body)
        assert connection.answer()[0] == 200
        connection.send(request(INFER, Content_Length=None, Transfer_Encoding='chunked'), b'xyz\r\n')
        assert error_of(connection.answer())[0] == 400


@pytest.mark.parametrize('head', [
    b'\x16\x03\x01\x02\x00\x01\x00', b'GET\r\n\r\n', b'GET /v2 HTTP/9.9\r\n\r\n', b'GET /v2 HTTP/1.1\r\nno field\r\n\r\n',
    b'POST /v2/models/identity/infer HTTP/1.1\r\nContent-Length: x\r\n\r\n',
    b'POST /v2/models/identity/infer HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n',
    b'POST /v2/models/identity/infer HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n',
    b'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'])
def test_what_is_no_request(server, head):
    with Connection(server.rest) as connection:
        connection.send(head, b'\r\n\r\n')
        assert error_of(connection.answer())[0] == 400
        assert connection.answer() is None


def test_whoever_leaves_is_not_computed_for(repository, start):
    """Twenty wait behind one and leave. Where the machine stops for some seconds, the server computes some of them."""
    server = start(repository.identity('slow', delay_ms=1000, max_batch_size=1, extra=''), *FLAGS)
    path = '/v2/models/slow/infer'

    def ended(code):
        return server.metric('swizzle_requests_total', code=code)

    with Connection(server.rest) as first:
        first.send(request(path, VALID))
        leaving = [Connection(server.rest) for _ in range(20)]
        for connection in leaving:
            connection.send(request(path, VALID))
        wait_until(lambda: server.metric('swizzle_queue_depth') + ended('OK') >= 20, 60, 'the queueing')
        late = json.dumps({'inputs': [tensor(ROW)], 'parameters': {'timeout': 1000}})
        assert error_of(ask(server, path, late))[0] == 504
        for connection in leaving:
            connection.__exit__()
        assert first.answer()[0] == 200
        wait_until(lambda: ended('OK') + ended('CANCELLED') == 21, 60, 'the end of the others')
        assert ended('CANCELLED') >= 5
    assert server.stop() == 0


def test_slow_requests_are_cut_off(repository, start):
    server = start(repository.identity(), *FLAGS, '--request-timeout=0.5', '--handshake-timeout=0.5')
    with Connection(server.rest) as silent, Connection(server.rest) as head, Connection(server.rest) as body:
        with contextlib.suppress(ConnectionError):  # where this process was late
            head.send('POST /v2 HTTP/1.1\r\n')
            body.send(request(INFER, Content_Length=100), b'{')
        for connection in (silent, head, body):
            with contextlib.suppress(ConnectionError):
                assert connection.answer() is None  # or the socket's own timeout fails the test

    def asked_in_time():
        with contextlib.suppress(ConnectionError):
            return ask(server, INFER, VALID)
    assert wait_until(asked_in_time, 30, 'an answer')[0] == 200
    assert server.stop() == 0


def test_a_drain_answers_what_is_under_way(repository, start):
    server = start(repository.identity('slow', delay_ms=3000), *FLAGS)
    with Connection(server.rest) as busy, Connection(server.rest) as idle:
        idle.send(request('/v2/health/ready', method='GET'))
        assert idle.answer()[0] == 200
        busy.send(request('/v2/models/slow/infer', VALID))
        wait_until(lambda: server.metric('swizzle_inflight_requests') >= 1, 30, 'the request')
        server.terminate()
        status, headers, _ = busy.answer()
        assert status == 200 and headers['connection'] == 'close'
        assert idle.answer() is None
    assert server.exit_code() == 0, server.log()


def test_connections_that_are_of_age_end_with_an_answer(repository, start):
    server = start(repository.identity(), *FLAGS, '--connection-age=0.2')
    with triton.InferenceServerClient(server.rest) as client:
        array = numpy.zeros((1, 16), numpy.float32)

        def aged():
            client.infer('identity', [triton_input(array)])  # which connects again, and loses nothing
            return server.metric('swizzle_connections_ended_total', after='age') >= 3
        wait_until(aged, 60, 'connections of age')
    with Connection(server.rest) as connection:
        headers = {}
        while headers.get('connection') != 'close':
            connection.send(request(INFER, VALID))
            status, headers, _ = connection.answer()
            assert status == 200
        assert connection.answer() is None
    assert server.stop() == 0


# ---- Tokens, TLS, curl ----

def test_tls_and_client_certificates(repository, start, tmp_path):
    authority, foreign = Authority(tmp_path), Authority(tmp_path, 'foreign')
    pair, shown, wrong = authority.issue('server'), authority.issue('client'), foreign.issue('other')
    server = start(repository.identity(), *FLAGS, f'--tls-cert={pair.certificate}', f'--tls-key={pair.key}',
                   f'--tls-client-ca={authority.certificate}')

    def client(its):
        return triton.InferenceServerClient(server.rest, ssl=True, ssl_options={
            'ca_certs': str(authority.certificate), **({} if its is None else {
                'certfile': str(its.certificate), 'keyfile': str(its.key)})})
    with client(shown) as good:
        array = numpy.arange(8 * 16, dtype=numpy.float32).reshape(8, 16)
        numpy.testing.assert_array_equal(good.infer('identity', [triton_input(array)]).as_numpy('OUTPUT0'), array)
    for its in (None, wrong):
        with client(its) as bad, pytest.raises(OSError):
            bad.is_server_live()
    with Connection(server.rest) as plain:
        plain.send(request('/v2', method='GET'))
        assert not plain.file.read(100).startswith(b'HTTP')
    assert server.stop() == 0


def test_curl(server, tmp_path):
    (tmp_path / 'request.json').write_text(VALID)
    result = subprocess.run(['curl', '-sS', '--data', f'@{tmp_path / "request.json"}', f'http://{server.rest}{INFER}'],
                            capture_output=True, check=True, timeout=60)
    assert json.loads(result.stdout)['outputs'][0]['data'] == ROW
