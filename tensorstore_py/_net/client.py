"""Requests that survive what networks do: admission, signing, attempts, redirects, errors.

One client for each open store. A slot of the concurrency resource is held from the first attempt to
the last, so a service in trouble is asked less; a cancelled request gives it back. The invariant: a
store sees an answer with a status that it expects, or a typed error that names the operation and
the key; and a conditional write that may have been carried out is never taken for refused without
looking.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Container
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import TYPE_CHECKING, Final

from tensorstore_py._interface.byte_range import WHOLE, ByteRange
from tensorstore_py._net.byte_ranges import range_header
from tensorstore_py._net.counts import retries_of
from tensorstore_py._net.failures import Failure, Retryability, damaged
from tensorstore_py._net.idle_timeout import idle_limit_s, least_rate
from tensorstore_py._net.message import HttpResponse, retry_after_s, show_url
from tensorstore_py._net.retry import HttpTiming, RetryBudget, RetryState
from tensorstore_py._net.routing import MOST_HOPS, REDIRECTS, follow, origin_of
from tensorstore_py._net.service import HttpDialect, HttpThrottle, HttpVerdict, ServerClock
from tensorstore_py._net.transport import HttpTransport
from tensorstore_py.errors import (
    DataLossError,
    FailedPreconditionError,
    TensorStoreError,
    UnavailableError,
)

if TYPE_CHECKING:
    from tensorstore_py._net.message import HttpRequest
    from tensorstore_py._net.service import HttpSigner
    from tensorstore_py._spec.limits import RetriesModel

__all__ = ["HttpClient"]

#: What a conditional request may be answered with; the store says what it means.
_REFUSED: Final = 412
#: There is no value with it, by HTTP.
_EMPTY: Final = frozenset({204, 304})


class _Setback:
    """An attempt that led to no answer that the caller can use: one of these.

    Attributes:
        refusal: the answer that it cannot use.
        failure: why there is none.
    """

    __slots__ = ("failure", "refusal")

    def __init__(
        self, *, refusal: HttpResponse | None = None, failure: Failure | None = None
    ) -> None:
        self.refusal = refusal
        self.failure = failure


class HttpClient:
    """Sends requests for one store.

    Args:
        slots: admission; one is held while a request is under way.
        retries: how often to try again.
        describe: how to name a key to a person.
        dialect: what the service's answers mean.
        signer: signs requests; None for anonymous ones.
        redirects: whether to follow redirects. Signed requests cannot: the signature is for one
            place.
        unpack: whether to undo a `Content-Encoding`.
        idle_timeout_s: for how long nothing may move in an attempt; by default what the environment
            variable `TENSORSTORE_CURL_LOW_SPEED_TIME_SECONDS` says, else 60. While something does,
            it has to be as many bytes a second as `TENSORSTORE_CURL_LOW_SPEED_LIMIT_BYTES` says,
            else 100.
        deadline_s: for how long a request may be tried again; no limit by default.
        throttle: when requests may go out; at once by default.
        timing: the clock.
    """

    def __init__(
        self,
        *,
        slots: AbstractAsyncContextManager[None],
        retries: RetriesModel,
        describe: Callable[[str], str],
        dialect: HttpDialect | None = None,
        signer: HttpSigner | None = None,
        redirects: bool = False,
        unpack: bool = False,
        idle_timeout_s: float | None = None,
        deadline_s: float | None = None,
        throttle: HttpThrottle | None = None,
        timing: HttpTiming | None = None,
    ) -> None:
        self._slots = slots
        self._retries = retries
        self._describe = describe
        self._dialect = HttpDialect() if dialect is None else dialect
        self._retried = retries_of(self._dialect.name)
        self._signer = signer
        self._redirects = redirects
        self._transport = HttpTransport(
            idle_s=idle_limit_s() if idle_timeout_s is None else idle_timeout_s,
            least_rate=least_rate(),
            unpack=unpack,
            digests=self._dialect.digests,
        )
        self._deadline_s = deadline_s
        self._throttle = HttpThrottle() if throttle is None else throttle
        self._timing = HttpTiming() if timing is None else timing
        self._clock = ServerClock(self._timing)
        self._budgets: dict[str, RetryBudget] = {}

    async def send(
        self,
        request: HttpRequest,
        expected: Container[int],
        byte_range: ByteRange = WHOLE,
        *,
        resolve_ambiguous: Callable[[], Awaitable[HttpResponse | None]] | None = None,
        instead: HttpRequest | None = None,
        parse: Callable[[HttpResponse], object] | None = None,
    ) -> HttpResponse:
        """The answer to a request, after as many attempts as it takes.

        Args:
            request: with all headers but `Range` and those of the signer.
            expected: the statuses that the caller deals with.
            byte_range: what to ask for. The body is exactly that part, whether the server sent
                that or the whole value.
            resolve_ambiguous: for conditional writes. Called if one was refused (status 412) after
                an earlier attempt that may have been carried out: looks what is stored now, and
                returns the answer to give if it is what this request wrote, else None. Such writes
                are tried again at once the first time: the sooner, the less has happened to the
                value.
            instead: what to send from the second attempt on, for requests that must not be sent
                twice: it asks what became of the first one.
            parse: makes what the caller needs of a successful answer, which becomes its `parsed`;
                raises `DataLossError` for one that is not whole, and then the request is tried
                again.

        Raises:
            TensorStoreError: no expected answer was had; the class says why.
        """
        if byte_range is not WHOLE and (wanted := range_header(byte_range)) is not None:
            request = request.changed(request.url, {**request.headers, "Range": wanted})
        await self._throttle.turn(request)
        async with self._slots:
            response = await self._attempt(request, expected, byte_range, parse)
            if isinstance(response, _Setback):
                retry = partial(
                    self._attempt, expected=expected, byte_range=byte_range, parse=parse
                )
                eager = resolve_ambiguous is not None
                response = await self._again(request, instead, response, retry, eager)
        if self._budgets:
            self._budget(request.url).earn()
        if resolve_ambiguous is not None and response.status == _REFUSED and response.ambiguous:
            resolved = await resolve_ambiguous()  # sends requests itself, which need slots
            if resolved is not None:
                return resolved
        return response

    async def _again(
        self,
        request: HttpRequest,
        instead: HttpRequest | None,
        setback: _Setback,
        retry: Callable[[HttpRequest], Awaitable[HttpResponse | _Setback]],
        eager: bool,
    ) -> HttpResponse:
        """The answer to a request whose first attempt led to none."""
        now = self._timing.now()
        limit = None if self._deadline_s is None else now + self._deadline_s
        state = RetryState(self._retries, self._budget(request.url), limit, eager=eager)
        while True:
            failure = setback.failure
            if setback.refusal is not None:
                self._throttle.refused(request, setback.refusal)
                failure = await self._judged(setback.refusal, state)
            if failure is not None:
                delay = state.delay_after(failure, now)
                if delay is None:
                    # Without its cause, whose words may hold the whole URL.
                    raise self._error(request, failure, state.attempts) from None
                self._retried.note(1)
                if delay:
                    state.warn(delay, now, partial(self._problem, request, failure))
                    await self._timing.sleep(delay)
                request = request if instead is None else instead
            await self._throttle.turn(request)
            found = await retry(request)
            if not isinstance(found, _Setback):
                found.ambiguous = state.ambiguous
                found.lost = state.lost
                found.attempts = state.attempts + 1
                return found
            setback = found
            now = self._timing.now()

    async def _attempt(
        self,
        request: HttpRequest,
        expected: Container[int],
        byte_range: ByteRange,
        parse: Callable[[HttpResponse], object] | None,
    ) -> HttpResponse | _Setback:
        """One attempt, signed anew, with the redirects that it leads to."""
        dialect = self._dialect
        try:
            sent = request if self._signer is None else await self._signed(request, self._signer)
            response = await self._transport.attempt(sent, byte_range)
            if self._redirects and response.status in REDIRECTS:
                response = await self._redirected(sent, response, byte_range)
            status = response.status
            if status >= 400 and response.body and dialect.is_cut(response):
                raise damaged(f"the server answered {status}, and not all of its reasons")
            if status not in expected or dialect.belies(request, response):
                return _Setback(refusal=response)
            if parse is not None and status < 300:
                response.parsed = parse(response)
        except Failure as failure:
            return _Setback(failure=failure)
        except DataLossError as error:
            return _Setback(failure=damaged(str(error)))
        return response

    async def _signed(self, request: HttpRequest, signer: HttpSigner) -> HttpRequest:
        try:
            headers = await signer.sign(request, self._clock.now())
        except TensorStoreError as error:
            raise _unsigned(error) from None
        return request.changed(request.url, headers)

    async def _redirected(
        self, request: HttpRequest, response: HttpResponse, byte_range: ByteRange
    ) -> HttpResponse:
        """Where an answer leads to, and on from there."""
        for _ in range(MOST_HOPS):
            following = follow(request, response)
            if following is None:
                return HttpResponse(404, response.headers, time=response.time)
            request = following
            response = await self._transport.attempt(request, byte_range)
            if response.status not in REDIRECTS:
                return response
        raise Failure(
            f"the server leads on and on, last to {show_url(request.url)}", FailedPreconditionError
        )

    async def _judged(self, response: HttpResponse, state: RetryState) -> Failure | None:
        """What is wrong with an answer; None if another attempt should follow at once."""
        status = f"{response.status} {response.reason}".strip()
        if response.status in _EMPTY or response.status < 300:
            # A value was not asked for under such a condition, or cannot be had in such a form.
            return damaged(f"the server answered {status}, which is no answer to this request")
        verdict = self._dialect.verdict(response)
        mendable = verdict in (HttpVerdict.REFRESH, HttpVerdict.SKEWED)
        try:
            if mendable and state.may_excuse(verdict) and await self._is_mended(verdict, response):
                return None
        except TensorStoreError as error:
            return _unsigned(error)
        words = self._dialect.words(response)
        return Failure(
            f"the server answered {status}{f' ({words})' if words else ''}",
            self._dialect.error(response),
            Retryability.FULL if verdict is HttpVerdict.RETRY else Retryability.NONE,
            may_have_run=response.status >= 500,
            wait_s=retry_after_s(response.headers.get("Retry-After"), self._clock.now()),
            response=response,
        )

    async def _is_mended(self, verdict: HttpVerdict, response: HttpResponse) -> bool:
        """Whether what was wrong about us is right now."""
        if verdict is HttpVerdict.SKEWED:
            return self._clock.follow(response)
        return self._signer is not None and await self._signer.refresh(response)

    def _error(self, request: HttpRequest, failure: Failure, attempts: int) -> TensorStoreError:
        text = self._problem(request, failure)
        if failure.wait_s is not None and failure.retryability is Retryability.FULL:
            text += f", and asks to be left alone for {failure.wait_s:g} s"
        if attempts > 1:
            text += f" (attempt {attempts})"
        if failure.retryability is Retryability.FULL:
            text += f"; try later, or raise max_retries of {self._dialect.name}_request_retries"
        if failure.error is UnavailableError:
            return UnavailableError(text, attempts)
        return failure.error(text)

    def _problem(self, request: HttpRequest, failure: Failure) -> str:
        where = self._describe(request.key) if request.key else show_url(request.url)
        return f"cannot {request.action} {where}: {failure.text}"

    def _budget(self, url: str) -> RetryBudget:
        origin = origin_of(url)
        found = self._budgets.get(origin)
        if found is None:
            found = self._budgets[origin] = RetryBudget.of(origin)
        return found


def _unsigned(error: TensorStoreError) -> Failure:
    """A signer that could not sign: the service it asks may be unreachable for a moment, too."""
    passing = isinstance(error, UnavailableError)
    return Failure(str(error), type(error), Retryability.FULL if passing else Retryability.NONE)
