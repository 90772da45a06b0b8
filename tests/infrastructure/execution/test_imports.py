"""Real step modules: found in their folders only, apart from each other, and classified (4.4)."""

from __future__ import annotations

import dataclasses
import gc
import importlib
import inspect
import os
import pickle
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from statelog.domain.errors import Invalid
from statelog.domain.execution.preflight import (
    Aborted,
    Accepted,
    Rejected,
    Resolved,
    Unresolved,
    preflight,
)
from statelog.domain.execution.spec import PlanSpec, StepSpec
from statelog.domain.execution.step import PermanentStepError
from statelog.infrastructure.execution.imports import StepModules

GOOD = """
    from statelog.domain.execution import StepContext, step
    RAN = []
    @step
    def good(ctx: StepContext, x: int = 0) -> None:
        RAN.append(x)
"""

Make = Callable[..., StepModules]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    """Write files into a folder (default `plan`), and open it."""
    opened: list[StepModules] = []

    def write(files: dict[str, str], folder: str = "plan", *more: Path) -> StepModules:
        for name, text in files.items():
            path = tmp_path / folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(dedent(text), encoding="utf-8")
        opened.append(StepModules([tmp_path / folder, *more]))
        return opened[-1]

    yield write
    for modules in opened:
        modules.close()


def get(modules: StepModules, reference: str) -> Any:
    found = modules(*reference.split(":"))
    assert isinstance(found, Resolved), found
    return found.value


def check(
    modules: StepModules, *references: str, params: dict[str, Any] | None = None
) -> Accepted | Rejected | Aborted:
    steps = [StepSpec(f"s{at}", "x", each, params or {}) for at, each in enumerate(references)]
    return preflight(PlanSpec("p", "r", steps=tuple(steps)), modules)


def test_a_marked_function_of_a_module_in_the_folder_is_accepted(make: Make):
    modules = make({"steps.py": GOOD})
    found = check(modules, "steps:good", "steps.good")
    assert isinstance(found, Accepted)
    assert found.functions["s0"] is found.functions["s1"]
    assert get(modules, "steps:RAN") == []


@pytest.mark.parametrize(
    ("files", "reference", "number"),
    [
        ({"steps.py": GOOD}, "nowhere:f", "P13"),
        ({"steps.py": GOOD}, "nowhere.steps:f", "P13"),
        ({"steps.py": GOOD}, "steps.nowhere:f", "P13"),
        ({"lib/__init__.py": "", "lib/steps.py": GOOD}, "lib.nowhere:f", "P13"),
        ({"steps.py": GOOD}, "os:getcwd", "P13"),
        ({"steps.py": GOOD}, "os.path:join", "P13"),
        ({"steps.py": GOOD}, "statelog.domain:Event", "P13"),
        ({"steps.py": GOOD}, "..plan.steps:good", "P13"),
        ({"steps.py": GOOD}, ".steps:good", "P13"),
        ({"steps.py": GOOD}, "../plan/steps:good", "P13"),
        ({"steps.py": GOOD}, "a b\0:good", "P13"),
        ({"steps.py": GOOD}, "steps:absent", "P15"),
        ({"lib/__init__.py": "", "lib/steps.py": GOOD}, "lib:steps", "P15"),
        ({"steps.py": "def __getattr__(name): raise AttributeError(name)"}, "steps:f", "P15"),
        ({"steps.py": "number = 7"}, "steps:number", "P18"),
        ({"steps.py": "class M: __statelog_step__ = True\nmeta = M()"}, "steps:meta", "P18"),
        ({"steps.py": "def bare(ctx): pass"}, "steps:bare", "P19"),
    ],
)
def test_a_wrong_reference_is_rejected(
    make: Make, files: dict[str, str], reference: str, number: str
):
    """Cases 27 and 30, and P13: nothing outside the folders can be named."""
    found = check(make(files), reference)
    assert isinstance(found, Rejected)
    assert found.check == number


def test_a_missing_module_is_told_with_the_folders_it_was_looked_for_in(make: Make, tmp_path: Path):
    found = check(make({"steps.py": GOOD}), "nowhere:f")
    assert isinstance(found, Rejected)
    assert f"there is no module 'nowhere' in {tmp_path}" in found.message


