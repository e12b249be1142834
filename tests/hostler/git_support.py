"""Small git repositories for tests, made by git itself."""

import subprocess
from pathlib import Path


class Repository:
    """A repository with one commit on `main`.

    Attributes:
        folder: Where it lies.

    """

    def __init__(self, folder: Path, *, bare: bool = False) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.git("init", "--quiet", "--initial-branch=main", *(["--bare"] if bare else []))

    @classmethod
    def made(cls, folder: Path, **files: str) -> "Repository":
        """Return one whose first commit holds *files*."""
        one = cls(folder)
        one.commit(at=None, **(files or {"readme": "hello\n"}))
        return one

    def git(self, *words: str, at: Path | None = None) -> str:
        """Run git in it, or at another of its folders."""
        identity = ["-c", "user.name=Ann", "-c", "user.email=ann@example.org", "-c", "commit.gpgsign=false"]
        done = subprocess.run(
            ["git", *identity, *words], cwd=at or self.folder, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        return done.stdout.strip()

    def commit(self, *, at: Path | None = None, **files: str) -> str:
        """Commit files, in its own checkout or at another one, and return the commit; `__` in a name is a slash."""
        place = at or self.folder
        for name, text in files.items():
            path = place / name.replace("__", "/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        self.git("add", "--all", at=place)
        self.git("commit", "--quiet", "--allow-empty", "-m", "work", at=place)
        return self.tip(at=place)

    def tip(self, name: str = "HEAD", *, at: Path | None = None) -> str:
        """Return the commit that a name stands for."""
        return self.git("rev-parse", "--verify", name, at=at)

    def status(self) -> str:
        """Return what git says of edits in its checkout."""
        return self.git("status", "--porcelain", "--untracked-files=all")
