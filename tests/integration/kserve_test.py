"""KServe's own client for inference, unmodified, against a real server."""

import json
import pathlib
import subprocess
import sys

import pytest

from certificates import Authority
from conftest import QUICK_START, Repository, Server

VALUES = [float(value) for value in range(32)]


def kserve(*arguments, program='kserve_calls.py'):
    """What came of each call of the program."""
    script = pathlib.Path(__file__).with_name(program)
    result = subprocess.run([sys.executable, script, *map(str, arguments)], capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def serve(directory, *flags):
    (directory / 'models').mkdir()
    repository = Repository(directory / 'models').identity().identity('slow', delay_ms=1000)
    repository.identity('text', datatype='STRING', dims='[ -1 ]').identity('half', datatype='FP16')
    return Server(repository, directory, *QUICK_START, *flags)


@pytest.fixture(scope='module')
def outcomes(tmp_path_factory):
    server = serve(tmp_path_factory.mktemp('kserve'))
    try:
        yield kserve(server.grpc)
        assert server.stop() == 0, server.log()
    finally:
        server.kill()


def test_health(outcomes):
    assert outcomes['live'] is outcomes['ready'] is outcomes['model ready'] is True
    assert outcomes['model unknown'] == {'code': 'NOT_FOUND', 'message': "there is no model 'nobody'"}


@pytest.mark.parametrize('call', ['typed', 'array, raw', 'array, typed', 'array, as data', 'version and output',
                                  'parameters'])
def test_values_come_back_however_they_are_sent(outcomes, call):
    answer = outcomes[call]
    assert answer['values'] == VALUES
    assert (answer['model'], answer['version'], answer['name']) == ('identity', '1', 'OUTPUT0')
    assert (answer['datatype'], answer['shape']) == ('FP32', [2, 16])
    assert answer['id'] == ('request 7' if call == 'typed' else '')
    assert answer['parameters'] == ['swizzle_compute_us', 'swizzle_queue_us']


def test_strings_and_halves(outcomes):
    assert outcomes['words']['values'] == ['dress', '', 'Ankle boot ü']
    assert outcomes['halves']['datatype'] == 'FP16' and outcomes['halves']['values'] == VALUES


def test_errors_say_what_is_wrong(outcomes):
    assert outcomes['no version']['code'] == 'NOT_FOUND'
    assert outcomes['wrong shape']['code'] == 'INVALID_ARGUMENT'
    assert "input 'INPUT0' of model 'identity'" in outcomes['wrong shape']['message']
    assert outcomes['timeout']['code'] == 'DEADLINE_EXCEEDED'


def test_tls_with_a_certificate_of_the_client(tmp_path):
    authority = Authority(tmp_path)
    pair, own = authority.issue('server'), authority.issue('client')
    server = serve(tmp_path, f'--tls-cert={pair.certificate}', f'--tls-key={pair.key}',
                   f'--tls-client-ca={authority.certificate}')
    try:
        outcomes = kserve(server.grpc, authority.certificate, own.certificate, own.key)
        assert outcomes['ready'] is True and outcomes['typed']['values'] == VALUES
    finally:
        server.kill()


def test_over_http(tmp_path):
    server = serve(tmp_path, '--http-address=127.0.0.1:0')
    try:
        outcomes = kserve(server.rest, program='kserve_rest_calls.py')
        assert server.stop() == 0, server.log()
    finally:
        server.kill()
    assert outcomes['live'] is outcomes['ready'] is outcomes['model ready'] is True
    assert outcomes['model unknown'] is False
    for call in ('typed', 'array, raw', 'array, typed', 'bytes back', 'halves'):
        assert outcomes[call]['values'] == VALUES, call
        assert outcomes[call]['shape'] == [2, 16]
    assert outcomes['typed']['id'] == 'request 7'
    assert outcomes['words']['values'] == ['dress', '', 'Ankle boot ü']
    assert outcomes['wrong shape']['code'] == 400
    assert "input 'INPUT0' of model 'identity'" in outcomes['wrong shape']['message']
