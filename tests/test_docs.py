"""The documentation holds: README's code runs, its commands exist, every page is in the navigation, no link is dead."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path

import pytest
import typer.main

from inktraj import cli

ROOT = Path(__file__).parent.parent
PAGES = sorted((ROOT / "docs").glob("*.md"))
TOLD = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "examples/README.md")]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
COMMANDS = typer.main.get_command(cli.app).commands


def blocks(path: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", path.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def shell_commands(path: Path) -> list[list[str]]:
    """Every command in a page's shell blocks, indented blocks and inline code that names one of ours."""
    text = path.read_text(encoding="utf-8")
    lines = "\n".join(blocks(path, "bash")).splitlines()
    lines += re.findall(r"^    ((?:pip|inktraj|python|pytest) .*)$", text, re.MULTILINE)
    lines += re.findall(r"`((?:pip install|inktraj|python [a-z]) ?[^`]*)`", text)
    return [shlex.split(part) for line in lines for part in line.split("&&") if part.strip()]


def problem_with(command: list[str]) -> str | None:
    """Say what is wrong with a command; None where it can be run."""
    match command:
        case ["pip", "install", *rest]:
            extras = {e for word in rest for e in re.findall(r"[\w-]+", "".join(re.findall(r"\[(.*?)\]", word)))}
            return f"no extra {extras - EXTRAS.keys()}" if extras - EXTRAS.keys() else None
        case ["inktraj", str(name), *rest] if not name.startswith("-"):
            if name not in COMMANDS:
                return f"no command {name}" if name.islower() else None  # a placeholder, such as COMMAND
            command = COMMANDS[name]
            if rest and rest[0] in getattr(command, "commands", {}):
                command = command.commands[rest[0]]
            options = {o for p in command.params for o in (*p.opts, *p.secondary_opts)} | {"--help", "-h"}
            wrong = {word.strip("[]") for word in rest if word.strip("[]").startswith("--")} - options
            return f"no option {wrong}" if wrong else None
        case ["python", str(script), *_] if script.endswith(".py"):
            return None if (ROOT / script).is_file() else f"no file {script}"
    return None


def test_the_readme_has_the_two_commands():
    told = "\n".join(blocks(ROOT / "README.md", "bash"))
    assert "pip install . && inktraj build-pseudolabels examples/pages --out out" in told
    assert 'pip install ".[test]" && pytest' in told


@pytest.mark.parametrize("path", [*TOLD, *PAGES], ids=lambda path: str(path.relative_to(ROOT)))
def test_commands_exist(path):
    problems = {shlex.join(command): problem_with(command) for command in shell_commands(path)}
    assert {command: problem for command, problem in problems.items() if problem} == {}


def test_wrong_commands_are_noticed():
    assert problem_with(["pip", "install", ".[tests]"])
    assert problem_with(["inktraj", "build-labels", "pages"])
    assert problem_with(["inktraj", "render", "a.svg", "--pens", "3"])
    assert problem_with(["python", "pipelines/nothing.py"])
    assert len(shell_commands(ROOT / "README.md")) >= 6


@pytest.mark.parametrize("code", blocks(ROOT / "README.md", "python"), ids=lambda code: code.splitlines()[0])
def test_the_readmes_python_runs(code, tmp_path, monkeypatch, capsys):
    (tmp_path / "examples").symlink_to(ROOT / "examples", target_is_directory=True)
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    exec(compile(code, "README.md", "exec"), names)
    told = capsys.readouterr().out
    if "build_pseudolabels" in code:
        assert told.startswith("1 of 1 pages kept, ")
        assert (tmp_path / "out-one" / "report.html").is_file()
    else:
        assert told.startswith("0.58")  # the comment beside it says .59
        assert "0.0089" in told


def test_the_readme_names_what_the_output_holds(tmp_path):
    from inktraj.pseudolabel import build_pseudolabels

    parts = {"segmenter": "fake_parts:Bars", "recoverer": "fake_parts:Middle", "recognizer": "fake_parts:Parrot"}
    build_pseudolabels(ROOT / "examples/pages/page00.jpg", tmp_path / "out", workers=0, **parts)
    section = (ROOT / "README.md").read_text(encoding="utf-8").split("## What the output holds")[1].split("\n## ")[0]
    named = [
        name for row in re.findall(r"^\| (`.*?) \|", section, re.MULTILINE) for name in re.findall(r"`(.+?)`", row)
    ]
    assert len(named) >= 8
    for name in named:
        assert (tmp_path / "out" / name).exists(), name


def test_every_page_is_in_the_navigation():
    nav = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").split("\nnav:")[1]
    assert sorted(re.findall(r": ([\w-]+\.md)$", nav, re.MULTILINE)) == [path.name for path in PAGES]


@pytest.mark.parametrize("path", [*TOLD, *PAGES], ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path):
    targets = re.findall(r"\]\(([^)\s]+)\)", path.read_text(encoding="utf-8"))
    here = [target.partition("#")[0] for target in targets if not target.startswith(("http://", "https://", "#"))]
    assert [target for target in here if not (path.parent / target).exists()] == []
