"""The quick start's demonstration: serves a MobileNet dense, pruned, and pruned and quantised, and compares the three.

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
import resource
import shutil
import signal
import statistics
import struct
import subprocess
import sys
import time
import zipfile
import zlib

HERE = pathlib.Path(__file__).resolve().parent
DATASET = pathlib.Path('/usr/share/datasets/fashion-mnist')
CLASSES = ('T-shirt/top', 'trouser', 'pullover', 'dress', 'coat', 'sandal', 'shirt', 'sneaker', 'bag', 'ankle boot')
SPARSE = 'mobilenet_v1_fashion_sparse90.onnx'
MODELS = {'dense': 'mobilenet_v1_fashion.onnx', 'sparse': SPARSE, 'int8': SPARSE}
SIDE = 28
SHOWN_IMAGE = 0
BATCH = 32
BLOCKS = 12  # the test images go to the models in turn, a block at a time
IMAGES = 9996  # in blocks of the same size
CALIBRATION_IMAGES = 500  # of those that it was trained on
OTHERS_SHARE = 0.15  # more of the processors than this with other programs: busy
BLOCK_SPREAD = 1.5  # the slowest block's median over the fastest one's: from here on something came between
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


def npy(descr, shape, data):
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}"
    header += ' ' * (-(10 + len(header) + 1) % 64) + '\n'
    return b'\x93NUMPY\x01\x00' + struct.pack('<H', len(header)) + header.encode() + data


def normalised(pixels):
    """FP32 from 0 to 1, little-endian."""
    values = array.array('f', [value / 255 for value in range(256)])
    floats = array.array('f', (values[pixel] for pixel in pixels))
    if sys.byteorder == 'big':
        floats.byteswap()
    return floats.tobytes()


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
    """Writes blocks of images (FP32 from 0 to 1) and of their labels, and one.npy; returns (pixels, labels)."""
    pixels, labels = read_idx('t10k-images-idx3-ubyte.gz'), read_idx('t10k-labels-idx1-ubyte.gz')
    size, count = SIDE * SIDE, IMAGES // BLOCKS
    for block in range(BLOCKS):
        first, last = block * count, (block + 1) * count
        images = npy('<f4', (count, 1, SIDE, SIDE), normalised(pixels[first * size:last * size]))
        (work / f'images{block}.npy').write_bytes(images)
        (work / f'labels{block}.npy').write_bytes(npy('|u1', (count,), labels[first:last]))
    one = normalised(pixels[SHOWN_IMAGE * size:(SHOWN_IMAGE + 1) * size])
    (work / 'one.npy').write_bytes(npy('<f4', (1, 1, SIDE, SIDE), one))
    return pixels, labels


def prepare_calibration(work):
    """Writes some of the images that the model was trained on, from all over the set, as swizzle-pack reads them."""
    pixels, size = read_idx('train-images-idx3-ubyte.gz'), SIDE * SIDE
    step = len(pixels) // size // CALIBRATION_IMAGES
    chosen = b''.join(pixels[i * step * size:(i * step + 1) * size] for i in range(CALIBRATION_IMAGES))
    with zipfile.ZipFile(work / 'calibration.npz', 'w') as archive:
        archive.writestr('image.npy', npy('<f4', (CALIBRATION_IMAGES, 1, SIDE, SIDE), normalised(chosen)))
    return work / 'calibration.npz'


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
    """A folder of models; the sparse one is packed, and quantised by what calibration data makes of its activations."""
    repository, calibration = work / 'models', prepare_calibration(work)
    shutil.rmtree(repository, ignore_errors=True)
    for model, file in MODELS.items():
        directory = repository / model / '1'
        directory.mkdir(parents=True)
        if model == 'dense':
            shutil.copy(HERE / 'models' / file, directory / 'model.onnx')
        elif model == 'sparse':
            programs.run('swizzle-pack', 'pack', HERE / 'models' / file, directory / 'model.swz')
        else:
            programs.run('swizzle-pack', 'quantize', HERE / 'models' / file, directory / 'model.swz',
                         f'--calibration={calibration}')
    return repository


@contextlib.contextmanager
def serving(programs, repository, work):
    """A server on free ports, drained at the end; yields its ports and its process id."""
    port_file, log_file = work / 'ports.json', work / 'server.log'
    port_file.unlink(missing_ok=True)
    with open(log_file, 'wb') as log:
        # A session of its own: Ctrl-C is for this script, which then drains the server.
        server = subprocess.Popen(
            [programs.directory / 'swizzle-server', f'--model-repository={repository}', '--grpc-address=127.0.0.1:0',
             '--metrics-address=127.0.0.1:0', '--tune=before-ready', f'--port-file={port_file}'],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
    try:
        deadline = time.monotonic() + START_SECONDS
        while not port_file.exists():
            if server.poll() is not None or time.monotonic() > deadline:
                sys.stderr.write(log_file.read_text(errors='replace')[-2000:])
                fail(f'the server did not start; its log is {log_file}')
            time.sleep(0.05)
        yield json.loads(port_file.read_text()) | {'pid': server.pid}
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


def busy_seconds(stat, processors):
    """What these processors have worked, for whomever, from the text of /proc/stat; None if it does not say."""
    ticks, found = 0, 0
    for line in stat.splitlines():
        name, *fields = line.split()
        if name.startswith('cpu') and name[3:].isdigit() and int(name[3:]) in processors and len(fields) >= 8:
            user, nice, system, _, _, irq, softirq, steal = map(int, fields[:8])
            ticks, found = ticks + user + nice + system + irq + softirq + steal, found + 1
    return ticks / os.sysconf('SC_CLK_TCK') if found == len(processors) and ticks else None


def own_seconds(server):
    """What this script, its children that have ended, and the server with this process id have worked."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    fields = pathlib.Path(f'/proc/{server}/stat').read_text().rpartition(')')[2].split()
    ticks = int(fields[11]) + int(fields[12])
    return sum(each.ru_utime + each.ru_stime for each in used) + ticks / os.sysconf('SC_CLK_TCK')


