"""deploy/models/distil.py makes a sparse folder of a dense one. What needs PyTorch runs where it is."""

import importlib.util
import json
import os
import pathlib
import signal
import subprocess
import sys

import numpy as np
import pytest
from safetensors.numpy import load_file

from conftest import SHIPPED, program
from python_module import FOLDER, needs_module
from tiny_encoder import write_encoder

sys.path.insert(0, str(SHIPPED))

import bert_checkpoint  # noqa: E402
import distil  # noqa: E402
import distil_card  # noqa: E402
import minilm_onnx  # noqa: E402
import retrieval  # noqa: E402

SCRIPT = SHIPPED / 'distil.py'
CHECKPOINTS = pathlib.Path(__file__).resolve().parents[1] / 'testdata' / 'checkpoints'
WORDS = ('a', 'the', 'cat', 'dog', 'sat', 'ran', 'home', 'mat', 'bird', 'sang', 'tree', 'under')
needs_torch = pytest.mark.skipif(importlib.util.find_spec('torch') is None, reason='PyTorch is not installed')
# Ends itself, as a lost machine does, after so many steps.
KILLED = '''
import os, signal, sys
sys.path.insert(0, sys.argv.pop(1))
import distil, distillation
steps, after_step = [], distillation.Keeper.after_step
def counted(self, make_state):
    after_step(self, make_state)
    steps.append(1)
    if len(steps) == 9:
        os.kill(os.getpid(), signal.{signal})
distillation.Keeper.after_step = counted
distil.main()
'''


@pytest.fixture(name='dense')
def dense_folder(tmp_path):
    write_encoder(tmp_path / 'dense', WORDS)
    rng = np.random.default_rng(1)
    lines = [' '.join(rng.choice(WORDS, rng.integers(3, 20))) for _ in range(60)]
    (tmp_path / 'texts.txt').write_text('\n'.join(lines) + '\n\n')
    return tmp_path / 'dense'


def arguments(dense, out, *more):
    return [str(dense), str(out), '--sparsity=.8', f'--texts={dense.parent / "texts.txt"}', '--epochs=4', '--device=cpu',
            '--batch-tokens=192', '--prune-every=2', f'--pack={program("swizzle-pack")}', '--no-measure', *more]


def run(command, code=0):
    environment = {**os.environ, 'PYTHONPATH': os.pathsep.join([str(FOLDER), os.environ.get('PYTHONPATH', '')])}
    done = subprocess.run([sys.executable, *map(str, command)], capture_output=True, text=True, timeout=300,
                          env=environment)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stderr


def log_of(out):
    return json.loads((out / 'training' / 'log.json').read_text())


@pytest.mark.parametrize('name', ['roberta', 'distilbert'])
def test_kinds_of_encoder_are_read_as_bert(name, tmp_path):
    import onnxruntime

    checkpoint = bert_checkpoint.read(CHECKPOINTS / name)
    minilm_onnx.write(tmp_path / 'model.onnx', checkpoint.tensors, checkpoint.config)
    expected = load_file(CHECKPOINTS / name / 'expected.safetensors')
    session = onnxruntime.InferenceSession(str(tmp_path / 'model.onnx'))
    mask = expected['attention_mask']
    states = session.run(None, {'input_ids': expected['input_ids'], 'attention_mask': mask,
                                'token_type_ids': np.zeros_like(mask)})[0]
    present = mask.astype(bool)
    np.testing.assert_allclose(states[present], expected['last_hidden_state'][present], atol=1e-4)


