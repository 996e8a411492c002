"""How long the functions of a source file are, and how often they branch, by a scan of braces in C++ and by the syntax
tree in Python. A switch is one branch: its cases are rows of a table.
`python3 tests/integration/function_lengths.py FILE...` lists them, the longest first."""

import ast
import pathlib
import re
import sys

# What a scan of braces must not look into, in the order in which it begins: comments, raw strings, strings, characters.
OPAQUE = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![\w])\'(?:\\.|[^\'\\\n])+\'', re.DOTALL)
# What opens a scope that functions lie in. An initialiser or an enum opens one that none does.
SCOPE = re.compile(r'\b(namespace|class|struct|union|extern)\b(?![^{]*\)\s*(const|noexcept|override|final|->.*)*\s*$)')
KERNEL = '__global__'  # such a function is named with it
BRANCH = re.compile(r'\b(?:if|for|while|switch|catch)\b|\?')
DIRECTIVE = re.compile(r'^[ \t]*#(?:[^\n]*\\\n)*[^\n]*', re.MULTILINE)


def blank(match):
    """As many lines, and nothing on them."""
    return '\n' * match.group().count('\n')


def is_function(head):
    """Whether what stands before a brace, since the last statement or brace, is the head of a function."""
    if head.count('(') != head.count(')'):
        return False  # an argument in braces
    return '(' in head and not SCOPE.search(head) and not re.search(r'(?<![=!<>])=(?!=)\s*$', head)


def name_of(head):
    before = head[:head.index('(')].split()
    name = before[-1] if before else '(unnamed)'
    return f'{KERNEL} {name}' if KERNEL in before else name


def of_cpp(text):
    """[(name, first line, lines, branches)] of the functions of C++ or CUDA that lie in no other one."""
    text = DIRECTIVE.sub(blank, OPAQUE.sub(blank, text))
    functions, open_braces, head_begin, line = [], [], 0, 1
    for at, character in enumerate(text):
        if character == '\n':
            line += 1
        elif character == '{':
            head = text[head_begin:at]
            inside = any(kind == 'function' for kind, *_ in open_braces)
            kind = 'function' if not inside and is_function(head) else 'scope'
            open_braces.append((kind, head, line, at))
        elif character == '}' and open_braces:
            kind, head, begin, start = open_braces.pop()
            if kind == 'function':
                functions.append((name_of(head), begin, line - begin + 1, len(BRANCH.findall(text[start:at]))))
        if character in '{};':
            head_begin = at + 1
    return functions


def of_python(text):
    """[(name, first line, lines, branches)] of all functions of Python."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    branches = (ast.If, ast.IfExp, ast.For, ast.AsyncFor, ast.While, ast.Match, ast.ExceptHandler)
    return [(node.name, node.lineno, node.end_lineno - node.lineno + 1,
             sum(isinstance(inner, branches) for inner in ast.walk(node)))
            for node in ast.walk(ast.parse(text)) if isinstance(node, kinds)]


def of(file):
    """[(name, first line, lines, branches)] of the functions of a source file."""
    text = pathlib.Path(file).read_text(encoding='utf-8')
    return of_python(text) if pathlib.PurePath(file).suffix == '.py' else of_cpp(text)


if __name__ == '__main__':
    found = [(lines, branches, file, line, name) for file in sys.argv[1:] for name, line, lines, branches in of(file)]
    for lines, branches, file, line, name in sorted(found, reverse=True):
        print(f'{lines:5} {branches:3}  {file}:{line}  {name}')
