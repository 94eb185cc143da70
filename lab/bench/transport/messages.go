package main

import (
	"bytes"
	"fmt"
	"strings"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// What messages hold has the sizes of tilth simulate.
const (
	traceBytes    = 300
	workloadBytes = 530
	samples       = 8
)

var (
	jobID = strings.Repeat("j", 26)
	task  = &tilthv1.TaskSpec{
		Name: "12", Workload: bytes.Repeat([]byte("w"), workloadBytes), WorkloadDigest: digest(0), Weight: 1, Flop: 1e9,
	}
	target = &tilthv1.TargetSpec{Fingerprint: "simulated x86-64 1 thread clang-19", Toolchain: "clang-19", DeviceClass: "simulated"}
	object = &tilthv1.ArtifactRef{Digest: digest(0), SizeBytes: 3584}
)

func digest(n int) string { return fmt.Sprintf("%064d", n) }

// candidates are those of a batch, with their traces or, as for runners, without.
func candidates(traces bool) []*tilthv1.Candidate {
	list := make([]*tilthv1.Candidate, wire.BatchCandidates)
	for i := range list {
		list[i] = &tilthv1.Candidate{Digest: digest(i), Trial: uint32(1000 + i), Numerics: wire.NumericsStrict}
		if traces {
			list[i].Trace = bytes.Repeat([]byte("t"), traceBytes)
		}
	}
	return list
}

// outcomes are what a builder says of a batch.
func outcomes() []*tilthv1.BuildOutcome {
	list := make([]*tilthv1.BuildOutcome, wire.BatchCandidates)
	for i := range list {
		list[i] = &tilthv1.BuildOutcome{Candidate: digest(i), Error: tilthv1.ErrorClass_ERROR_CLASS_NONE, BuildSeconds: 0.016}
	}
	return list
}

// measurements are what a runner says of a batch.
func measurements() []*tilthv1.Measurement {
	const latency = 3e-4
	list := make([]*tilthv1.Measurement, wire.BatchCandidates)
	for i := range list {
		list[i] = &tilthv1.Measurement{
			Candidate: &tilthv1.Candidate{Digest: digest(i), Trial: uint32(1000 + i)}, Error: tilthv1.ErrorClass_ERROR_CLASS_NONE,
			RunSeconds: 0.03, CalibrationRatio: 1, At: timestamppb.Now(), LatencySeconds: latency,
			Interval: &tilthv1.Interval{LowSeconds: latency, HighSeconds: latency, Level: 0.95},
		}
		for range samples {
			list[i].SamplesSeconds = append(list[i].SamplesSeconds, latency)
		}
	}
	return list
}
