"""A client as a program: each line of standard input is a task as JSON, and each line of standard output is JSON: what to show
to a person, and the hub's response or the reason of a failure.
"""
import json
import sys
import traceback


def converse(*handlers):
    by_name = {handler.__name__: handler for handler in handlers}
    for line in sys.stdin:
        task = json.loads(line)
        try:
            write(response=by_name[task["capability"]](task["input"]) or {})
        except Exception:
            write(failed=traceback.format_exc())


def show(prompt):
    """Shows something to a person during a task."""
    write(shown=prompt)


def write(**line):
    print(json.dumps(line), flush=True)
