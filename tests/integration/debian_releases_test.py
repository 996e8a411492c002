"""deploy/install-deps, deploy/build-on-debian and deploy/try-on-debian: releases of Debian call libraries otherwise."""

import os
import shutil
import subprocess

import pytest

from conftest import ROOT

INSTALL_DEPS = ROOT / 'deploy' / 'install-deps'
BUILD_ON_DEBIAN = ROOT / 'deploy' / 'build-on-debian'
TRY_ON_DEBIAN = ROOT / 'deploy' / 'try-on-debian'

BOOKWORM = {'libabsl20220623', 'libdnnl2', 'libfmt9', 'libgrpc++1.51', 'libgrpc29', 'libhwy1', 'libicu72',
            'libprotobuf32', 'libspdlog1.10', 'libssl3'}
TRIXIE = {'libabsl20240722', 'libdnnl3.6', 'libfmt10', 'libgrpc++1.51t64', 'libgrpc29t64', 'libhwy1t64',
          'libicu76', 'libprotobuf32t64', 'libspdlog1.15', 'libssl3t64'}
SID = TRIXIE - {'libabsl20240722', 'libfmt10', 'libicu76'} | {'libabsl20260526', 'libfmt11', 'libicu78'}
EXPERIMENTAL = {'libgrpc++1.83', 'libgrpc56', 'libprotobuf36'}
EVERYWHERE = {'libgomp1', 'libprometheus-cpp-core1.0', 'libpthreadpool0', 'libstdc++6'}

# As apt-cache does: names that it has never heard of are left out.
APT_CACHE = """#!/bin/sh
shift
for name; do
  case " $INSTALLED " in *" $name "*) printf '%s:\\n  Installed: 1\\n  Candidate: 2\\n' "$name"; continue ;; esac
  case " $KNOWN " in *" $name "*) printf '%s:\\n  Installed: (none)\\n  Candidate: 2\\n' "$name" ;; esac
done
"""


def run(*command, **environment):
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=60,
                          env={**os.environ, **environment})


@pytest.fixture
def listed(tmp_path):
    """Lists the packages of a group where apt knows these packages, and these are installed."""
    apt_cache = tmp_path / 'apt-cache'
    apt_cache.write_text(APT_CACHE)
    apt_cache.chmod(0o755)

    def list_packages(known, installed=()):
        result = run(INSTALL_DEPS, '--list', 'run', PATH=f'{tmp_path}:{os.environ["PATH"]}', KNOWN=' '.join(known),
                     INSTALLED=' '.join(installed))
        assert result.returncode == 0, result.stderr
        names = result.stdout.split()
        assert len(names) == len(set(names))
        return set(names)
    return list_packages


@pytest.mark.parametrize('names', (BOOKWORM, TRIXIE, SID), ids=('bookworm', 'trixie', 'sid'))
def test_a_release_gets_its_own_names(listed, names):
    assert listed(names) == names | EVERYWHERE


def test_a_newer_grpc_is_taken_where_there_is_one(listed):
    older = {'libgrpc++1.51t64', 'libgrpc29t64', 'libprotobuf32t64'}
    assert listed(SID | EXPERIMENTAL) == SID - older | EXPERIMENTAL | EVERYWHERE


def test_what_is_installed_stays(listed):
    assert listed(SID | EXPERIMENTAL, installed=('libgrpc++1.51t64',)) >= {'libgrpc++1.51t64', 'libgrpc56'}


def test_a_suite_that_is_none_is_refused():
    result = run(INSTALL_DEPS, '--grpc-from=../sid', 'run')
    assert result.returncode == 1 and 'no name of a suite' in result.stderr


@pytest.mark.parametrize('arguments, message', (
    ((), 'the name of a suite is missing'),
    (('../sid',), "'../sid' is none"),
    (('sid', 'trixie'), 'one suite at a time'),
    (('sid', '--fast'), "unknown argument '--fast'"),
    (('sid', '--jobs=none'), '--jobs needs a number'),
    (('--packages', 'sid', '--', 'true'), 'either --packages or a command'),
))
def test_the_build_refuses_what_it_cannot_do(arguments, message):
    result = run(BUILD_ON_DEBIAN, *arguments)
    assert result.returncode == 1 and message in result.stderr and not result.stdout


@pytest.mark.parametrize('arguments, message', (
    (('no.whl',), "'no.whl' is none"),
    (('sid', '--fast', 'no.whl'), "unknown argument '--fast'"),
    (('sid',), 'have to be named'),
    (('sid', 'README.md'), 'have to be named'),
    (('sid', 'a.whl', 'b.whl'), 'one wheel at a time'),
    (('sid', 'no.whl'), "there is no file 'no.whl'"),
    (('sid', 'no.deb', '--model=no.onnx'), "there is no file 'no.deb'"),
))
def test_the_trial_refuses_what_it_cannot_do(arguments, message):
    result = run(TRY_ON_DEBIAN, *arguments)
    assert result.returncode == 1 and message in result.stderr and not result.stdout


def test_what_is_shipped_is_tried_by_what_is_there():
    """The trial itself takes a network, and minutes; in the roots it runs these."""
    for name in ('deploy/packages/try-installed', 'deploy/wheel/try_installed.py'):
        assert name in TRY_ON_DEBIAN.read_text() and (ROOT / name).exists()
    assert (ROOT / 'deploy/packages/try-installed').stat().st_mode & 0o111


def test_the_build_says_what_it_lacks(tmp_path):
    for name in ('bash', 'cat', 'dirname', 'env', 'nproc', 'readlink'):
        (tmp_path / name).symlink_to(shutil.which(name))
    result = run(BUILD_ON_DEBIAN, 'sid', PATH=str(tmp_path))
    missing = 'debootstrap is missing: apt-get install debootstrap' if os.geteuid() == 0 else 'run it with sudo'
    assert result.returncode == 1 and missing in result.stderr
