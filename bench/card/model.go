package main

import (
	"context"
	"fmt"
	"strconv"
	"time"
)

// model is a network that 'tilth model' knows, with what PyTorch calls it.
type model struct {
	name, peer string
	batch      int64
	numerics   string
	takes      time.Duration
}

// models are those that are compared with torch.compile.
func models() (list []model) {
	for _, m := range []model{
		{name: "resnet-50", peer: "resnet50"}, {name: "mobilenet-v2", peer: "mobilenet_v2"}, {name: "vit-b-16", peer: "vit_b_16"},
		{name: "bert-base", peer: "bert"}, {name: "gpt-small", peer: "gpt2"},
	} {
		m.batch, m.numerics, m.takes = 1, "fast", 100*time.Second
		list = append(list, m)
	}
	return list
}

func (m model) String() string { return fmt.Sprintf("%s batch %d %s", m.name, m.batch, m.numerics) }

// modelTrials is how many candidates of a model are measured, over all of its tasks.
const modelTrials = 400

func (b *bench) model(ctx context.Context, m model, r *result) error {
	path := b.path(m.name + ".onnx")
	if _, err := b.run(ctx, "model", m.name, "--batch", strconv.FormatInt(m.batch, 10), "-o", path); err != nil {
		return err
	}
	// What fast numerics make of float32 on a card is bfloat16.
	peer := func(ctx context.Context) (float64, error) {
		return b.peer(ctx, question{What: "model", Name: m.peer, Batch: m.batch, DType: "bfloat16"})
	}
	return b.compared(ctx, tuning{path, []string{"--numerics", m.numerics}, modelTrials}, peer, r)
}
