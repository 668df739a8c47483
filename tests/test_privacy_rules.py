"""Which files may be read: the list of secrets, ignore files as Git reads them, links, globs."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest
from dg_lsp.privacy.gate import Gate
from dg_lsp.privacy.ignore_files import CHECK_SECONDS
from dg_lsp.privacy.rules import Decision, PrivacySettings, Rules, Use, is_glob
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st


def write(root: Path, **files: str) -> None:
    """Files under `root`; `__` in a name stands for `/`, so that a call reads as a tree."""
    for name, text in files.items():
        put(root, name.replace("__", "/"), text)


def put(root: Path, name: str, text: str = "") -> Path:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


class Clock:
    """Time that passes when told."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def rules(root: Path, given: PrivacySettings | None = None, **options: object) -> Rules:
    return Rules([str(root)], given, ignore_case=False, **options)  # pyright: ignore[reportArgumentType]


def decided(root: Path, name: str, given: PrivacySettings | None = None) -> Decision:
    return rules(root, given).decide(str(root / name), Use.COMPLETE)


SECRET = [
    *(".env", ".env.local", "deep/er/.env.production", "prod.env", ".ENV", ".envrc"),
    *("server.pem", "Server.PEM", "tls.key", "cert.p12", "cert.pfx", "my.keystore", "my.jks"),
    *("id_rsa", "id_rsa.pub", "id_ed25519", "id_ed25519_work", ".ssh/config"),
    *(".netrc", ".pgpass", ".npmrc", ".pypirc", "packages/a/.npmrc", ".git-credentials"),
    *(".aws/credentials", ".config/gcloud/a/b.json", ".azure/token.json", ".kube/config"),
    *("secrets.yml", "secrets.yaml", "config/secrets.json", "secrets.toml"),
    *("prod.tfstate", "terraform.tfstate.backup", "prod.tfvars"),
    *(".git/config", ".git/COMMIT_EDITMSG", "sub/.git/hooks/pre-commit"),
    *(".bash_history", ".zsh_history", ".python_history", "fish_history"),
]
HARMLESS = [
    *(".env.example", ".env.sample", ".env.template", "env.py", ".environment", "dotenv.py"),
    *("settings.json", ".vscode/settings.json", "secrets.py", "secrets/__init__.py", "key.py"),
    *("keys.go", "pem.c", "id.rs", "credentials.py", "credentials", "aws/credentials.md"),
    *("main.tf", ".gitignore", ".github/workflows/ci.yml", "git/config", "history.md", "kube.yml"),
]


@pytest.mark.parametrize("name", SECRET)
@pytest.mark.parametrize("use", Use)
def test_secret_files_are_left_alone_without_any_setting(
    tmp_path: Path, name: str, use: Use
) -> None:
    decision = rules(tmp_path).decide(str(tmp_path / name), use)
    assert not decision.allowed
    assert decision.reason == f"`{name}` is excluded by the built-in list of secret files."


@pytest.mark.parametrize("name", HARMLESS)
def test_harmless_files_stay_allowed(tmp_path: Path, name: str) -> None:
    assert decided(tmp_path, name) == Decision(True)


def test_a_workspace_may_itself_be_a_folder_of_secrets(tmp_path: Path) -> None:
    assert not decided(tmp_path / ".aws", "credentials").allowed


def test_outside_of_every_workspace_only_secrets_are_left_alone(tmp_path: Path) -> None:
    write(tmp_path, other__gitignore="", workspace__a="")
    put(tmp_path / "other", ".gitignore", "*.py\n")
    inside = rules(tmp_path / "workspace")
    assert inside.decide(str(tmp_path / "other/a.py"), Use.COMPLETE).allowed
    assert not inside.decide(str(tmp_path / "other/.env"), Use.COMPLETE).allowed


