package runner

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/backend/cpu/cruntime"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// local maps digests to paths of artifacts.
type local map[string]string

func (l local) Download(_ context.Context, ref *tilthv1.ArtifactRef) (string, func(), error) {
	return l[ref.GetDigest()], func() {}, nil
}

// lyingHarness returns a harness that computes the reference on different data than candidates.
func (b *bench) lyingHarness(t *testing.T) string {
	t.Helper()
	build := cruntime.Harness(b.target)
	for k := range build.Headers {
		h := &build.Headers[k]
		h.Text = strings.ReplaceAll(h.Text, "b->options->seed * MOST_ARGS", "(b->options->seed + (b->options->compute != 0)) * MOST_ARGS")
	}
	if err := b.tc.Build(t.Context(), toolchain.Build{Target: build.Target, Form: build.Form, Headers: build.Headers, Sources: build.Sources}, b.path("liar")); err != nil {
		t.Fatal(err)
	}
	return b.path("liar")
}

// measureGood returns the lease of a batch with the candidate good of a builder, in one of the artifacts of local.
func measureGood(machine *target.Target, builder, harness string) *tilthv1.LeaseWorkResponse {
	work := &tilthv1.MeasureWork{BatchId: "b", BuiltBy: builder, Target: &tilthv1.TargetSpec{Descriptor_: machine.Encode(), DeviceClass: machine.DeviceClass()},
		Candidates: []*tilthv1.Candidate{{Digest: "good"}},
		Artifacts:  []*tilthv1.ArtifactRef{{Role: "candidates", Digest: "candidates"}, {Role: "reference", Digest: "reference"}, {Role: "harness", Digest: harness}}}
	return &tilthv1.LeaseWorkResponse{Work: &tilthv1.LeaseWorkResponse_Measure{Measure: work}}
}

func TestReferencesAreComputedBeforeTheMachineIsReservedForTiming(t *testing.T) {
	machine := native(t)
	b := newBench(t, machine)
	p := b.plan(t, "good")
	var steps []string
	var h *Handler
	lock := func(name string) func(context.Context) (func(), error) {
		return func(context.Context) (func(), error) {
			computed, err := filepath.Glob(filepath.Join(h.Scratch, "results-*"))
			steps = append(steps, fmt.Sprintf("%s with %d results", name, len(computed)))
			return func() { steps = append(steps, name+" ends") }, err
		}
	}
	h = NewHandler(Config{Device: "board", Classes: []*tilthv1.DeviceClass{{Name: machine.DeviceClass()}}, Scratch: t.TempDir(), Sandbox: b.box, Seed: 1,
		Artifacts: local{"candidates": p.Candidates[0], "reference": p.Reference, "honest": p.Harness}, Logger: slog.New(slog.DiscardHandler),
		Lock: lock("timing"), Compute: lock("computing"), Report: func(context.Context, *tilthv1.ReportMeasurementsRequest) error { return nil }})
	if err := h.Handle(t.Context(), measureGood(machine, "alice", "honest")); err != nil {
		t.Fatal(err)
	}
	if want := []string{"computing with 0 results", "computing ends", "timing with 1 results", "timing ends"}; !slices.Equal(steps, want) {
		t.Errorf("%q, want %q", steps, want)
	}
}

// TestHarnessCachesAreSeparatedByBuilder is a regression test: cached references and calibrations of a hostile
// builder's harness failed the candidates of honest builders, on a seemingly disturbed device.
func TestHarnessCachesAreSeparatedByBuilder(t *testing.T) {
	machine := native(t)
	b := newBench(t, machine)
	p := b.plan(t, "good")
	artifacts := local{"candidates": p.Candidates[0], "reference": p.Reference, "honest": p.Harness, "liar": b.lyingHarness(t)}
	var reports []*tilthv1.Measurement
	h := NewHandler(Config{Device: "board", Classes: []*tilthv1.DeviceClass{{Name: machine.DeviceClass()}}, Artifacts: artifacts, Scratch: t.TempDir(),
		Sandbox: b.box, Seed: 1, Logger: slog.New(slog.DiscardHandler), Report: func(_ context.Context, r *tilthv1.ReportMeasurementsRequest) error {
			if r.GetInfraError() != 0 {
				t.Errorf("not measured: %s", r.GetInfraMessage())
			}
			reports = append(reports, r.GetMeasurements()...)
			return nil
		}})
	measure := func(builder, harness string) *tilthv1.Measurement {
		reports = nil
		if err := h.Handle(t.Context(), measureGood(machine, builder, harness)); err != nil {
			t.Fatal(err)
		}
		if len(reports) != 1 {
			t.Fatalf("measured %v", reports)
		}
		return reports[0]
	}
	if m := measure("mallory", "liar"); m.GetError() != wrong {
		t.Fatalf("the liar's harness says %v", m)
	}
	h.calibration(buildOrigin{builtBy: "mallory", harness: "liar"}.device(machine.DeviceClass())).add(1e-9)
	for _, builder := range []string{"alice", "mallory"} {
		if m := measure(builder, "honest"); m.GetError() != none || m.GetCalibrationRatio() > 100 {
			t.Errorf("of %s's batch with an honest harness: %v", builder, m)
		}
	}
	if h.calibration("mallory's") == h.calibration("alice's") {
		t.Error("makers share calibrations")
	}
	if entries, err := os.ReadDir(h.Scratch); err != nil || len(entries) != 2+3 {
		t.Errorf("scratch holds %v, %v: two harnesses and three results were made", entries, err)
	}
}
