package aot

import (
	"testing"

	"github.com/tilth-dev/tilth/compiler/backend"
	"github.com/tilth-dev/tilth/compiler/frontend"
	"github.com/tilth-dev/tilth/compiler/modelzoo"
)

// TestPlansOfModelsAreTight: plans are within a tenth of the peak memory in use, for models with every kind of
// graph.
func TestPlansOfModelsAreTight(t *testing.T) {
	for _, name := range []string{
		"resnet-18", "resnet-50", "resnet-50-v2", "resnet3d-18", "mobilenet-v1", "mobilenet-v2", "mobilenet-v3",
		"squeezenet-v1.1", "inception-v3", "densenet-121", "efficientnet-b0", "dcgan", "mlp", "bert-tiny",
	} {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && name != "mobilenet-v2" && name != "squeezenet-v1.1" && name != "mlp" && name != "bert-tiny" {
				t.Skip("slow: plans a large model")
			}
			t.Parallel()
			m, err := modelzoo.Build(name, modelzoo.Options{})
			if err != nil {
				t.Fatal(err)
			}
			p, err := frontend.Import(m, frontend.Options{})
			if err != nil {
				t.Fatal(err)
			}
			l := newLayout(p, make([]backend.Info, len(p.Tasks)), 1, onProcessors)
			if l.arenaBytes > l.arenaMin+l.arenaMin/10 {
				t.Errorf("%d bytes where %d are in use at a time", l.arenaBytes, l.arenaMin)
			}
			t.Logf("%d calls, %d bytes, at least %d", len(p.Calls), l.arenaBytes, l.arenaMin)
		})
	}
}