@pytest.mark.parametrize(
    ("name", "allowed"), [("Untitled-1", True), (".env", False), ("a:b", True), ("", True)]
)
def test_a_document_without_a_file_is_judged_by_its_name(name: str, allowed: bool) -> None:
    assert Gate().may_complete(f"untitled:{name}").allowed is allowed


@pytest.mark.parametrize("path", ["/a\0b", "/" + "a/" * 5000])
def test_what_is_no_path_is_left_alone(path: str) -> None:
    decision = Rules([]).decide(path, Use.CONTEXT)
    assert not decision.allowed
    assert decision.reason.endswith("is not a path.")


NESTED = {
    "build/out.py": "`build/out.py` is excluded by `build/` in `.gitignore`.",
    # Git never looks into an excluded folder, so nothing in it can be taken back.
    "build/keep.py": "`build/keep.py` is excluded by `build/` in `.gitignore`.",
    "a.log": "`a.log` is excluded by `*.log` in `.gitignore`.",
    "keep.log": "",
    "src/a.log": "",
    "src/deep/a.log": "`src/deep/a.log` is excluded by `*.log` in `src/deep/.gitignore`.",
    "src/deep/b.py": "",
    "top.txt": "`top.txt` is excluded by `/top.txt` in `.gitignore`.",
    "src/top.txt": "",
    "docs/draft.md": "`docs/draft.md` is excluded by `draft.md` in `docs/.ignore`.",
    "docs/private.md": "`docs/private.md` is excluded by `private.md` in `docs/.dgignore`.",
    "docs/again.md": "",
    "mine.py": "`mine.py` is excluded by `mine.py` in `.git/info/exclude`.",
    "everything/x/y.py": "`everything/x/y.py` is excluded by `*` in `everything/.gitignore`.",
    "space .py": "",
    "spaced ": "`spaced ` is excluded by `spaced\\` in `.gitignore`.",
}


@pytest.mark.parametrize("name", NESTED)
def test_ignore_files_hold_at_every_level_and_the_last_word_counts(
    tmp_path: Path, name: str
) -> None:
    put(tmp_path, ".git/info/exclude", "mine.py\n")
    put(tmp_path, ".gitignore", "# no\n\nbuild/\n!build/keep.py\n*.log\r\n!keep.log\n/top.txt\n")
    with (tmp_path / ".gitignore").open("a") as file:
        file.write("spaced\\ \n")
    put(tmp_path, "src/.gitignore", "!*.log\n")
    put(tmp_path, "src/deep/.gitignore", "*.log\n")
    put(tmp_path, "docs/.gitignore", "again.md\n")
    put(tmp_path, "docs/.ignore", "draft.md\n!again.md\n")
    put(tmp_path, "docs/.dgignore", "private.md\n")
    put(tmp_path, "everything/.gitignore", "*\n")
    decision = decided(tmp_path, name)
    assert (decision.reason, decision.allowed) == (NESTED[name], not NESTED[name])


def test_ignore_files_above_the_root_count_within_the_repository(tmp_path: Path) -> None:
    put(tmp_path, ".gitignore", "*.py\n")  # above the repository
    put(tmp_path, "repository/.git/HEAD")
    put(tmp_path, "repository/.gitignore", "*.log\n/opened\n")
    root = tmp_path / "repository/opened"
    put(root, "a.py")
    # The repository ignores the folder itself, but somebody opened it.
    assert decided(root, "a.py").allowed
    reason = decided(root, "a.log").reason
    assert reason.startswith("`a.log` is excluded by `*.log` in `")


@pytest.mark.parametrize("kind", ["worktree", "submodule"])
def test_a_checkout_whose_git_is_a_file_has_its_excludes_elsewhere(
    tmp_path: Path, kind: str
) -> None:
    home = tmp_path / "main/.git"
    if kind == "worktree":
        put(home, "worktrees/w/commondir", "../..\n")
        put(home, "info/exclude", "mine.py\n")
        pointer = home / "worktrees/w"
    else:
        put(home, "modules/w/info/exclude", "mine.py\n")
        pointer = home / "modules/w"
    put(tmp_path, "w/.git", f"gitdir: {pointer}\n")
    assert not decided(tmp_path / "w", "mine.py").allowed
    assert decided(tmp_path / "w", "yours.py").allowed


