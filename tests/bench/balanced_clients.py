"""Clients of several servers under load: of the C++ library (tests/client/balanced_load.cc), and of Python's grpcio with
a service config. Each caller waits for its answer before it asks again. What they count is the same for both."""

import collections
import json
import subprocess
import threading
import time

import grpc
import numpy
from tritonclient.grpc import service_pb2

import traffic

WAIT_SECONDS = 120
ATTEMPTS = 5

# What deploy/README.md tells Python's clients; retries come from gRPC itself.
BALANCE = {'loadBalancingConfig': [{'round_robin': {}}], 'healthCheckConfig': {'serviceName': ''}}
RETRY = {'methodConfig': [{'name': [{'service': 'inference.GRPCInferenceService', 'method': 'ModelInfer'}],
                           'retryPolicy': {'maxAttempts': ATTEMPTS, 'initialBackoff': '0.05s', 'maxBackoff': '1s',
                                           'backoffMultiplier': 3, 'retryableStatusCodes': ['UNAVAILABLE']}}]}


class Counts:
    """How calls ended. Thread-safe."""

    def __init__(self):
        self.lock = threading.Condition()
        self.codes, self.versions = collections.Counter(), collections.Counter()
        self.retried, self.seconds, self.messages = 0, [], collections.Counter()

    def add(self, code, attempts, version, seconds, message=''):
        with self.lock:
            self.codes[code] += 1
            self.retried += attempts > 1
            self.versions[version] += 1
            self.seconds.append(seconds)
            if code != 'OK':
                self.messages[f'{code}: {message}'] += 1
            self.lock.notify_all()

    def wait(self, condition):
        """Until it is true of this; it is asked after each call."""
        with self.lock:
            assert self.lock.wait_for(lambda: condition(self), WAIT_SECONDS), (self.codes, self.messages)

    def wait_for(self, calls):
        """Until so many more have ended well."""
        with self.lock:
            goal = self.codes['OK'] + calls
        self.wait(lambda counts: counts.codes['OK'] >= goal)

    def failed(self):
        return sum(count for code, count in self.codes.items() if code != 'OK')


class CppClients(Counts):
    """Of the library: `attempts` of each call at most."""

    def __init__(self, program, target, callers, attempts, *flags):
        super().__init__()
        self.process = subprocess.Popen(
            [program, f'--address={target}', f'--callers={callers}', '--round-robin',
             f'--attempts={attempts}', *flags],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.reader = threading.Thread(target=self._read)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            code, attempts, version, milliseconds, *message = line.split(maxsplit=4)
            self.add(code, int(attempts), version, float(milliseconds) / 1000, *(part.strip() for part in message))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.reader.join(WAIT_SECONDS)
        self.process.wait(WAIT_SECONDS)


class PythonClients(Counts):
    """grpcio's. It does not tell how often it tried: `retried` stays 0. `balance`: it does itself, rather than a proxy;
    `keepalive`: after so many seconds of silence it asks for a sign of life, and waits for it so long."""

    def __init__(self, target, callers, retries, *, balance=True, timeout=20, keepalive=(20, 10)):
        super().__init__()
        config = {**(BALANCE if balance else {}), **(RETRY if retries else {})}
        time_ms, timeout_ms = (round(seconds * 1000) for seconds in keepalive)
        self.channel = grpc.insecure_channel(target, options=[
            ('grpc.service_config', json.dumps(config)), ('grpc.use_local_subchannel_pool', 1),
            ('grpc.dns_min_time_between_resolutions_ms', 1000), ('grpc.per_rpc_retry_buffer_size', 64 << 20),
            ('grpc.initial_reconnect_backoff_ms', 100), ('grpc.max_reconnect_backoff_ms', 2000),
            ('grpc.keepalive_time_ms', time_ms), ('grpc.keepalive_timeout_ms', timeout_ms),
            ('grpc.http2.ping_timeout_ms', timeout_ms), ('grpc.http2.max_pings_without_data', 0)])
        self.call, self.timeout, self.stopping = self.channel.unary_unary(traffic.METHOD), timeout, False
        self.threads = [threading.Thread(target=self._send, args=(i,)) for i in range(callers)]
        for thread in self.threads:
            thread.start()

    def _send(self, caller):
        i = 0
        while not self.stopping:
            i += 1
            values = numpy.full((1, 16), caller * 1000 + i % 1000, numpy.float32)
            start = time.monotonic()
            try:
                answer = service_pb2.ModelInferResponse.FromString(
                    self.call(traffic.message('identity', values), timeout=self.timeout))
                right = answer.raw_output_contents[0] == values.tobytes()
                self.add('OK' if right else 'WRONG', 1, answer.model_version, time.monotonic() - start)
            except grpc.RpcError as error:
                self.add(error.code().name, 1, '-', time.monotonic() - start, error.details())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stopping = True
        for thread in self.threads:
            thread.join(WAIT_SECONDS)
        self.channel.close()
