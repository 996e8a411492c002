"""Tables of the pages PERFORMANCE.md that no program wrote as JSON: cells as they were read off a run, kept in
tests/bench/results/{cpu,cuda}_tables.json with what they were measured on, by what command (null: it was not kept) and
when. readme_tables.py writes them into the pages.

A new table is typed into its page, with a line `<!-- name: new -->` above it; `readme_tables.py --keep` moves it into
the file. What it was measured on, by and when is then to be filled in there: structure_test asks for it."""

import json
import pathlib
import re

RESULTS = pathlib.Path(__file__).resolve().parent / 'results'
FILES = {'kernels/cpu/PERFORMANCE.md': 'cpu_tables.json', 'kernels/cuda/PERFORMANCE.md': 'cuda_tables.json'}
SCRIPT = 'tests/bench/readme_tables.py'


def markdown(columns, rows):
    """A cell without a value is empty."""
    lines = [columns, ['---'] * len(columns), *rows]
    return '\n'.join('| ' + ' | '.join('' if cell is None else str(cell) for cell in line) + ' |' for line in lines)


def read(page):
    """{name: table} of a page."""
    return json.loads((RESULTS / FILES[page]).read_text())


def makers(page):
    """{name: what makes the table} of a page."""
    return {name: lambda kept=kept: markdown(kept['columns'], kept['rows']) for name, kept in read(page).items()}


def text_of(tables):
    """JSON with a line for each row."""
    def text(value):
        return json.dumps(value, ensure_ascii=False)

    parts = []
    for name, kept in tables.items():
        about = ''.join(f'    {text(key)}: {text(kept[key])},\n' for key in ('measured_on', 'command', 'date', 'columns'))
        rows = ',\n'.join(f'      {text(row)}' for row in kept['rows'])
        parts.append(f'  {text(name)}: {{\n{about}    "rows": [\n{rows}\n    ]\n  }}')
    return '{\n' + ',\n'.join(parts) + '\n}\n'


def write(page, tables):
    (RESULTS / FILES[page]).write_text(text_of(tables))


def cells(line):
    return [cell.strip() for cell in re.split(r'(?<!\\)\|', line.strip()[1:-1])]


TYPED = re.compile(r'(?:<!-- (?P<name>[^:>]+): new -->\n)?(?P<head>\|.*\|)\n\|[\s:|-]+\|\n(?P<rows>(?:\|.*\|(?:\n|\Z))+)')
MADE = re.compile(rf'<!-- ([^:>]+): {re.escape(SCRIPT)} -->.*?<!-- end of \1 -->', re.DOTALL)


def typed(text):
    """The tables of a page that stand there by themselves."""
    made = [match.span() for match in MADE.finditer(text)]
    return [match for match in TYPED.finditer(text)
            if not any(begin <= match.start() < end for begin, end in made)]


def keep(page, text):
    """Moves typed tables into the page's file; returns the page's text with places for them."""
    tables = read(page)
    for match in reversed(typed(text)):
        name = match['name']
        if not name or name in tables:
            raise SystemExit(f'{page}: a table needs a line <!-- name: new --> above it, of a name of its own: '
                             f'{match["head"]}')
        tables[name] = {'measured_on': '', 'command': '', 'date': '', 'columns': cells(match['head']),
                        'rows': [cells(line) for line in match['rows'].splitlines()]}
        text = f'{text[:match.start()]}<!-- {name}: {SCRIPT} -->\n<!-- end of {name} -->\n{text[match.end():]}'
    in_order = sorted(tables, key=lambda name: text.index(f'<!-- {name}: {SCRIPT} -->'))
    write(page, {name: tables[name] for name in in_order})
    return text
