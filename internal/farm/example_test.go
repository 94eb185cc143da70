package farm_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/tilth-dev/tilth/compiler/modelzoo"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/internal/farm"
	"github.com/tilth-dev/tilth/tuner/jobclient"
	"github.com/tilth-dev/tilth/tuner/progress"
)

// This example tunes a model for this machine, without a farm.
func ExampleTune() {
	dir, err := os.MkdirTemp("", "tilth-example-*")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	m, err := modelzoo.Build("mlp", modelzoo.Options{}) // or onnx.ReadFile("mlp.onnx")
	if err != nil {
		log.Fatal(err)
	}
	updates := 0
	result, err := farm.Tune(context.Background(),
		farm.LocalConfig{Records: filepath.Join(dir, "tilth.db"), CacheDir: filepath.Join(dir, "cache")},
		[]jobclient.Source{{Name: "mlp", Model: m}},
		jobclient.TuneOptions{
			Options:      jobclient.Options{Trials: 4, Numerics: schedule.Default},
			DeviceChoice: jobclient.DeviceChoice{Threads: 1},
			Progress:     func(t *progress.Tally) { updates++ },
		})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.State, "after", result.Trials, "trials;", "progress reported:", updates > 0)
	fmt.Println("has records:", len(result.Best) > 0)
	// Output:
	// done after 4 trials; progress reported: true
	// has records: true
}
