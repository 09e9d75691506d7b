# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
# Throughput over time with faults marked. Called by plot_fault, which sets: output, title, points,
# spans, marks (files; empty names: none), end_s, top, line_rate and healthy (0: unknown).

set terminal pngcairo size 1200,540 font "DejaVu Sans,12" background "#ffffff"
set output output

set margins 10, 4, 6.6, 5.2
set title title font ",14" offset 0, 2.1 noenhanced
set xlabel "time since the start of the measurement (s)" offset 0, 0.2
set ylabel "bus bandwidth (MB/s)" offset -0.5, 0
set border 3 linecolor rgb "#808080"
set tics nomirror out scale 0.6 textcolor rgb "#404040"
set grid ytics linetype 1 linecolor rgb "#e4e4e4"
set xrange [0:end_s]
set yrange [0:top]
set key at screen 0.975, screen 0.045 right horizontal samplen 3 spacing 1 width 1 reverse Left \
    textcolor rgb "#404040" maxrows 1
set style fill solid 1.0 noborder

# Times when something was broken lie behind everything.
if (strlen(spans) > 0) {
    set style rectangle back fillcolor rgb "#fdecea" fillstyle solid 1.0 noborder
    do for [i = 1:words(spans) / 2] {
        set object i rectangle from first real(word(spans, 2 * i - 1)), graph 0 \
            to first real(word(spans, 2 * i)), graph 1
    }
}
# Faults: a line with its name at the top, at one of three heights where they are close together.
# Blanks of the name arrive as "~", because marks is a list of words.
do for [i = 1:words(marks) / 3] {
    at = real(word(marks, 3 * i - 2))
    what = word(marks, 3 * i - 1)
    row = int(word(marks, 3 * i))
    tint = strstrt(what, "heal") > 0 ? "#2e7d32" : "#c62828"
    set arrow i from first at, graph 0 to first at, graph 1 nohead front \
        linewidth 1.6 dashtype (10, 6) linecolor rgb tint
    name = ""
    do for [k = 1:strlen(what)] { name = name . (what[k:k] eq "~" ? " " : what[k:k]) }
    if (row < 3) {
        set label i name at first at, graph 1 offset 0, 0.5 + 0.95 * row center front \
            font ",10" textcolor rgb tint noenhanced
    }
}

plot points using 1:2 with filledcurves x1 linecolor rgb "#cfe3f5" notitle, \
     points using 1:2 with lines linewidth 2 linecolor rgb "#1565c0" title "throughput", \
     (healthy > 0 ? healthy : NaN) with lines linewidth 1.6 \
     dashtype (14, 7) linecolor rgb "#00897b" \
         title sprintf("healthy median %.1f", healthy), \
     (line_rate > 0 ? line_rate : NaN) with lines linewidth 1.6 \
     dashtype (4, 6) linecolor rgb "#505050" \
         title sprintf("line rate %.1f", line_rate)
