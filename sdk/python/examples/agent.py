"""An agent that answers requests. Several of it share the work.

python agent.py agents/sum
sealane request agents/sum '{"numbers": [1, 2, 3]}'
"""

import asyncio
import sys

import sealane


def answer(question: dict) -> dict:
    """Your agent."""
    try:
        return {"sum": sum(question["numbers"])}
    except (KeyError, TypeError):
        return {"error": "send {numbers: [...]}"}


async def main(topic: str) -> None:
    async with sealane.AsyncClient() as client:
        # What is not answered because the agent was killed comes again, to another one.
        async for question in client.subscribe(topic, consumer="agents", ack="auto"):
            try:
                await client.reply(question, answer(question.body))
            except sealane.NotARequest as error:
                print(question.id, error, flush=True)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
