"""How the item set ``core`` is put together from what was written for it; nothing here writes a sentence.

    python -m authoring check     is what was written complete, and does it obey the rules
    python -m authoring build     write arabic_agent_eval/data/core, core-en and core-tracks

``docs/items.md`` says how to add items.
"""
