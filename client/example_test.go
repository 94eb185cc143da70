package client_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/tilth-dev/tilth/client"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// This example tunes two models in one job. A tuner of the farm creates the tasks, so the client needs no compiler.
func ExampleClient_SubmitModels() {
	c, err := client.Dial("tracker.example.com:9190", slog.Default())
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	files := client.ModelFiles{
		Models: []string{"detector.onnx", "classifier.onnx"},
		Seeds:  []client.SeedFile{{Path: "tune.log", Format: tilthv1.SeedFormat_SEED_FORMAT_AUTOTVM}},
	}
	submitted, err := c.SubmitModels(context.Background(), files, &tilthv1.JobSpec{
		Name: "camera", Tuner: "gbdt", Numerics: "default",
		Budget: &tilthv1.Budget{Time: durationpb.New(30 * time.Minute)},
		Target: &tilthv1.TargetSpec{DeviceClass: "neoverse-n1-4t"}, // see 'tilth devices show'
		// The detector runs three times as often.
		Model: &tilthv1.ModelSpec{Weight: 3, Others: []*tilthv1.OtherModel{{Name: "classifier"}}},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(submitted.GetId())
}
