"""Tokens of texts, texts of ids, and a vector of each token, as text-embeddings-inference's clients ask for them."""

import json
import shutil
import subprocess

import numpy
import onnx
import pytest
import tritonclient.grpc as triton

import make_encoders
from conftest import program
from embeddings_test import post
from text_test import (CHECKPOINT, CONFIG, TEXTS, WORDS, checkpoint, embed, ids_of, refusal, states_of,
                       write_tokenizer)

tokenizers = pytest.importorskip('tokenizers', reason='the library tokenizers is not installed')

__all__ = ['checkpoint']  # a fixture

TOKENS = CONFIG.replace('"embedding"', '"token_embedding"')


@pytest.fixture
def library(checkpoint):
    """What the library `tokenizers` makes of the checkpoint's vocabulary."""
    write_tokenizer(checkpoint, WORDS)
    tokenizer = tokenizers.BertWordPieceTokenizer(str(checkpoint / 'vocab.txt'), lowercase=True)
    tokenizer.no_truncation()
    return tokenizer


@pytest.fixture
def server(start, repository, library, checkpoint):
    prompts = {'prompts': {'query': 'the cat '}}
    (checkpoint / 'config_sentence_transformers.json').write_text(json.dumps(prompts))
    repository.folder('ids', checkpoint)
    repository.folder('texts', checkpoint)
    repository.config('texts', TOKENS)
    return start(repository, '--http-address=127.0.0.1:0')


def shown(tokenizer, text, special=True):
    """A text's tokens as text-embeddings-inference has them."""
    encoding = tokenizer.encode(text, add_special_tokens=special)
    return [{'id': id, 'text': token, 'special': True, 'start': None, 'stop': None} if added else
            {'id': id, 'text': text[start:stop], 'special': False, 'start': start, 'stop': stop}
            for id, token, added, (start, stop) in zip(encoding.ids, encoding.tokens, encoding.special_tokens_mask,
                                                       encoding.offsets)]


def test_texts_are_shown_token_by_token(server, library):
    texts = [*TEXTS, 'The CAT sat, ünd "[MASK]" \0 日本', ' '.join(['the cat sat on the mat'] * 50)]
    status, answer = post(server, '/tokenize', {'inputs': texts})
    assert status == 200
    assert answer == [shown(library, text) for text in texts]
    assert max(map(len, answer)) > 300, 'nothing is cut off, as for a vector it is'
    assert post(server, '/tokenize', {'inputs': texts[0]}) == (200, answer[:1])
    status, plain = post(server, '/v2/models/texts/tokenize', {'inputs': texts, 'add_special_tokens': False})
    assert (status, plain) == (200, [shown(library, text, special=False) for text in texts])
    status, prompted = post(server, '/tokenize', {'inputs': 'sat', 'prompt_name': 'query'})
    assert (status, prompted) == (200, [shown(library, 'the cat sat')])


def test_ids_become_texts(server, library):
    rows = [library.encode(text).ids for text in TEXTS]
    for skips in (True, False):
        expected = [library.decode(ids, skip_special_tokens=skips) for ids in rows]
        assert post(server, '/decode', {'ids': rows, 'skip_special_tokens': skips}) == (200, expected)
    assert post(server, '/decode', {'ids': rows[0]}) == (200, [library.decode(rows[0])])
    unknown = [*rows[0], 100000, 2**32 - 1]
    assert post(server, '/v2/models/texts/decode', {'ids': unknown}) == (200, [library.decode(rows[0])])


def test_any_number_of_them_may_come(server, library):
    texts = [' '.join(WORDS[5 + (i + k) % 10] for k in range(1 + i % 7)) for i in range(20000)]
    status, answer = post(server, '/tokenize', {'inputs': texts})
    assert status == 200 and len(answer) == len(texts)
    rows = [[token['id'] for token in tokens] for tokens in answer]
    assert rows == [encoding.ids for encoding in library._tokenizer.encode_batch(texts)]
    assert post(server, '/decode', {'ids': rows}) == (200, library.decode_batch(rows))


def test_each_token_has_a_vector(server):
    with triton.InferenceServerClient(server.grpc) as client:
        states = states_of(client, 'ids', [ids_of(text, 8) for text in TEXTS])
        metadata = client.get_model_metadata('texts', as_json=True)
        assert [(its['name'], its['shape']) for its in metadata['outputs']] == [
            ('embedding', ['-1', '8']), ('token_embeddings', ['-1', '-1', '8'])]
        embedded = embed(client, 'texts', TEXTS)
    status, answer = post(server, '/embed_all', {'inputs': TEXTS, 'truncate': True})
    assert status == 200 and len(answer) == len(TEXTS)
    for found, expected in zip(answer, states):
        numpy.testing.assert_allclose(found, expected, atol=1e-5)
    status, one = post(server, '/v2/models/texts/embed_all', {'inputs': TEXTS[0], 'truncate': True})
    assert status == 200
    numpy.testing.assert_allclose(one[0], answer[0], atol=1e-6)
    status, vectors = post(server, '/embed', {'inputs': TEXTS, 'truncate': True})
    assert status == 200, 'the same model gives a vector of each text, too'
    numpy.testing.assert_allclose(vectors, embedded, atol=1e-6)
    status, prompted = post(server, '/embed_all', {'inputs': ['sat'], 'prompt_name': 'query'})
    whole = post(server, '/embed_all', {'inputs': ['the cat sat']})[1]
    assert status == 200
    numpy.testing.assert_allclose(prompted, whole, atol=1e-6)


