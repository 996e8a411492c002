"""What a client may do to a server with streams, reflection, shared memory, settings, health and orders;
hostile_client.py runs these."""

import contextlib
import itertools
import os
import pathlib
import struct

from tritonclient.grpc import service_pb2

import traffic
from raw_http2 import MIB, RST_STREAM, Connection, call_headers, frame, prefixed

STREAM, REGISTER, UNREGISTER, STATUS, LOG_SETTINGS, TRACE_SETTING, LOAD, UNLOAD, INDEX = (
    f'/inference.GRPCInferenceService/{method}'
    for method in ('ModelStreamInfer', 'SystemSharedMemoryRegister', 'SystemSharedMemoryUnregister',
                   'SystemSharedMemoryStatus', 'LogSettings', 'TraceSetting', 'RepositoryModelLoad',
                   'RepositoryModelUnload', 'RepositoryIndex'))
REFLECTION = '/grpc.reflection.v1.ServerReflection/ServerReflectionInfo'
WATCH = '/grpc.health.v1.Health/Watch'
PREFIX = f'swizzle-hostile-{os.getpid()}-'  # of shared memory that the server may open

# Of a model whose answers do not end.
ENDLESS = '''model_transaction_policy { decoupled: true }
    parameters { key: "repeat_count" value { string_value: "1000000" } }'''


def send_on_streams(connection, stop, message, path=STREAM, streams=32):
    """The same message again and again, on so many streams in turn."""
    opened = [connection.open(call_headers(path=path)) for _ in range(streams)]
    while not stop.is_set():
        for i, stream in enumerate(opened):
            if not connection.data(stream, message, end=False, patience=0.05) and stream in connection.ended:
                opened[i] = connection.open(call_headers(path=path))
        connection.read()


def unread_streams(port, stop):
    """Large requests on streams whose answers are not read."""
    send_on_streams(Connection(port, window=0), stop, prefixed(traffic.zeros('wide', 1 << 18)))


def small_requests_on_a_stream(port, stop):
    """As many as the server takes, and all answers are read."""
    send_on_streams(Connection(port, window=(1 << 31) - 1), stop, prefixed(traffic.zeros()) * 50, streams=1)


def half_messages_on_streams(port, stop):
    """A whole message first, so that the stream is in use, and then half of a large one."""
    connection = Connection(port)
    while not stop.is_set():
        stream = connection.open(call_headers(path=STREAM))
        connection.data(stream, prefixed(traffic.zeros()) + prefixed(bytes(32 * MIB))[:-1], end=False)


def cancelled_streams(port, stop):
    """Streams with some requests each, reset at once."""
    connection = Connection(port)
    message = prefixed(traffic.zeros()) * 8
    while not stop.is_set():
        stream = connection.open(call_headers(path=STREAM))
        connection.data(stream, message, end=False)
        connection.send(frame(RST_STREAM, 0, stream, struct.pack('>I', 8)))
        connection.read()


def answers_without_end(port, stop):
    """A decoupled model's, of which none is read."""
    send_on_streams(Connection(port, window=0), stop, prefixed(traffic.zeros('endless')))


def errors_without_end(port, stop):
    """Requests that are refused at once, on as many streams as there may be."""
    send_on_streams(Connection(port, window=0), stop, prefixed(traffic.zeros('nobody')) * 50, streams=1000)


def unread_reflection(port, stop):
    """Asks for all files again and again, and reads none."""
    symbol = b'inference.GRPCInferenceService'
    asked = prefixed(b'\x22' + bytes([len(symbol)]) + symbol)
    send_on_streams(Connection(port, window=0), stop, asked * 20, REFLECTION, streams=1000)


def ask(connection, path, request, at_once=16):
    """Sends one request, once fewer than so many are open."""
    while len(connection.windows) >= at_once:
        connection.read(0.01)
    connection.data(connection.open(call_headers(path=path)), prefixed(request.SerializeToString()))


@contextlib.contextmanager
def shared_file(name, size):
    """Shared memory that the server may open."""
    file = pathlib.Path('/dev/shm') / (PREFIX + name)
    try:
        file.write_bytes(bytes(size))
        yield file
    finally:
        file.unlink(missing_ok=True)


def registrations(port, stop):
    """Shared memory of all kinds of names and sizes, as many regions as there may be, and lists of them."""
    connection = Connection(port)
    with shared_file('small', 4096) as small:
        keys = ['/x', '/../../etc/passwd', '', '/' + 'k' * 4000, '/dev/zero', f'/{PREFIX}none', f'/{PREFIX}../x']
        wrong = [service_pb2.SystemSharedMemoryRegisterRequest(name='r', key=key, offset=(1 << 64) - 1, byte_size=1)
                 for key in keys]
        wrong += [service_pb2.SystemSharedMemoryRegisterRequest(name=name, key=small.name, offset=offset, byte_size=size)
                  for name in ('r', 'n' * MIB)
                  for offset, size in ((0, 0), (1, 4096), (4096, 1), (1 << 63, 1), (0, (1 << 64) - 1))]
        for i in itertools.count():
            for message in wrong:
                ask(connection, REGISTER, message)
            for region in range(300):
                ask(connection, REGISTER, service_pb2.SystemSharedMemoryRegisterRequest(
                    name=f'{region} of {i}', key=small.name, offset=region, byte_size=64))
            for _ in range(300):
                ask(connection, STATUS, service_pb2.SystemSharedMemoryStatusRequest())
            ask(connection, UNREGISTER, service_pb2.SystemSharedMemoryUnregisterRequest())
            if stop.is_set():
                return


