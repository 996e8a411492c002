"""What the tables of readme_tables.py share: the files of figures, and how numbers and their origin are written."""

import json
import pathlib
import textwrap

import kept_tables

RESULTS = pathlib.Path(__file__).resolve().parent / 'results'


def kept(name):
    return json.loads((RESULTS / name).read_text())


def kept_seed(name):
    """What the program of a paper's workloads wrote."""
    return json.loads((RESULTS.parent / 'seeds/results' / f'{name}.json').read_text())


def table(*columns, rows):
    return kept_tables.markdown(columns, rows)


def note(text):
    """What stands below a table."""
    return '\n\n' + textwrap.fill(text, 120, break_long_words=False, break_on_hyphens=False)


def each(name, rows):
    return ', '.join(sorted({row[name] for row in rows}))


def gpus(rows):
    names = [row['machine']['gpus'] for row in rows]
    return ' and '.join(sorted({f'{len(gpu)} x {gpu[0].split(",")[0]}' for gpu in names}))


def provenance(rows):
    """On what, when and from which commits these were measured."""
    return f'{gpus(rows)}, {each("date", rows)}, commit {each("commit", rows)}'


def processor_of(figures):
    """The same of a CPU."""
    return (f'{figures["threads"]} threads of an {figures["machine"]["processor"]}, {each("date", figures["rows"])}, '
            f'commit {each("commit", figures["rows"])}')


def us(value):
    return f'{value:.0f} µs'


def times(value):
    return f'{value:.2f}x'