@pytest.mark.parametrize(
    ("files", "number", "text"),
    [
        ({"steps.py": "import absent_package"}, "P14", "No module named 'absent_package'"),
        ({"steps.py": "import lib.absent", "lib/__init__.py": ""}, "P14", "'lib.absent'"),
        ({"steps.py": "from . import absent"}, "P14", "absent"),
        ({"steps.py": "from lib import absent", "lib/__init__.py": ""}, "P14", "from 'lib'"),
        ({"steps.py": "import helper", "helper.py": "import steps.x"}, "P14", "'steps.x'"),
        ({"steps.py": "raise ImportError('no name')"}, "P14", "no name"),
        ({"steps.py": "raise ModuleNotFoundError('no name')"}, "P14", "no name"),
        ({"steps.py": "int('x')"}, "P14", "ValueError"),
        ({"steps.py": "raise RuntimeError('no')"}, "P14", "RuntimeError: no"),
        ({"steps.py": "def broken(:"}, "P14", "SyntaxError"),
        ({"steps.py": "import os\nos.absent"}, "P16", "AttributeError"),
        (
            {"steps.py": "import other\ndef f(ctx): ...", "other.py": "import steps\nsteps.f"},
            "P16",
            "AttributeError",
        ),
        ({"steps.py": "def __getattr__(name): raise ValueError(name)"}, "P17", "ValueError: f"),
    ],
)
def test_an_import_that_breaks_aborts(make: Make, files: dict[str, str], number: str, text: str):
    """Cases 28 and 29: the cause is kept, with names as their authors spell them."""
    found = check(make(files), "steps:f")
    assert isinstance(found, Aborted)
    assert found.check == number
    assert text in found.message
    assert "statelog_steps" not in found.message


def test_a_broken_import_of_an_earlier_step_hides_a_later_defect(make: Make):
    """4.4."""
    modules = make({"bad.py": "1 / 0", "steps.py": GOOD})
    assert isinstance(check(modules, "bad:f", "steps:absent"), Aborted)
    assert isinstance(check(modules, "steps:absent", "bad:f"), Rejected)


def test_params_are_checked_without_a_call(make: Make):
    """Case 31."""
    modules = make({"steps.py": GOOD})
    assert isinstance(check(modules, "steps:good", params={"x": "no number"}), Accepted)
    found = check(modules, "steps:good", params={"y": 1})
    assert isinstance(found, Rejected)
    assert found.check == "P20"
    assert get(modules, "steps:RAN") == []


def test_a_callable_without_a_readable_signature_is_accepted(make: Make):
    """Case 32."""
    text = """
        from statelog.domain.execution import step
        class Odd:
            __signature__ = "none"
            def __call__(self, *args, **params): ...
        odd = step(Odd())
    """
    modules = make({"steps.py": text})
    with pytest.raises((TypeError, ValueError)):
        inspect.signature(get(modules, "steps:odd"))
    assert isinstance(check(modules, "steps:odd", params={"x": 1}), Accepted)


def test_an_interrupt_in_a_module_is_raised_on(make: Make):
    """1.12: it ends the attempt as cancelled, and is no finding."""
    modules = make({"steps.py": "raise KeyboardInterrupt", "quits.py": "raise SystemExit(3)"})
    with pytest.raises(KeyboardInterrupt):
        check(modules, "steps:f")
    with pytest.raises(SystemExit):
        check(modules, "quits:f")


def test_modules_of_the_same_name_in_two_folders_do_not_meet(make: Make):
    text = "from helper import NAME\ndef who(): return NAME"
    one = make({"steps.py": text, "helper.py": "NAME = 'one'"}, "one")
    other = make({"steps.py": text, "helper.py": "NAME = 'other'"}, "other")
    functions = get(one, "steps:who"), get(other, "steps:who")
    assert [each() for each in functions] == ["one", "other"]
    assert get(one, "helper:NAME") == "one"


