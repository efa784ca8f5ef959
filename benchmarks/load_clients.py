"""Clients of a classifier's server: texts, requests and times."""

import asyncio
import itertools
import json
import random
import statistics
import time

import aiohttp

from official_bert.errors import UserError

# Texts of each kind; a client's next text is the next in this list.
NUM_TEXTS = 256
# A request that waits this long ends the measurement with an error.
TIMEOUT_S = 60
SENTENCE = (
    "the train left on time and we had the carriage to ourselves so we slept until "
    "the guard came by with coffee which was better than the one at the station "
    "although nobody had expected anything of a Sunday in November"
)


def texts_of(least, most, seed):
    """Return `NUM_TEXTS` texts of `least` to `most` words."""
    draw = random.Random(seed)
    words = SENTENCE.split()
    return [
        " ".join(draw.choices(words, k=draw.randint(least, most)))
        for _ in range(NUM_TEXTS)
    ]


async def largest_difference(urls, texts):
    """Return the largest difference of a probability from the first server's."""
    largest = 0.0
    async with _session() as session:
        for group in texts.values():
            found = []
            for url in urls.values():
                # Sent at once, so that servers with batches join them.
                calls = [_ask(session, url, body_of(text)) for text in group[:32]]
                found.append(list(map(_probabilities, await asyncio.gather(*calls))))
            for other in found[1:]:
                for row, expected in zip(other, found[0], strict=True):
                    pairs = zip(row, expected, strict=True)
                    largest = max(largest, *(abs(one - two) for one, two in pairs))
    return largest


def _probabilities(body):
    return json.loads(body)["predictions"][0]["probabilities"]


def _session():
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0),
        timeout=aiohttp.ClientTimeout(total=TIMEOUT_S),
    )


def body_of(text):
    """Return the body of a request for one text, bytes."""
    return json.dumps({"instances": [text]}).encode()


async def _ask(session, url, body):
    async with session.post(f"{url}:predict", data=body) as response:
        content = await response.read()
        if response.status != 200:
            raise UserError(f"{url} returned {response.status}: {content[:200]!r}")
        return content


async def measure(url, bodies, clients, seconds, num_requests):
    """Send requests for some time; return (milliseconds of each, texts per second).

    Args:
      url: of the model.
      bodies: list of the requests' bodies; all clients together repeat them.
      clients: number of clients; each waits for its response.
      seconds: after this time, no client sends another request.
      num_requests: limit of all requests.
    """
    times: list[float] = []
    turn = itertools.islice(itertools.cycle(bodies), num_requests)

    async def client(session, end):
        for body in turn:
            start = time.perf_counter()
            if start >= end:
                return
            await _ask(session, url, body)
            times.append(1000 * (time.perf_counter() - start))

    async with _session() as session:
        start = time.perf_counter()
        calls = [client(session, start + seconds) for _ in range(clients)]
        await asyncio.gather(*calls)
        return times, len(times) / (time.perf_counter() - start)


def alternate(urls, texts, clients, rounds, seconds, num_requests):
    """Return a row of numbers for each server, measured alternately.

    Args:
      urls: dict of name -> URL. Ratios are the first server's texts per second, divided
        by those of the same round.
      texts: list of texts.
      clients: number of clients.
      rounds: measurements of each server, after a short one to warm up.
      seconds: of a measurement.
      num_requests: limit of a measurement.
    """
    bodies = list(map(body_of, texts))
    times: dict = {name: [] for name in urls}
    rates: dict = {name: [] for name in urls}
    for number in range(rounds + 1):
        limit = seconds if number else min(seconds, 1.5)
        for name, url in urls.items():
            found, rate = asyncio.run(
                measure(url, bodies, clients, limit, num_requests)
            )
            if number:
                times[name] += found
                rates[name].append(rate)
    first = rates[next(iter(urls))]
    return [_row(name, clients, times[name], rates[name], first) for name in urls]


def _row(name, clients, times, rates, first_rates):
    ratios = [first / own for first, own in zip(first_rates, rates, strict=True)]
    cuts = statistics.quantiles(times, n=100, method="inclusive")
    return {
        "clients": clients,
        "server": name,
        "texts_per_second": statistics.median(rates),
        "p50_ms": cuts[49],
        "p99_ms": cuts[98],
        "ratio": statistics.median(ratios),
        "least_ratio": min(ratios),
        "greatest_ratio": max(ratios),
    }
