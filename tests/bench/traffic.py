"""A server of its own for a benchmark, and clients of it that send as fast as they are told to."""

import collections
import contextlib
import json
import pathlib
import subprocess
import tempfile
import threading
import time
import urllib.request

import grpc
import numpy
from tritonclient.grpc import service_pb2

METHOD = '/inference.GRPCInferenceService/ModelInfer'
# A connection of its own for each channel; what the server answers is what is counted.
CHANNEL = [('grpc.use_local_subchannel_pool', 1), ('grpc.enable_retries', 0),
           ('grpc.max_receive_message_length', -1), ('grpc.max_send_message_length', -1)]


def identity_config(delay_ms, max_batch_size, values=16, extra=''):
    tensor = f'data_type: TYPE_FP32 dims: [ {values} ]'
    return f'''backend: "identity" max_batch_size: {max_batch_size}
        input [ {{ name: "INPUT0" {tensor} }} ]
        output [ {{ name: "OUTPUT0" {tensor} }} ]
        parameters {{ key: "execute_delay_ms" value {{ string_value: "{delay_ms}" }} }}
        dynamic_batching {{ }} {extra}'''


def message(model, array, name='INPUT0'):
    """A request with one FP32 input, encoded."""
    request = service_pb2.ModelInferRequest(model_name=model)
    request.inputs.add(name=name, datatype='FP32', shape=array.shape)
    request.raw_input_contents.append(numpy.ascontiguousarray(array, numpy.float32).tobytes())
    return request.SerializeToString()


def zeros(model='identity', values=16):
    return message(model, numpy.zeros((1, values), numpy.float32))


class Server:
    """A running swizzle-server on free ports, whose repository `prepare(directory)` fills."""

    def __init__(self, program, prepare, *flags):
        self.folder = tempfile.TemporaryDirectory()
        folder = pathlib.Path(self.folder.name)
        prepare(folder / 'models')
        ports = folder / 'ports.json'
        self.log_file = folder / 'log'
        start = time.perf_counter()
        if not any(flag.startswith('--grpc-address') for flag in flags):
            flags = ('--grpc-address=127.0.0.1:0', *flags)
        with open(self.log_file, 'wb') as log:
            self.process = subprocess.Popen(
                [program, f'--model-repository={folder / "models"}', '--metrics-address=127.0.0.1:0',
                 f'--port-file={ports}', *flags],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        while not ports.exists():
            assert self.process.poll() is None, self.log_file.read_text()
            time.sleep(0.001)
        self.seconds_to_ready = time.perf_counter() - start
        self.ports = json.loads(ports.read_text())
        self.address = f'127.0.0.1:{self.ports["grpc"]}'
        self.authority = None  # of its certificate, where it speaks TLS

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.folder.cleanup()

    def metrics(self):
        with urllib.request.urlopen(f'http://127.0.0.1:{self.ports["metrics"]}/metrics', timeout=30) as page:
            return page.read().decode()

    def metric(self, name, **labels):
        """The sum of the samples of that name that have these labels."""
        total = 0.0
        for line in self.metrics().splitlines():
            sample, _, value = line.rpartition(' ')
            if sample.partition('{')[0] == name and all(f'{key}="{label}"' in sample for key, label in labels.items()):
                total += float(value)
        return total

    def resident_bytes(self, what='VmRSS'):
        """All; or of it what is of no file, RssAnon."""
        with open(f'/proc/{self.process.pid}/status') as status:
            return next(int(line.split()[1]) * 1024 for line in status if line.startswith(f'{what}:'))

    def open_files(self):
        return len(list(pathlib.Path(f'/proc/{self.process.pid}/fd').iterdir()))


class Tally:
    """How calls ended: (code, seconds) each. Thread-safe."""

    def __init__(self):
        self.lock = threading.Lock()
        self.ends = []

    def add(self, code, seconds):
        with self.lock:
            self.ends.append((code, seconds))

    def codes(self):
        with self.lock:
            return collections.Counter(code for code, _ in self.ends)

    def seconds(self, code='OK'):
        with self.lock:
            return sorted(seconds for ended, seconds in self.ends if ended == code)


def percentile(values, share):
    return values[min(len(values) - 1, int(len(values) * share))] if values else float('nan')


def seconds_in_server(answer):
    """Queued and computed, as the answer says: what a busy client adds is not in it."""
    parameters = service_pb2.ModelInferResponse.FromString(answer).parameters
    return sum(parameters[name].int64_param for name in ('swizzle_queue_us', 'swizzle_compute_us')) / 1e6


def call_once(call, wire, tally, timeout=60):
    """Calls, and waits. The answer, or None."""
    start = time.monotonic()
    try:
        answer, code = call(wire, timeout=timeout), 'OK'
    except grpc.RpcError as error:
        answer, code = None, error.code().name
    tally.add(code, time.monotonic() - start)
    return answer


def closed_loop(address, wire, clients, seconds):
    """Clients that each wait for their answer before they send again."""
    tally, end = Tally(), time.monotonic() + seconds

    def send():
        with grpc.insecure_channel(address, options=CHANNEL) as channel:
            call = channel.unary_unary(METHOD)
            while time.monotonic() < end:
                call_once(call, wire, tally)

    threads = [threading.Thread(target=send) for _ in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return tally


def open_loop(address, wire, rate, seconds, channels=4, timeout=60):
    """Sends `rate` calls a second, whatever becomes of them. Returns (tally, calls sent)."""
    tally, sent, done = Tally(), 0, threading.Semaphore(0)
    with contextlib.ExitStack() as stack:
        calls = [stack.enter_context(grpc.insecure_channel(address, options=CHANNEL)).unary_unary(METHOD)
                 for _ in range(channels)]

        def ended(future, start):
            code = future.code().name
            tally.add(code, time.monotonic() - start)
            if code == 'OK':
                tally.add('OK in the server', seconds_in_server(future.result()))
            done.release()

        begin = time.monotonic()
        while (now := time.monotonic()) < begin + seconds:
            if (early := begin + sent / rate - now) > 0:
                time.sleep(early)  # and no more often: it is the server's processors that this wakes on
                continue
            future = calls[sent % channels].future(wire, timeout=timeout)
            future.add_done_callback(lambda future, start=now: ended(future, start))
            sent += 1
        for _ in range(sent):
            done.acquire()
    return tally, sent
