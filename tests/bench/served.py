"""A swizzle-server of its own for a benchmark. Its models are tuned before they serve."""

import json
import pathlib
import subprocess
import time

READY_SECONDS = 300


class Served:
    """Serves a repository until the block that it stands in ends."""

    def __init__(self, binaries, repository, scratch, *flags):
        port_file = pathlib.Path(scratch) / 'ports.json'
        port_file.unlink(missing_ok=True)
        start = time.perf_counter()
        self.process = subprocess.Popen(
            [pathlib.Path(binaries) / 'swizzle-server', f'--model-repository={repository}', '--grpc-address=127.0.0.1:0',
             '--metrics-address=127.0.0.1:0', '--tune=before-ready', '--drain-delay=0', '--log-level=warning',
             f'--port-file={port_file}', *flags], stdout=subprocess.DEVNULL)
        while not port_file.exists():
            if self.process.poll() is not None or time.perf_counter() - start > READY_SECONDS:
                raise SystemExit('swizzle-server did not become ready; its log is above')
            time.sleep(0.002)
        self.seconds_to_ready = time.perf_counter() - start
        self.grpc_address = f'127.0.0.1:{json.loads(port_file.read_text())["grpc"]}'

    def resident_mib(self):
        status = pathlib.Path(f'/proc/{self.process.pid}/status').read_text()
        return int(status.split('VmRSS:')[1].split()[0]) / 1024

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        self.process.terminate()
        self.process.wait(60)
