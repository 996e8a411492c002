"""Embeddings over HTTP, as unmodified clients of OpenAI's and of text-embeddings-inference ask for them."""

import json
import socket
import time
import urllib.error
import urllib.request

import huggingface_hub
import numpy
import openai
import pytest
import tritonclient.grpc as triton
from huggingface_hub.errors import HfHubHTTPError

from classification_test import read_tensors, write_tensors
from text_test import (CHECKPOINT, CONFIG, TEXTS, WORDS, checkpoint, embed, ids_of, states_of, unit,
                       write_tokenizer)

__all__ = ['checkpoint']  # a fixture


@pytest.fixture
def server(start, repository, checkpoint):
    repository.folder('ids', checkpoint)
    write_tokenizer(checkpoint, WORDS)
    repository.folder('texts', checkpoint)
    repository.config('texts', CONFIG)
    return start(repository, '--http-address=127.0.0.1:0')


@pytest.fixture
def client(server):
    with openai.OpenAI(base_url=f'http://{server.rest}/v1', api_key='none', max_retries=0) as client:
        yield client


def vectors(answer):
    assert [its.index for its in answer.data] == list(range(len(answer.data)))
    return numpy.array([its.embedding for its in answer.data], numpy.float32)


def post(server, path, body):
    request = urllib.request.Request(f'http://{server.rest}{path}', json.dumps(body).encode())
    try:
        with urllib.request.urlopen(request, timeout=30) as response:
            return response.status, json.loads(response.read())
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


def test_openais_client_gets_what_grpcs_gets(server, client):
    with triton.InferenceServerClient(server.grpc) as grpc:
        expected = embed(grpc, 'texts', TEXTS)
    answer = client.embeddings.create(model='texts', input=TEXTS)  # as base64, unless it is asked otherwise
    numpy.testing.assert_allclose(vectors(answer), expected, atol=1e-6)
    assert answer.model == 'texts' and answer.object == 'list'
    assert answer.usage.prompt_tokens == answer.usage.total_tokens == sum(len(ids_of(text, 8)) for text in TEXTS)
    answer = client.embeddings.create(model='texts', input=TEXTS[0], encoding_format='float', dimensions=8)
    numpy.testing.assert_allclose(vectors(answer), expected[:1], atol=1e-6)


def test_any_number_of_texts_may_come(server, client):
    texts = [' '.join(WORDS[5 + (i + k) % 10] for k in range(i % 7)) for i in range(1000)]
    answer = vectors(client.embeddings.create(model='texts', input=texts))
    assert answer.shape == (1000, 8)
    for i in (0, 63, 64, 500, 999):
        numpy.testing.assert_allclose(answer[i:i + 1], vectors(client.embeddings.create(model='texts', input=texts[i])),
                                      atol=1e-5)


def test_a_request_waits_for_room_that_it_takes_itself(start, repository, checkpoint):
    write_tokenizer(checkpoint, WORDS)
    repository.folder('texts', checkpoint)
    repository.config('texts', CONFIG + """
        max_batch_size: 2 dynamic_batching { default_queue_policy { max_queue_size: 1 } }""")
    server = start(repository, '--http-address=127.0.0.1:0')
    texts = ['the cat sat on the mat'] * 99
    status, answer = post(server, '/embed', {'inputs': texts})
    assert status == 200 and len(answer) == 99, answer
    numpy.testing.assert_allclose(answer, [answer[0]] * 99, atol=1e-6)


def test_texts_may_have_more_tokens_than_a_batch(start, repository, checkpoint):
    write_tokenizer(checkpoint, WORDS)
    repository.folder('texts', checkpoint)
    repository.config('texts', CONFIG + ' parameters { key: "max_batch_tokens" value { string_value: "100" } }')
    server = start(repository, '--http-address=127.0.0.1:0')
    texts = ['the cat sat on the mat', 'a dog'] * 25  # of eight tokens, the most, and of four
    status, answer = post(server, '/embed', {'inputs': texts})
    assert status == 200 and len(answer) == 50, answer
    with triton.InferenceServerClient(server.grpc) as client:
        statistics = client.get_inference_statistics('texts').model_stats[0]
        assert statistics.inference_stats.success.count == 1, 'what the texts have decides, not what they might have'
        assert (statistics.inference_count, statistics.execution_count) == (50, 4), 'sixteen texts at a time'
        numpy.testing.assert_allclose(embed(client, 'texts', texts), answer, atol=1e-6)
    tensor = {'name': 'text', 'datatype': 'BYTES', 'shape': [50, 1], 'data': texts}
    status, answer_of_infer = post(server, '/v2/models/texts/infer', {'inputs': [tensor]})
    assert status == 200, answer_of_infer
    numpy.testing.assert_allclose(answer_of_infer['outputs'][0]['data'], numpy.ravel(answer), atol=1e-6)