def of_region(tensor, size):
    tensor.parameters['shared_memory_region'].string_param = 'large'
    tensor.parameters['shared_memory_byte_size'].int64_param = size


def shrinking_regions(port, stop):
    """A request's tensors, in memory that shrinks, grows and is unlinked meanwhile."""
    connection, size = Connection(port), 4 << 18
    request = service_pb2.ModelInferRequest(model_name='wide')
    of_region(request.inputs.add(name='INPUT0', datatype='FP32', shape=(1, 1 << 18)), size)
    of_region(request.outputs.add(name='OUTPUT0'), size)
    while not stop.is_set():
        with shared_file('large', size) as file:
            ask(connection, REGISTER, service_pb2.SystemSharedMemoryRegisterRequest(
                name='large', key=file.name, byte_size=size))
            for cut in (size, 0, size // 2, 1, size):
                os.truncate(file, cut)
                for _ in range(4):
                    ask(connection, traffic.METHOD, request)
        ask(connection, traffic.METHOD, request)
        ask(connection, UNREGISTER, service_pb2.SystemSharedMemoryUnregisterRequest(name='large'))


def settings(port, stop):
    """Of the log and of traces: as many as a message may hold, and long names."""
    connection = Connection(port)
    messages = []
    for path, kind in ((LOG_SETTINGS, service_pb2.LogSettingsRequest), (TRACE_SETTING, service_pb2.TraceSettingRequest)):
        many, long = kind(), kind()
        for i in range(4000):
            many.settings[f'key {i}'].SetInParent()
        long.settings['k' * 60000].SetInParent()
        messages += [(path, many), (path, long), (path, kind())]
    while not stop.is_set():
        for path, message in messages:
            ask(connection, path, message)


def health_watches(port, stop):
    """Of models that there are and that there are not, which do not end by themselves, and are not read."""
    watched = [prefixed(service_pb2.ModelReadyRequest(name=name).SerializeToString())  # the same bytes
               for name in ('identity', '', 'nobody', 'n' * 60000)]
    connection = Connection(port, window=0)
    while not stop.is_set():
        for message in watched:
            stream = connection.open(call_headers(path=WATCH))
            connection.data(stream, message, patience=0.05)
            if len(connection.windows) > 900:
                connection.send(frame(RST_STREAM, 0, stream, struct.pack('>I', 8)))
                connection.windows.pop(stream, None)
        connection.read()


def operators_orders(port, stop):
    """At the address of operators: of models that are not there, with names and configurations of a MiB, and lists."""
    connection = Connection(port)
    orders = []
    for name in ('nobody', '../identity', 'n' * (MIB - 64)):
        load = service_pb2.RepositoryModelLoadRequest(model_name=name)
        orders += [(LOAD, load), (UNLOAD, service_pb2.RepositoryModelUnloadRequest(model_name=name))]
    for key in ('config', 'file:1/model.onnx', 'k'):
        load = service_pb2.RepositoryModelLoadRequest(model_name='nobody')
        load.parameters[key].string_param = '{"input": [' * 50000
        orders.append((LOAD, load))
    orders.append((INDEX, service_pb2.RepositoryIndexRequest()))
    while not stop.is_set():
        for path, message in orders:
            ask(connection, path, message, at_once=8)


def brought_models(port, stop):
    """At the address of operators: files of 16 MiB in place of models, under some names, and paths that lead out."""
    connection = Connection(port)
    orders = []
    for number, path in enumerate(('1/model.onnx', '1/model.swz', '1/weights/data', '../../x', '1/model.onnx/x')):
        load = service_pb2.RepositoryModelLoadRequest(model_name=f'brought{number % 2}')
        load.parameters['config'].string_param = '{}'
        load.parameters[f'file:{path}'].bytes_param = bytes(16 * MIB)
        orders.append(load)
    while not stop.is_set():
        for message in orders:
            ask(connection, LOAD, message, at_once=8)


# Those that are made at the address of operators.
OPERATORS = (operators_orders, brought_models)

ATTACKS = [unread_streams, small_requests_on_a_stream, half_messages_on_streams, cancelled_streams, answers_without_end,
           errors_without_end, unread_reflection, registrations, shrinking_regions, settings, health_watches,
           *OPERATORS]
