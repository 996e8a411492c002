"""`swizzle watch`, `stats`, `config`, and `bench` without inputs, at real servers."""

import csv
import json
import re
import subprocess

from conftest import ROOT, STOP_SECONDS, program
from pseudo_terminal import OnTerminal

BERT = ROOT / 'tests' / 'testdata' / 'checkpoints' / 'bert'


def swizzle(server, *arguments, code=0):
    command = [program('swizzle'), f'--address={server.grpc}', *map(str, arguments)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=300, stdin=subprocess.DEVNULL)
    assert result.returncode == code, result.stdout + result.stderr
    return result.stderr if code else result.stdout


def rate(drawn):
    """Requests a second of the model, in the table that was drawn last."""
    found = re.findall(r'\nidentity +([\d.]+) ', drawn.rpartition('\x1b[J')[2])
    return float(found[0]) if found else 0


def test_the_live_table_shows_requests_and_survives_a_restart(start, repository):
    repository.identity()
    server = start(repository)
    terminal = OnTerminal(program('swizzle'), f'--address={server.grpc}', 'watch', '--interval=0.2')
    try:
        terminal.until(lambda drawn: 'identity' in drawn and 'READY' in drawn)
        with subprocess.Popen([program('swizzle'), f'--address={server.grpc}', 'bench', 'identity', '--duration=600'],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as load:
            terminal.until(lambda drawn: rate(drawn) > 0)
            load.kill()
        assert '\x1b[2A\r\x1b[J' in terminal.drawn  # over its two lines
        server.kill()
        terminal.until(lambda drawn: 'no server answers' in drawn)
        restarted = start(repository, f'--grpc-address={server.grpc}')
        length = len(terminal.drawn)
        terminal.until(lambda drawn: 'identity' in drawn[length:])
        terminal.press(b'\x03')
        assert terminal.exit_code(STOP_SECONDS) == 0
        assert restarted.stop() == 0
    finally:
        terminal.close()


def test_lines_where_nobody_watches(shared_server):
    lines = swizzle(shared_server, 'watch', '--count=2', '--interval=0.1').splitlines()
    assert len(lines) == 2 and all(re.match(r'\d\d:\d\d:\d\d  ', line) for line in lines)
    looks = swizzle(shared_server, 'watch', '--count=2', '--interval=0.1', '-o', 'json').splitlines()
    assert {model['model'] for model in json.loads(looks[1])['models']} >= {'identity', 'slow'}


def test_statistics_and_configuration(shared_server):
    swizzle(shared_server, 'bench', 'identity', '--requests=20', '--warmup=0', '--batch=2')
    told, = json.loads(swizzle(shared_server, 'stats', 'identity', '--interval=0.1', '-o', 'json'))
    assert told['rows'] >= 40 and told['success']['count'] >= 20
    assert told['since']['success']['count'] == 0
    assert 'identity, version 1\n' in swizzle(shared_server, 'stats')
    assert 'nobody' in swizzle(shared_server, 'stats', 'nobody', code=1)
    config = json.loads(swizzle(shared_server, 'config', 'identity', '-o', 'json'))
    assert config['max_batch_size'] == 8 and config['input'][0]['dims'] == [16]
    assert 'max_batch_size: 8\n' in swizzle(shared_server, 'config', 'identity')


def test_encoders_need_no_inputs(start):
    """Their lengths, vocabularies and masks are told by the server; that they are right shows in that it answers."""
    server = start(None, f'--model={BERT}')
    report = json.loads(swizzle(server, 'bench', 'bert', '--requests=30', '--batch=2', '-o', 'json'))
    assert report['requests'] == 30
    assert [entry['shape'] for entry in report['inputs']] == [[2, 10]] * 3
    report = json.loads(swizzle(server, 'bench', 'bert', '--requests=5', '--shape=input_ids:4', '-o', 'json'))
    assert [entry['shape'] for entry in report['inputs']] == [[1, 4]] * 3
    assert 'the model has positions for 10' in swizzle(server, 'bench', 'bert', '--shape=input_ids:11', code=1)
    assert server.stop() == 0


def test_levels_go_to_a_table_and_to_csv(shared_server, tmp_path):
    table = swizzle(shared_server, 'bench', 'slow', '--concurrency-range=1:4:3', '--requests=8', '-f',
                    tmp_path / 'bench.csv')
    assert len(table.splitlines()) == 4
    with open(tmp_path / 'bench.csv') as file:
        rows = list(csv.DictReader(file))
    assert [row['Concurrency'] for row in rows] == ['1', '4']  # by rate
    for row in rows:
        assert int(row['Server Compute Infer']) >= 100_000  # the model takes 100 ms
        assert int(row['p50 latency']) >= 100_000
    rates = json.loads(swizzle(shared_server, 'bench', 'identity', '--request-rate-range=50:100:50', '--requests=10',
                               '-o', 'json'))['levels']
    assert [(level['request_rate'], level['failed']) for level in rates] == [(50, 0), (100, 0)]


def test_what_a_busy_server_refuses_is_counted(start, repository):
    repository.identity('slow', delay_ms=50, max_batch_size=1, extra='''
        dynamic_batching { default_queue_policy { max_queue_size: 4 } }''')
    server = start(repository)
    said = swizzle(server, 'bench', 'slow', '--request-rate-range=2000', '--requests=400', '--warmup=1', code=1)
    assert re.search(r'swizzle: \d+ requests failed, the first: ', said), said
    assert server.stop() == 0