def test_texts_share_batches(start, repository, tmp_path):
    folder = tmp_path / 'rotary'  # whose texts may be long
    folder.mkdir()
    for name in ('config.json', 'model.safetensors'):
        shutil.copy(CHECKPOINT.parent / 'nomic_bert' / name, folder)
    write_tokenizer(folder, WORDS, length=60)
    repository.folder('texts', folder)
    repository.config('texts', TOKENS + """
        max_batch_size: 10 dynamic_batching { max_queue_delay_microseconds: 20000000 }""")
    server = start(repository, '--http-address=127.0.0.1:0')
    counts = [i * i % 37 for i in range(70)]
    texts = [' '.join(('the', 'cat', 'sat', 'on', 'a', 'mat')[(i + k) % 6] for k in range(count))
             for i, count in enumerate(counts)]
    status, answer = post(server, '/embed_all', {'inputs': texts})
    assert status == 200 and [len(vectors) for vectors in answer] == [count + 2 for count in counts]
    with triton.InferenceServerClient(server.grpc) as client:
        statistics = client.get_inference_statistics('texts').model_stats[0]
    assert statistics.inference_count == 70
    assert statistics.execution_count == 7, 'with fewer under way they would wait for the delay, longer than they may'
    repository.config('texts', TOKENS)
    server = start(repository, '--http-address=127.0.0.1:0')
    for text, vectors in zip(texts, answer):
        status, alone = post(server, '/embed_all', {'inputs': text})
        assert status == 200
        numpy.testing.assert_allclose(vectors, alone[0], atol=1e-5)


def test_a_text_that_is_refused_is_named(start, repository, library, checkpoint):
    repository.folder('texts', checkpoint)
    repository.config('texts', TOKENS)
    server = start(repository, '--http-address=127.0.0.1:0')
    texts = ['a dog', ''] * 100
    texts[137] = 'the cat sat on the mat . a dog'
    status, answer = post(server, '/embed_all', {'inputs': texts})
    assert status == 413 and 'at most 8 may be' in answer['error'] and 'from number 137 on' in answer['error'], answer
    status, answer = post(server, '/embed_all', {'inputs': texts, 'truncate': True})
    assert status == 200 and [len(vectors) for vectors in answer] == [4, 2] * 68 + [4, 8] + [4, 2] * 31


def test_texts_wait_for_room_that_their_request_takes(start, repository, library, checkpoint):
    repository.folder('texts', checkpoint)
    repository.config('texts', TOKENS + """
        max_batch_size: 2 dynamic_batching { default_queue_policy { max_queue_size: 1 } }""")
    server = start(repository, '--http-address=127.0.0.1:0')
    status, answer = post(server, '/embed_all', {'inputs': ['a dog ran', 'a'] * 50})
    assert status == 200 and [len(vectors) for vectors in answer] == [5, 3] * 50, answer


@pytest.mark.parametrize('pooling', ('cls_token', 'lasttoken'))
def test_it_has_whatever_stands_for_the_text(start, repository, checkpoint, pooling):
    write_tokenizer(checkpoint, WORDS, pooling=f'pooling_mode_{pooling}')
    repository.folder('ids', checkpoint)
    for name, config in (('texts', CONFIG), ('tokens', TOKENS)):
        repository.folder(name, checkpoint)
        repository.config(name, config)
    server = start(repository, '--http-address=127.0.0.1:0')
    with triton.InferenceServerClient(server.grpc) as client:
        states = states_of(client, 'ids', [ids_of(text, 8) for text in TEXTS])
        numpy.testing.assert_allclose(embed(client, 'tokens', TEXTS), embed(client, 'texts', TEXTS), atol=1e-5)
    status, answer = post(server, '/embed_all', {'inputs': TEXTS, 'truncate': True})
    assert status == 200, 'one model alone keeps vectors of tokens'
    for found, expected in zip(answer, states):
        numpy.testing.assert_allclose(found, expected, atol=1e-5)
    status, answer = post(server, '/v2/models/texts/embed_all', {'inputs': TEXTS})
    assert status == 400 and 'none that gives vectors of tokens (text=token_embedding)' in answer['error']