def test_a_client_that_leaves_spoils_nothing(server, client):
    body = json.dumps({'input': ['the cat sat on the mat'] * 20000}).encode()
    host, port = server.rest.rsplit(':', 1)
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(b'POST /v1/embeddings HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n' % len(body) + body)
        time.sleep(.05)
    assert len(vectors(client.embeddings.create(model='texts', input=TEXTS))) == len(TEXTS)


def test_huggingfaces_client_gets_unit_vectors(server, client):
    expected = vectors(client.embeddings.create(model='texts', input=TEXTS))
    tei = huggingface_hub.InferenceClient(f'http://{server.rest}/embed')
    numpy.testing.assert_allclose(tei.feature_extraction(TEXTS[0], truncate=True), expected[:1], atol=1e-6)
    status, answer = post(server, '/embed', {'inputs': TEXTS, 'truncate': True})
    assert status == 200
    numpy.testing.assert_allclose(answer, unit(expected), atol=1e-6)
    with pytest.raises(HfHubHTTPError, match="the model has no prompt 'query'; it has none"):
        tei.feature_extraction(TEXTS[0], prompt_name='query')


def test_sentences_are_compared_with_one(server):
    texts = ['the cat sat', 'a dog ran home', 'the mat']
    url = f'http://{server.rest}/similarity'
    found = huggingface_hub.InferenceClient(url).sentence_similarity('the cat', texts)
    vectors = numpy.array(post(server, '/embed', {'inputs': [*texts, 'the cat']})[1])
    numpy.testing.assert_allclose(found, vectors[:3] @ vectors[3], atol=1e-6)
    many = {'source_sentence': 'the cat', 'sentences': texts * 50}
    status, answer = post(server, '/v2/models/texts/similarity', {'inputs': many})
    assert status == 200
    numpy.testing.assert_allclose(answer, found * 50, atol=1e-6)
    status, answer = post(server, '/similarity', {'inputs': {'source_sentence': 'a', 'sentences': []}})
    assert (status, answer['error_type']) == (400, 'Validation') and "'sentences' must not be empty" in answer['error']


def test_prompts_stand_before_texts(start, repository, checkpoint):
    write_tokenizer(checkpoint, WORDS)
    prompts = {'prompts': {'query': 'the cat ', 'document': ''}, 'default_prompt_name': 'document'}
    (checkpoint / 'config_sentence_transformers.json').write_text(json.dumps(prompts))
    repository.folder('texts', checkpoint)
    repository.config('texts', CONFIG)
    server = start(repository, '--http-address=127.0.0.1:0')
    plain = post(server, '/embed', {'inputs': ['the cat sat', 'sat']})[1]
    tei = huggingface_hub.InferenceClient(f'http://{server.rest}/embed')
    numpy.testing.assert_allclose(tei.feature_extraction('sat', prompt_name='query'), plain[:1], atol=1e-6)
    numpy.testing.assert_allclose(tei.feature_extraction('sat', prompt_name='document'), plain[1:], atol=1e-6)
    with triton.InferenceServerClient(server.grpc) as grpc:
        numpy.testing.assert_allclose(embed(grpc, 'texts', ['sat'], {'swizzle_prompt': 'query'}), plain[:1], atol=1e-6)
    status, answer = post(server, '/embed', {'inputs': 'sat', 'prompt_name': 'passage'})
    assert status == 400 and "no prompt 'passage'; it has 'document', 'query'" in answer['error']
    prompts['default_prompt_name'] = 'query'
    (repository.directory / 'texts' / '1' / 'config_sentence_transformers.json').write_text(json.dumps(prompts))
    server = start(repository, '--http-address=127.0.0.1:0')
    numpy.testing.assert_allclose(post(server, '/embed', {'inputs': 'sat'})[1], plain[:1], atol=1e-6)


