"""What a request is refused with."""


class RequestError(Exception):
    """A request that cannot be answered: its message is the whole answer.

    Attributes:
      status: the HTTP status that TF Serving gives in this case.
    """

    def __init__(self, message, status=400):
        super().__init__(message)
        self.status = status
