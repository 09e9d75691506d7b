# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
"""Plots of a record by gnuplot: speed over size, throughput through a fault, retention over what is
lost. Data and script of each lie beside the picture."""

import os
import shutil
import subprocess

import faults
from figures import median
from report import parse_row, row_title
from rows import LINE_MB, size_text
from stacks import STACKS

HEAD = """set terminal pngcairo size 1000,600 font "DejaVu Sans,12" background "#ffffff"
set output "%s.png"
set border 3 linecolor rgb "#808080"
set tics nomirror out scale 0.6 textcolor rgb "#404040"
set grid linetype 1 linecolor rgb "#e4e4e4"
set key outside right top textcolor rgb "#404040"
"""
COLOURS = {"r2": "#1565c0", "r2-own": "#5e92f3", "r2-vader": "#5e92f3", "ob1": "#c62828",
           "ring": "#ef6c00", "han": "#8d6e63", "ucx": "#2e7d32", "mpich": "#6a1b9a",
           "gloo": "#757575"}


def draw(folder, name, script, data):
    """Writes NAME.dat, NAME.gp and NAME.png. @param data blocks of lines of numbers."""
    with open(os.path.join(folder, name + ".dat"), "w", encoding="ascii") as file:
        file.write("\n\n\n".join("\n".join(block) for block in data) + "\n")
    with open(os.path.join(folder, name + ".gp"), "w", encoding="utf-8") as file:
        file.write(HEAD % name + script)
    subprocess.run(["gnuplot", name + ".gp"], cwd=folder, check=True)
    return os.path.join(folder, name + ".png")


def curves(name, order, using="1:2"):
    """The plot command for one block of NAME.dat for each stack."""
    return "plot " + ", \\\n    ".join(
        '"%s.dat" index %d using %s with linespoints pointtype 7 pointsize 0.6 linewidth %s '
        'linecolor rgb "%s" title "%s"' % (name, index, using, 3 if stack.is_r2 else 1.6,
                                           COLOURS[stack.name], stack.title)
        for index, stack in enumerate(order))


def speed(record, folder, row):
    """Bytes of a call over its time, or what the benchmark says, by size."""
    kind = parse_row(row).kind
    data, order, sizes = [], [], [size for size in record.sizes(row) if size > 0]
    for stack in STACKS:
        found = [(size, record.figures(row, size)[0].get(stack.name)) for size in sizes]
        block = ["%d %.6g" % (size, median(rounds.values()) if kind.is_rate
                              else size / median(rounds.values())) for size, rounds in found
                 if rounds]
        if block:
            data.append(block)
            order.append(stack)
    if not data:
        return None
    name = "speed-" + row.replace(" ", "-").replace("@", "-")
    tics = ", ".join('"%s" %d' % (size_text(size), size) for size in sizes)
    script = ('set logscale xy\nset title "%s"\nset xtics (%s)\n'
              'set xlabel "size"\nset ylabel "size / time (MB/s)"\n%s\n'
              % (row_title(row, "r2"), tics, curves(name, order)))
    return draw(folder, name, script, data)


def steps(points, at_s, end_s, to_rate):
    """Throughput between the points that a job told of, as lines "seconds since the fault, rate"; a
    job that hangs has none from its last point on."""
    lines, last = [], (0.0, 0)
    for point in points:
        if point[0] > last[0]:
            moved = to_rate * (point[1] - last[1]) / (point[0] - last[0])
            lines += ["%.3f %.3f" % (t - at_s, moved) for t in (last[0], point[0])]
            last = point
    if end_s - last[0] > 2:
        lines += ["%.3f 0" % (t - at_s) for t in (last[0], end_s)]
    return lines


def through(record, folder, fault):
    """Bus bandwidth of the first round of each stack while a rail breaks."""
    data, order = [], []
    to_rate = 2 * (4 - 1) / 4 * faults.SIZE * 1e-6
    for stack in STACKS:
        runs = [run for run in record.faults if run["fault"] == fault and run["stack"] == stack.name
                and run["at_s"] is not None]
        if runs:
            run = runs[0]
            data.append(steps(run["points"], run["at_s"], run["end_s"], to_rate))
            order.append(stack)
    if not data:
        return None
    name = "fault-" + fault
    script = ('set title "16 MiB allreduce, 4 x 4 x 100 Mbit: %s at 0 s"\nset yrange [0:%g]\n'
              'set xlabel "s since the fault"\nset ylabel "bus bandwidth (MB/s)"\n'
              'set arrow from 0, graph 0 to 0, graph 1 nohead dashtype 2\n%s, \\\n'
              '    %g with lines dashtype 3 linecolor rgb "#505050" title "line rate"\n'
              % (faults.BY_NAME[fault].title, 1.08 * LINE_MB, curves(name, order), LINE_MB))
    return draw(folder, name, script, data)


def retention(record, folder):
    """What is kept over what is lost, with ring and bound drawn in."""
    block = ["%.4f %.4f %.4f %.4f" % (faults.BY_NAME[name].lost, median(kept), min(kept), max(kept))
             for name in faults.RETENTION if (kept := faults.retention(record, name))]
    if not block:
        return None
    script = ('set title "Throughput kept when one host of four has lost X of its rate"\n'
              'set xrange [0:1]\nset yrange [0:1.05]\nset samples 500\n'
              'set xlabel "X"\nset ylabel "part of healthy"\n'
              'max(a, b) = a > b ? a : b\n'
              'bound(x) = 1.5 / max(1 / max(1 - x, 1e-9), 6 / (4 - x))\n'
              'plot bound(x) with lines linewidth 2 dashtype 2 linecolor rgb "#505050" '
              'title "bound", \\\n'
              '    1 - x with lines linewidth 2 dashtype 4 linecolor rgb "#c62828" title "ring", '
              '\\\n    "retention.dat" using 1:2:3:4 with yerrorbars pointtype 7 '
              'linecolor rgb "#1565c0" title "r2"\n')
    return draw(folder, "retention", script, [sorted(block)])


def draw_all(record, folder):
    """All plots that the record has data for: their paths."""
    if not shutil.which("gnuplot"):
        raise ValueError("there is no gnuplot: apt-get install gnuplot-nox")
    os.makedirs(folder, exist_ok=True)
    made = [speed(record, folder, row) for row in record.rows()]
    made += [through(record, folder, name) for name in faults.BY_NAME]
    return [path for path in (*made, retention(record, folder)) if path]
