"""The quick start's demonstration: serves a pruned MobileNet beside its dense twin and compares the two.

deploy/quickstart builds the programs and runs this. It needs Python's standard library alone; every figure that it
prints was measured in this run by the programs `swizzle` and `swizzle-server`.
"""

import argparse
import array
import contextlib
import gzip
import json
import os
import pathlib
import shutil
import signal
import struct
import subprocess
import sys
import time
import zlib

HERE = pathlib.Path(__file__).resolve().parent
DATASET = pathlib.Path('/usr/share/datasets/fashion-mnist')
CLASSES = ('T-shirt/top', 'trouser', 'pullover', 'dress', 'coat', 'sandal', 'shirt', 'sneaker', 'bag', 'ankle boot')
MODELS = {'dense': 'mobilenet_v1_fashion.onnx', 'sparse': 'mobilenet_v1_fashion_sparse90.onnx'}
SIDE = 28
SHOWN_IMAGE = 0
BATCH = 32
START_SECONDS = 120
STOP_SECONDS = 60


def fail(message):
    sys.exit(f'quickstart: {message}')


def read_idx(name):
    """The bytes of one of the data set's files, without the header of `dimensions` numbers."""
    try:
        with gzip.open(DATASET / name) as file:
            content = file.read()
    except FileNotFoundError:
        fail(f'{DATASET / name} is not there; install the Debian package dataset-fashion-mnist')
    return content[4 + 4 * content[3]:]


def write_npy(path, descr, shape, data):
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}"
    header += ' ' * (-(10 + len(header) + 1) % 64) + '\n'
    path.write_bytes(b'\x93NUMPY\x01\x00' + struct.pack('<H', len(header)) + header.encode() + data)


def write_png(path, pixels, side, scale):
    """A grey image, each pixel as a square of `scale` pixels."""
    rows = [bytes(pixel for pixel in pixels[y * side:(y + 1) * side] for _ in range(scale)) for y in range(side)]
    lines = b''.join((b'\0' + row) * scale for row in rows)

    def chunk(kind, data):
        return struct.pack('>I', len(data)) + kind + data + struct.pack('>I', zlib.crc32(kind + data))

    size = struct.pack('>IIBBBBB', side * scale, side * scale, 8, 0, 0, 0, 0)
    chunks = chunk(b'IHDR', size) + chunk(b'IDAT', zlib.compress(lines)) + chunk(b'IEND', b'')
    path.write_bytes(b'\x89PNG\r\n\x1a\n' + chunks)


