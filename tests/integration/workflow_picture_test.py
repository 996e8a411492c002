"""The picture of README: whole in itself, readable on light and on dark, and of commands that there are."""

import re
import subprocess
import xml.etree.ElementTree

from conftest import ROOT, program

FILE = ROOT / 'deploy/workflow.svg'
TEXT = FILE.read_text()
SVG = '{http://www.w3.org/2000/svg}'


def test_it_is_well_formed_and_loads_nothing():
    root = xml.etree.ElementTree.parse(FILE).getroot()
    assert root.tag == f'{SVG}svg' and root.find(f'{SVG}title').text and root.find(f'{SVG}desc').text
    assert {element.tag.removeprefix(SVG) for element in root.iter()} <= {
        'svg', 'title', 'desc', 'style', 'text', 'rect', 'path'}
    assert re.findall(r'\w+://[^"]*', TEXT) == [SVG.strip('{}')] and not re.search(r'href|url\(|@import|@font-face', TEXT)


def test_every_colour_has_one_for_dark():
    light, dark = re.search(r'<style>(.*?)@media \(prefers-color-scheme: dark\) {(.*?)\n  }', TEXT, re.DOTALL).groups()

    def coloured(rules):
        return {name for name, rule in re.findall(r'(\.?\w+) {(.*?)}', rules) if '#' in rule}

    assert len(coloured(light)) > 5 and coloured(light) == coloured(dark)
    used = {name for names in re.findall(r'class="([^"]*)"', TEXT) for name in names.split()}
    assert used <= set(re.findall(r'\.(\w+) {', light))


def test_the_readme_shows_it_and_its_commands_are_there():
    readme = (ROOT / 'README.md').read_text()
    assert '](deploy/workflow.svg)' in readme.partition('\n## ')[0]
    commands = re.findall(r'class="code quiet"[^>]*>([^<]*)<', TEXT)
    assert len(commands) == 4
    for command in commands:
        name, *words = command.split()
        shown = subprocess.run([program(name), *words, '--help'], capture_output=True, text=True, timeout=60)
        assert shown.returncode == 0 and command in readme, command
