"""Why bytes are refused."""


class Refused(Exception):
    """Carries the code of docs/reference/ERRORS.md."""

    def __init__(self, code: str):
        super().__init__(code)
        self.code = code
