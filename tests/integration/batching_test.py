"""What Triton promises of batching, asked for by Triton's client: sizes, delays, queues, timeouts and priorities.

Batches that wait do so for a minute, longer than any answer is waited for: what comes, came for another reason.
"""

import queue

import numpy
import pytest
import tritonclient.grpc as triton
from tritonclient.utils import InferenceServerException

from conftest import QUICK_START, Repository, Server, wait_until

MINUTE, HOUR = 60_000_000, 3_600_000_000
BUSY_MS = 2000

# dynamic_batching of each model, and for how long it runs.
MODELS = {
    'preferred': (0, f'preferred_batch_size: [ 2, 4 ] max_queue_delay_microseconds: {MINUTE}'),
    'one_size': (0, f'preferred_batch_size: [ 4 ] max_queue_delay_microseconds: {MINUTE}'),
    'brief': (0, 'preferred_batch_size: [ 4 ] max_queue_delay_microseconds: 1000'),
    'split': (BUSY_MS, f'preferred_batch_size: [ 4 ] max_queue_delay_microseconds: {MINUTE}'),
    'full': (BUSY_MS, 'default_queue_policy { max_queue_size: 3 }'),
    'slots': (0, f'max_queue_delay_microseconds: {MINUTE} default_queue_policy {{ max_queue_size: 2 }}'),
    'shorter': (BUSY_MS,
                f'default_queue_policy {{ default_timeout_microseconds: {HOUR} allow_timeout_override: true }}'),
    'longer': (BUSY_MS,
               'default_queue_policy { default_timeout_microseconds: 500000 allow_timeout_override: true }'),
    'levels': (BUSY_MS, 'priority_levels: 3 default_priority_level: 2'),
}


@pytest.fixture(scope='module')
def server(tmp_path_factory):
    directory = tmp_path_factory.mktemp('batching')
    (directory / 'models').mkdir()
    repository = Repository(directory / 'models')
    for model, (delay_ms, batching) in MODELS.items():
        repository.identity(model, delay_ms=delay_ms, dims='[ 1 ]', max_batch_size=1 if model == 'levels' else 8,
                            extra=f'dynamic_batching {{ {batching} }}')
    running = Server(repository, directory, *QUICK_START, '--metrics-compat=triton')
    try:
        yield running
        assert running.stop() == 0, running.log()
    finally:
        running.kill()


class Model:
    """Requests of one row to a model, and how they ended, in that order."""

    def __init__(self, server, client, name):
        self.server, self.client, self.name = server, client, name
        self.ended = queue.Queue()

    def ask(self, number, **options):
        tensor = triton.InferInput('INPUT0', [1, 1], 'FP32')
        tensor.set_data_from_numpy(numpy.full([1, 1], number, numpy.float32))
        return self.client.async_infer(self.name, [tensor],
                                       lambda result, error: self.ended.put((number, result, error)), **options)

    def next(self):
        """(number, error) of the request that ends next; one that is answered has its own number."""
        number, result, error = self.ended.get(timeout=50)
        assert error is not None or result.as_numpy('OUTPUT0')[0, 0] == number
        return number, error

    def answered(self, count):
        """The numbers of the next so many, which have to be answered, in the order of the answers."""
        ended = [self.next() for _ in range(count)]
        assert [error for _, error in ended] == [None] * count
        return [number for number, _ in ended]

    def pending(self):
        return self.server.metric('swizzle_queue_depth', model=self.name)

    def wait_for_pending(self, count):
        wait_until(lambda: self.pending() == count, 30, f'{count} requests waiting')

    def occupy(self, requests=1):
        """A batch of so many requests, numbered from 0, runs."""
        for number in range(requests):
            self.ask(number)
        wait_until(lambda: self.server.metric('swizzle_inflight_requests', model=self.name) == requests and
                   self.pending() == 0, 30, 'the first batch')

    def batches(self):
        """How many ran, by rows."""
        stats = self.client.get_inference_statistics(self.name).model_stats[0].batch_stats
        return {batch.batch_size: batch.compute_infer.count for batch in stats if batch.compute_infer.count}

    def rejected(self, reason):
        return self.server.metric('swizzle_rejected_requests_total', model=self.name, reason=reason)


@pytest.fixture
def model(server):
    with triton.InferenceServerClient(server.grpc) as client:
        yield lambda name: Model(server, client, name)


def test_a_preferred_size_runs_at_once(model):
    asked = model('one_size')
    for number in range(3):
        asked.ask(number)
    asked.wait_for_pending(3)
    assert asked.batches() == {} and asked.ended.empty(), 'below the preferred size requests wait'
    asked.ask(3)
    assert sorted(asked.answered(4)) == [0, 1, 2, 3]
    assert asked.batches() == {4: 1}
    assert asked.pending() == 0


