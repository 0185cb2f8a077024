"""The tests of arabic_agent_eval."""
