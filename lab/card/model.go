package card

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
}

// models are those that are compared with torch.compile, those of the most different kinds first.
func models(numerics string, batch int64) []model {
	return []model{
		{"resnet-50", "resnet50", batch, numerics}, {"bert-base", "bert", batch, numerics}, {"vit-b-16", "vit_b_16", batch, numerics},
		{"gpt-small", "gpt2", batch, numerics}, {"mobilenet-v2", "mobilenet_v2", batch, numerics},
	}
}

// allModels are all that are compared.
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

// modelTrials is how many candidates of a model are measured over all of its tasks, if there is time.
const modelTrials = 600

// tuningTime bounds the search. The reference has as much more to compute as the batch is larger.
func (m model) tuningTime() time.Duration {
	if m.batch > 1 {
		return 70 * time.Second
	}
	return 40 * time.Second
}

// takes has four minutes for PyTorch's compiler, which took 232 s for ResNet-50 on 16 cores beside an H200, and the
// comparison.
func (m model) takes() time.Duration { return m.tuningTime() + 260*time.Second }

// contenders is torch.compile. What fast numerics make of float32 on a card is bfloat16.
func (m model) contenders() []contender {
	dtype := "float32"
	if m.numerics == "fast" {
		dtype = "bfloat16"
	}
	return []contender{{"peer", question{What: "model", Name: m.peer, Batch: m.batch, DType: dtype}}}
}

// model tunes a network and compares it with torch.compile.
func (b *bench) model(ctx context.Context, m model, r *result) error {
	path := b.path(m.name + ".onnx")
	if _, err := b.call(ctx, "model", m.name, "--batch", strconv.FormatInt(m.batch, 10), "-o", path); err != nil {
		return err
	}
	return b.compared(ctx, comparison{path, []string{"--numerics", m.numerics}, modelTrials, m.tuningTime(), m.contenders()}, r)
}
