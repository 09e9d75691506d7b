# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
"""What r2_sim and r2_info simulated, as pictures."""

import json
import math
from html import escape


class BadInput(Exception):
    """What is wrong with the files, or with what is to become of them."""


PLOT = {"left": 70, "top": 50, "width": 560, "height": 370}
# Okabe and Ito, "Color Universal Design", 2008: told apart by everyone.
PLOT_COLOURS = ("#d55e00", "#e69f00", "#cc79a7", "#0072b2", "#56b4e9", "#009e73", "#000000")
BAND = {"left": 110, "top": 46, "width": 900, "half": 22, "height": 52, "bottom": 44, "name": 14}
BAND_STEP = 0.25        # heights that differ by less look alike, pixels


def svg(width, height, parts):
    """A picture of its own size."""
    head = ('<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" '
            'font-family="sans-serif" font-size="12">\n'
            '<rect width="100%%" height="100%%" fill="white"/>\n' % (width, height))
    return head + "".join(part + "\n" for part in parts) + "</svg>\n"


class Overheads:
    """Mean and 99th percentile of each algorithm's overhead over the number of dead NICs."""

    def __init__(self, said):
        self.said = said
        self.cells = {(row["failures"], row["algorithm"]): row for row in said["rows"]}
        self.algorithms = list(said["healthy_seconds"])
        self.first = said["failures_first"]
        self.failures = range(self.first, self.first + len(said["bound_over_healthy"]))
        most = max([1.0] + [(cell["over_healthy_p99"] - 1) * 100 for cell in self.cells.values()])
        unit = 10 ** math.floor(math.log10(most))
        self.top = math.ceil(most / unit) * unit

    def x(self, failures):
        """Place of a number of dead NICs."""
        steps = len(self.failures) - 1
        part = (failures - self.first) / steps if steps else 1 / 2
        return PLOT["left"] + PLOT["width"] * part

    def y(self, percent):
        """Place of an overhead."""
        return PLOT["top"] + PLOT["height"] * (1 - max(min(percent, self.top), 0.0) / self.top)

    def axes(self):
        """Headline, grid and their numbers."""
        left, bottom = PLOT["left"], PLOT["top"] + PLOT["height"]
        yield ('<text x="%d" y="28" font-size="15">allreduce of %.0f bytes, %d hosts x %d rails, '
               '%d draws</text>' % ((left,) + tuple(
                   self.said[key] for key in ("bytes", "hosts", "rails", "draws"))))
        for percent in (self.top * tick / 5 for tick in range(6)):
            yield ('<path d="M%d %.1fh%d" stroke="#ddd"/>'
                   '<text x="%d" y="%.1f" text-anchor="end">%g %%</text>'
                   % (left, self.y(percent), PLOT["width"], left - 6, self.y(percent) + 4, percent))
        for failures in self.failures:
            yield ('<text x="%.1f" y="%d" text-anchor="middle">%d</text>'
                   % (self.x(failures), bottom + 18, failures))
        yield ('<text x="%d" y="%d" text-anchor="middle">dead NICs</text>'
               % (left + PLOT["width"] // 2, bottom + 38))
        yield ('<text transform="translate(16 %d) rotate(-90)" text-anchor="middle">'
               'overhead</text>' % (PLOT["top"] + PLOT["height"] // 2))

    def curve(self, style, values):
        """Times over the healthy ones; 0 is a cell without any."""
        points = ("%.1f,%.1f " % (self.x(f), self.y((value - 1) * 100))
                  for f, value in zip(self.failures, values) if value > 0)
        return '<polyline fill="none" %s points="%s"/>' % (style, "".join(points))

    def key(self, row, colour, text):
        """A row of the legend."""
        x, y = PLOT["left"] + PLOT["width"] + 20, PLOT["top"] + 14 + 22 * row
        line = ('<path d="M%d %dh24" stroke="%s" stroke-width="2"/>' % (x, y - 4, colour)
                if colour else "")
        x += 30 if colour else 0
        return '%s<text x="%d" y="%d">%s</text>' % (line, x, y, escape(text))

    def draw(self):
        """The whole picture as text."""
        parts = list(self.axes())
        for number, name in enumerate(self.algorithms):
            colour = PLOT_COLOURS[number % len(PLOT_COLOURS)]
            cells = [self.cells[f, name] for f in self.failures]
            parts += [self.curve('stroke="%s" stroke-width="2"' % colour,
                                 [cell["over_healthy"] for cell in cells]),
                      self.curve('stroke="%s" stroke-dasharray="3 4"' % colour,
                                 [cell["over_healthy_p99"] for cell in cells]),
                      self.key(number, colour, name)]
        parts += [self.curve('stroke="#888" stroke-dasharray="8 4"',
                             self.said["bound_over_healthy"]),
                  self.key(len(self.algorithms), "#888", "bound (long dashes)"),
                  self.key(len(self.algorithms) + 1, None, "short dashes: 99th percentile")]
        return svg(860, 480, parts)


class Bands:
    """What hosts send (above their line) and take in (below) over time, a colour for each rail."""

    def __init__(self, said):
        self.said, self.rails = said, len(said["bands"][0]["sends"])

    def colour(self, rail):
        """Evenly spaced hues."""
        return "hsl(%d,65%%,55%%)" % ((210 + 360 * rail // self.rails) % 360)

    def frame(self):
        """Headline, names of rails and hosts, times."""
        said, left, height = self.said, BAND["left"], BAND["height"]
        bottom = BAND["top"] + height * len(said["bands"])
        more = said["hosts"] - len(said["bands"])
        yield ('<text x="%d" y="18" font-size="14">%s, %d bytes: above the line what a host sends, '
               'below what it takes in</text>' % (left, escape(said["algorithm"]), said["bytes"]))
        if more > 0:
            yield '<text x="%d" y="%d">and %d hosts more</text>' % (left, bottom + 38, more)
        for rail in range(self.rails):
            yield ('<text x="%d" y="36" fill="%s">%s%d</text>'
                   % (left + 50 * rail, self.colour(rail),
                      "all rails of host, network " if said["network"] == "flat" else "rail", rail))
        for number, band in enumerate(said["bands"]):
            yield ('<text x="%d" y="%d" text-anchor="end">%s</text>'
                   % (left - 8, BAND["top"] + height * number + height // 2 + 4,
                      escape(band["host"][:BAND["name"]])))
        for tick in range(6):
            yield ('<text x="%d" y="%d" text-anchor="middle">%.4g ms</text>'
                   % (left + BAND["width"] * tick // 5, bottom + 20,
                      said["seconds"] * tick / 5 * 1e3))

    @staticmethod
    def edge(heights, base, back):
        """One edge of an area, as steps to the right or back; steps of equal height are one."""
        step, last = BAND["width"] / len(heights), len(heights) - 1
        places = list(range(len(heights)))[::-1 if back else 1]
        parts = ["%.1f,%.1f" % (BAND["left"] + (BAND["width"] if back else 0.0),
                                base + heights[places[0]])]
        for number, place in enumerate(places):
            after = heights[places[number + 1]] if number < last else None
            if after is None or abs(heights[place] - after) >= BAND_STEP:
                parts.append("H%.1f" % (BAND["left"] + (place if back else place + 1) * step))
                parts += [] if after is None else ["V%.1f" % (base + after)]
        return "".join(parts)

    def area(self, rates, rail, base, sign):
        """Between the stack without and with one rail."""
        def stack(rails):
            return [sign * BAND["half"] * sum(place[:rails]) for place in zip(*rates)]
        return '<path fill="%s" d="M%sL%sz"/>' % (
            self.colour(rail), self.edge(stack(rail + 1), base, False),
            self.edge(stack(rail), base, True))

    def draw(self):
        """The whole picture as text."""
        parts = list(self.frame())
        for number, band in enumerate(self.said["bands"]):
            base = BAND["top"] + BAND["height"] * number + BAND["height"] // 2
            for rail in range(self.rails):
                parts += [self.area(band["sends"], rail, base, -1),
                          self.area(band["takes"], rail, base, 1)]
            parts.append('<path d="M%d %dh%d" stroke="#333"/>'
                         % (BAND["left"], base, BAND["width"]))
        height = BAND["top"] + BAND["height"] * len(self.said["bands"]) + BAND["bottom"]
        return svg(BAND["left"] + BAND["width"] + 50, height, parts)


def simulation(text, where):
    """The picture of what r2_sim --json or r2_info --draw said."""
    try:
        said = json.loads(text)
        return (Bands(said) if "bands" in said else Overheads(said)).draw()
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError,
            RecursionError) as error:
        raise BadInput("%s: no simulation that can be drawn: %r" % (where, error)) from None