def test_vectors_may_be_cut(client):
    whole = vectors(client.embeddings.create(model='texts', input=TEXTS))
    cut = vectors(client.embeddings.create(model='texts', input=TEXTS, dimensions=3))
    numpy.testing.assert_allclose(cut, unit(whole[:, :3]), atol=1e-6)


def test_dense_modules_are_served(start, repository, checkpoint):
    repository.folder('ids', checkpoint)
    write_tokenizer(checkpoint, WORDS)
    modules = json.loads((checkpoint / 'modules.json').read_text())
    modules.insert(2, {'idx': 2, 'name': '2', 'path': '2_Dense', 'type': 'sentence_transformers.models.Dense'})
    (checkpoint / 'modules.json').write_text(json.dumps(modules))
    (checkpoint / '2_Dense').mkdir()
    (checkpoint / '2_Dense' / 'config.json').write_text(
        '{"in_features": 8, "out_features": 4, "activation_function": "torch.nn.modules.activation.Tanh"}')
    random = numpy.random.default_rng(1)
    weight, bias = random.normal(size=(4, 8)), random.normal(size=4)
    write_tensors({'linear.weight': weight, 'linear.bias': bias}, checkpoint / '2_Dense' / 'model.safetensors')
    repository.folder('texts', checkpoint)
    repository.config('texts', CONFIG)
    server = start(repository)
    with triton.InferenceServerClient(server.grpc) as grpc:
        states = states_of(grpc, 'ids', [ids_of(text, 8) for text in TEXTS])
        pooled = numpy.array([each.mean(axis=0) for each in states])
        numpy.testing.assert_allclose(embed(grpc, 'texts', TEXTS), unit(numpy.tanh(pooled @ weight.T + bias)),
                                      atol=1e-5)


def test_what_is_wrong_is_said_as_each_expects_it(server, client):
    with pytest.raises(openai.NotFoundError, match='nobody'):
        client.embeddings.create(model='nobody', input='a')
    with pytest.raises(openai.BadRequestError, match="model 'ids' takes no texts"):
        client.embeddings.create(model='ids', input='a')
    with pytest.raises(openai.BadRequestError, match='8 dimensions, and not of 9'):
        client.embeddings.create(model='texts', input='a', dimensions=9)
    with pytest.raises(openai.BadRequestError, match='tokens are not taken'):
        client.embeddings.create(model='texts', input=[[1, 2]])
    assert post(server, '/embed', {'inputs': []}) == (
        400, {'error': "'inputs' must not be empty", 'error_type': 'Validation'})
    assert post(server, '/embed', {'inputs': 'a', 'normalize': False})[0] == 400, 'its vectors have length 1'
    assert post(server, '/v1/embeddings', {'input': ['a']})[0] == 200, 'one model alone takes texts'


def test_of_several_models_one_must_be_named(start, repository, checkpoint):
    write_tokenizer(checkpoint, WORDS)
    for name in ('one', 'two'):
        repository.folder(name, checkpoint)
        repository.config(name, CONFIG)
    repository.folder('ids', CHECKPOINT)
    server = start(repository, '--http-address=127.0.0.1:0')
    status, answer = post(server, '/embed', {'inputs': 'a'})
    assert status == 400 and "several models take texts: 'one', 'two'" in answer['error']
    assert post(server, '/v1/embeddings', {'input': 'a', 'model': 'two'})[0] == 200
    assert post(server, '/v2/models/two/embed', {'inputs': 'a'})[0] == 200
    assert post(server, '/v2/models/ids/embed', {'inputs': 'a'})[0] == 400


def test_a_model_that_fails_is_not_the_clients_fault(start, repository, checkpoint):
    write_tokenizer(checkpoint, WORDS, modules=False)
    weights = read_tensors(checkpoint / 'model.safetensors')
    name = next(name for name in weights if name.endswith('word_embeddings.weight'))
    weights[name] = numpy.full_like(weights[name], numpy.nan)
    write_tensors(weights, checkpoint / 'model.safetensors')
    repository.folder('texts', checkpoint)
    repository.config('texts', CONFIG)
    server = start(repository, '--http-address=127.0.0.1:0')
    status, answer = post(server, '/embed', {'inputs': 'the cat'})
    assert (status, answer['error_type']) == (424, 'Backend'), answer
    assert 'the vector of text 0' in answer['error']
    status, answer = post(server, '/v1/embeddings', {'input': 'the cat', 'encoding_format': 'float'})
    assert (status, answer['error']['type']) == (500, 'server_error')
