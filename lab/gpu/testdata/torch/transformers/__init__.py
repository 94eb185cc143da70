"""Stands in for the library, beside the fake PyTorch."""

from torch import Module


class BertConfig:
    vocab_size = 30522


class GPT2Config(BertConfig):
    def __init__(self, use_cache):
        assert not use_cache


class BertModel(Module):
    def __init__(self, config):
        assert type(config) is BertConfig


class GPT2LMHeadModel(Module):
    def __init__(self, config):
        assert type(config) is GPT2Config