@pytest.mark.parametrize('name', ['bert', 'roberta', 'distilbert'])
def test_weights_come_back_under_their_names(name, tmp_path):
    checkpoint = bert_checkpoint.read(CHECKPOINTS / name)
    weight = next(ours for ours in checkpoint.names if ours.endswith('layer.1.attention.self.value.weight'))
    changed = np.zeros_like(checkpoint.tensors[weight])
    bert_checkpoint.write(checkpoint, {weight: changed}, tmp_path / 'out')
    before, after = (load_file(folder / 'model.safetensors') for folder in (CHECKPOINTS / name, tmp_path / 'out'))
    assert before.keys() == after.keys()
    differ = [tensor for tensor in before if not np.array_equal(before[tensor], after[tensor])]
    assert differ == [checkpoint.names[weight]]
    with pytest.raises(ValueError, match='is not a tensor of'):
        bert_checkpoint.write(checkpoint, {weight: changed[:1]}, tmp_path / 'out')


@pytest.mark.parametrize('config, message', [
    ({'model_type': 'mpnet'}, "model_type is 'mpnet'"), ({'position_embedding_type': 'relative_key'}, 'relative_key')])
def test_other_models_are_refused_by_name(dense, config, message):
    file = dense / 'config.json'
    file.write_text(json.dumps(json.loads(file.read_text()) | config))
    with pytest.raises(ValueError, match=message):
        bert_checkpoint.read(dense)


@pytest.mark.parametrize('change, message', [
    ({'--sparsity=.8': '--sparsity=90'}, 'must lie between 0 and 1'), ({'OUT': 'DENSE'}, 'name another folder'),
    ({'--epochs=4': '--vector=6'}, 'power of 2')])
def test_refuses_arguments(dense, tmp_path, capsys, change, message):
    names = {'OUT': str(tmp_path / 'out'), 'DENSE': str(dense)}
    given = [names.get(change.get(word, word), change.get(word, word))
             for word in ['DENSE', 'OUT', *arguments(dense, tmp_path)[2:]]]
    with pytest.raises(SystemExit):
        distil.parse_args(given)
    assert message in capsys.readouterr().err


def advise(checkpoint, file, *flags):
    """What `swizzle-pack advise -o json` prints, in a file."""
    command = [program('swizzle-pack'), 'advise', str(checkpoint), '--tuning-budget=0', '-o', 'json', *flags]
    file.write_text(subprocess.run(command, capture_output=True, text=True, timeout=300, check=True).stdout)
    return json.loads(file.read_text())


@pytest.mark.parametrize('name', ['bert', 'roberta', 'distilbert'])
def test_advice_says_which_layers_stay_dense(name, tmp_path):
    file = tmp_path / 'advice.json'
    advice = advise(CHECKPOINTS / name, file, '--sparsity=.8')
    for layer in advice['layers']:
        layer['advised_sparsity'] = 0.0 if '1.attention.self' in layer['name'] else 0.8
    file.write_text(json.dumps(advice))
    given = [str(CHECKPOINTS / name), str(tmp_path / 'out'), f'--sparsities={file}', f'--pack={program("swizzle-pack")}']
    args, checkpoint = distil.parse_args(given), bert_checkpoint.read(CHECKPOINTS / name)
    assert args.sparsity == 0.8
    assert sorted(distil.left_dense(args, checkpoint)) == [f'encoder.layer.1.attention.self.{part}.weight'
                                                           for part in ('key', 'query', 'value')]
    assert distil.parse_args([*given, '--sparsity=.7']).sparsity == 0.7
    file.write_text(json.dumps({**advice, 'layers': advice['layers'][1:]}))
    with pytest.raises(ValueError, match='says nothing of encoder.layer.0.attention.self.query; make it by'):
        distil.left_dense(distil.parse_args(given), checkpoint)
    file.write_text(json.dumps({**advice, 'layers': [layer | {'advised_sparsity': 0.0} for layer in advice['layers']]}))
    with pytest.raises(ValueError, match='nothing to prune'):
        distil.left_dense(distil.parse_args(given), checkpoint)


def test_advice_has_to_be_advice(dense, tmp_path, capsys):
    (tmp_path / 'no.json').write_text('{"layers": []}')
    for flags, message in [([f'--sparsities={tmp_path / "no.json"}'], 'is not what swizzle-pack advise'),
                           ([f'--sparsities={tmp_path / "none.json"}'], 'none.json'), ([], 'name the share of zeros')]:
        with pytest.raises(SystemExit):
            distil.parse_args([str(dense), str(tmp_path / 'out'), *flags])
        assert message in capsys.readouterr().err


