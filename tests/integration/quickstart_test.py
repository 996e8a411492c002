"""What the quick start decides: in which order it measures, what it makes of the measurements, and when it calls the
machine busy."""

import importlib.util
import os

import pytest

from conftest import ROOT

spec = importlib.util.spec_from_file_location('quickstart', ROOT / 'deploy/quickstart.py')
quickstart = importlib.util.module_from_spec(spec)
spec.loader.exec_module(quickstart)

TICKS = os.sysconf('SC_CLK_TCK')


def report(p50, images=1000, correct=900, rate=500.0, p99=9.0, compute=1.0):
    return {'images': images, 'correct': correct, 'top1': correct / images, 'images_per_second': rate,
            'latency_ms': {'p50': p50, 'p99': p99}, 'server_compute_ms': {'p50': compute}}


def test_models_take_turns_and_each_is_first_as_often():
    turns = quickstart.turns(3)
    assert turns == [(0, 'dense'), (0, 'sparse'), (0, 'int8'), (1, 'sparse'), (1, 'int8'), (1, 'dense'),
                     (2, 'int8'), (2, 'dense'), (2, 'sparse')]
    assert quickstart.BLOCKS % len(quickstart.MODELS) == 0
    assert quickstart.IMAGES % quickstart.BLOCKS == 0


def test_every_block_goes_to_all_models(tmp_path):
    sent = []

    class Programs:
        def swizzle(self, command, model, *arguments):
            if command == 'metadata':
                return {'properties': {'of': model}}
            sent.append((model, *arguments))
            return report(p50=2.0 if model == 'dense' else 1.0)

    results, note = quickstart.measure(Programs(), tmp_path, os.getpid())
    assert len(sent) == len(set(sent)) == 2 * 3 * quickstart.BLOCKS
    for model in ('dense', 'sparse', 'int8'):
        blocks = [arguments for name, *arguments in sent if name == model and '--batch=1' in arguments]
        assert [f'images{i}.npy' in block[0] for i, block in enumerate(blocks)] == [True] * quickstart.BLOCKS
    assert results['dense']['one']['latency_ms']['p50'] == 2 * results['sparse']['one']['latency_ms']['p50']
    assert 'differ' not in note


def test_blocks_become_one_report():
    merged = quickstart.merge([report(1.0, correct=900, rate=1000.0), report(5.0, correct=800, rate=500.0),
                               report(2.0, correct=1000, rate=1000.0, p99=30.0)])
    assert merged['top1'] == pytest.approx(0.9)
    assert merged['images_per_second'] == pytest.approx(3000 / (1 + 2 + 1))
    assert merged['latency_ms'] == {'p50': 2.0, 'p99': 9.0}
    assert quickstart.spread_of([report(1.0), report(5.0), report(2.0)]) == 5.0


@pytest.mark.parametrize('others, spread, said', [
    (0.0, 1.0, []),
    (0.15, 1.5, []),
    (None, 1.2, []),
    (0.34, 1.1, ['34 % of its processors']),
    (0.01, 2.14, ['2.1x']),
    (None, 3.0, ['3.0x']),
    (0.5, 1.9, ['50 % of its processors, and', '1.9x']),
])
def test_when_the_machine_was_busy(others, spread, said):
    note = quickstart.busy_note(others, spread)
    assert bool(note) == bool(said) and all(part in note for part in said)


def test_what_others_took():
    begin, end = (10.0, 100.0, 7.0), (20.0, 112.0, 15.0)  # in 10 s: 12 s of work, of which 8 were ours
    assert quickstart.others_share(begin, end, processors=2) == pytest.approx(0.2)
    assert quickstart.others_share(begin, (20.0, 104.0, 15.0), processors=2) == 0.0  # rounded ticks
    assert quickstart.others_share(begin, (20.0, None, 15.0), processors=2) is None


def test_work_of_processors():
    stat = (f'cpu  9 9 9 9 9 9 9 9\ncpu0 {TICKS} 0 {TICKS} 999 999 0 0 0 0 0\n'
            f'cpu1 0 {TICKS} 0 9 9 {TICKS} 0 {TICKS}\nintr 1')
    assert quickstart.busy_seconds(stat, {0, 1}) == pytest.approx(5.0)
    assert quickstart.busy_seconds(stat, {0}) == pytest.approx(2.0)
    assert quickstart.busy_seconds(stat, {0, 2}) is None
    assert quickstart.busy_seconds('cpu0 0 0 0 0 0 0 0 0\n', {0}) is None


def test_own_work_counts_this_process_and_the_server():
    before = quickstart.own_seconds(os.getpid())
    while quickstart.own_seconds(os.getpid()) < before + 0.02:
        pass