def test_a_packed_encoder_shows_its_states(start, repository, checkpoint):
    write_tokenizer(checkpoint, WORDS)
    for name in ('texts', 'packed'):
        repository.folder(name, checkpoint)
        repository.config(name, TOKENS)
    packed = repository.directory / 'packed' / '1'
    subprocess.run([program('swizzle-pack'), 'pack', checkpoint, packed / 'model.swz'], check=True, timeout=300)
    (packed / 'model.safetensors').unlink()
    server = start(repository, '--http-address=127.0.0.1:0')
    answers = [post(server, f'/v2/models/{name}/embed_all', {'inputs': TEXTS, 'truncate': True})
               for name in ('texts', 'packed')]
    for expected, found in zip(*(answer for _, answer in answers), strict=True):
        numpy.testing.assert_allclose(found, expected, atol=1e-5)


def test_what_is_wrong_is_said(server, start, repository, checkpoint):
    for path, body, said in (
            ('/tokenize', {'inputs': []}, "'inputs' must not be empty"),
            ('/tokenize', {'inputs': 'a', 'prompt_name': 'passage'}, "the model has no prompt 'passage'; it has 'query'"),
            ('/decode', {'ids': []}, "'ids' must not be empty"),
            ('/decode', {'inputs': 'a'}, "must have 'ids'"),
            ('/v2/models/ids/tokenize', {'inputs': 'a'}, "model 'ids' takes no texts"),
            ('/v2/models/ids/decode', {'ids': [1]}, "model 'ids' takes no texts")):
        status, answer = post(server, path, body)
        assert (status, answer['error_type']) == (400, 'Validation') and said in answer['error'], (path, answer)
    status, answer = post(server, '/embed_all', {'inputs': ['a', 'the cat sat on the mat . a dog']})
    assert (status, answer['error_type']) == (413, 'Validation') and 'at most 8 may be' in answer['error']
    status, answer = post(server, '/tokenize', {'inputs': ['a', 'a ' * (3 << 20)]})
    assert (status, answer['error_type']) == (413, 'Validation') and 'at most 4194304' in answer['error']
    status, answer = post(server, '/embed_sparse', {'inputs': 'a'})
    assert (status, answer['error_type']) == (424, 'Backend') and 'SPLADE' in answer['error']
    repository.config('texts', CONFIG)
    server = start(repository, '--http-address=127.0.0.1:0')
    status, answer = post(server, '/embed_all', {'inputs': 'a'})
    assert status == 404 and answer['error'] == 'no model is served that gives vectors of tokens (text=token_embedding)'
    assert post(server, '/tokenize', {'inputs': 'a'})[0] == 200


def test_answers_are_bounded(start, repository, library, checkpoint):
    repository.folder('texts', checkpoint)
    repository.config('texts', TOKENS)
    server = start(repository, '--http-address=127.0.0.1:0', '--max-response-bytes=4000')
    for path, body in (('/embed_all', {'inputs': ['a dog ran home'] * 100}), ('/tokenize', {'inputs': ['a dog'] * 100}),
                       ('/decode', {'ids': [library.encode('a dog ran home').ids] * 1000})):
        status, answer = post(server, path, body)
        assert status == 413 and 'more than 4000 bytes; send fewer' in answer['error'], (path, answer)
        assert post(server, path, {key: rows[:1] for key, rows in body.items()})[0] == 200


@pytest.mark.parametrize('output, served', [('last_hidden_state', True), ('sentence_embedding', False)])
def test_an_onnx_encoder_has_to_show_its_states(start, repository, output, served):
    words = [*WORDS, *(f'w{i}' for i in range(len(WORDS), make_encoders.VOCABULARY))]
    model = make_encoders.build('bert_opset14')
    if not served:
        text = onnx.helper.make_tensor_value_info(output, onnx.TensorProto.FLOAT, ['batch', None])
        model.graph.node.append(onnx.helper.make_node('ReduceMean', [model.graph.output[0].name], [output], axes=[1],
                                                      keepdims=0))
        del model.graph.output[:]
        model.graph.output.append(text)
    repository.file('texts', 'model.onnx', model.SerializeToString())
    write_tokenizer(repository.directory / 'texts' / '1', words, modules=False)
    repository.config('texts', TOKENS)
    server = start(repository, '--http-address=127.0.0.1:0', *([] if served else ['--ready=any']))
    if served:
        status, answer = post(server, '/embed_all', {'inputs': ['a dog ran home', 'a']})
        assert status == 200 and [len(vectors) for vectors in answer] == [6, 3]
    else:
        with triton.InferenceServerClient(server.grpc) as client:
            assert "no states of tokens to pool (last_hidden_state, token_embeddings)" in refusal(client)