def test_texts_are_tokenised_once(dense, tmp_path):
    run([SCRIPT, *arguments(dense, tmp_path / 'out', '--until=prepare')])
    arrays = np.load(tmp_path / 'out' / 'training' / 'texts.npz')
    assert len(arrays['lengths']) == 60 and arrays['lengths'].sum() == len(arrays['tokens'])
    assert arrays['tokens'][0] == 2 and arrays['tokens'][arrays['lengths'][0] - 1] == 3  # [CLS] and [SEP]
    assert 'tokenising' not in run([SCRIPT, *arguments(dense, tmp_path / 'out', '--until=prepare')])
    other = arguments(dense, tmp_path / 'out', '--until=prepare', '--max-tokens=8')
    assert 'remove it to tokenise anew' in run([SCRIPT, *other], 1)


def test_a_page_says_what_was_measured():
    log = {'recipe': {'sparsity': 0.9, 'prune_fraction': 0.6, 'rate': 0.001, 'batch_tokens': 2048, 'seed': 1},
           'vector': 64, 'sparsity': 0.8996, 'layer_sparsity': {'encoder.layer.0.output.dense.weight': 0.8996},
           'texts': 10, 'tokens': 100, 'hardware': 'CPU', 'seconds': 7.0,
           'epoch_columns': ['epoch', 'train_cosine'], 'epochs': [[0.5, 0.9], [1.0, 0.95]]}
    figures = {name: {task: {'ndcg': share, 'recall': 2 * share} for task in ('terms', 'mean')}
               for name, share in (('dense', 50.0), ('sparse', 45.0))}
    measured = {'texts': 'abc', 'threads': 2, 'retrieval': figures, 'speed': {'dense': (10, 1.5), 'sparse': (30, 0.5)},
                'bytes': {'sparse': 1234567}}
    page = distil_card.page('big', 'small', log, measured)
    assert '# big, 90 % sparse' in page and 'in vectors of 64 rows' in page and '--model=small,' in page
    assert '| of the dense nDCG@10 | 100.0 % | 90.0 % |' in page and '| bytes, packed | - | 1,234,567 |' in page
    assert '| `encoder.layer.0.output.dense.weight` | 89.96 % |' in page
    assert '## Figures' not in distil_card.page('big', 'small', log, {})


@needs_torch
def test_says_what_is_missing(dense, tmp_path):
    (dense / 'model.safetensors').unlink()
    assert 'model.safetensors is not there' in run([SCRIPT, *arguments(dense, tmp_path / 'out')], 1)


@needs_torch
@pytest.mark.parametrize('how', ['SIGKILL', 'SIGTERM'])
def test_a_training_that_ended_goes_on_as_if_it_had_not(dense, tmp_path, how):
    whole, ended = tmp_path / 'whole', tmp_path / 'ended'
    run([SCRIPT, *arguments(dense, whole)])
    script = tmp_path / 'killed.py'
    script.write_text(KILLED.replace('{signal}', how))
    message = run([script, SHIPPED, *arguments(dense, ended, '--keep-every=0')], -9 if how == 'SIGKILL' else 1)
    if how == 'SIGTERM':
        assert f'the same command goes on from {ended / "training"}' in message
    assert not (ended / 'model.safetensors').exists()
    assert 'whose sparsity is 0.8, not 0.7' in run([SCRIPT, *arguments(dense, ended, '--sparsity=.7')], 1)
    run([SCRIPT, *arguments(dense, ended)])
    first, second = (load_file(folder / 'model.safetensors') for folder in (whole, ended))
    for name in first:
        np.testing.assert_array_equal(first[name], second[name], name)
    logs = [log_of(folder) for folder in (whole, ended)]
    steps = [[epoch[:-1] for epoch in log['epochs']] for log in logs]  # all but the seconds
    assert steps[0] == steps[1] and len(steps[0]) == 4


