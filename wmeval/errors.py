"""The one error that is the user's to mend."""


class UserError(ValueError):
    """Bad input: the message says what, where and how to mend it. The command exits with 2."""
