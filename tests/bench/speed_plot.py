"""An SVG of how fast engines run whole models, as multiples of the best dense one, from what whole_models.py kept."""

ENGINES = {'swizzle': ('Swizzle', '#0b6e4f'), 'deepsparse': ('DeepSparse 1.8.0', '#e09f3e'),
           'openvino': ('OpenVINO, dense', '#8d99ae'), 'onnxruntime': ('ONNX Runtime, dense', '#bcc3cf')}
DENSE = ('onnxruntime', 'openvino')
NAMES = {'resnet50': 'ResNet-50', 'mobilenet_v1': 'MobileNetV1', 'minilm': 'MiniLM-L6', 'bert-base': 'BERT-base'}
WIDTH, LEFT, RIGHT, TOP, BAR, GAP = 760, 150, 60, 68, 15, 16  # in pixels


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
        colour = '#555' if mark == 1 else '#ddd'
        yield f'<line x1="{x:.1f}" y1="{TOP - 6}" x2="{x:.1f}" y2="{height - 8}" stroke="{colour}"/>'
        yield text(round(x, 1), TOP - 10, f'{mark}x', text_anchor='middle', fill='#555')


def legend():
    x = LEFT
    for label, colour in ENGINES.values():
        yield f'<rect x="{x:g}" y="26" width="11" height="11" fill="{colour}"/>'
        yield text(x + 16, 36, label)
        x += round(36 + 6.6 * len(label))


def bars(row, y, unit):
    name = f'{NAMES[row["model"]]}, batch {row["batch"]}'
    yield text(LEFT - 10, y + len(speeds(row)) * BAR / 2 + 3, name, text_anchor='end')
    for name, speed in speeds(row):
        label, colour = ENGINES[name]
        end = LEFT + speed * unit
        yield (f'<rect x="{LEFT}" y="{y}" width="{speed * unit:.1f}" height="{BAR - 2}" fill="{colour}">'
               f'<title>{label}: {row["ms"][name]:.2f} ms</title></rect>')
        yield f'<rect x="{end + 2:.1f}" y="{y}" width="34" height="{BAR - 2}" fill="#fff"/>'  # no grid behind digits
        yield text(round(end + 5, 1), y + BAR - 4, f'{speed:.2f}x', font_size='11')
        y += BAR


def svg(rows, title, subtitle=''):
    tops = [TOP]
    for row in rows:
        tops.append(tops[-1] + len(speeds(row)) * BAR + GAP)
    heading = f'<tspan font-weight="bold">{title}</tspan>'
    if subtitle:
        heading += f' <tspan fill="#555">({subtitle})</tspan>'
    parts = [text(10, 15, heading), *legend(), *grid(rows, tops[-1])]
    for row, y in zip(rows, tops):
        parts += bars(row, y, scale(rows)[0])
    return '\n'.join([f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{tops[-1]}" '
                      f'viewBox="0 0 {WIDTH} {tops[-1]}" font-family="sans-serif" font-size="12" fill="#222">',
                      f'<rect width="{WIDTH}" height="{tops[-1]}" fill="#fff"/>', *parts, '</svg>', ''])
