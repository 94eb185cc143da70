package modelzoo

import (
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/frontend"
)

// TestQuantisedNetworksAreOfIntegers: all convolutions and dense layers of quantised networks multiply bytes.
func TestQuantisedNetworksAreOfIntegers(t *testing.T) {
	for _, name := range []string{"mobilenet-v2", "resnet-18", "squeezenet-v1.1"} {
		t.Run(name, func(t *testing.T) {
			m, err := Build(name, Options{Quantise: true})
			if err != nil {
				t.Fatal(err)
			}
			p, err := frontend.Import(m, frontend.Options{Verify: true})
			if err != nil {
				t.Fatal(err)
			}
			for _, task := range p.Tasks {
				if text := task.Workload.Text(); strings.Contains(text, "sum ") && strings.Contains(text, "constant t1 f32[") {
					t.Errorf("a product of floats:\n%s", text)
				}
			}
		})
	}
}

func TestOnlyNetworksForImagesAreQuantised(t *testing.T) {
	if err := Check("bert-tiny", Options{Quantise: true}); err == nil || !strings.Contains(err.Error(), "images") {
		t.Errorf("%v", err)
	}
}
