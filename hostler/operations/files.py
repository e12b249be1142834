"""Give results their final names."""

from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from actors.context import Context, OperationFailed
from actors.publication import is_special
from hostler.authoring import operation
from hostler.operations.ffmpeg import require_file
from hostres.regular_files import open_regular
from store.content import sha256_of
from store.policy import Effect, FailureCode, Policy, Resume


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class PublishInput(_Model):
    """A finished file and the name it gets.

    Attributes:
        source: The file; it stays where it is.
        target: Its final name, relative to the run's folder or absolute; missing folders are made.
        overwrite: Whether a file of that name with other content may be replaced.

    """

    source: str = Field(min_length=1)
    target: str = Field(min_length=1)
    overwrite: bool = False


class Published(_Model):
    """A file under its final name.

    Attributes:
        path: Absolute.
        bytes: Size.
        sha256: Digest of its content.

    """

    path: str
    bytes: int
    sha256: str


@operation(
    "files.publish",
    version=1,
    policy=Policy(
        effect=Effect.LOCAL_DERIVED_WRITE,
        resume=Resume.DETERMINISTIC,
        claims={"local-io": 1},
        publishes=("target",),
        max_seconds=3600,
    ),
)
def publish(ctx: Context, input: PublishInput) -> Published:
    """Copy a file to its final name, whole or not at all, and never unasked over another file."""
    source = require_file(ctx, input.source)
    target = ctx.path(input.target)
    sha256 = _digest(ctx, source)
    size = source.stat().st_size
    if target.is_dir():
        raise OperationFailed(FailureCode.INVALID_DATA, f"{target} is a folder", "name a file as the target")
    if is_special(target):
        raise OperationFailed(
            FailureCode.CONFLICT, f"{target} is a link or a device, not a file", "choose another target, or remove it"
        )
    if target.exists():
        if _same(ctx, target, size, sha256):
            return Published(path=str(target), bytes=size, sha256=sha256)
        if not input.overwrite:
            raise OperationFailed(
                FailureCode.CONFLICT,
                f"{target} exists and has other content",
                "move it away, choose another target, or set overwrite",
            )
    return Published(path=str(_published(ctx, source, target, overwrite=input.overwrite)), bytes=size, sha256=sha256)


def _published(ctx: Context, source: Path, target: Path, *, overwrite: bool) -> Path:
    try:
        return ctx.publish(source, target, overwrite=overwrite)
    except OSError as error:
        raise OperationFailed(
            FailureCode.UNAVAILABLE,
            f"{target} could not be written: {error.strerror}",
            "look at the folder's permissions and free space, then retry the node",
        ) from error


def _digest(ctx: Context, path: Path) -> str:
    with open_regular(path) as file:
        return sha256_of(file, between=ctx.check_cancelled)


def _same(ctx: Context, target: Path, size: int, sha256: str) -> bool:
    return target.is_file() and target.stat().st_size == size and _digest(ctx, target) == sha256
