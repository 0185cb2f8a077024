"""How the baseline understands a request: words, mentions, arguments and plans, without any language model."""