def test_each_import_is_fresh_also_after_an_edit_of_the_same_size_and_time(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    first = make({"steps.py": "ONE = 1"})
    assert get(first, "steps:ONE") == 1
    path = tmp_path / "plan" / "steps.py"
    stat = path.stat()
    path.write_text("ONE = 2", encoding="utf-8")
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    second = make({})
    assert (get(second, "steps:ONE"), get(first, "steps:ONE")) == (2, 1)


def test_a_file_that_came_without_changing_the_time_of_its_folder_is_found(
    make: Make, tmp_path: Path
):
    folder = tmp_path / "plan"
    assert isinstance(make({"other.py": ""})("steps", "ONE"), Unresolved)
    stat = folder.stat()
    (folder / "steps.py").write_text("ONE = 1", encoding="utf-8")
    os.utime(folder, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert get(make({}), "steps:ONE") == 1


def test_a_module_runs_once_for_all_steps_of_an_attempt(make: Make):
    modules = make({"steps.py": "import log\nlog.RUNS.append(1)", "log.py": "RUNS = []"})
    found = [modules("steps", "absent") for _ in range(3)]
    assert all(isinstance(each, Unresolved) and each.module_loaded for each in found)
    assert get(modules, "log:RUNS") == [1]


SIBLINGS = {
    "plain": "import helper\nVALUE = helper.VALUE",
    "from": "from helper import VALUE",
    "star": "from helper import *",
    "renamed": "import lib.inner as deep\nVALUE = deep.VALUE",
    "dotted": "import lib.inner\nVALUE = lib.inner.VALUE",
    "package": "from lib import inner\nVALUE = inner.VALUE",
    "inner": "from lib.inner import VALUE",
    "relative": "from . import helper\nVALUE = helper.VALUE",
    "relative name": "from .helper import VALUE",
    "in a package": "from lib.user import VALUE",
    "namesake in a package": "from lib.neighbour import VALUE",
    "namespace": "from space.inner import VALUE",
    "built in function": "VALUE = __import__('helper').VALUE",
    "star of a package": "from lib.all import *\nVALUE = inner.VALUE",
    "import_module": "import importlib as i\nVALUE = i.import_module('.helper', __package__).VALUE",
}


@pytest.mark.parametrize(
    ("text", "late"),
    [
        pytest.param(text, late, id=f"{name}, {'late' if late else 'at once'}")
        for name, text in SIBLINGS.items()
        for late in (False, True)
        if not (late and "*" in text)
    ],
)
def test_siblings_import_each_other(make: Make, text: str, late: bool):
    """At the top of a module, and inside a function long after."""
    body = f"def value():\n    {text.replace(chr(10), chr(10) + '    ')}\n    return VALUE"
    files = {
        "steps.py": body if late else f"{text}\ndef value(): return VALUE",
        "helper.py": "VALUE = 'sibling'",
        "lib/__init__.py": "",
        "lib/inner.py": "VALUE = 'sibling'",
        "lib/user.py": "from . import inner\nfrom .inner import VALUE\nimport helper",
        "lib/twin.py": "VALUE = 'sibling'",
        "lib/neighbour.py": "from .twin import VALUE",
        "twin.py": "VALUE = 'cousin'",
        "lib/all/__init__.py": "__all__ = ['inner']",
        "lib/all/inner.py": "VALUE = 'sibling'",
        "space/inner.py": "VALUE = 'sibling'",
    }
    value = get(make(files), "steps:value")
    assert value() == "sibling"


def test_an_author_who_catches_an_import_error_sees_the_names_written(make: Make):
    text = """
        def missing():
            try:
                import lib.absent
            except ImportError as error:
                return error.name, str(error)
    """
    missing = get(make({"steps.py": text, "lib/__init__.py": ""}), "steps:missing")
    assert missing() == ("lib.absent", "No module named 'lib.absent'")


def test_siblings_may_import_each_other_in_a_circle(make: Make):
    modules = make(
        {
            "steps.py": "import helper\ndef value(): return helper.value()",
            "helper.py": "import steps\ndef value(): return steps.value.__name__",
        }
    )
    assert get(modules, "steps:value")() == "value"


def test_a_sibling_wins_over_an_installed_module_and_changes_it_for_nobody_else(make: Make):
    modules = make({"steps.py": "import json\nVALUE = json.VALUE", "json.py": "VALUE = 'mine'"})
    assert get(modules, "steps:VALUE") == "mine"
    assert not hasattr(importlib.import_module("json"), "VALUE")


def test_a_directory_of_data_does_not_hide_an_installed_module(make: Make):
    modules = make({"steps.py": "import orjson\nVALUE = orjson.dumps", "orjson/data.txt": ""})
    assert get(modules, "steps:VALUE")([]) == b"[]"


def test_the_step_api_is_the_engines_own(make: Make):
    """Whatever lies in the folder: an error of a step must be the class the engine knows."""
    text = "from statelog.domain.execution import PermanentStepError"
    modules = make({"steps.py": text, "statelog/__init__.py": "raise ValueError"})
    assert get(modules, "steps:PermanentStepError") is PermanentStepError


def test_the_first_folder_wins_and_a_later_one_is_found(make: Make, tmp_path: Path):
    make({"steps.py": "VALUE = 2", "more.py": "VALUE = 3"}, "second")
    modules = make({"steps.py": "VALUE = 1"}, "first", tmp_path / "second")
    assert [get(modules, "steps:VALUE"), get(modules, "more:VALUE")] == [1, 3]


def test_classes_of_a_module_work_with_what_looks_modules_up_by_name(make: Make):
    """Dataclasses with annotations as text, and pickling inside the process."""
    text = """
        from __future__ import annotations
        from dataclasses import dataclass
        from typing import ClassVar
        @dataclass
        class Point:
            count: ClassVar[int] = 0
            x: int = 0
    """
    point = get(make({"steps.py": text}), "steps:Point")(3)
    assert [field.name for field in dataclasses.fields(point)] == ["x"]
    assert pickle.loads(pickle.dumps(point)) == point


def test_an_import_leaves_the_process_as_it_was(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Neither paths nor plain names, and no files beside the module."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    path, names = list(sys.path), set(sys.modules)
    modules = make({"steps.py": "import helper", "helper.py": "VALUE = 1"})
    assert get(modules, "steps:helper").VALUE == 1
    assert sys.path == path
    assert {"steps", "helper"} & set(sys.modules) == set()
    modules.close()
    assert set(sys.modules) - names == set()
    assert sorted(each.name for each in (tmp_path / "plan").iterdir()) == ["helper.py", "steps.py"]


def test_closed_modules_are_collected(make: Make, tmp_path: Path):
    make({"steps.py": GOOD})
    modules = StepModules([tmp_path / "plan"])
    get(modules, "steps:good")
    modules.close()
    gone = weakref.ref(modules)
    del modules
    gc.collect()
    assert gone() is None


def test_functions_work_after_their_modules_are_forgotten(make: Make):
    with make({"steps.py": GOOD}) as modules:
        good, ran = get(modules, "steps:good"), get(modules, "steps:RAN")
    good(None, 5)
    assert ran == [5]


def test_a_traceback_and_the_source_of_a_step_point_into_the_folder(make: Make, tmp_path: Path):
    good = get(make({"steps.py": GOOD}), "steps:good")
    assert inspect.getsourcefile(good) == str(tmp_path / "plan" / "steps.py")
    assert "RAN.append" in inspect.getsource(good)


def test_attempts_in_several_threads_import_at_once(make: Make):
    """Each sees its own modules, however their imports interleave."""
    text = "import helper, time\ntime.sleep(0.01)\nfrom helper import NAME"
    opened = [
        make({"steps.py": text, "helper.py": f"NAME = {at}"}, f"folder{at}") for at in range(8)
    ]
    found: dict[int, Any] = {}
    threads = [
        threading.Thread(target=lambda at=at: found.update({at: get(opened[at], "steps:NAME")}))
        for at in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {at: at for at in range(8)}


@pytest.mark.parametrize("name", ["nowhere", "plan/steps.py"])
def test_a_folder_that_cannot_be_read_is_refused(make: Make, tmp_path: Path, name: str):
    """Else every step of the plan would look definitively wrong."""
    make({"steps.py": GOOD})
    with pytest.raises(Invalid, match=r"path: .* is not a folder"):
        StepModules([tmp_path / name])
