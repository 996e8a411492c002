"""What an image of 602 KB costs on its way to a model, by TCP, a Unix socket, and shared memory, in turn.

    python3 tests/bench/shared_memory.py build/dev/bin/swizzle-server [--quantile=0.1]

The model is an identity of images whose output stays in the server, so that what is left is the way of the input, and
a copy that the model makes. Prints the p50 (--quantile) of the round trip of each way, of a request of 64 bytes beside
it, and what the image adds, in microseconds.
"""

import argparse
import pathlib
import tempfile
import time

import numpy
import tritonclient.grpc as triton
import tritonclient.utils.shared_memory as shm

import traffic

IMAGE = numpy.zeros((1, 3, 224, 224), numpy.float32)


def tensor(name, values, region=None):
    made = triton.InferInput(name, list(values.shape), 'FP32')
    if region is None:
        made.set_data_from_numpy(values)
    else:
        made.set_shared_memory(region, values.nbytes)
    return made


def prepare(models):
    (models / 'image' / '1').mkdir(parents=True)
    image, small = 'data_type: TYPE_FP32 dims: [ 3, 224, 224 ]', 'data_type: TYPE_FP32 dims: [ 16 ]'
    (models / 'image' / 'config.pbtxt').write_text(f'''backend: "identity" max_batch_size: 8
        input [ {{ name: "IMAGE" {image} }}, {{ name: "X" {small} }} ]
        output [ {{ name: "IMAGE_OUT" {image} }}, {{ name: "Y" {small} }} ]''')
    (models / 'small' / '1').mkdir(parents=True)
    (models / 'small' / 'config.pbtxt').write_text(traffic.identity_config(0, 8))


def quantile(call, rounds, share):
    call()
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return sorted(times)[int(rounds * share)] * 1e6


def ways(client, region):
    small = numpy.zeros((1, 16), numpy.float32)
    outputs = [triton.InferRequestedOutput('Y')]
    image = [tensor('IMAGE', IMAGE, region), tensor('X', small)]
    nothing = [tensor('INPUT0', small)]
    return (lambda: client.infer('small', nothing)), (lambda: client.infer('image', image, outputs=outputs))


def measure(program, rounds, share, where, directory):
    key = f'swizzle-bench-{time.time_ns()}'
    path = pathlib.Path(directory) / 'socket'
    flags = [f'--shared-memory-prefix={key}'] + ([f'--grpc-address=unix:{path}'] if where == 'unix' else [])
    with traffic.Server(program, prepare, *flags) as server:
        address = f'unix:{path}' if where == 'unix' else server.address
        handle = shm.create_shared_memory_region('image', '/' + key, IMAGE.nbytes)
        try:
            with triton.InferenceServerClient(address) as client:
                client.register_system_shared_memory('image', '/' + key, IMAGE.nbytes)
                for region in (None, 'image'):
                    small, image = ways(client, region)
                    least, most = quantile(small, rounds, share), quantile(image, rounds, share)
                    way = f'{where}, {"shared memory" if region else "message"}'
                    print(f'| {way} | {least:.0f} | {most:.0f} | {most - least:.0f} |', flush=True)
        finally:
            shm.destroy_shared_memory_region(handle)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('program')
    parser.add_argument('--rounds', type=int, default=300)
    parser.add_argument('--quantile', type=float, default=0.5, help='of round trips; a low one on a busy machine')
    arguments = parser.parse_args()
    print('| way | 64 bytes, us | 602 KB, us | the image, us |')
    print('|---|---|---|---|')
    with tempfile.TemporaryDirectory() as directory:
        for where in ('tcp', 'unix'):
            measure(arguments.program, arguments.rounds, arguments.quantile, where, directory)


if __name__ == '__main__':
    main()
