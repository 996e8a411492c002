"""TLS: who may connect, what becomes of certificates that are replaced, and that all limits hold as without it."""

import contextlib
import pathlib
import re
import shutil
import socket
import ssl
import subprocess
import threading

import grpc
import numpy
import pytest
import tritonclient.grpc as triton
from tritonclient.utils import InferenceServerException

from certificates import Authority, MountedSecret, openssl
from conftest import START_SECONDS, lasting_server, program, wait_until

import hostile_client
import raw_http2
import traffic

VALUES = numpy.arange(32, dtype=numpy.float32).reshape(2, 16)


@pytest.fixture(scope='module')
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp('authority'))


@pytest.fixture(scope='module')
def foreign(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp('foreign'), 'foreign')


@pytest.fixture(scope='module')
def pair(authority):
    return authority.issue('server')


def tls_flags(pair):
    return f'--tls-cert={pair.certificate}', f'--tls-key={pair.key}'


def triton_client(server, authority, pair=None):
    shown = {} if pair is None else {'private_key': str(pair.key), 'certificate_chain': str(pair.certificate)}
    return triton.InferenceServerClient(server.grpc, ssl=True, root_certificates=str(authority.certificate), **shown)


def infer(client, model='identity', **options):
    tensor = triton.InferInput('INPUT0', list(VALUES.shape), 'FP32')
    tensor.set_data_from_numpy(VALUES)
    result = client.infer(model, [tensor], **options)
    numpy.testing.assert_array_equal(result.as_numpy('OUTPUT0'), VALUES)


def shown_certificate(server):
    host, port = server.grpc.split(':')
    return ssl.get_server_certificate((host, int(port)), timeout=10).encode()


# ---- The start ----

def cannot_start(repository, *flags):
    """The one sentence that a server leaves."""
    result = subprocess.run(
        [program('swizzle-server'), f'--model-repository={repository}', '--grpc-address=127.0.0.1:0',
         '--metrics-address=127.0.0.1:0', *map(str, flags)], capture_output=True, text=True, timeout=START_SECONDS)
    assert result.returncode == 1, result.stderr
    errors = [line for line in result.stderr.splitlines() if ' error ' in line]
    assert len(errors) == 1, result.stderr
    return errors[0]


def test_wrong_files_are_one_error_at_the_start(repository, tmp_path, authority, pair):
    other, expired = authority.issue('other'), authority.issue('expired', days=-1)
    garbage, encrypted = tmp_path / 'garbage.pem', tmp_path / 'encrypted.key'
    garbage.write_text('no certificate\n')
    openssl('pkey', '-in', pair.key, '-aes128', '-passout', 'pass:secret', '-out', encrypted)
    folder, short = tmp_path / 'folder.pem', tmp_path / 'short'
    folder.mkdir()
    openssl('req', '-x509', '-newkey', 'rsa:512', '-nodes', '-keyout', f'{short}.key', '-out', f'{short}.pem', '-subj',
            '/CN=short')
    for certificate, key, named, why in [
            (tmp_path / 'none.pem', pair.key, tmp_path / 'none.pem', 'there is no such file'),
            (folder, pair.key, folder, ''),
            (pair.certificate, tmp_path / 'none.key', tmp_path / 'none.key', 'there is no such file'),
            (pair.certificate, other.key, other.key, 'is not that of the certificate'),
            (expired.certificate, expired.key, expired.certificate, 'has expired at'),
            (garbage, pair.key, garbage, 'has no PEM certificate'),
            (pair.certificate, garbage, garbage, 'has no PEM private key'),
            (pair.certificate, encrypted, encrypted, 'without a passphrase'),
            (f'{short}.pem', f'{short}.key', f'{short}.pem', 'key too small')]:
        said = cannot_start(repository, f'--tls-cert={certificate}', f'--tls-key={key}')
        assert str(named) in said and why in said, said
    said = cannot_start(repository, *tls_flags(pair), f'--tls-client-ca={garbage}')
    assert f'{garbage} has no PEM certificate' in said


def test_a_certificate_needs_its_key(repository, pair):
    for flag in (f'--tls-cert={pair.certificate}', f'--tls-key={pair.key}', f'--tls-client-ca={pair.certificate}'):
        result = subprocess.run([program('swizzle-server'), f'--model-repository={repository}', flag],
                                capture_output=True, text=True, timeout=START_SECONDS)
        assert result.returncode == 2, result.stderr


# ---- Clients ----

@pytest.fixture(scope='module')
def tls_server(tmp_path_factory, authority, pair):
    with lasting_server(tmp_path_factory.mktemp('tls'), *tls_flags(pair)) as server:
        yield server


def test_a_client_of_tritons(tls_server, authority):
    with triton_client(tls_server, authority) as client:
        assert client.is_server_ready()
        infer(client)


