#!/usr/bin/env python3
"""Whole models on two builds of plan_bench in turn: has a change cost speed?

  tests/bench/compare_builds.py --before=OLD/plan_bench --after=NEW/plan_bench
  tests/bench/compare_builds.py --before=... --after=... --device=cuda --precisions=FP32,FP16 --limit=1.03

The builds take turns, and who begins changes every time. Times are medians of the rounds within a run; of the runs the
least counts, since a busy machine only ever adds time. Exit code 1 if some case takes more than --limit times as long.
"""

import argparse
import json
import subprocess
import sys


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--before', required=True, help='plan_bench, or a command that starts it')
    parser.add_argument('--after', required=True)
    parser.add_argument('--models', default='resnet50,mobilenet_v1,minilm,bert-base')
    parser.add_argument('--batches', default='1,8')
    parser.add_argument('--precisions', default='FP32')
    parser.add_argument('--device', default='cpu')
    parser.add_argument('--sparsity', default='0.9')
    parser.add_argument('--runs', type=int, default=3, help='of each build and case')
    parser.add_argument('--rounds', type=int, default=31, help='within a run')
    parser.add_argument('--tuning-budget', default='5')
    parser.add_argument('--limit', type=float, default=1.03)
    return parser.parse_args()


def microseconds(program, options, model, precision, batch):
    command = program.split() + [
        f'--model={model}', f'--precision={precision}', f'--batch={batch}', f'--device={options.device}',
        f'--sparsity={options.sparsity}', f'--rounds={options.rounds}', f'--tuning-budget={options.tuning_budget}',
        '-o', 'json']
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f'{" ".join(command)}: {(done.stderr or done.stdout).strip()}')
    figures = json.loads(done.stdout)
    return figures['sparse_us'], figures['dense_us']


def compare(options, model, precision, batch):
    """The least sparse and dense times of both builds."""
    builds = ((options.before, []), (options.after, []))  # which may be one and the same, to see how far noise goes
    for run in range(options.runs):
        for program, times in builds if run % 2 == 0 else reversed(builds):
            times.append(microseconds(program, options, model, precision, batch))
    return [[min(time[kind] for time in times) for _, times in builds] for kind in (0, 1)]


def main():
    options = arguments()
    print('| model | precision | batch | sparse before | after | ratio | dense before | after | ratio |')
    print('|---|---|---|---|---|---|---|---|---|', flush=True)
    slower = []
    for model in options.models.split(','):
        for precision in options.precisions.split(','):
            for batch in options.batches.split(','):
                cells = []
                for before, after in compare(options, model, precision, batch):
                    cells += [f'{before:.0f} us', f'{after:.0f} us', f'{after / before:.3f}']
                    if after > options.limit * before:
                        slower.append(f'{model} {precision} batch {batch}: {after / before:.3f}')
                print(f'| {model} | {precision} | {batch} | ' + ' | '.join(cells) + ' |', flush=True)
    if slower:
        sys.exit(f'slower by more than {options.limit}: ' + '; '.join(slower))


if __name__ == '__main__':
    main()
