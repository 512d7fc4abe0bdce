# SPDX-License-Identifier: BSD-3-Clause
"""From figures to a page of docs: a results file (JSON), cells, tables, and their places in the page.

Shared by ci/dataset-figures and ci/volume-figures.
"""
import datetime
import json
import sys
import time

from figures_bench import CannotBeHad, Failed

LENGTHS = {512: "512 B", 4096: "4 KiB", 16384: "16 KiB", 65536: "64 KiB", 131072: "128 KiB", 1 << 20: "1 MiB"}


# ---- cells ----

def digits(number):
    """Three of them, no exponent."""
    if not number:
        return "0" if number == 0 else "–"
    places = 2 - int(f"{abs(number):e}".split("e")[1])
    return f"{number:,.{max(places, 0)}f}"


def count(number):
    if number is None:
        return "–"
    for size, letter in ((1e6, " M"), (1e3, " k")):
        if number >= size:
            return digits(number / size) + letter
    return digits(number)


def ratio(one, other):
    return f"{one / other:.2f}" if one is not None and other else "–"


def two(number):
    return "–" if number is None else f"{number:.2f}"


def length(bytes_):
    return LENGTHS.get(bytes_, f"{bytes_} B")


def table(heads, rows):
    return "\n".join(["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)] + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"


def rows_of(results, prefix):
    """Rows of the figures with this name or its parts, that were measured."""
    return [row for figure in results["figures"] if figure["name"] == prefix or figure["name"].startswith(prefix + "_")
            for row in figure["rows"]]


# ---- results ----

def measure_figure(bench, name, how, commit):
    """Rows of @how(), or why there are none; commands are those that @bench noted."""
    begin, bench.commands = time.monotonic(), []
    figure = {"name": name, "status": "measured", "rows": []}
    try:
        figure["rows"] = how()
    except CannotBeHad as error:
        figure |= {"status": "cannot be had", "note": str(error)}
    except (Failed, OSError) as error:
        figure |= {"status": "failed", "note": bench.anonymous(str(error))}
    except (KeyError, TypeError, ValueError, ZeroDivisionError) as error:
        figure |= {"status": "failed", "note": f"what a program printed is not as expected: {type(error).__name__} {error}"}
    bad = [row for row in figure["rows"] if row.get("failed")]
    if bad:
        figure |= {"status": "failed", "note": "; ".join(f"{row['what']}: {row['failed']}" for row in bad)}
    return figure | {"commands": list(dict.fromkeys(bench.commands)), "took_seconds": round(time.monotonic() - begin, 1),
                     "commit": commit, "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC")}


def read_results(path):
    try:
        results = json.loads(path.read_text())
        results["machine"], [figure["rows"] for figure in results["figures"]]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return results


def write(path, text):
    """Whole, or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(path.name + ".new")
    beside.write_text(text)
    beside.replace(path)


# ---- the page ----

def render_tables(results, tables):
    """{name: Markdown} by {name: function of results}, with why a figure is missing."""
    text = {}
    for name, make in tables.items():
        made = make(results)
        made += "".join(f"\n{figure['name']}: {figure['status']}: {figure.get('note')}\n" for figure in results["figures"]
                        if figure["status"] != "measured" and (figure["name"] == name or figure["name"].startswith(name + "_")))
        if made:
            text[name] = made
    return text


def with_tables(tool, page, text):
    """The page with these tables in their places."""
    for name, made in text.items():
        begin, end = (f"<!-- made by {tool}: {name}: {word} -->\n" for word in ("begin", "end"))
        if page.count(begin) != 1 or page.count(end) != 1:
            print(f"{tool}: the page has not one place for {name}", file=sys.stderr)
            continue
        page = page[:page.index(begin) + len(begin)] + made + page[page.index(end):]
    return page
