"""Checks the pages of docs/.

    python3 tools/check_docs.py links        every relative link, picture and page of docs/SUMMARY.md is there
    python3 tools/check_docs.py run [PAGE]   executes the snippets that are marked

A fenced block is executed when `<!-- executed -->` stands on the line before it, in one folder for all blocks of a page, in
order: `python` with the interpreter that runs this script, `sh` with `sh -eu`, `mlir` and other languages are written to the file
that the mark names (`<!-- executed: NAME -->`). Of `sh` blocks, lines that start with `$ ` are the commands and the others are
what has to be printed, where `...` stands for anything.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```(\w*)$")
MARK = re.compile(r"^<!-- executed(?:: (\S+))? -->$")


def pages() -> list[Path]:
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]


def anchors(page: Path) -> set[str]:
    """The names that headings have, as mdBook and GitHub make them."""
    found = set()
    for line in page.read_text().splitlines():
        if line.startswith("#"):
            title = re.sub(r"[`*]|\[([^\]]*)\]\([^)]*\)", r"\1", line.lstrip("#").strip()).lower()
            found.add(re.sub(r"\s", "-", re.sub(r"[^\w\s-]", "", title)))
    return found


def without_code(text: str) -> str:
    return re.sub(r"`[^`\n]*`", "", re.sub(r"^```.*?^```", "", text, flags=re.S | re.M))


def check_links() -> list[str]:
    wrong = []
    for page in pages():
        for target in LINK.findall(without_code(page.read_text())):
            path, _, anchor = target.partition("#")
            if re.match(r"[a-z]+:", path):
                continue
            there = (page.parent / path).resolve() if path else page
            if not there.exists():
                wrong.append(f"{page.relative_to(ROOT)}: {target} is not there")
            elif anchor and there.suffix == ".md" and anchor not in anchors(there):
                wrong.append(f"{page.relative_to(ROOT)}: {there.name} has no heading #{anchor}")
    listed = {(DOCS / target).resolve() for target in LINK.findall((DOCS / "SUMMARY.md").read_text())}
    for page in DOCS.rglob("*.md"):
        if page.name != "SUMMARY.md" and page.resolve() not in listed:
            wrong.append(f"docs/SUMMARY.md: {page.relative_to(DOCS)} is in no chapter")
    return wrong


def blocks(page: Path) -> list[tuple[int, str, str | None, str]]:
    """The marked blocks: line, language, file, text."""
    found, lines, at = [], page.read_text().splitlines(), 0
    while at < len(lines):
        mark = MARK.match(lines[at])
        if not mark:
            at += 1
            continue
        fence = FENCE.match(lines[at + 1]) if at + 1 < len(lines) else None
        if not fence:
            sys.exit(f"error: {page}:{at + 1}: a mark without a fenced block behind it")
        end = lines.index("```", at + 2)
        found.append((at + 2, fence[1], mark[1], "\n".join(lines[at + 2 : end]) + "\n"))
        at = end + 1
    return found


def matches(expected: list[str], printed: str) -> bool:
    pattern = r"\n".join(re.escape(line).replace(r"\.\.\.", ".*?") for line in expected)
    return re.fullmatch(pattern + r"\n?", printed, flags=re.S) is not None


def run_shell(text: str, folder: Path) -> str | None:
    """What is wrong with a block of commands; None when nothing is."""
    lines = text.splitlines()
    if not any(line.startswith("$ ") for line in lines):
        commands: list[tuple[str, list[str] | None]] = [(text, None)]
    else:
        commands = []
        for line in lines:
            if line.startswith("$ "):
                commands.append((line[2:], []))
            elif commands[-1][0].endswith("\\") and not commands[-1][1]:
                commands[-1] = (commands[-1][0] + "\n" + line, [])
            else:
                commands[-1][1].append(line)
    for command, expected in commands:
        done = subprocess.run(["sh", "-euc", command], cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode:
            return f"{command}: status {done.returncode}\n{done.stdout}{done.stderr}"
        if expected and not matches(expected, done.stdout):
            return f"{command}: expected\n" + "\n".join(expected) + f"\ngot\n{done.stdout}"
    return None


def run_page(page: Path) -> list[str]:
    wrong = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for line, language, file, text in blocks(page):
            where = f"{page.relative_to(ROOT)}:{line}"
            if file:
                (folder / file).write_text(text)
                if language != "python":
                    continue
            if language == "python":
                done = subprocess.run([sys.executable, "-c", text], cwd=folder, capture_output=True, text=True, check=False)
                problem = done.stderr if done.returncode else None
            elif language == "sh":
                problem = run_shell(text, folder)
            else:
                problem = f"nothing executes {language or 'a block without a language'}: name its file in the mark"
            print(f"{'FAILED' if problem else 'ok':6} {where}")
            if problem:
                wrong.append(f"{where}: {problem}")
    return wrong


def main() -> None:
    action, *names = sys.argv[1:] or [""]
    if action == "links":
        wrong = check_links()
    elif action == "run":
        chosen = [Path(name).resolve() for name in names] or [page for page in pages() if blocks(page)]
        os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        wrong = [problem for page in chosen for problem in run_page(page)]
    else:
        sys.exit(__doc__)
    for problem in wrong:
        print(f"error: {problem}", file=sys.stderr)
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
