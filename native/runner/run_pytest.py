"""Runs tests by pytest and reports each, for the runner of a sandbox that grades.

    python3 -I /.dsec/platform/run_pytest.py [--path DIRECTORY]... [--root DIRECTORY] NODE_ID...

Each test is a process of its own, in which pytest reads no configuration, no conftest.py and no plugin. The
parent, which alone can report, runs nothing of the solution. A test has passed when pytest says so, with the
word that its process was given, and the process ends with status 0. The solution runs inside that process, so
one that looks for it can still say that its own test has passed; see the guide to grading.
"""

import argparse
import ctypes
import hmac
import os
import secrets
import sys

REPORT_FD = 3
WORD_FD = 4
PR_SET_DUMPABLE = 4
ANSWER_BYTES_MAX = 4096
OUTCOMES = ("passed", "failed", "skipped", "error")


def hide():
    """Nobody of the same user may look into this process, or open its descriptors."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


def take_word():
    with os.fdopen(WORD_FD) as words:
        return words.read().strip()


class Outcome:
    """A plugin of pytest that keeps the worst that was said of the one test."""

    def __init__(self):
        self.said = []

    def pytest_runtest_logreport(self, report):
        if report.when == "call" or report.outcome != "passed":
            is_error = report.outcome == "failed" and report.when != "call"
            self.said.append("error" if is_error else report.outcome)

    def result(self):
        for outcome in ("error", "failed", "skipped", "passed"):
            if outcome in self.said:
                return outcome
        return "error"


def run_one(node_id, options, word, answer_fd):
    os.close(REPORT_FD)
    sys.path[:0] = options.path
    sys.dont_write_bytecode = True
    import pytest

    outcome = Outcome()
    arguments = ["-q", "-p", "no:cacheprovider", "-c", "/dev/null", "--noconftest"]
    arguments += ["--rootdir", options.root, "--import-mode=importlib"]
    code = pytest.main([*arguments, node_id], plugins=[outcome])
    result = outcome.result()
    if result == "passed" and code != 0:
        result = "error"
    sys.stdout.flush()
    os.write(answer_fd, f"{word} {result}".encode())
    os._exit(0)


def read_answer(fd):
    """What the process said before it ended; whoever else holds the other end is not waited for."""
    os.set_blocking(fd, False)
    try:
        return os.read(fd, ANSWER_BYTES_MAX).decode("ascii", "replace")
    except BlockingIOError:
        return ""


def grade_one(node_id, options):
    word = secrets.token_hex(16)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        run_one(node_id, options, word, writer)
    os.close(writer)
    _, status = os.waitpid(child, 0)
    said, _, result = read_answer(reader).partition(" ")
    os.close(reader)
    is_told = hmac.compare_digest(said.encode(), word.encode())
    if status != 0 or not is_told or result not in OUTCOMES:
        # It ended before pytest had come to its end: nothing is known of the test.
        return None
    return result


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--path", action="append", default=[])
    parser.add_argument("--root", default=os.getcwd())
    parser.add_argument("tests", nargs="+")
    options = parser.parse_args()
    hide()
    word = take_word()
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    for node_id in options.tests:
        result = grade_one(node_id, options)
        if result is not None:
            os.write(REPORT_FD, f"{word} {result} {node_id}\n".encode())


if __name__ == "__main__":
    main()
