"""Remembers counts beside the tool itself, so that an unchanged file is read only once."""

import json
import os


class Cache:
    def __init__(self, directory):
        self.path = os.path.join(directory, "counts.json")
        self.entries = {}
        try:
            with open(self.path, encoding="utf-8") as file:
                self.entries = json.load(file)
        except (OSError, ValueError):
            pass

    def get(self, path, stamp):
        entry = self.entries.get(path)
        return entry["counts"] if entry and entry["stamp"] == stamp else None

    def put(self, path, stamp, counts):
        self.entries[path] = {"stamp": stamp, "counts": counts}

    def save(self):
        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        temporary = f"{self.path}.{os.getpid()}"
        with open(temporary, "w", encoding="utf-8") as file:
            json.dump(self.entries, file, sort_keys=True)
        os.replace(temporary, self.path)