def test_a_repository_cannot_open_secret_files(tmp_path: Path) -> None:
    for name in (".gitignore", ".ignore", ".dgignore"):
        put(tmp_path, name, "!.env\n!*\n")
    assert not decided(tmp_path, ".env").allowed


GLOBS = [
    (["*.md"], "docs/a.md", "`docs/a.md` is excluded by `*.md` in the setting exclude."),
    (["*.md", "!README.md"], "README.md", ""),
    (["/docs/"], "docs/a.md", "`docs/a.md` is excluded by `/docs/` in the setting exclude."),
    (["/docs/"], "src/docs/a.md", ""),
    (["!fixtures/*.pem"], "fixtures/a.pem", ""),
    (["!fixtures/*.pem"], "a.pem", "`a.pem` is excluded by the built-in list of secret files."),
    (["!generated/"], "generated/deep/a.py", ""),
    (["!generated/"], "ignored.py", "`ignored.py` is excluded by `ignored.py` in `.gitignore`."),
    (["# a comment", ""], "a.py", ""),
]


@pytest.mark.parametrize(("globs", "name", "reason"), GLOBS)
def test_the_users_globs_have_the_last_word(
    tmp_path: Path, globs: list[str], name: str, reason: str
) -> None:
    put(tmp_path, ".gitignore", "generated/\nignored.py\n")
    decision = decided(tmp_path, name, PrivacySettings(exclude=globs))
    assert (decision.reason, decision.allowed) == (reason, not reason)


def test_the_file_that_a_glob_stands_in_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("USERPROFILE", str(tmp_path / "home"))
    own, users = f"{tmp_path}/.dg-lsp.toml", f"{tmp_path}/home/.config/dg-lsp/config.toml"
    files = {"exclude": {"*.md": own, "*.csv": users}}
    given = PrivacySettings(exclude=["*.md", "*.csv", "*.txt"], files=files)
    said = "is excluded by `*.md` in the setting exclude of `.dg-lsp.toml`."
    assert decided(tmp_path, "a.md", given).reason == f"`a.md` {said}"
    said = "is excluded by `*.csv` in the setting exclude of `"
    assert decided(tmp_path / "home", "a.csv", given).reason.startswith(f"`a.csv` {said}")
    assert decided(tmp_path / "other", "a.csv", given).reason.endswith(
        "`~/.config/dg-lsp/config.toml`."
    )
    assert decided(tmp_path, "a.txt", given).reason.endswith("in the setting exclude.")


def test_the_two_lists_of_the_user_are_two_switches(tmp_path: Path) -> None:
    given = PrivacySettings(exclude=["*.md"], exclude_from_context=["*.csv"])
    both = rules(tmp_path, given)
    uses = {
        name: [use for use in Use if both.decide(str(tmp_path / name), use).allowed]
        for name in ("a.md", "a.csv", "a.py")
    }
    assert uses == {
        "a.md": [Use.CONTEXT],
        "a.csv": [Use.COMPLETE],
        "a.py": [Use.COMPLETE, Use.CONTEXT],
    }


def test_a_glob_may_start_at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    given = PrivacySettings(exclude=["~/notes/", "!~/notes/open.md"])
    decision = decided(tmp_path, "notes/a.md", given)
    assert decision.reason == "`notes/a.md` is excluded by `~/notes/` in the setting exclude."
    assert decided(tmp_path / "workspace", "notes/a.md", given).allowed


