"""deploy/models/convert_checkpoint.py: PyTorch checkpoints become safetensors. What needs PyTorch runs where it is."""

import importlib.util
import json
import pathlib
import pickle
import subprocess
import sys

import numpy
import pytest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / 'deploy' / 'models' / 'convert_checkpoint.py'
HAS_TORCH = importlib.util.find_spec('torch') is not None


@pytest.fixture(name='converter', scope='module')
def load_converter():
    spec = importlib.util.spec_from_file_location('convert_checkpoint', SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def read(path):
    """The metadata and the tensors, as (dtype, shape, bytes)."""
    content = path.read_bytes()
    end = 8 + int.from_bytes(content[:8], 'little')
    header, data = json.loads(content[8:end]), content[end:]
    metadata = header.pop('__metadata__')
    assert sum(entry['data_offsets'][1] - entry['data_offsets'][0] for entry in header.values()) == len(data)
    return metadata, {name: (entry['dtype'], entry['shape'], data[slice(*entry['data_offsets'])])
                      for name, entry in header.items()}


def run(*arguments):
    return subprocess.run([sys.executable, SCRIPT, *arguments], capture_output=True, text=True, check=False)


def test_writes_safetensors(converter, tmp_path):
    tensors = {'a': ('F32', [2], numpy.array([1, 2], '<f4').tobytes()), 'é': ('U8', [0, 3], b''),
               's': ('I64', [], bytes(8))}
    path = tmp_path / 'model.safetensors'
    path.write_text('replaced')
    converter.write_safetensors(path, tensors)
    assert read(path) == ({'format': 'pt'}, tensors)
    assert int.from_bytes(path.read_bytes()[:8], 'little') % 8 == 0
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize('arguments, message', [
    (['only.bin'], 'required: OUTPUT'),
    (['in.bin', 'out.bin'], "OUTPUT 'out.bin' does not end in .safetensors"),
    (['in.bin', 'nowhere/out.safetensors'], 'is not there'),
    (['in.bin', 'there.safetensors'], '--force replaces it'),
])
def test_refuses_arguments(converter, tmp_path, monkeypatch, capsys, arguments, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'there.safetensors').touch()
    with pytest.raises(SystemExit) as stopped:
        converter.parse_arguments(arguments)
    assert stopped.value.code == 2
    assert message in capsys.readouterr().err


def test_takes_several_sources(converter, tmp_path):
    options = converter.parse_arguments(['a.bin', 'b.bin', str(tmp_path / 'out.safetensors')])
    assert options.sources == [pathlib.Path('a.bin'), pathlib.Path('b.bin')]


def test_names_a_missing_source(tmp_path):
    result = run(tmp_path / 'none.bin', tmp_path / 'out.safetensors')
    assert result.returncode == 1
    assert result.stderr == f'convert_checkpoint: {tmp_path}/none.bin: there is no such file\n'


@pytest.mark.skipif(HAS_TORCH, reason='PyTorch is installed')
def test_says_that_pytorch_is_missing(tmp_path):
    (tmp_path / 'in.bin').touch()
    result = run(tmp_path / 'in.bin', tmp_path / 'out.safetensors')
    assert result.returncode == 1
    assert "install Debian's python3-torch" in result.stderr


def test_wants_tensors_by_name(converter):
    tensor = numpy.zeros(1)
    assert converter.state_dict({'state_dict': {'a': tensor}, 'epoch': 3}, 'x') == {'a': tensor}
    for content in ({}, [tensor], {'a': 3}, {1: tensor}):
        with pytest.raises(converter.ConversionError, match=r'x: .*save model.state_dict\(\)'):
            converter.state_dict(content, 'x')


@pytest.mark.skipif(not HAS_TORCH, reason='PyTorch is not installed')
def test_converts_what_pytorch_saved(tmp_path):
    import torch
    linear = torch.arange(6, dtype=torch.float32).reshape(2, 3)
    torch.save({'w': linear.t(), 'h': torch.tensor([1.5], dtype=torch.bfloat16)}, tmp_path / 'a.bin')
    torch.save({'model': {'s': torch.tensor(7), 'e': torch.zeros(0, 3)}}, tmp_path / 'b.bin')
    result = run(tmp_path / 'a.bin', tmp_path / 'b.bin', tmp_path / 'm.safetensors')
    assert result.returncode == 0, result.stderr
    assert '4 tensors' in result.stdout
    _, tensors = read(tmp_path / 'm.safetensors')
    assert tensors == {'w': ('F32', [3, 2], linear.t().contiguous().numpy().tobytes()), 'h': ('BF16', [1], b'\xc0\x3f'),
                       's': ('I64', [], (7).to_bytes(8, 'little')), 'e': ('F32', [0, 3], b'')}


@pytest.mark.skipif(not HAS_TORCH, reason='PyTorch is not installed')
def test_runs_nothing_that_a_checkpoint_brings(tmp_path):
    class Code:
        def __reduce__(self):
            return pathlib.Path.touch, (tmp_path / 'ran',)

    (tmp_path / 'in.bin').write_bytes(pickle.dumps({'a': Code()}))
    result = run(tmp_path / 'in.bin', tmp_path / 'm.safetensors')
    assert result.returncode == 1
    assert 'it is no PyTorch checkpoint of tensors alone' in result.stderr
    assert not (tmp_path / 'ran').exists() and not (tmp_path / 'm.safetensors').exists()
