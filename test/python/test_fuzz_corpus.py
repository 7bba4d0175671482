"""Inputs that once crashed, hung or raised, the fuzzer for a few seconds, and that it finds faults planted for it."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the fuzzer and the crash guard fork")

FUZZ = Path(__file__).parents[1] / "fuzz"
CORPUS = FUZZ / "corpus"
CRASHED = r"^mx-opt: error: native code crashed \(SIG[A-Z]+\) while reading '[^']*'\n$"
NOT_UTF8 = "error: .* is not valid UTF-8"

# Flags, and what is printed on standard error. All of them are wrong, and the exit code is 1.
EXPECTED: dict[str, tuple[list[str], str]] = {
    "attribute-name-not-utf8.mlirbc": ([], NOT_UTF8),
    "block-header-segfault.mlirbc": ([], CRASHED),
    "endless.mlirbc": ([], "^mx-opt: error: reading '[^']*endless.mlirbc' takes too long\n$"),
    "expected-line.mlir": (["--verify-diagnostics"], "1:4: error: malformed expected-[*] comment"),
    "expected-regex.mlir": (["--verify-diagnostics"], "1:4: error: the regular expression takes more than 0.5 s"),
    "expected-regex-repetition.mlir": (["--verify-diagnostics"], "1:4: error: invalid regular expression"),
    "huge-allocation.mlirbc": ([], "error: (invalid Type index: 10|native code crashed|not enough memory)"),
    "linalg-broadcast.mlir": ([], CRASHED),
    "numbers-of-slice.mlir": ([], "1:.*: error: "),
    "numbers-of-submit.mlir": ([], "1:.*: error: "),
    "operation-name-not-utf8.mlir": (["--mx-to-linalg"], NOT_UTF8),
    "operation-name-not-utf8.mlirbc": (["--mx-tile-to-linalg"], NOT_UTF8),
    "reader-segfault.mlirbc": ([], CRASHED),
    "symbol-not-utf8.mlir": (["--mx-tile-to-linalg"], "error: pass 'mx-tile-to-linalg' failed: a name or string"),
    "type-not-utf8.mlirbc": ([], NOT_UTF8),
}
# The command on each input in turn, forked from one process and less patient than it is.
COMMAND = """\
import json, os, sys
from mx_dialect import asm, dialect, driver, opt, verify_diagnostics
dialect.load()
asm.SECONDS = verify_diagnostics.SECONDS = 0.5
for name, arguments in json.loads(sys.argv[1]).items():
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        for number in (1, 2):
            os.dup2(os.open(f"{name}.{number}", os.O_CREAT | os.O_WRONLY), number)
        sys.argv[1:] = arguments
        sys.exit(opt.main())
    print(name, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_every_input_is_expected_and_they_are_small() -> None:
    files = list(CORPUS.iterdir())
    assert {path.name for path in files} == EXPECTED.keys()
    assert sum(path.stat().st_size for path in files) < 200_000


@pytest.fixture(scope="module")
def replayed(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, int], Path]:
    """Return the exit code for each input, and the folder of what was printed."""
    folder = tmp_path_factory.mktemp("replayed")
    arguments = {
        name: ["--allow-unregistered-dialect", *flags, str(CORPUS / name)] for name, (flags, _) in EXPECTED.items()
    }
    command = [sys.executable, "-c", COMMAND, json.dumps(arguments)]
    environment = {**os.environ, "PYTHONPATH": str(FUZZ.parents[1])}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=True)
    return {name: int(code) for name, code in (line.split() for line in done.stdout.splitlines())}, folder


@pytest.mark.parametrize("name", EXPECTED)
def test_corpus(name: str, replayed: tuple[dict[str, int], Path]) -> None:
    codes, folder = replayed
    errors = (folder / f"{name}.2").read_text()
    assert codes[name] == 1
    assert re.search(EXPECTED[name][1], errors)
    assert not re.search("Traceback|internal error", errors)


def test_the_corpus_writes_nothing(replayed: tuple[dict[str, int], Path]) -> None:
    assert {path.name for path in replayed[1].iterdir()} == {f"{name}.{n}" for name in EXPECTED for n in (1, 2)}


def fuzz(target: str, *flags: str) -> tuple[int, str]:
    command = [sys.executable, str(FUZZ / "fuzz.py"), target, *flags]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.stderr == ""
    return done.returncode, done.stdout


