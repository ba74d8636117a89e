"""Does jobs with retries: each job is done at least once, and given up after five attempts.

python worker.py 'jobs/*'
"""

import asyncio
import sys

import sealane

#: So many jobs are done side by side.
JOBS = 4


async def work(body: dict) -> None:
    """Your work. An exception means that the job shall come again."""
    if body.get("fails"):
        raise RuntimeError("the job cannot be done")
    print("done:", body["id"], flush=True)


async def do(job: sealane.Message) -> None:
    try:
        await work(job.body)
        job.ack()
    except Exception as failure:
        print(f"{job.id} failed the {job.attempt}. time: {failure}", flush=True)
        job.nack(delay=0.1 * 2**job.attempt)


async def main(pattern: str) -> None:
    async with sealane.AsyncClient() as client:
        jobs = client.subscribe(pattern, consumer="workers", max_in_flight=JOBS, max_attempts=5)
        running: set[asyncio.Task] = set()
        async for job in jobs:
            task = asyncio.create_task(do(job))
            running.add(task)
            task.add_done_callback(running.discard)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
