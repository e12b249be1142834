"""Media operations: look into a file, transcode it, take its sound, give it subtitles; and all others of `media`.

Each writes into its own workspace and returns where the result lies; `files.publish` gives it a name outside.
"""

from pydantic import Field

from actors.context import Context, OperationFailed
from hostler.authoring import operation
from hostler.operations.burning import burn_subtitles
from hostler.operations.contact_sheet import thumbnail
from hostler.operations.ffmpeg import encode, require_file
from hostler.operations.media_files import (
    CLAIMS,
    WRITES,
    Encoding,
    Even,
    MediaFile,
    Source,
    encoded,
    finished,
    index_first,
    lacks,
)
from hostler.operations.probing import Media, probe_file
from hostler.operations.subrip import has_cue
from store.policy import Effect, FailureCode, Policy

__all__ = [
    "AddSubtitlesInput",
    "ExtractAudioInput",
    "Source",
    "TranscodeInput",
    "add_subtitles",
    "burn_subtitles",
    "extract_audio",
    "probe",
    "thumbnail",
    "transcode",
]


class TranscodeInput(Encoding):
    """What to make of a video.

    Attributes:
        width: Pixels; with no height, the picture keeps its shape. None keeps the size.
        height: Pixels, likewise.
        filters: A chain of ffmpeg's video filters, applied after scaling.

    """

    width: Even | None = None
    height: Even | None = None
    filters: str = ""


class ExtractAudioInput(Source):
    """Which sound to take.

    Attributes:
        sample_rate: Hz; 16,000 is what speech recognition takes.
        channels: 1 mixes down to mono.
        allow_shorter: Do not fail when the result is shorter than its source.

    """

    sample_rate: int = Field(default=16_000, ge=8_000, le=192_000)
    channels: int = Field(default=1, ge=1, le=8)
    allow_shorter: bool = False


class AddSubtitlesInput(Source):
    """A video and the subtitles it gets.

    Attributes:
        subtitles: A SubRip file.
        language: Three-letter code of their language (ISO 639-2), `eng`; `und` where it is unknown.

    """

    subtitles: str = Field(min_length=1)
    language: str = Field(default="und", pattern=r"^[a-z]{3}$")


@operation("media.probe", version=1, policy=Policy(effect=Effect.LOCAL_READ, claims=CLAIMS, max_seconds=300))
def probe(ctx: Context, input: Source) -> Media:
    """Say what is inside a media file."""
    return probe_file(ctx, require_file(ctx, input.path))


@operation("media.transcode", version=1, policy=WRITES)
def transcode(ctx: Context, input: TranscodeInput) -> MediaFile:
    """Encode a video anew: other size, codec, quality or container."""
    source = require_file(ctx, input.path)
    inside = probe_file(ctx, source)
    if inside.video is None:
        raise lacks(source, "picture")
    filters = [part for part in (_scale(input.width, input.height), input.filters.strip()) if part]
    return encoded(ctx, input, source, filters, seconds=inside.seconds, doing="transcoding")


@operation("media.extract-audio", version=1, policy=WRITES)
def extract_audio(ctx: Context, input: ExtractAudioInput) -> MediaFile:
    """Take the first sound of a file, as a WAV that speech recognition can read."""
    source = require_file(ctx, input.path)
    inside = probe_file(ctx, source)
    if inside.audio is None:
        raise lacks(source, "sound")
    options = ["-map", "0:a:0", "-vn", "-sn", "-dn", "-c:a", "pcm_s16le"]
    options += ["-ac", str(input.channels), "-ar", str(input.sample_rate)]
    made = encode(
        ctx,
        inputs=[([], source)],
        options=options,
        name="audio.wav",
        duration_s=inside.audio.seconds or inside.seconds,
        doing="extracting audio",
    )
    return finished(ctx, made, expected_s=None if input.allow_shorter else inside.audio.seconds)


@operation("media.add-subtitles", version=1, policy=WRITES)
def add_subtitles(ctx: Context, input: AddSubtitlesInput) -> MediaFile:
    """Put subtitles into an MP4 as a stream of its own; picture and sound are copied as they are."""
    source = require_file(ctx, input.path)
    subtitles = require_file(ctx, input.subtitles)
    if subtitles.stat().st_size and not has_cue(subtitles.read_text(errors="replace")):
        raise OperationFailed(
            FailureCode.INVALID_DATA, f"{subtitles} holds no SubRip subtitle", "give a file of that format (.srt)"
        )
    options = ["-map", "0:v", "-map", "0:a?", "-map", "1:s:0", "-c", "copy", "-c:s", "mov_text"]
    options += ["-metadata:s:s:0", f"language={input.language}", *index_first("mp4")]
    # the format is named since ffmpeg cannot tell that of a file without a single subtitle
    made = encode(
        ctx,
        inputs=[([], source), (["-f", "srt"], subtitles)],
        options=options,
        name="video.mp4",
        duration_s=None,
        doing="adding subtitles",
    )
    return finished(ctx, made, expected_s=None)


def _scale(width: int | None, height: int | None) -> str:
    if width is None and height is None:
        return ""
    # -2: whatever keeps the shape, made even, as most encoders want it
    return f"scale={width or -2}:{height or -2}"
