"""What an image of 3 x 224 x 224 costs on its way to a model, by TCP and a Unix socket, in messages and in shared
memory, as FP32 (602 KB) and as UINT8 (151 KB).

    python3 tests/bench/shared_memory.py build/dev/bin/swizzle-server [--quantile=0.1]

The model is an identity of images whose output stays in the server, so that what is left is the way of the input, and
a copy that the model makes. Prints the p50 (--quantile) of the round trip of each way, of a request of 64 bytes beside
it, and what the image adds, in microseconds, and what part of FP32's this is. Requests of all kinds take
turns, so that what disturbs the machine disturbs them alike.
"""

import argparse
import pathlib
import tempfile
import time

import numpy
import tritonclient.grpc as triton
import tritonclient.utils.shared_memory as shm

import traffic

IMAGES = {'FP32': numpy.zeros((1, 3, 224, 224), numpy.float32), 'UINT8': numpy.zeros((1, 3, 224, 224), numpy.uint8)}
SMALL = numpy.zeros((1, 16), numpy.float32)


def tensor(name, values, datatype='FP32', region=None):
    made = triton.InferInput(name, list(values.shape), datatype)
    if region is None:
        made.set_data_from_numpy(values)
    else:
        made.set_shared_memory(region, values.nbytes)
    return made


def prepare(models):
    for datatype in IMAGES:
        image, small = f'data_type: TYPE_{datatype} dims: [ 3, 224, 224 ]', 'data_type: TYPE_FP32 dims: [ 16 ]'
        (models / datatype / '1').mkdir(parents=True)
        (models / datatype / 'config.pbtxt').write_text(f'''backend: "identity" max_batch_size: 8
            input [ {{ name: "IMAGE" {image} }}, {{ name: "X" {small} }} ]
            output [ {{ name: "IMAGE_OUT" {image} }}, {{ name: "Y" {small} }} ]''')
    (models / 'small' / '1').mkdir(parents=True)
    (models / 'small' / 'config.pbtxt').write_text(traffic.identity_config(0, 8))


def quantiles(calls, rounds, share):
    """Of each call's times, in microseconds."""
    times = {name: [] for name in calls}
    for _ in range(rounds + 1):  # the first is no figure
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            times[name].append(time.perf_counter() - start)
    return {name: sorted(its[1:])[int(rounds * share)] * 1e6 for name, its in times.items()}


def calls_of(client, region):
    def call(model, *inputs, **options):
        return lambda: client.infer(model, list(inputs), **options)

    calls = {'small': call('small', tensor('INPUT0', SMALL))}
    for datatype, image in IMAGES.items():
        calls[datatype] = call(datatype, tensor('IMAGE', image, datatype, region), tensor('X', SMALL),
                               outputs=[triton.InferRequestedOutput('Y')])
    return calls


def report(way, figures):
    least, whole = figures['small'], figures['FP32'] - figures['small']
    for datatype, image in IMAGES.items():
        added = figures[datatype] - least
        print(f'| {way}, {datatype} | {image.nbytes / 1000:.0f} KB | {least:.0f} | {figures[datatype]:.0f} | '
              f'{added:.0f} | {added / whole:.0%} |', flush=True)


def measure(program, rounds, share, where, directory):
    key = f'swizzle-bench-{time.time_ns()}'
    path = pathlib.Path(directory) / 'socket'
    flags = [f'--shared-memory-prefix={key}'] + ([f'--grpc-address=unix:{path}'] if where == 'unix' else [])
    with traffic.Server(program, prepare, *flags) as server:
        address = f'unix:{path}' if where == 'unix' else server.address
        size = IMAGES['FP32'].nbytes
        handle = shm.create_shared_memory_region('image', '/' + key, size)
        try:
            with triton.InferenceServerClient(address) as client:
                client.register_system_shared_memory('image', '/' + key, size)
                for region in (None, 'image'):
                    figures = quantiles(calls_of(client, region), rounds, share)
                    report(f'{where}, {"shared memory" if region else "message"}', figures)
        finally:
            shm.destroy_shared_memory_region(handle)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('program')
    parser.add_argument('--rounds', type=int, default=300)
    parser.add_argument('--quantile', type=float, default=0.5, help='of round trips; a low one on a busy machine')
    arguments = parser.parse_args()
    print("| way | image | 64 bytes, us | with the image, us | the image, us | of FP32's |")
    print('|---|---|---|---|---|---|')
    with tempfile.TemporaryDirectory() as directory:
        for where in ('tcp', 'unix'):
            measure(arguments.program, arguments.rounds, arguments.quantile, where, directory)


if __name__ == '__main__':
    main()
