"""What a request costs over HTTP, by the binary tensor data extension, beside gRPC: Triton's clients of both, and a
plain socket, which shows what of HTTP's time is the server's.

    python3 tests/bench/http_beside_grpc.py build/dev/bin/swizzle-server [ANOTHER_BUILD/bin/swizzle-server ...]

An identity answers 64 bytes; a tensor of 64 bytes to an image of 3 x 224 x 224 in FP32 (602 KB), as a classifier does;
or the image. Prints the p50 of the round trip of each way, and HTTP's as a part of gRPC's: the median of --blocks of
--rounds requests. The three ways, and the programs, take turns by request, so that what disturbs the machine disturbs
them alike.
"""

import argparse
import contextlib
import socket
import statistics
import time

import numpy
import tritonclient.grpc
import tritonclient.http

import traffic

IMAGE = numpy.random.default_rng(0).random((1, 3, 224, 224), numpy.float32)
SMALL = numpy.zeros((1, 16), numpy.float32)
# By the request's name: the model, its inputs, and the output that is asked for.
REQUESTS = {'64 bytes': ('small', {'INPUT0': SMALL}, 'OUTPUT0'),
            'image, 64 bytes back': ('image', {'IMAGE': IMAGE, 'X': SMALL}, 'Y'),
            'image, image back': ('image', {'IMAGE': IMAGE, 'X': SMALL}, 'IMAGE_OUT')}


def prepare(models):
    image, small = 'data_type: TYPE_FP32 dims: [ 3, 224, 224 ]', 'data_type: TYPE_FP32 dims: [ 16 ]'
    for name in ('image', 'small'):
        (models / name / '1').mkdir(parents=True)
    (models / 'small' / 'config.pbtxt').write_text(traffic.identity_config(0, 8))
    (models / 'image' / 'config.pbtxt').write_text(f'''backend: "identity" max_batch_size: 8
        input [ {{ name: "IMAGE" {image} }}, {{ name: "X" {small} }} ]
        output [ {{ name: "IMAGE_OUT" {image} }}, {{ name: "Y" {small} }} ]''')


def tensors(library, arrays):
    made = [library.InferInput(name, list(array.shape), 'FP32') for name, array in arrays.items()]
    for tensor, array in zip(made, arrays.values()):
        tensor.set_data_from_numpy(array)
    return made


def call_by(library, client, model, arrays, output):
    inputs, outputs = tensors(library, arrays), [library.InferRequestedOutput(output)]
    return lambda: client.infer(model, inputs, outputs=outputs)


def call_by_socket(connection, model, arrays, output):
    """Sends the same bytes again and again, and reads each answer into the same place."""
    body, json_bytes = tritonclient.http.InferenceServerClient.generate_request_body(
        tensors(tritonclient.http, arrays), outputs=[tritonclient.http.InferRequestedOutput(output)])
    message = (f'POST /v2/models/{model}/infer HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n'
               f'Inference-Header-Content-Length: {json_bytes}\r\n\r\n').encode() + body
    answer = bytearray(1 << 20)

    def call():
        connection.sendall(message)
        got, whole = 0, None
        while whole is None or got < whole:
            got += connection.recv_into(memoryview(answer)[got:])
            end = answer.find(b'\r\n\r\n', 0, got)
            if whole is None and end >= 0:
                assert answer.startswith(b'HTTP/1.1 200 '), bytes(answer[:got])
                whole = end + 4 + int(answer[:end].partition(b'Content-Length: ')[2].partition(b'\r\n')[0])
    return call


def calls_of(server, stack, request):
    by_http = f'127.0.0.1:{server.ports["http"]}'
    grpc = stack.enter_context(tritonclient.grpc.InferenceServerClient(server.address))
    http = stack.enter_context(tritonclient.http.InferenceServerClient(by_http))
    connection = stack.enter_context(socket.create_connection(('127.0.0.1', server.ports['http'])))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return {'grpc': call_by(tritonclient.grpc, grpc, *request), 'http': call_by(tritonclient.http, http, *request),
            'socket': call_by_socket(connection, *request)}


def p50s(calls, rounds):
    """In microseconds."""
    times = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            times[name].append((time.perf_counter() - start) * 1e6)
    return {name: statistics.median(its) for name, its in times.items()}


def measure(programs, servers, name, arguments):
    with contextlib.ExitStack() as stack:
        calls = {(program, way): call for program, server in zip(programs, servers)
                 for way, call in calls_of(server, stack, REQUESTS[name]).items()}
        p50s(calls, 50)  # the first are no figures
        blocks = [p50s(calls, arguments.rounds) for _ in range(arguments.blocks)]
    for program in programs:
        grpc, http, plain = ([block[program, way] for block in blocks] for way in ('grpc', 'http', 'socket'))
        part = statistics.median(one / other for one, other in zip(http, grpc))
        print(f'| {program} | {name} | {statistics.median(grpc):.0f} | {statistics.median(http):.0f} | {part:.0%} | '
              f'{statistics.median(plain):.0f} |', flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('programs', nargs='+')
    parser.add_argument('--rounds', type=int, default=200)
    parser.add_argument('--blocks', type=int, default=9)
    arguments = parser.parse_args()
    print("| program | request | gRPC, us | HTTP, us | of gRPC's | HTTP by a socket, us |")
    print('|---|---|---|---|---|---|')
    with contextlib.ExitStack() as stack:
        servers = [stack.enter_context(traffic.Server(program, prepare, '--http-address=127.0.0.1:0'))
                   for program in arguments.programs]
        for name in REQUESTS:
            measure(arguments.programs, servers, name, arguments)


if __name__ == '__main__':
    main()
