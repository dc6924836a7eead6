"""codestat DIRECTORY: a table of files with their lines, functions and classes."""

import os
import sys

from codestat.cache import Cache
from codestat.count import count_source


def python_files(directory):
    for parent, folders, names in os.walk(directory):
        folders[:] = sorted(f for f in folders if not f.startswith("."))
        for name in sorted(names):
            if name.endswith(".py"):
                yield os.path.join(parent, name)


def main(argv, cache_directory):
    if len(argv) != 1:
        print("usage: codestat DIRECTORY", file=sys.stderr)
        return 2
    cache = Cache(cache_directory)
    total = {"lines": 0, "functions": 0, "classes": 0}
    for path in python_files(argv[0]):
        stamp = os.stat(path).st_mtime_ns
        counts = cache.get(path, stamp)
        if counts is None:
            with open(path, encoding="utf-8") as file:
                counts = count_source(file.read())
            cache.put(path, stamp, counts)
        print(f"{counts['lines']:6} {counts['functions']:4} {counts['classes']:4}  {path}")
        for key, value in counts.items():
            total[key] += value
    print(f"{total['lines']:6} {total['functions']:4} {total['classes']:4}  total")
    cache.save()
    return 0