@needs_torch
@needs_module
@pytest.mark.parametrize('vector', [1, 16])
def test_what_it_makes_is_opened_as_a_text_model(dense, tmp_path, vector):
    out = tmp_path / 'made'
    run([SCRIPT, *arguments(dense, out, f'--vector={vector}', '--int8')])
    learnt, taught = load_file(out / 'model.safetensors'), load_file(dense / 'model.safetensors')
    pruned = {name for name in taught if name.startswith('encoder.') and name.endswith('.weight')
              and taught[name].ndim == 2}
    for name, tensor in taught.items():
        if name in pruned:
            kept = learnt[name] != 0
            assert abs(kept.mean() - 0.2) < (0.002 if vector == 1 else 0.02), name
            _, sizes = np.unique(kept, axis=0, return_counts=True)
            assert vector == 1 or np.all(sizes % vector == 0), name
        elif name.startswith('embeddings.'):
            np.testing.assert_array_equal(tensor, learnt[name], name)
    epochs = log_of(out)['epochs']
    assert epochs[-1][log_of(out)['epoch_columns'].index('sparsity')] == 0.8
    assert (out / 'README.md').read_text().startswith('# dense, 80 % sparse')
    texts = ['the cat sat under the tree.', 'a dog ran home', 'bird']
    by_swizzle = retrieval.swizzle(out, 1)(texts)
    np.testing.assert_allclose(by_swizzle, retrieval.unit(retrieval.onnx_runtime(out, 1)(texts)), atol=1e-5)
    in_whole_numbers = retrieval.swizzle(out / 'int8' / 'model.onnx', 1)(texts)
    assert np.sum(by_swizzle * in_whole_numbers, axis=1).min() > 0.98
    assert np.abs(by_swizzle - in_whole_numbers).max() > 0


@needs_torch
@pytest.mark.parametrize('vector', [1, 16])
def test_layers_that_advice_leaves_stay_dense(dense, tmp_path, vector):
    advice = advise(dense, tmp_path / 'advice.json', '--sparsity=.8')
    for layer in advice['layers']:
        layer['advised_sparsity'] = 0.0 if layer['name'].startswith('encoder.layer.0.output') else 0.8
    (tmp_path / 'advice.json').write_text(json.dumps(advice))
    out = tmp_path / 'made'
    run([SCRIPT, *arguments(dense, out, f'--vector={vector}', f'--sparsities={tmp_path / "advice.json"}')])
    shares = log_of(out)['layer_sparsity']
    left = shares.pop('encoder.layer.0.output.dense.weight')
    assert left < 0.01 and all(abs(share - 0.8) < 0.02 for share in shares.values())


@needs_torch
def test_distilling_brings_the_vectors_nearer(dense, tmp_path):
    import torch

    import bert_encoder
    import distillation

    checkpoint = bert_checkpoint.read(dense)
    torch.manual_seed(1)
    tokens = np.random.default_rng(1).integers(5, 20, 40 * 12)
    data = distillation.TrainingTexts(checkpoint.tensors, checkpoint.config, tokens, np.full(40, 12), torch.device('cpu'))
    cosines = {}
    for rate in (0.0, 3e-3):
        recipe = distillation.Recipe(sparsity=0.6, epochs=20, rate=rate, batch_tokens=160, prune_every=5)
        encoder, _ = distillation.prune_and_distil(data, recipe, report=lambda line: None)
        ids, mask = data.texts.batch(np.arange(40))
        with torch.no_grad():
            vectors = [bert_encoder.pool(model(data.embeddings(ids), mask)[-1], mask)
                       for model in (data.dense(), encoder)]
        cosines[rate] = float((vectors[0] * vectors[1]).sum(1).mean())
    assert cosines[0.0] + 0.05 < cosines[3e-3]
