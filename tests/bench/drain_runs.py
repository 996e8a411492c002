"""SIGTERM under load, again and again: what clients see, and how long the server takes to leave.

    drain_runs.py [--server=PROGRAM] [--runs=20] [--clients=16] [--values=16]

Every run starts a server with an identity model of 5 ms, lets clients send as fast as they can, and stops it with a
drain delay of half a second. Prints a line a run, and ends with 1 if one saw a status other than OK and UNAVAILABLE,
left with another code than 0, or took longer than the delay and a second.
"""

import argparse
import sys
import threading
import time

import grpc
import numpy

import traffic

DELAY = 0.5


def prepare(values):
    def write(models):
        (models / 'identity' / '1').mkdir(parents=True)
        (models / 'identity' / 'config.pbtxt').write_text(traffic.identity_config(5, 8, values))
    return write


def run(options):
    wire = traffic.message('identity', numpy.ones((1, options.values)))
    tally = traffic.Tally()
    with traffic.Server(options.server, prepare(options.values), f'--drain-delay={DELAY}') as server:
        def send():
            with grpc.insecure_channel(server.address, options=traffic.CHANNEL) as channel:
                call = channel.unary_unary(traffic.METHOD)
                while server.process.poll() is None:
                    if traffic.call_once(call, wire, tally) is None:
                        time.sleep(0.002)

        threads = [threading.Thread(target=send) for _ in range(options.clients)]
        for thread in threads:
            thread.start()
        time.sleep(0.7)
        start = time.monotonic()
        server.process.terminate()
        code = server.process.wait(60)
        seconds = time.monotonic() - start
        for thread in threads:
            thread.join()
    codes = tally.codes()
    good = code == 0 and set(codes) <= {'OK', 'UNAVAILABLE'} and seconds < DELAY + 1
    print(f'exit {code} after {seconds:.2f} s', dict(codes), '' if good else 'WRONG', flush=True)
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--server', default='build/dev/bin/swizzle-server')
    parser.add_argument('--runs', type=int, default=20)
    parser.add_argument('--clients', type=int, default=16)
    parser.add_argument('--values', type=int, default=16, help='FP32 values of a request')
    options = parser.parse_args()
    good = sum(run(options) for _ in range(options.runs))
    print(f'{good} of {options.runs} runs as they should be')
    sys.exit(good < options.runs)


if __name__ == '__main__':
    main()
