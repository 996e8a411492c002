"""The page of versions names the version that is built, and formats that are read; what ran on which hardware has a date."""

import datetime
import re

from conftest import ROOT

PAGE = (ROOT / 'deploy/CHANGELOG.md').read_text()


def test_the_latest_version_is_the_one_that_is_built():
    version = re.search(r'project\(swizzle VERSION ([\d.]+)', (ROOT / 'CMakeLists.txt').read_text())[1]
    assert re.findall(r'^## (\d\S*)', PAGE, re.MULTILINE)[0] == version


def test_the_formats_of_packed_models_are_those_that_are_read():
    newest = re.search(r'kPackedVersion = (\d+)', (ROOT / 'model_loader/packed/file_layout.h').read_text())[1]
    assert f'formats 1 to {newest} today' in PAGE


def test_what_ran_has_a_date():
    rows = [line.strip('|').split('|') for line in PAGE.partition('## What it was seen to run on')[2].splitlines()
            if line.startswith('|') and not line.startswith('|---')]
    ran = [[cell.strip() for cell in row] for row in rows if row[2].strip() != 'last']
    assert len(ran) > 10
    for what, how, last in ran:
        assert (how == 'nothing') == (not last), what
        if last:
            datetime.date.fromisoformat(last)