@pytest.mark.parametrize(
    ("glob", "is_one"),
    [("*.md", True), ("!a", True), ("", False), ("# x", False), ("!", False), ("[", False)],
)
def test_a_glob_that_says_nothing_is_known(glob: str, is_one: bool) -> None:
    assert is_glob(glob) is is_one


LINKS = [
    ("../outside/a.py", "`link` links to a place outside of the workspace."),
    (".env", "`link` links to `.env`, which is excluded by the built-in list of secret files."),
    ("ignored.py", "`link` links to `ignored.py`, which is excluded by `ignored.py` in "),
    ("plain.py", ""),
    ("loop", ""),
]


@pytest.mark.parametrize(("target", "reason"), LINKS)
def test_a_link_is_judged_by_where_it_leads(tmp_path: Path, target: str, reason: str) -> None:
    root = tmp_path / "workspace"
    write(tmp_path, outside__a="", workspace__plain="")
    put(root, ".gitignore", "ignored.py\n")
    put(root, ".env")
    (root / "loop").symlink_to("loop")
    (root / "link").symlink_to(target)
    decision = decided(root, "link")
    assert decision.reason.startswith(reason)
    assert decision.allowed is not bool(reason)


def test_a_linked_folder_is_followed_and_so_is_the_way_up_from_it(tmp_path: Path) -> None:
    root = tmp_path / "workspace"
    put(tmp_path, "outside/deep/a.py")
    put(tmp_path, "outside/b.py")
    root.mkdir()
    (root / "link").symlink_to("../outside/deep")
    assert not decided(root, "link/a.py").allowed
    assert not decided(root, "link/../b.py").allowed


def test_a_root_that_is_a_link_is_the_folder_behind_it(tmp_path: Path) -> None:
    put(tmp_path, "real/.gitignore", "ignored.py\n")
    (tmp_path / "named").symlink_to("real")
    for spelling in ("named", "real"):
        by_name = rules(tmp_path / spelling)
        for name in ("named", "real"):
            assert by_name.decide(str(tmp_path / name / "a.py"), Use.CONTEXT).allowed
            assert not by_name.decide(str(tmp_path / name / ".env"), Use.CONTEXT).allowed
    assert (
        not rules(tmp_path / "named").decide(str(tmp_path / "real/ignored.py"), Use.CONTEXT).allowed
    )


def test_a_link_that_changes_its_target_is_judged_anew(tmp_path: Path) -> None:
    clock = Clock()
    known = rules(tmp_path, clock=clock)
    put(tmp_path, "plain.py")
    link = tmp_path / "link"
    link.symlink_to("plain.py")
    assert known.decide(str(link), Use.COMPLETE).allowed
    link.unlink()
    link.symlink_to(".env")
    clock.now += CHECK_SECONDS
    assert not known.decide(str(link), Use.COMPLETE).allowed


@pytest.mark.parametrize("name", [".gitignore", "src/.gitignore", "src/.dgignore"])
def test_a_changed_ignore_file_counts_after_a_second(tmp_path: Path, name: str) -> None:
    clock = Clock()
    known = rules(tmp_path, clock=clock)
    path = str(put(tmp_path, "src/a.py"))
    assert known.decide(path, Use.COMPLETE).allowed
    put(tmp_path, name, "*.py\n")
    clock.now += CHECK_SECONDS
    assert not known.decide(path, Use.COMPLETE).allowed
    (tmp_path / name).unlink()
    assert not known.decide(path, Use.COMPLETE).allowed
    clock.now += CHECK_SECONDS
    assert known.decide(path, Use.COMPLETE).allowed


def test_what_an_unreadable_ignore_file_protects_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = put(tmp_path, "src/.gitignore", "x")

    def opened(path: str, *arguments: object, **named: object) -> object:
        if path == str(source):
            raise PermissionError(path)
        return open(path, *arguments, **named)  # pyright: ignore[reportArgumentType, reportCallIssue, reportUnknownVariableType]

    monkeypatch.setattr("builtins.open", opened)
    decision = decided(tmp_path, "src/a.py")
    assert decision.reason == "`src/a.py` is excluded because `src/.gitignore` cannot be read."


