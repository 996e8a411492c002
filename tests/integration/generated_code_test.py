"""Code that scripts of the tree make is what these scripts make."""

import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]

GENERATED = {'kernels/cuda/tensor_core/wgmma_shapes.h': 'kernels/cuda/tensor_core/make_wgmma_shapes.py'}


@pytest.mark.parametrize('header', GENERATED)
def test_generated_headers_are_as_their_scripts_make_them(header):
    made = subprocess.run([sys.executable, ROOT / GENERATED[header]], capture_output=True, text=True, check=True).stdout
    assert (ROOT / header).read_text() == made, f'write it anew: {GENERATED[header]} > {header}'