def test_clients_that_do_not_speak_it_or_do_not_know_the_authority(tls_server, foreign):
    with triton.InferenceServerClient(tls_server.grpc) as plain:
        with pytest.raises(InferenceServerException) as raised:
            plain.is_server_live(client_timeout=20)
        assert 'UNAVAILABLE' in raised.value.status()
    with triton_client(tls_server, foreign) as client:
        with pytest.raises(InferenceServerException) as raised:
            client.is_server_live(client_timeout=20)
        assert 'UNAVAILABLE' in raised.value.status()


@pytest.mark.filterwarnings('ignore:ssl.TLSVersion')
@pytest.mark.parametrize('version', ['TLSv1', 'TLSv1_1', 'TLSv1_2', 'TLSv1_3'])
def test_versions(tls_server, authority, version):
    context = ssl.create_default_context(cafile=authority.certificate)
    context.set_ciphers('ALL:@SECLEVEL=0')
    context.set_alpn_protocols(['h2'])
    context.minimum_version = context.maximum_version = ssl.TLSVersion[version]
    host, port = tls_server.grpc.split(':')
    with socket.create_connection((host, int(port)), timeout=10) as plain:
        if version in ('TLSv1', 'TLSv1_1'):
            with pytest.raises(OSError):
                context.wrap_socket(plain, server_hostname='localhost')
        else:
            with context.wrap_socket(plain, server_hostname='localhost') as connection:
                assert connection.selected_alpn_protocol() == 'h2'


def test_the_tool(tls_server, authority):
    def health(*flags):
        return subprocess.run([program('swizzle'), f'--address={tls_server.grpc}', 'health', *flags],
                              capture_output=True, text=True, timeout=60)

    assert health(f'--tls-ca={authority.certificate}').returncode == 0
    assert health().returncode == 3
    assert health('--tls').returncode == 3, 'the system knows its authority'
    missing = health('--tls-ca=/none.pem')
    assert missing.returncode == 2 and '/none.pem' in missing.stderr


def test_clients_with_and_without_a_certificate(repository, start, authority, foreign, pair):
    server = start(repository.identity(), *tls_flags(pair), f'--tls-client-ca={authority.certificate}')
    with triton_client(server, authority, authority.issue('client')) as client:
        infer(client)
    for shown in (None, foreign.issue('stranger'), authority.issue('former', days=-1)):
        with triton_client(server, authority, shown) as client, pytest.raises(InferenceServerException) as raised:
            client.is_server_live(client_timeout=20)
        assert 'UNAVAILABLE' in raised.value.status()
    right = authority.issue('tool')
    tool = [program('swizzle'), f'--address={server.grpc}', f'--tls-ca={authority.certificate}', 'health']
    assert subprocess.run([*tool, *tls_flags(right)], timeout=60).returncode == 0
    assert subprocess.run(tool, timeout=60, capture_output=True).returncode == 3
    assert server.http('/readyz')[0] == 200, 'probes need no certificate'


# ---- Certificates that are replaced ----

def put(source, target):
    """Copies it so that no half of it is ever seen."""
    shutil.copy(source, f'{target}.new')
    pathlib.Path(f'{target}.new').replace(target)


class Load:
    """Clients that ask all the time: some on one connection, and one that connects anew for each call."""

    def __init__(self, server, authority):
        self.server, self.authority = server, authority
        self.stop, self.calls, self.errors = threading.Event(), 0, []
        self.threads = [threading.Thread(target=self.run, args=(anew,)) for anew in (False, False, True)]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        wait_until(lambda: self.calls > 10, 60, 'the load')
        return self

    def __exit__(self, *_):
        self.stop.set()
        for thread in self.threads:
            thread.join(60)

    def more(self):
        """Returns when many calls have been answered, or one has failed."""
        before = self.calls
        wait_until(lambda: self.errors or self.calls > before + 50, 60, 'more calls')

    def run(self, anew):
        with contextlib.ExitStack() as stack:
            client = stack.enter_context(triton_client(self.server, self.authority))
            while not self.stop.is_set():
                if anew:
                    client = stack.enter_context(triton_client(self.server, self.authority))
                try:
                    infer(client, client_timeout=30)
                    self.calls += 1
                except Exception as error:  # whatever it is, it is reported
                    self.errors.append(error)
                if anew:
                    stack.close()