@pytest.mark.skipif(os.name != "posix", reason="no such pipes elsewhere")
def test_an_ignore_file_that_is_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / ".gitignore")
    assert decided(tmp_path, "a.py").allowed


@pytest.mark.parametrize("ignore_case", [False, True])
def test_case_counts_where_the_file_system_says_so(tmp_path: Path, ignore_case: bool) -> None:
    put(tmp_path, ".gitignore", "Build/\n*.LOG\n")
    by_case = Rules([str(tmp_path)], PrivacySettings(exclude=["*.MD"]), ignore_case=ignore_case)
    for name in ("build/a.py", "a.log", "a.md"):
        assert by_case.decide(str(tmp_path / name), Use.COMPLETE).allowed is not ignore_case
    for name in ("Build/a.py", "a.LOG", "a.MD"):
        assert not by_case.decide(str(tmp_path / name), Use.COMPLETE).allowed


def test_the_innermost_of_nested_roots_counts(tmp_path: Path) -> None:
    put(tmp_path, ".gitignore", "inner/\n")
    both = Rules([str(tmp_path), str(tmp_path / "inner")], ignore_case=False)
    assert both.decide(str(tmp_path / "inner/a.py"), Use.COMPLETE).allowed
    assert not rules(tmp_path).decide(str(tmp_path / "inner/a.py"), Use.COMPLETE).allowed


def test_a_known_decision_takes_under_a_fifth_of_a_millisecond(tmp_path: Path) -> None:
    deep = "/".join("abcdefgh")
    put(tmp_path, ".gitignore", "\n".join(f"folder{n}/*.txt" for n in range(300)))
    path = str(put(tmp_path, f"{deep}/a.py"))
    clock = Clock()
    known = rules(tmp_path, clock=clock)
    known.decide(path, Use.COMPLETE)
    spent: list[float] = []
    for _ in range(200):
        started = time.perf_counter()
        known.decide(path, Use.COMPLETE)
        spent.append(time.perf_counter() - started)
    assert sorted(spent)[100] < 0.2e-3


NAMES = st.sampled_from(["a", "b", "c.py", "d.log"])
PATTERNS = st.builds(
    "{}{}{}{}".format,
    st.sampled_from(["", "", "", "!"]),
    st.sampled_from(["", "/", "**/", "a/", "a/**/"]),
    st.sampled_from(["a", "b", "*", "c.py", "*.log", "?", "[a-c]", "b/c.py", "**", "d.*"]),
    st.sampled_from(["", "", "/", "/*", "/**"]),
)
FOLDERS = ["", "a", "a/b", "b", "b/a"]


@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(
    files=st.dictionaries(
        st.sampled_from(FOLDERS), st.lists(PATTERNS, min_size=1, max_size=5), min_size=1
    )
)
def test_what_git_ignores_is_ignored_and_nothing_else(
    files: dict[str, list[str]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = tmp_path_factory.mktemp("git")
    try:
        subprocess.run(["git", "init", "-q"], cwd=root, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("Git is not here.")
    paths = [
        str(put(root, f"{folder}/{name}" if folder else name).relative_to(root))
        for folder in FOLDERS
        for name in ("c.py", "d.log")
    ]
    for folder, patterns in files.items():
        put(root, f"{folder}/.gitignore" if folder else ".gitignore", "\n".join(patterns) + "\n")
    said = subprocess.run(
        ["git", "check-ignore", "--no-index", "--stdin"],
        cwd=root,
        input="\n".join(paths),
        capture_output=True,
        text=True,
        check=False,
    ).stdout.splitlines()
    ours = rules(root)
    ignored = [p for p in paths if not ours.decide(str(root / p), Use.CONTEXT).allowed]
    assert ignored == said
