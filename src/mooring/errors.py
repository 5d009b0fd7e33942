"""Every exception Mooring raises on purpose.

MooringError
├── InputError          what the user gave cannot be used: one line, exit code 2
│   ├── ManifestError   a manifest: file, document, field, expected, found
│   └── ConfigError     a configuration file or a plugin: where, field, expected, found
├── PluginError         a plugin raised, or gave an answer that cannot be used: which, where, and why
├── WrongAnswer         the cause of a PluginError where nothing was raised: expected, found
├── TurnFailed          something raised, and in whose turn: around the error, where it costs more than that turn
├── NoProgress          decisions go on and on, and nothing comes of them: about which pods
├── UndeclaredRead      the cause of a PluginError: it read a label or annotation of pods without saying so
├── ApiError            a request to the embedded control plane is refused (`mooring.kubeapi.status`)
└── InvariantBroken     a promise inside Mooring does not hold

"Does not fit" is not here: that a pod waits is a value (`mooring.engine.verdict`), not a fault.
"""

LONGEST_PART = 500
"""Characters of what a message quotes: a name may be of any length, a line that people read may not."""


def _short(text: str) -> str:
    if len(text) <= LONGEST_PART:
        return text
    return f"{text[: LONGEST_PART // 2]}...{text[-LONGEST_PART // 4 :]} ({len(text):,} characters)"


class MooringError(Exception):
    """The root: catch it to catch everything Mooring raises on purpose."""


class InputError(MooringError):
    """What the user gave cannot be used; the message is one line that says where and why."""


class ManifestError(InputError):
    """A manifest cannot be used.

    >>> str(ManifestError("a.yaml", 2, "spec.containers", expected="at least one container", found="none", kind="Pod"))
    'a.yaml: document 2 (Pod): spec.containers: expected at least one container, found none'
    """

    def __init__(
        self, file: str, document: int | None, field: str, *, expected: str, found: str, kind: str = ""
    ) -> None:
        self.file, self.document, self.field, self.expected, self.found = file, document, field, expected, found
        where = file
        if document is not None:
            where += f": document {document}"
        if kind:
            where += f" ({_short(kind)})"
        if field:
            where += f": {_short(field)}"
        super().__init__(f"{where}: expected {_short(expected)}, found {_short(found)}")


class ConfigError(InputError):
    """A configuration file, or a plugin it names, cannot be used."""

    def __init__(self, file: str, field: str, *, expected: str, found: str) -> None:
        self.file, self.field, self.expected, self.found = file, field, expected, found
        where = f"{file}: {_short(field)}" if field else file
        super().__init__(f"{where}: expected {_short(expected)}, found {_short(found)}")


class PluginError(MooringError):
    """A plugin raised, or gave an answer that cannot be used: a fault, unlike "does not fit".

    >>> str(PluginError("Odd", "filter", ValueError("no rack"), file="odd.py", line=7))
    'odd.py: line 7: plugin Odd: filter: ValueError: no rack'
    """

    def __init__(self, plugin: str, point: str, cause: Exception, *, file: str = "", line: int = 0) -> None:
        self.plugin, self.point, self.cause, self.file, self.line = plugin, point, cause, file, line
        """`point` is the extension point as the method is called: `pre_filter`, `score`."""
        where = f"{file}: line {line}: " if file else ""
        raised = "" if isinstance(cause, MooringError) else f"{type(cause).__name__}: "
        super().__init__(f"{where}plugin {plugin}: {point}: {raised}{cause}")


class WrongAnswer(MooringError):
    """Why an answer of a plugin cannot be used; the cause of a PluginError."""

    def __init__(self, *, expected: str, found: str) -> None:
        self.expected, self.found = expected, found
        super().__init__(f"expected {expected}, found {found}")


class UndeclaredRead(MooringError):
    """A plugin looks at a label, or annotation, of pods that it does not say it reads.

    >>> str(UndeclaredRead("label", "team"))
    'it reads the label "team" of pods without saying so: add reads_pod_labels = ("team",) to the class'
    """

    def __init__(self, what: str, key: str | None = None) -> None:
        self.what, self.key = what, key
        named, keys = (f"all {what}s", "ALL") if key is None else (f'the {what} "{key}"', f'("{key}",)')
        super().__init__(f"it reads {named} of pods without saying so: add reads_pod_{what}s = {keys} to the class")


class TurnFailed(MooringError):
    """Something raised while an action was busy with somebody, and costs the action its run."""

    def __init__(self, turn: str, error: Exception) -> None:
        self.turn, self.error = turn, error
        super().__init__(f"in the turn of {turn}: {error}")


class NoProgress(MooringError):
    """Pods are evicted again and again, and nothing comes of it: a fault, because nothing else would end it."""


class InvariantBroken(MooringError):
    """A promise that the engine relies on does not hold; the message names who broke it."""
