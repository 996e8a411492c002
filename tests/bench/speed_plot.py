"""An SVG of how fast engines run whole models, as multiples of the best dense one, from what whole_models.py kept."""

ENGINES = {'swizzle': ('Swizzle', '#0b6e4f'), 'deepsparse': ('DeepSparse 1.8.0', '#e09f3e'),
           'openvino': ('OpenVINO, dense', '#8d99ae'), 'onnxruntime': ('ONNX Runtime, dense', '#bcc3cf')}
DENSE = ('onnxruntime', 'openvino')
NAMES = {'resnet50': 'ResNet-50', 'mobilenet_v1': 'MobileNetV1', 'minilm': 'MiniLM-L6', 'bert-base': 'BERT-base'}
WIDTH, LEFT, RIGHT, TOP, BAR, GAP = 760, 150, 60, 64, 13, 14  # in pixels


def best_dense(row):
    return min(ms for name, ms in row['ms'].items() if name in DENSE)


def speeds(row):
    return [(name, best_dense(row) / row['ms'][name]) for name in ENGINES if name in row['ms']]


def text(x, y, content, **attributes):
    extra = ''.join(f' {name.replace("_", "-")}="{value}"' for name, value in attributes.items())
    return f'<text x="{x:g}" y="{y:g}"{extra}>{content}</text>'


def scale(rows):
    """Pixels of 1x, and the last grid line."""
    last = int(max(speed for row in rows for _, speed in speeds(row))) + 1
    return (WIDTH - LEFT - RIGHT) / last, last


def grid(rows, height):
    unit, last = scale(rows)
    for mark in range(last + 1):
        x = LEFT + mark * unit
        yield f'<line x1="{x:.1f}" y1="{TOP - 6}" x2="{x:.1f}" y2="{height - 8}" stroke="{"#555" if mark == 1 else "#ddd"}"/>'
        yield text(round(x, 1), TOP - 10, f'{mark}x', text_anchor='middle', fill='#555')


def legend():
    x = LEFT
    for label, colour in ENGINES.values():
        yield f'<rect x="{x}" y="24" width="11" height="11" fill="{colour}"/>'
        yield text(x + 16, 34, label)
        x += 36 + 6.4 * len(label)


def bars(row, y, unit):
    yield text(LEFT - 10, y + len(speeds(row)) * BAR / 2 + 4, f'{NAMES[row["model"]]}, batch {row["batch"]}', text_anchor='end')
    for name, speed in speeds(row):
        label, colour = ENGINES[name]
        yield (f'<rect x="{LEFT}" y="{y}" width="{speed * unit:.1f}" height="{BAR - 2}" fill="{colour}">'
               f'<title>{label}: {row["ms"][name]:.2f} ms</title></rect>')
        yield text(round(LEFT + speed * unit + 4, 1), y + BAR - 3, f'{speed:.2f}x', font_size='10')
        y += BAR


def svg(rows, title):
    tops = [TOP]
    for row in rows:
        tops.append(tops[-1] + len(speeds(row)) * BAR + GAP)
    parts = [text(LEFT, 14, title, font_weight='bold'), *legend(), *grid(rows, tops[-1])]
    for row, y in zip(rows, tops):
        parts += bars(row, y, scale(rows)[0])
    return '\n'.join([f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{tops[-1]}" '
                      f'viewBox="0 0 {WIDTH} {tops[-1]}" font-family="sans-serif" font-size="12" fill="#222">',
                      f'<rect width="{WIDTH}" height="{tops[-1]}" fill="#fff"/>', *parts, '</svg>', ''])
