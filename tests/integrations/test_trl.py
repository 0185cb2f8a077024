"""The reward inside of TRL's own GRPO trainer, on a processor, with a model that is made here."""

from __future__ import annotations

import os
import warnings

import pytest

os.environ.setdefault("HF_HUB_OFFLINE", "1")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    trl = pytest.importorskip("trl", reason="TRL is not installed; a reward needs none of it")
    import torch
    from datasets import Dataset
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

    trainer_class, config_class = trl.GRPOTrainer, trl.GRPOConfig

from arabic_agent_eval.integrations.rewards import ToolCallReward, trl_reward
from tests.integrations.test_rewards import COLUMNS, IDS, MESSAGES, PARSED, TEXTS, graded

__all__ = ["graded"]
pytestmark = pytest.mark.filterwarnings("default")


def trainer(folder, rows, *rewards):
    """A trainer of a model with five words, which has learnt nothing."""
    words = Tokenizer(models.WordLevel({"<pad>": 0, "<eos>": 1, "<unk>": 2, "a": 3, "b": 4}, unk_token="<unk>"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>")
    small = {"n_positions": 32, "n_embd": 8, "n_layer": 1, "n_head": 1}
    model = GPT2LMHeadModel(GPT2Config(vocab_size=5, **small, bos_token_id=1, eos_token_id=1, pad_token_id=0))
    settings = config_class(
        output_dir=str(folder),
        use_cpu=True,
        per_device_train_batch_size=4,
        num_generations=2,
        max_completion_length=4,
        max_steps=1,
        report_to=[],
        logging_steps=1,
        disable_tqdm=True,
        save_strategy="no",
    )
    return trainer_class(
        model=model,
        reward_funcs=list(rewards),
        args=settings,
        train_dataset=Dataset.from_list(rows),
        processing_class=tokenizer,
    )


@pytest.fixture
def taught(tmp_path):
    """A trainer that was never started, with rewards by column and by item id."""
    rows = [{"prompt": "a b", "expected_calls": "[]"}] * 2
    return trainer(
        tmp_path, rows, trl_reward, ToolCallReward("sample"), ToolCallReward("sample", strict=True, name="s")
    )


def test_a_step_of_training_is_rewarded(tmp_path):
    """The trainer generates, asks for rewards and logs them: silence is right in one row and wrong in the other."""
    call = '[{"function": "get_time", "arguments": {"city": "مكة"}}]'
    rows = [{"prompt": "a b", "expected_calls": right, "category": "multi_step"} for right in (call, "[]")]
    own = trainer(tmp_path, rows, trl_reward, ToolCallReward(strict=True, name="strict"))

    own.train()

    [step, *_] = own.state.log_history
    assert (step["rewards/trl_reward/mean"], step["rewards/strict/mean"], step["reward"]) == (0.5, 0.5, 1.0)
    assert step["trl_reward/function_selection"] == step["strict/exact"] == 0.5
    table = own._logs["extra"]
    assert sorted(table) == sorted(f"{name}/{axis}" for name in ("trl_reward", "strict") for axis in (
        "function_selection", "argument_accuracy", "arabic_preservation"))  # fmt: skip
    assert all(sorted(values) == [0.0, 0.0, 1.0, 1.0] for values in table.values())


@pytest.mark.parametrize("completions", [TEXTS, MESSAGES, PARSED], ids=["text", "messages", "parsed"])
def test_the_trainer_gets_the_totals_of_aae_grade(taught, graded, completions):
    """What the trainer's own code makes of the answers to the sample is what ``aae grade`` says of them."""
    totals = [row["total"] for row in graded]
    columns = {name: values for name, values in COLUMNS.items() if name != "tools"} | {"item_id": IDS}
    inputs = [{"prompt": "a", **{name: values[n] for name, values in columns.items()}} for n in range(len(IDS))]

    found = taught._calculate_rewards(inputs, ["a"] * len(IDS), completions, [[3]] * len(IDS))

    wanted = torch.tensor([totals, totals, [float(total > 1 - 1e-12) for total in totals]]).T
    assert torch.equal(found.cpu(), wanted)


def test_a_row_without_right_calls_is_not_applicable(taught):
    """None becomes no number for the trainer, which then leaves the row to the other rewards."""
    inputs = [
        {"prompt": "a", "expected_calls": None, "item_id": None},
        {"prompt": "a", "expected_calls": "[]", "item_id": None},
    ]

    found = taught._calculate_rewards(inputs, ["a", "a"], ["b", "b"], [[4], [4]])

    assert found.isnan().tolist() == [[True, True, True], [False, False, False]]