@pytest.mark.parametrize("target", ["asm", "opt", "passes", "bytecode"])
def test_a_few_seconds(target: str) -> None:
    code, out = fuzz(target, "--seconds=2", "--limit=20")
    assert code == 0, out
    count = re.search(rf"^{target}: (\d+) executions in \d+ s, 0 findings", out, re.MULTILINE)
    assert count is not None
    assert int(count[1]) > 0


FAULTS = """\
import os, sys, time
from mx_dialect.asm import reader
right = reader.hidden_excess
def planted(text):
    fault = {faults}.get(len(text) % {of})
    if fault is not None:
        fault()
    return right(text)
reader.hidden_excess = planted
def fail(error):
    raise error
"""


def planted(tmp_path: Path, target: str, *faults: str) -> tuple[int, str]:
    """Let a function of the parser go wrong for a part of all texts in each of these ways, and fuzz."""
    spelled = "{" + ", ".join(f"{n}: lambda: {fault}" for n, fault in enumerate(faults)) + "}"
    (tmp_path / "faults.py").write_text(FAULTS.format(faults=spelled, of=2 * len(faults)))
    return fuzz(target, f"--load={tmp_path}/faults.py", "--executions=40", "--limit=0.5", f"--keep={tmp_path}/kept")


def test_planted_faults_of_the_parser(tmp_path: Path) -> None:
    code, out = planted(tmp_path, "asm", "fail(ValueError('planted'))", "os.abort()", "os._exit(5)")
    assert code == 1
    for message in ("exception ValueError: planted", r"crash \(SIGABRT\) in ", "exit code 5"):
        assert re.search(rf"(?m)^\d+: {message}", out)
    findings = re.search(r"40 executions in \d+ s, (\d+) findings", out)
    assert findings is not None
    assert int(findings[1]) == len(list((tmp_path / "kept").iterdir())) > 3


def test_planted_hangs(tmp_path: Path) -> None:
    code, out = planted(tmp_path, "asm", *["None"] * 12, "time.sleep(60)")
    assert code == 1
    assert re.search(r"(?m)^\d+: hang of more than 0.5 s in ", out)


def test_planted_faults_of_the_command(tmp_path: Path) -> None:
    faults = ("fail(KeyError('planted'))", "open('evil', 'w')", "sys.exit(4)", "os.abort()", "print('Traceback (most')")
    code, out = planted(tmp_path, "opt", *faults)
    assert code == 1
    for message in (
        "internal error: KeyError: 'planted'",
        r"wrote \['evil'\]",
        "ended with .*4",
        r"crash \(SIGABRT\)",
        "Traceback",
    ):
        assert re.search(rf"(?m)^\d+: {message}", out)


def test_planted_faults_of_a_pass(tmp_path: Path) -> None:
    (tmp_path / "load.py").write_text(
        "import os\nfrom mx_dialect.passes import Pass, register_pass\n"
        "register_pass(Pass('crashes', 'crashes', lambda root, options: os.abort()))\n"
        "register_pass(Pass('raises', 'raises', lambda root, options: [][1]))\n"
        "import targets\ntargets._pass_names = lambda: (['crashes', 'raises'], ['cse'])\n"
        "targets.seeds = lambda: [b'module {}']\n"
    )
    code, out = fuzz("passes", f"--load={tmp_path}/load.py", "--executions=12")
    assert code == 1
    assert re.search(r"(?m)^\d+: crash \(SIGABRT\) in <lambda>, .*load.py:3: .*crashes", out)
    assert re.search(r"(?m)^\d+: internal error in pass 'raises': IndexError", out)


def test_what_mlir_does_alone_is_no_finding(tmp_path: Path) -> None:
    text = (CORPUS / "linalg-broadcast.mlir").read_bytes()
    (tmp_path / "load.py").write_text(f"import targets\ntargets.mutant = lambda rng, originals: {text!r}\n")
    code, out = fuzz("asm", f"--load={tmp_path}/load.py", "--executions=3")
    assert code == 0
    assert out.count("MLIR's own crash (SIGSEGV) in _parse") == 3
    assert out.endswith("0 findings, 3 crashes of MLIR\n")


def test_the_seed_and_the_number_make_the_same_input(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        fuzz("asm", "--seed=7", "--only=3", f"--keep={tmp_path / folder}")
    first, second = (next((tmp_path / folder).iterdir()).read_bytes() for folder in ("a", "b"))
    assert first == second
