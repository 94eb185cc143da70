package gpu

import (
	"context"
	"fmt"
	"strconv"
	"time"
)

// model is a built-in network and its name in PyTorch.
type model struct {
	name, peer string
	batch      int64
	numerics   string
}

// models returns the models to compare with torch.compile, ordered for variety.
func models(numerics string, batch int64) []model {
	return []model{
		{"resnet-50", "resnet50", batch, numerics}, {"bert-base", "bert", batch, numerics}, {"vit-b-16", "vit_b_16", batch, numerics},
		{"gpt-small", "gpt2", batch, numerics}, {"mobilenet-v2", "mobilenet_v2", batch, numerics},
	}
}

// allModels returns all models to compare.
func allModels() (list []model) {
	for _, numerics := range []string{"fast", "default"} {
		for _, batch := range []int64{1, 32} {
			list = append(list, models(numerics, batch)...)
		}
	}
	return list
}

func (m model) String() string { return fmt.Sprintf("%s batch %d %s", m.name, m.batch, m.numerics) }

func (m model) step() string { return "model " + m.String() }

// modelTrials is the number of trials of a model over all of its tasks, if time permits.
const modelTrials = 600

// tuningTime bounds the search. It grows with the batch, because the reference computes proportionally more.
func (m model) tuningTime() time.Duration {
	if m.batch > 1 {
		return 70 * time.Second
	}
	return 40 * time.Second
}

// takes returns the expected duration. It includes four minutes for PyTorch's compiler, which took 232 s for
// ResNet-50 on 16 cores beside an H200, and for the comparison.
func (m model) takes() time.Duration { return m.tuningTime() + 260*time.Second }

// contenders returns torch.compile. With fast numerics it uses bfloat16, like the packages.
func (m model) contenders() []contender {
	dtype := "float32"
	if m.numerics == "fast" {
		dtype = "bfloat16"
	}
	return []contender{{"peer", question{What: "model", Name: m.peer, Batch: m.batch, DType: dtype}}}
}

// compare tunes a network and compares it with torch.compile.
func (m model) compare(ctx context.Context, b *suite, r *result) error {
	path := b.path(m.name + ".onnx")
	if _, err := b.call(ctx, "model", m.name, "--batch", strconv.FormatInt(m.batch, 10), "-o", path); err != nil {
		return err
	}
	return b.compared(ctx, comparison{path, []string{"--numerics", m.numerics}, modelTrials, m.tuningTime(), m.contenders()}, r)
}
