"""A server whose GPU is lost to its process: it says so to clients, balancers and Kubernetes, and stays to be asked."""

import os
import shutil
import time
import urllib.error
import urllib.request

from serving import Server

LOST_SECONDS = 20  # the server asks its devices every second
PRELOADED = 'liblose_device.so'


def answer(address, path):
    """The status and text of a GET."""
    try:
        with urllib.request.urlopen(f'http://{address}{path}', timeout=5) as reply:
            return reply.status, reply.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def check(holds, what, *seen):
    if not holds:
        raise RuntimeError(f'{what}: {" ".join(map(str, seen))}')


def lose_device(programs, model, scratch):
    """Serves the model, loses its GPU and asks again; what is not as it should be is a RuntimeError."""
    programs.need('swizzle-server', 'swizzle', PRELOADED)
    repository, trigger = scratch / 'losing', scratch / 'lose_device'
    (repository / 'model' / '1').mkdir(parents=True)
    shutil.copy(model, repository / 'model' / '1' / 'model.onnx')
    environment = os.environ | {'LD_PRELOAD': str((programs.folder / PRELOADED).resolve()), 'LOSE_DEVICE_AT': str(trigger)}
    with Server(programs, repository, scratch, '--device=cuda:0', environment=environment) as server:
        def asked(*arguments):
            return programs.run('swizzle', f'--address={server.address}', *arguments, timeout=60)

        served = asked('bench', 'model', '--requests=20', '--warmup=1')
        check(served.returncode == 0, 'requests fail before the GPU is lost', served.stdout, served.stderr)
        check(asked('health').returncode == 0, 'the server is not ready before the GPU is lost')
        trigger.touch()
        end = time.time() + LOST_SECONDS
        while asked('health').returncode == 0:
            check(time.time() < end, f'the server is still ready {LOST_SECONDS} s after its GPU was lost')
            time.sleep(0.2)
        for path in ('/readyz', '/livez'):
            status, text = answer(server.metrics, path)
            check(status == 503, f'{path} answers {status} when the GPU is lost', text)
        refused = asked('bench', 'model', '--requests=20', '--warmup=0')
        check(refused.returncode != 0, 'requests succeed on a lost GPU', refused.stdout)
        check(server.process.poll() is None, 'the server ended')
        check('lost to this process, which has to be restarted' in server.log(), 'the log lacks why', server.log())
    return (refused.stderr or refused.stdout).strip().splitlines()[-1]