def test_the_smallest_preferred_size_is_one_too(model):
    asked = model('preferred')
    for number in range(2):
        asked.ask(number)
    assert sorted(asked.answered(2)) == [0, 1]
    assert asked.batches() == {2: 1}


def test_below_the_preferred_size_the_delay_ends_the_wait(server, model):
    asked = model('brief')
    asked.ask(1)
    assert asked.answered(1) == [1]
    assert asked.batches() == {1: 1}
    assert server.metric('swizzle_batches_total', model='brief', reason='delay') == 1


def test_above_the_largest_preferred_size_batches_are_split(model):
    asked = model('split')
    asked.occupy(4)
    for number in range(4, 10):
        asked.ask(number)
    asked.wait_for_pending(6)
    answered = sorted(asked.answered(8))  # calls of one client need not arrive in their order
    assert answered[:4] == list(range(4))
    asked.wait_for_pending(2)
    for number in (10, 11):
        asked.ask(number)
    assert sorted(answered + asked.answered(4)) == list(range(12))
    assert asked.batches() == {4: 3}


def test_a_full_queue_refuses_exactly_the_excess(model):
    asked = model('full')
    asked.occupy()
    for number in range(1, 9):
        asked.ask(number)
    refused = [asked.next() for _ in range(5)]
    for _, error in refused:
        assert 'RESOURCE_EXHAUSTED' in error.status() and "queue of model 'full' is full" in error.message()
    assert asked.pending() == 3
    assert len(asked.answered(4)) == 4
    asked.wait_for_pending(0)
    assert asked.rejected('queue_full') == 5


def test_a_request_that_is_cancelled_in_the_queue_leaves_its_place(model):
    asked = model('slots')
    calls = [asked.ask(number) for number in range(2)]
    asked.wait_for_pending(2)
    asked.ask(2)
    assert asked.next()[0] == 2, 'the queue is full'
    calls[0].cancel()
    number, error = asked.next()
    assert number == 0 and 'CANCELLED' in error.status()
    asked.wait_for_pending(1)
    assert asked.rejected('cancelled') == 1
    asked.ask(3)
    asked.wait_for_pending(2)
    calls[1].cancel()
    assert asked.next()[0] == 1
    asked.wait_for_pending(1)
    assert asked.rejected('cancelled') == 2
    assert asked.server.metric('nv_inference_request_failure', model='slots', reason='CANCELED') == 2
    assert asked.batches() == {}


def test_a_timeout_of_the_request_shortens_the_models(model):
    asked = model('shorter')
    asked.occupy()
    asked.ask(1, timeout=1000)
    asked.ask(2, timeout=2 * HOUR)
    number, error = asked.next()
    assert number == 1 and 'DEADLINE_EXCEEDED' in error.status()
    assert asked.answered(2) == [0, 2]
    assert asked.rejected('timeout') == 1


def test_a_timeout_of_the_request_does_not_lengthen_the_models(model):
    asked = model('longer')
    asked.occupy()
    asked.ask(1, timeout=HOUR)
    number, error = asked.next()
    assert number == 1 and 'DEADLINE_EXCEEDED' in error.status()
    assert asked.answered(1) == [0]
    assert asked.rejected('timeout') == 1


def test_requests_run_in_the_order_of_their_priorities(model):
    asked = model('levels')
    asked.occupy()
    for number, priority in ((3, 3), (2, 0), (1, 1)):
        asked.ask(number, priority=priority)
    asked.wait_for_pending(3)
    assert asked.server.metric('nv_inference_pending_request_count', model='levels') == 3
    for number, waiting in ((0, 2), (1, 1), (2, 0), (3, 0)):
        assert asked.answered(1) == [number]
        asked.wait_for_pending(waiting)


@pytest.mark.parametrize('policy, served', [('', ['3']), ('latest { num_versions: 2 }', ['2', '3']),
                                            ('all { }', ['1', '2', '3']), ('specific { versions: [ 1, 3 ] }', ['1', '3'])])
def test_version_policies(start, repository, policy, served):
    repository.identity('m', extra=f'dynamic_batching {{ }} version_policy {{ {policy} }}')
    for version in (2, 3):
        (repository.directory / 'm' / str(version)).mkdir()
    values = triton.InferInput('INPUT0', [1, 16], 'FP32')
    values.set_data_from_numpy(numpy.zeros([1, 16], numpy.float32))
    with triton.InferenceServerClient(start(repository).grpc) as client:
        assert list(client.get_model_metadata('m').versions) == served
        assert client.infer('m', [values]).get_response().model_version == served[-1]
        for version in ('1', '2', '3'):
            if version in served:
                assert client.infer('m', [values], version).get_response().model_version == version
            else:
                with pytest.raises(InferenceServerException, match=f'has no version {version}'):
                    client.infer('m', [values], version)
