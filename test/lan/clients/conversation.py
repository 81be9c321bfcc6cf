"""A client as a program: each line of its standard input is a task as JSON, and each of its standard output JSON too: what a
person is shown meanwhile, and what the hub said or why the task has failed.
"""
import json
import sys
import traceback


def converse(*abilities):
    by_name = {ability.__name__: ability for ability in abilities}
    for line in sys.stdin:
        task = json.loads(line)
        try:
            write(said=by_name[task["capability"]](task["given"]) or {})
        except Exception:
            write(failed=traceback.format_exc())


def show(what):
    """Shows a person something on the way."""
    write(shown=what)


def write(**line):
    print(json.dumps(line), flush=True)
