#!/usr/bin/env python3
"""Converts PyTorch checkpoints to safetensors, which Swizzle reads. Offline: the server never opens a pickle.

    python3 convert_checkpoint.py pytorch_model.bin 1/model.safetensors
    python3 convert_checkpoint.py pytorch_model-*.bin 1/model.safetensors      # shards, into one file

Beside model.safetensors, Swizzle wants the checkpoint's config.json. It needs PyTorch 1.13 or later (Debian:
python3-torch) and nothing else. Files are read with weights_only=True: what is in them may be tensors, never code.
"""

import argparse
import json
import os
import pathlib
import pickle
import struct
import sys
import tempfile

# Of torch, by name, so that this file can be read where torch is not installed.
DTYPES = {'float64': 'F64', 'float32': 'F32', 'float16': 'F16', 'bfloat16': 'BF16', 'int64': 'I64', 'int32': 'I32',
          'int16': 'I16', 'int8': 'I8', 'uint8': 'U8', 'bool': 'BOOL'}
# Where training scripts keep the weights among other things.
WRAPPERS = ('state_dict', 'model_state_dict', 'model')


class ConversionError(Exception):
    """What is wrong with a checkpoint, in one sentence."""


def load(path):
    """The object in a PyTorch file."""
    try:
        import torch
    except ImportError as error:
        raise ConversionError("PyTorch is missing; install Debian's python3-torch, or pip install torch") from error
    try:
        return torch.load(path, map_location='cpu', weights_only=True)
    except TypeError as error:
        raise ConversionError(f'PyTorch {torch.__version__} has no weights_only=True; install 1.13 or later') from error
    except (pickle.UnpicklingError, RuntimeError, EOFError, OSError, ValueError, AttributeError, ImportError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ConversionError(f'{path}: it is no PyTorch checkpoint of tensors alone: {reason}') from error


def state_dict(content, path):
    """The tensors by name; of a checkpoint that wraps them, those within."""
    for wrapper in WRAPPERS:
        if isinstance(content, dict) and isinstance(content.get(wrapper), dict):
            content = content[wrapper]
            break
    if not isinstance(content, dict) or not content:
        raise ConversionError(f'{path}: it holds no tensors by name; save model.state_dict()')
    for name, tensor in content.items():
        if not isinstance(name, str) or not hasattr(tensor, 'dtype'):
            raise ConversionError(f'{path}: {name!r} is a {type(tensor).__name__}, not a tensor; '
                                  'save model.state_dict() alone')
    return content


def encode(name, tensor):
    """A tensor's dtype, shape and bytes."""
    dtype = str(tensor.dtype).rsplit('.', maxsplit=1)[-1]
    if dtype not in DTYPES:
        raise ConversionError(f"tensor '{name}' is {dtype}; convert it to float32 first")
    if str(tensor.layout) != 'torch.strided':
        raise ConversionError(f"tensor '{name}' is stored sparse ({tensor.layout}); call to_dense() first")
    import torch
    # As bytes, since NumPy has no bfloat16.
    flat = tensor.detach().contiguous().reshape(-1)
    return DTYPES[dtype], list(tensor.shape), flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b''


def write_safetensors(path, tensors):
    """Writes {name: (dtype, shape, bytes)}; a file that is there is replaced as a whole."""
    header, position = {'__metadata__': {'format': 'pt'}}, 0
    for name, (dtype, shape, content) in tensors.items():
        header[name] = {'dtype': dtype, 'shape': shape, 'data_offsets': [position, position + len(content)]}
        position += len(content)
    text = json.dumps(header, separators=(',', ':'), ensure_ascii=False).encode()
    text += b' ' * (-len(text) % 8)
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f'.{path.name}.', delete=False) as file:
        try:
            file.write(struct.pack('<Q', len(text)) + text)
            for _, _, content in tensors.values():
                file.write(content)
            file.close()
            os.chmod(file.name, 0o644)
            os.replace(file.name, path)
        except BaseException:
            os.unlink(file.name)
            raise


def convert(sources, output):
    """Returns how many tensors, of how many bytes."""
    tensors = {}
    for source in sources:
        if not source.is_file():
            raise ConversionError(f'{source}: there is no such file')
        for name, tensor in state_dict(load(source), source).items():
            if name in tensors:
                raise ConversionError(f"{source}: tensor '{name}' is in a file before it, too")
            tensors[name] = encode(name, tensor)
    write_safetensors(output, tensors)
    return len(tensors), sum(len(content) for _, _, content in tensors.values())


def parse_arguments(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('sources', nargs='+', type=pathlib.Path, metavar='SOURCE', help='a .bin, .pt or .pth file')
    parser.add_argument('output', type=pathlib.Path, metavar='OUTPUT', help='the .safetensors file to write')
    parser.add_argument('--force', action='store_true', help='replace OUTPUT if it is there')
    options = parser.parse_args(arguments)
    if options.output.suffix != '.safetensors':
        parser.error(f"OUTPUT '{options.output}' does not end in .safetensors")
    if not options.output.parent.is_dir():
        parser.error(f"the folder of OUTPUT '{options.output}' is not there")
    if options.output.exists() and not options.force:
        parser.error(f"OUTPUT '{options.output}' is there already; --force replaces it")
    return options


def main(arguments=None):
    options = parse_arguments(arguments)
    try:
        count, size = convert(options.sources, options.output)
    except (ConversionError, OSError) as error:
        print(f'convert_checkpoint: {error}', file=sys.stderr)
        return 1
    print(f'{options.output}: {count} tensors, {size / 1e6:.1f} MB')
    return 0


if __name__ == '__main__':
    sys.exit(main())