class MachineLoad:
    """How much of this script's processors other programs take, from when it is made."""

    def __init__(self, server):
        self.server, self.processors = server, os.sched_getaffinity(0)
        self.begin = self.now()

    def now(self):
        try:
            busy = busy_seconds(pathlib.Path('/proc/stat').read_text(), self.processors)
        except OSError:
            busy = None
        return time.monotonic(), busy, own_seconds(self.server)

    def others(self):
        """From 0 to 1; None where that can't be known."""
        return others_share(self.begin, self.now(), len(self.processors))


def others_share(begin, end, processors):
    """Of two (time, seconds that processors worked, seconds of ours)."""
    (begin_time, begin_busy, begin_own), (end_time, end_busy, end_own) = begin, end
    if begin_busy is None or end_busy is None or end_time <= begin_time:
        return None
    others = (end_busy - begin_busy) - (end_own - begin_own)
    return min(max(others / ((end_time - begin_time) * processors), 0.0), 1.0)


def busy_note(others, spread):
    """What to say of a machine of which others took that share, and whose blocks' medians differ by that factor; '' if
    it was quiet."""
    signs = []
    if others is not None and others > OTHERS_SHARE:
        signs.append(f'other programs took {100 * others:.0f} % of its processors')
    if spread > BLOCK_SPREAD:
        signs.append(f'blocks of one model differ by up to {spread:.1f}x')
    if not signs:
        return ''
    return (f'The machine was busy while this was measured:\n{", and ".join(signs)}.\n'
            'The models took turns, but a quiet machine shows what they can do: run this again there.')


def merge(reports):
    """One report of those of the blocks: sums, and medians of what each block measured."""
    def median(kind, quantile):
        return statistics.median(report[kind][quantile] for report in reports)

    images = sum(report['images'] for report in reports)
    return {'top1': sum(report['correct'] for report in reports) / images,
            'images_per_second': images / sum(report['images'] / report['images_per_second'] for report in reports),
            'latency_ms': {'p50': median('latency_ms', 'p50'), 'p99': median('latency_ms', 'p99')},
            'server_compute_ms': {'p50': median('server_compute_ms', 'p50')}}


def spread_of(reports):
    medians = [report['latency_ms']['p50'] for report in reports]
    return max(medians) / min(medians)


def turns(blocks):
    """(block, model): each model gets every block, and is first in as many as any other."""
    models = list(MODELS)
    return [(block, models[(block + i) % len(models)]) for block in range(blocks) for i in range(len(models))]


def measure(programs, work, server):
    """{model: {'one': report of batch 1, 'many': of batch 32, 'metadata': ...}}, and what is to be said of them."""
    load, spread = MachineLoad(server), 1.0
    results = {model: {'metadata': programs.swizzle('metadata', model)['properties']} for model in MODELS}
    for key, batch in (('one', 1), ('many', BATCH)):
        print(f'Sending {IMAGES:,} images to each model, {batch} at a time, in {BLOCKS} blocks in turn ...', flush=True)
        reports = {model: [] for model in MODELS}
        for block, model in turns(BLOCKS):
            files = (f'--images={work / f"images{block}.npy"}', f'--labels={work / f"labels{block}.npy"}')
            reports[model].append(programs.swizzle('classify', model, *files, f'--batch={batch}'))
        for model in MODELS:
            results[model][key] = merge(reports[model])
            spread = max(spread, spread_of(reports[model]))
    return results, busy_note(load.others(), spread)


def print_table(results):
    def row(title, value, form, ratio=None):
        dense = value(results['dense'])
        line = f'  {title:<34}{form(dense):>12}'
        for model in ('sparse', 'int8'):
            measured = value(results[model])
            gain = '' if ratio is None else f'{ratio(dense, measured):.1f}x'
            line += f'{form(measured):>12}{gain:>7}'
        print(line.rstrip())

    def milliseconds(value):
        return f'{value:.2f} ms'

    def megabytes(value):
        return f'{value / 1e6:.2f} MB'

    def less(a, b):
        return a / b

    def more(a, b):
        return b / a

    processors = len(os.sched_getaffinity(0))
    print(f'\n  MobileNetV1, {len(CLASSES)} classes, {IMAGES:,} test images, one client, {processors} processors\n')
    print(f'  {"":<34}{"dense":>12}{"sparse":>12}{"gain":>7}{"int8":>12}{"gain":>7}')
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

    print('Packing the sparse model, and quantising it ...', flush=True)
    repository = make_repository(options.work, programs)
    pixels, labels = prepare_images(options.work)
    print('Starting the server; it measures kernels for each layer ...', flush=True)
    with serving(programs, repository, options.work) as ports:
        programs.address = f'127.0.0.1:{ports["grpc"]}'
        metrics = f'http://127.0.0.1:{ports["metrics"]}/metrics'
        results, note = measure(programs, options.work, ports['pid'])
        print_table(results)
        if note:
            print('\n' + '\n'.join('  ' + line for line in note.splitlines()))
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
