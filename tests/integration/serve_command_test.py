"""`swizzle serve`: what it prints works when it is pasted, and the server that it starts ends with it."""

import json
import re
import signal
import socket
import subprocess
import sys
import threading

import pytest

from conftest import ROOT, SHIPPED, SPARSE, START_SECONDS, STOP_SECONDS, program, wait_until
from pseudo_terminal import OnTerminal

FREE_PORTS = ['--http-port=0', '--grpc-port=0', '--metrics-port=0']
QUICK = ['--', '--tuning-budget=0']
BERT = ROOT / 'tests' / 'testdata' / 'checkpoints' / 'bert'


class Serve:
    """A running `swizzle serve`, once it has printed what to call."""

    def __init__(self, *arguments, flags=QUICK):
        command = [program('swizzle'), 'serve', *FREE_PORTS, *map(str, arguments), *flags]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)
        self.err = ''
        self.listener = threading.Thread(target=self._listen, daemon=True)
        self.listener.start()

    def _listen(self):
        for line in self.process.stderr:
            self.err += line

    def text(self):
        lines = []
        while not lines or 'Ctrl-C ends it' not in lines[-1]:
            lines.append(self.process.stdout.readline())
            assert lines[-1], self.ended()
        return ''.join(lines)

    def json(self):
        line = self.process.stdout.readline()
        assert line, self.ended()
        return json.loads(line)

    def ended(self, seconds=START_SECONDS):
        """Its exit code and what it said on standard error."""
        code = self.process.wait(seconds)
        self.listener.join()
        return code, self.err

    def interrupt(self):
        self.process.send_signal(signal.SIGINT)
        return self.ended(STOP_SECONDS)

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


@pytest.fixture
def serve():
    started = []

    def start(*arguments, **options):
        started.append(Serve(*arguments, **options))
        return started[-1]

    yield start
    for one in started:
        one.kill()


def pasted(*command):
    result = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def answers_no_more(port):
    with socket.socket() as probe:
        return probe.connect_ex(('127.0.0.1', port)) != 0


def test_what_it_prints_works_when_pasted(serve):
    running = serve(f'{SHIPPED / SPARSE}.onnx,name=clothes')
    said = running.text()
    assert '# clothes: image FP32 [-1,1,28,28] -> logits FP32 [-1,10]' in said
    curl, python = re.search(r'\n\n(.*?)\n# In Python \(.*?\):\n\n(.*?)\n# HTTP at', said, re.DOTALL).groups()
    answer = json.loads(pasted('bash', '-c', curl))
    assert answer['outputs'][0]['shape'] == [1, 10]
    assert 'logits' in pasted(sys.executable, '-c', python)
    port = int(re.search(r'gRPC at localhost:(\d+)', said)[1])
    assert 'clothes' in pasted(program('swizzle'), f'--address=localhost:{port}', 'models')
    assert running.interrupt() == (0, '')
    assert answers_no_more(port)


def test_text_and_several_models(serve, repository):
    repository.identity('strings', datatype='STRING', dims='[ 2 ]')
    repository.identity('halves', datatype='FP16', dims='[ 3, -1 ]')
    strings, halves = repository.directory / 'strings', repository.directory / 'halves'
    said = serve(BERT, strings, halves, '-o', 'json').json()
    models = {model['model']: model for model in said['models']}
    assert set(models) == {'bert', 'strings', 'halves'}
    for model in models.values():
        assert not model['remark']
        answer = json.loads(pasted('bash', '-c', model['curl']))
        assert {output['name'] for output in answer['outputs']} == {output['name'] for output in model['outputs']}
        pasted(sys.executable, '-c', model['python'])
    assert '[1,8]' in models['bert']['curl']
    assert '"text"' in models['strings']['curl']


def test_names_do_nothing_when_they_are_pasted(serve, repository, tmp_path):
    """They are of a file that anybody may have written."""
    ran = tmp_path / 'ran'
    name = f"x'; touch {ran} #' $(touch {ran}) `touch {ran}` \" \\ %s {{0}}"
    repository.config('hostile', f'''
        backend: "identity" max_batch_size: 8
        input [ {{ name: {json.dumps(name)} data_type: TYPE_FP32 dims: [ 4 ] }} ]
        output [ {{ name: {json.dumps('y' + name)} data_type: TYPE_FP32 dims: [ 4 ] }} ]''')
    model, = serve(repository.directory / 'hostile', '-o', 'json').json()['models']
    assert model['inputs'][0]['name'] == name
    assert json.loads(pasted('bash', '-c', model['curl']))['outputs'][0]['data'] == pytest.approx([0, 0.1, 0.2, 0.3])
    assert 'y' + name in pasted(sys.executable, '-c', model['python'])
    assert not ran.exists()


def test_a_server_that_does_not_start_says_why(serve, tmp_path):
    code, said = serve(tmp_path / 'nothing.onnx').ended()
    assert code == 2
    assert f"there is no file and no folder '{tmp_path}/nothing.onnx'" in said
    assert said.endswith('swizzle: swizzle-server ended with exit code 2 before it served\n')
    code, said = serve(f'{SHIPPED / SPARSE}.onnx', flags=['--', '--no-such-flag']).ended()
    assert code == 2 and '--no-such-flag' in said


def test_a_model_that_does_not_load_is_named(serve, tmp_path):
    garbage = tmp_path / 'garbage.onnx'
    garbage.write_bytes(b'\xff' * 100)
    code, said = serve(garbage).ended()
    assert code == 1
    assert said.startswith("swizzle: model 'garbage' does not serve: ") and 'not an ONNX model' in said
    running = serve(garbage, f'{SHIPPED / SPARSE}.onnx', '-o', 'json')
    assert [model['model'] for model in running.json()['models']] == [SPARSE]
    code, said = running.interrupt()
    assert code == 0 and "model 'garbage' does not serve: " in said


def test_flags_of_the_server_follow_behind_dashes(serve):
    running = serve(BERT, '-o', 'json', flags=['--', '--tuning-budget', '0', '--log-level=info'])
    running.json()
    code, said = running.interrupt()
    assert code == 0
    assert 'listening' in said and 'stopped' in said


def test_it_starts_a_server_of_its_own(serve):
    code, said = serve(BERT, '--address=localhost:1').ended()
    assert code == 2 and '--grpc-port' in said


def test_ctrl_c_ends_both():
    terminal = OnTerminal(program('swizzle'), 'serve', *FREE_PORTS, BERT, *QUICK)
    try:
        port = int(terminal.until(lambda drawn: re.search(r'gRPC at localhost:(\d+);.*\n', drawn), START_SECONDS)[1])
        assert 'swizzle-server starts' in terminal.drawn
        terminal.press(b'\x03')
        assert terminal.exit_code(STOP_SECONDS) == 0
        assert 'finishes what it has' in terminal.drawn
        assert answers_no_more(port)
    finally:
        terminal.close()


def test_the_server_does_not_outlive_it(serve):
    running = serve(BERT, '-o', 'json')
    port = running.json()['grpc']
    running.process.kill()
    wait_until(lambda: answers_no_more(port), STOP_SECONDS, 'the end of the server')


def test_a_server_that_dies_ends_it(serve):
    running = serve(BERT, '-o', 'json')
    running.json()
    children = pasted('ps', '-o', 'pid=', '--ppid', str(running.process.pid)).split()
    assert len(children) == 1
    pasted('kill', '-9', children[0])
    assert running.ended(STOP_SECONDS) == (1, 'swizzle: swizzle-server was ended by signal 9\n')