def test_a_replaced_certificate_costs_no_call(repository, start, tmp_path, authority, pair):
    secret = MountedSecret(tmp_path / 'secret', pair)
    server = start(repository.identity(), *tls_flags(secret))
    assert shown_certificate(server).strip() in pair.pem()
    with Load(server, authority) as load:
        for count in (1, 2, 3):
            new = authority.issue(f'server{count}', days=20 + count)
            secret.put(new)
            wait_until(lambda: server.metric('swizzle_credential_reloads_total', outcome='replaced') == count, 30,
                       'the new certificate')
            load.more()
            assert shown_certificate(server).strip() in new.pem()
    assert not load.errors
    assert server.metric('swizzle_credential_reloads_total', outcome='failed') == 0
    expires = ssl.cert_time_to_seconds(
        subprocess.run(['openssl', 'x509', '-noout', '-enddate', '-in', new.certificate], capture_output=True,
                       text=True, check=True).stdout.strip().removeprefix('notAfter='))
    assert server.metric('swizzle_tls_certificate_expiry_timestamp_seconds') == expires
    assert server.stop() == 0, server.log()


def test_what_cannot_be_used_is_said_and_the_old_pair_goes_on(repository, start, tmp_path, authority, pair):
    certificate, key = tmp_path / 'tls.crt', tmp_path / 'tls.key'
    shutil.copy(pair.certificate, certificate)
    shutil.copy(pair.key, key)
    server = start(repository.identity(), f'--tls-cert={certificate}', f'--tls-key={key}')
    other = authority.issue('next')

    def failed():
        return server.metric('swizzle_credential_reloads_total', files='tls', outcome='failed')

    with Load(server, authority) as load:
        put(other.certificate, certificate)  # its key is not there yet
        wait_until(lambda: failed() == 1, 30, 'the first failure')
        key.unlink()
        wait_until(lambda: failed() == 2, 30, 'the second failure')
        load.more()
        assert shown_certificate(server).strip() in pair.pem()
        put(other.key, key)
        wait_until(lambda: server.metric('swizzle_credential_reloads_total', outcome='replaced') == 1, 30, 'the pair')
        load.more()
        assert shown_certificate(server).strip() in other.pem()
    assert not load.errors
    said = re.findall('TLS certificate not replaced reason="(.*)"', server.log())
    assert len(said) == 2 and 'is not that of the certificate' in said[0] and str(key) in said[1], said


def test_authorities_of_clients_are_replaced(repository, start, tmp_path, authority, foreign, pair):
    client_ca = tmp_path / 'ca.pem'
    shutil.copy(authority.certificate, client_ca)
    server = start(repository.identity(), *tls_flags(pair), f'--tls-client-ca={client_ca}')
    old, new = authority.issue('old'), foreign.issue('new')
    with triton_client(server, authority, old) as connected:
        infer(connected)
        put(foreign.certificate, client_ca)
        wait_until(lambda: server.metric('swizzle_credential_reloads_total', outcome='replaced') == 1, 30, 'the reload')
        with triton_client(server, authority, new) as client:
            infer(client)
        with triton_client(server, authority, old) as client, pytest.raises(InferenceServerException):
            client.is_server_live(client_timeout=20)
        infer(connected)


# ---- What holds without TLS holds with it ----

class TlsConnection(raw_http2.Connection):
    """HTTP/2 by hand, within TLS."""

    def connect(self, port):
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.set_alpn_protocols(['h2'])
        return context.wrap_socket(super().connect(port))


def test_a_request_that_does_not_end_ends_its_connection(repository, start, pair):
    server = start(repository.identity(), *tls_flags(pair), '--request-timeout=1')
    slow = TlsConnection(int(server.grpc.rpartition(':')[2]))
    message = raw_http2.prefixed(traffic.zeros())
    slow.data(slow.open(raw_http2.call_headers()), message[:-1], end=False)
    with pytest.raises(OSError):
        while True:
            slow.read(60)
    wait_until(lambda: server.metric('swizzle_connections_refused_total', reason='slow_sender') == 1, 30, 'the count')


def test_a_handshake_that_does_not_end_ends_its_connection(repository, start, pair):
    server = start(repository.identity(), *tls_flags(pair), '--handshake-timeout=1')
    with socket.create_connection(('127.0.0.1', int(server.grpc.rpartition(':')[2])), timeout=60) as half:
        half.sendall(raw_http2.client_hello())
        while half.recv(1 << 16):
            pass
    wait_until(lambda: server.metric('swizzle_connections_ended_total', after='handshake') == 1, 30, 'the count')


def test_a_drain_finishes_what_was_accepted(repository, start, authority, pair):
    server = start(repository.identity('slow', delay_ms=1000), *tls_flags(pair))
    answers = []
    with triton_client(server, authority) as client:
        asking = threading.Thread(target=lambda: answers.append(infer(client, 'slow')))
        asking.start()
        wait_until(lambda: answers or server.metric('swizzle_inflight_requests', model='slow') == 1, 30, 'the request')
        server.terminate()
        asking.join(60)
        assert len(answers) == 1
        assert server.exit_code() == 0, server.log()


def test_plain_calls_go_on_where_no_certificate_is_given(shared_server):
    with grpc.insecure_channel(shared_server.grpc) as channel:
        grpc.channel_ready_future(channel).result(30)
