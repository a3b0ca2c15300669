"""Messages between a talk and its front: commands go in, events come out, and both are frozen.

A *front* stands between a talk and a person: the realtime protocol, the microphone and
loudspeaker of this machine, or a pair of sound files. It sends commands to a `Session` and reads the
session's events. Nothing here knows JSON, sockets or clocks.

items        what a conversation consists of
settings     what a front may set
commands     what a front asks of a talk
talk         events about the talk itself
reply        events about a reply
extensions   events for fronts that asked for them

Units: `*_ms` are milliseconds, `*_samples` are samples at the rate stated beside them, input times
count from the first sample that was ever appended to this session. Sound is float32 mono in [-1, 1].
"""

from typing import TypeAlias

from assistant.events.commands import (
    AnswerCall,
    AppendAudio,
    CancelResponse,
    ClearAudio,
    Command,
    CommitAudio,
    CreateItem,
    CreateResponse,
    DeleteItem,
    ReportHeard,
    ResponseParams,
    RetrieveItem,
    Rewind,
    SwitchPersona,
    TruncateItem,
    Undo,
    UpdateSettings,
)
from assistant.events.extensions import (
    EXTENSIONS,
    Duck,
    FrameShown,
    LanguageTold,
    MemoryChanged,
    Nod,
    PersonaSwitched,
    Resume,
    SightChanged,
    StateChanged,
    StopPlayback,
    TimelineReady,
    ToolAsked,
    ToolBegun,
    ToolsListed,
    ToolUsed,
    TranscriptPartial,
    WakeChanged,
    WordsForgotten,
)
from assistant.events.items import (
    REPLY_RATE,
    AudioPart,
    FunctionCall,
    FunctionOutput,
    Item,
    ItemStatus,
    McpApprovalRequest,
    McpCall,
    Message,
    Part,
    Pcm,
    PicturePart,
    ReplyItem,
    TextPart,
)
from assistant.events.reply import (
    AudioDelta,
    AudioDone,
    CallDelta,
    CallDone,
    OutputItemAdded,
    OutputItemDone,
    PartAdded,
    PartDone,
    Response,
    ResponseCreated,
    ResponseDone,
    ResponseStatus,
    SpokenText,
    SpokenTextDone,
    TextDelta,
    TextDone,
    Timeline,
    TimelinePart,
    Usage,
)
from assistant.events.settings import (
    Modality,
    NamedServer,
    SemanticVad,
    ServerAsk,
    ServerVad,
    Settings,
    ToolFilter,
    ToolSpec,
    TurnDetection,
)
from assistant.events.talk import (
    AudioCleared,
    AudioCommitted,
    Error,
    IdleTimeout,
    ItemAdded,
    ItemDeleted,
    ItemDone,
    ItemRetrieved,
    ItemTruncated,
    SettingsUpdated,
    SpeechStarted,
    SpeechStopped,
    TranscriptCompleted,
    TranscriptDelta,
    TranscriptFailed,
)

Event: TypeAlias = (
    SettingsUpdated | Error | SpeechStarted | SpeechStopped | IdleTimeout | AudioCommitted | AudioCleared
    | ItemAdded | ItemDone | ItemRetrieved | ItemDeleted | ItemTruncated
    | TranscriptPartial | TranscriptDelta | TranscriptCompleted | TranscriptFailed
    | ResponseCreated | ResponseDone | OutputItemAdded | OutputItemDone | PartAdded | PartDone
    | TextDelta | TextDone | SpokenText | SpokenTextDone | AudioDelta | AudioDone | CallDelta | CallDone
    | Duck | Resume | StopPlayback | Nod | PersonaSwitched | StateChanged | ToolUsed | ToolBegun | ToolAsked
    | ToolsListed | MemoryChanged | WordsForgotten | LanguageTold | FrameShown | TimelineReady | SightChanged
    | WakeChanged
)  # fmt: skip

__all__ = [
    "EXTENSIONS",
    "REPLY_RATE",
    "AnswerCall",
    "AppendAudio",
    "AudioCleared",
    "AudioCommitted",
    "AudioDelta",
    "AudioDone",
    "AudioPart",
    "CallDelta",
    "CallDone",
    "CancelResponse",
    "ClearAudio",
    "Command",
    "CommitAudio",
    "CreateItem",
    "CreateResponse",
    "DeleteItem",
    "Duck",
    "Error",
    "Event",
    "FrameShown",
    "FunctionCall",
    "FunctionOutput",
    "IdleTimeout",
    "Item",
    "ItemAdded",
    "ItemDeleted",
    "ItemDone",
    "ItemRetrieved",
    "ItemStatus",
    "ItemTruncated",
    "McpApprovalRequest",
    "McpCall", "MemoryChanged",
    "Message",
    "Modality",
    "NamedServer",
    "OutputItemAdded",
    "OutputItemDone",
    "Part",
    "PartAdded",
    "PartDone",
    "Pcm",
    "PersonaSwitched",
    "PicturePart",
    "ReplyItem",
    "ReportHeard",
    "Response",
    "ResponseCreated",
    "ResponseDone",
    "ResponseParams",
    "ResponseStatus",
    "Resume",
    "RetrieveItem",
    "Rewind",
    "SemanticVad",
    "ServerAsk",
    "ServerVad",
    "Settings",
    "SettingsUpdated",
    "SightChanged",
    "SpeechStarted",
    "SpeechStopped",
    "SpokenText",
    "SpokenTextDone",
    "StateChanged",
    "StopPlayback",
    "SwitchPersona",
    "TextDelta",
    "TextDone",
    "TextPart",
    "Timeline",
    "TimelinePart",
    "TimelineReady",
    "ToolAsked",
    "ToolBegun",
    "ToolFilter",
    "ToolSpec",
    "ToolUsed",
    "ToolsListed",
    "TranscriptCompleted",
    "TranscriptDelta",
    "TranscriptFailed",
    "TranscriptPartial",
    "TruncateItem",
    "TurnDetection",
    "Undo",
    "UpdateSettings",
    "Usage",
    "WakeChanged",
    "WordsForgotten",
]  # fmt: skip