def draw(pixels, side):
    """The image in characters: shades of grey on a terminal, else letters."""
    lines = []
    for y in range(side):
        row = pixels[y * side:(y + 1) * side]
        if sys.stdout.isatty():
            lines.append(''.join(f'\033[48;5;{232 + pixel * 23 // 255}m  ' for pixel in row) + '\033[0m')
        else:
            lines.append(''.join(' .:-=+*#%@'[pixel * 9 // 255] * 2 for pixel in row).rstrip())
    return '\n'.join('  ' + line for line in lines if line)


def prepare_images(work):
    """Writes images.npy (FP32 from 0 to 1), labels.npy and one.npy; returns (pixels, labels)."""
    pixels, labels = read_idx('t10k-images-idx3-ubyte.gz'), read_idx('t10k-labels-idx1-ubyte.gz')
    values = array.array('f', [value / 255 for value in range(256)])
    floats = array.array('f', (values[pixel] for pixel in pixels))
    if sys.byteorder == 'big':
        floats.byteswap()
    write_npy(work / 'images.npy', '<f4', (len(labels), 1, SIDE, SIDE), floats.tobytes())
    write_npy(work / 'labels.npy', '|u1', (len(labels),), labels)
    size = SIDE * SIDE
    one = floats[SHOWN_IMAGE * size:(SHOWN_IMAGE + 1) * size]
    write_npy(work / 'one.npy', '<f4', (1, 1, SIDE, SIDE), one.tobytes())
    return pixels, labels


class Programs:
    """Runs swizzle and swizzle-pack."""

    def __init__(self, directory):
        self.directory = directory
        self.address = None

    def run(self, name, *arguments):
        result = subprocess.run([self.directory / name, *map(str, arguments)], stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, text=True)
        if result.returncode:
            fail(f'`{name} {arguments[0]}` ended with exit code {result.returncode}')
        return result.stdout

    def swizzle(self, *arguments):
        return json.loads(self.run('swizzle', *arguments, f'--address={self.address}', '--output=json'))


def make_repository(work, programs):
    repository = work / 'models'
    shutil.rmtree(repository, ignore_errors=True)
    for model, file in MODELS.items():
        directory = repository / model / '1'
        directory.mkdir(parents=True)
        if model == 'sparse':
            programs.run('swizzle-pack', 'pack', HERE / 'models' / file, directory / 'model.swz')
        else:
            shutil.copy(HERE / 'models' / file, directory / 'model.onnx')
    return repository


@contextlib.contextmanager
def serving(programs, repository, work):
    """A server on free ports, drained at the end; yields its ports."""
    port_file, log_file = work / 'ports.json', work / 'server.log'
    port_file.unlink(missing_ok=True)
    with open(log_file, 'wb') as log:
        # A session of its own: Ctrl-C is for this script, which then drains the server.
        server = subprocess.Popen(
            [programs.directory / 'swizzle-server', f'--model-repository={repository}', '--grpc-address=127.0.0.1:0',
             '--metrics-address=127.0.0.1:0', f'--port-file={port_file}'],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
    try:
        deadline = time.monotonic() + START_SECONDS
        while not port_file.exists():
            if server.poll() is not None or time.monotonic() > deadline:
                sys.stderr.write(log_file.read_text(errors='replace')[-2000:])
                fail(f'the server did not start; its log is {log_file}')
            time.sleep(0.05)
        yield json.loads(port_file.read_text())
    finally:
        server.send_signal(signal.SIGTERM)
        try:
            code = server.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            server.kill()
            code = server.wait()
        print(f'The server ended with exit code {code}.')
        if code != 0 and sys.exc_info()[0] is None:
            fail(f'the server did not end cleanly; its log is {log_file}')


def measure(programs, work):
    """{model: {'one': report of batch 1, 'many': report of batch 32, 'metadata': ...}}"""
    files = (f'--images={work / "images.npy"}', f'--labels={work / "labels.npy"}')
    results = {model: {'metadata': programs.swizzle('metadata', model)['properties']} for model in MODELS}
    for key, batch in (('one', 1), ('many', BATCH)):
        for model in MODELS:
            print(f'Sending 10,000 images to {model}, {batch} at a time ...', flush=True)
            results[model][key] = programs.swizzle('classify', model, *files, f'--batch={batch}')
    return results


def print_table(results):
    dense, sparse = results['dense'], results['sparse']

    def row(title, value, form, ratio=None):
        a, b = value(dense), value(sparse)
        gain = '' if ratio is None else f'{ratio(a, b):7.1f}x'
        print(f'  {title:<34}{form(a):>12}{form(b):>12}{gain:>10}'.rstrip())

    def milliseconds(value):
        return f'{value:.2f} ms'

    def megabytes(value):
        return f'{value / 1e6:.2f} MB'

    def less(a, b):
        return a / b

    def more(a, b):
        return b / a

    processors = len(os.sched_getaffinity(0))
    print(f'\n  MobileNetV1, {len(CLASSES)} classes, 10,000 test images, one client, {processors} processors\n')
    print(f'  {"":<34}{"dense":>12}{"sparse":>12}{"gain":>10}')
    row('top-1', lambda r: r['one']['top1'], lambda value: f'{100 * value:.2f} %')
    row('latency of one image, p50', lambda r: r['one']['latency_ms']['p50'], milliseconds, less)
    row('latency of one image, p99', lambda r: r['one']['latency_ms']['p99'], milliseconds, less)
    row('images/s, one at a time', lambda r: r['one']['images_per_second'], '{:.0f}'.format, more)
    row(f'images/s, {BATCH} at a time', lambda r: r['many']['images_per_second'], '{:.0f}'.format, more)
    row('server compute, batch of 1, p50', lambda r: r['one']['server_compute_ms']['p50'], milliseconds, less)
    row(f'server compute, batch of {BATCH}, p50', lambda r: r['many']['server_compute_ms']['p50'], milliseconds, less)
    row('weights if dense', lambda r: int(r['metadata']['swizzle_dense_bytes']), megabytes)
    row('weights as stored', lambda r: int(r['metadata']['swizzle_stored_bytes']), megabytes, less)


def print_kernels(results):
    print('\n  Kernels chosen (layers):')
    for model in MODELS:
        counts = [item.rpartition(':') for item in results[model]['metadata']['swizzle_kernels'].split(',')]
        for i, (kernel, _, count) in enumerate(sorted(counts, key=lambda item: -int(item[2]))):
            print(f'  {model if i == 0 else "":<8}{count:>4}  {kernel}')


def show_one(programs, work, pixels, labels):
    size = SIDE * SIDE
    picture = pixels[SHOWN_IMAGE * size:(SHOWN_IMAGE + 1) * size]
    write_png(work / 'picture.png', picture, SIDE, scale=10)
    result = programs.swizzle('infer', 'sparse', '--input', f'image={work / "one.npy"}', '--top=1')
    predicted = result['outputs'][0]['top'][0][0]['index']
    print(f'\n{draw(picture, SIDE)}\n')
    print(f'  The sparse model says: {CLASSES[predicted]}. The label says: {CLASSES[labels[SHOWN_IMAGE]]}. '
          f'({work / "picture.png"})')


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--bin', type=pathlib.Path, required=True)
    parser.add_argument('--work', type=pathlib.Path, required=True)
    parser.add_argument('--keep', action='store_true')
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    programs = Programs(options.bin)

    print('Packing the sparse model ...', flush=True)
    repository = make_repository(options.work, programs)
    pixels, labels = prepare_images(options.work)
    print('Starting the server; it measures kernels for each layer ...', flush=True)
    with serving(programs, repository, options.work) as ports:
        programs.address = f'127.0.0.1:{ports["grpc"]}'
        metrics = f'http://127.0.0.1:{ports["metrics"]}/metrics'
        results = measure(programs, options.work)
        print_table(results)
        print_kernels(results)
        show_one(programs, options.work, pixels, labels)
        print(f'\n  Metrics: {metrics}')
        if options.keep:
            print(f'  gRPC:    {programs.address}')
            print(f'  Try:     {options.bin}/swizzle --address={programs.address} metadata sparse')
            print('  Serving until Ctrl-C.', flush=True)
            signal.pause()
        print('  To keep the server running: ./deploy/quickstart --keep')


def stop(*_):
    raise KeyboardInterrupt


if __name__ == '__main__':
    signal.signal(signal.SIGTERM, stop)
    try:
        main()
    except KeyboardInterrupt:
        print('\nStopped.')
