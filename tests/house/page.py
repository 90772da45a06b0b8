"""The fenced blocks of a Markdown page, and a way to run them: `python page.py PAGE`.

Python blocks run in order as one module in the current folder, its `test_` names then run as
tests; a block with `file=NAME` after its language is written there; in console blocks each
`$ statelog ...` and `$ pytest ...` is run, must exit 0 (or as a trailing `# exit N` says), and must
print every line shown below it that holds no `...`.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import types
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

FENCE = re.compile(
    r"^(?P<indent> *)```(?P<info>[^\n`]*)\n(?P<body>.*?)^(?P=indent)``` *$", re.M | re.S
)
RUN = re.compile(r"(\w+=\S+ )*((python -m )?statelog|pytest) ")
EXIT = re.compile(r"\s+# exit (\d+)$")


@dataclass(frozen=True)
class Block:
    """One fenced block: language, options, first line of its body in the page, body."""

    language: str
    options: dict[str, str]
    line: int
    body: str

    @property
    def runs(self) -> bool:
        """Whether running the page does anything with it."""
        return self.language == "python" or "file" in self.options or bool(commands(self))


def blocks(text: str) -> list[Block]:
    """Every fenced block of a page, in order."""
    found = []
    for match in FENCE.finditer(text):
        language, *options = match["info"].split() or [""]
        lines = match["body"].splitlines()
        body = "\n".join(line.removeprefix(match["indent"]) for line in lines) + "\n"
        line = text.count("\n", 0, match.start("body")) + 1
        pairs = dict(option.partition("=")[::2] for option in options)
        found.append(Block(language, pairs, line, body))
    return found


def commands(block: Block) -> list[tuple[str, int, list[str]]]:
    """The commands of a console block that are run: command, exit code, expected lines."""
    if block.language != "console":
        return []
    found: list[tuple[str, int, list[str]]] = []
    for chunk in re.split(r"^\$ ", block.body.replace("\\\n", " "), flags=re.M)[1:]:
        command, *shown = chunk.splitlines()
        code = EXIT.search(command)
        expected = [line.strip() for line in shown if line.strip() and "..." not in line]
        found.append((EXIT.sub("", command), int(code[1]) if code else 0, expected))
    return [entry for entry in found if RUN.match(entry[0])]


def run_command(command: str, code: int, expected: list[str]) -> None:
    """Run one command of a page; fails when it ends or prints otherwise than shown."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        command,
        shell=True,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, "PATH": path},
        timeout=120,
    )
    assert done.returncode == code, f"$ {command}\nexit {done.returncode}\n{done.stdout}"
    printed = [line.strip() for line in done.stdout.splitlines()]
    missing = [line for line in expected if not any(line in has for has in printed)]
    assert not missing, f"$ {command}\ndid not print {missing}\n{done.stdout}"


def run(page: Path) -> int:
    """Run every block of a page, then the tests it defines; returns pytest's exit code."""
    module = types.ModuleType(f"page_{page.stem.replace('-', '_')}")
    sys.modules[module.__name__] = module
    sys.path[0] = ""
    for block in blocks(page.read_text(encoding="utf-8")):
        if "file" in block.options:
            Path(block.options["file"]).parent.mkdir(parents=True, exist_ok=True)
            Path(block.options["file"]).write_text(block.body, encoding="utf-8")
        elif block.language == "python":
            source = "\n" * (block.line - 1) + block.body
            exec(compile(source, str(page), "exec"), module.__dict__)
        for command in commands(block):
            run_command(*command)
    if not any(name.startswith("test") for name in vars(module)):
        return 0
    plugins = ["-p", "no:cacheprovider"]
    return pytest.main(["-q", *plugins, "-c", os.devnull, str(page)], plugins=[Tests(module)])


class Tests:
    """The pytest plug-in that collects the tests of a page that has been run."""

    def __init__(self, module: types.ModuleType) -> None:
        self.module = module

    def pytest_collect_file(self, file_path: Path, parent: pytest.Collector) -> pytest.Module:
        """Let the page be a test module."""
        collected: PageModule = PageModule.from_parent(parent, path=file_path)
        collected.obj = self.module
        return collected


class PageModule(pytest.Module):
    """A test module whose object is there already."""

    def _getobj(self) -> Any:
        return self.obj


if __name__ == "__main__":
    sys.exit(run(Path(sys.argv[1])))
