package loadtest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"

	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// Properties of all simulated agents and jobs.
const (
	fingerprint = "simulated x86-64 1 thread clang-19"
	toolchain   = "clang-19"
	deviceClass = "simulated"
	algorithm   = "simulated"
)

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// workload returns the canonical form of a workload in the pool, of realistic size.
func workload(n int) []byte {
	return fmt.Appendf(nil, "tilth-workload 1\n%0512d\n", n)
}

// ownersOfShard is the number of owners per shard.
const ownersOfShard = 8

// owners returns ownersOfShard owners for each shard. Shards alternate, so every shard gets the same number of jobs.
func owners(shards int) (all []string) {
	of := make([][]string, shards)
	for n, missing := 0, shards*ownersOfShard; missing > 0; n++ {
		owner := fmt.Sprintf("owner-%d", n)
		if shard := wire.ShardOfOwner(owner, shards); len(of[shard]) < ownersOfShard {
			of[shard] = append(of[shard], owner)
			missing--
		}
	}
	for i := range ownersOfShard {
		for shard := range shards {
			all = append(all, of[shard][i])
		}
	}
	return all
}

// jobSpec returns an owner's job with tasks from the pool. A task's name is its number in the job.
func (o *Options) jobSpec(n int, owner string, d *dice) *tilthv1.JobSpec {
	spec := &tilthv1.JobSpec{
		Name: fmt.Sprintf("simulated-%d", n), Owner: owner, Tuner: algorithm, Seed: uint64(n),
		Target: &tilthv1.TargetSpec{Fingerprint: fingerprint, Toolchain: toolchain, DeviceClass: deviceClass, Descriptor_: []byte("{}")},
		Budget: &tilthv1.Budget{Trials: uint32(o.Trials)},
	}
	first := d.below(o.Workloads)
	for i := range o.Tasks {
		w := workload((first + i) % o.Workloads)
		spec.Tasks = append(spec.Tasks, &tilthv1.TaskSpec{
			Name: strconv.Itoa(i), Workload: w, WorkloadDigest: digest(w), Weight: 1, Flop: 1e9,
		})
	}
	return spec
}

// candidates returns the unique candidates of a proposal.
func (o *Options) candidates(jobID string, proposal uint64) []*tilthv1.Candidate {
	out := make([]*tilthv1.Candidate, o.Batch)
	for i := range out {
		out[i] = o.candidate(fmt.Appendf(nil, "tilth-trace 1\n%s %d %d\n", jobID, proposal, i))
	}
	return out
}

// candidate returns a candidate whose trace starts with the given bytes, padded to the configured size.
func (o *Options) candidate(trace []byte) *tilthv1.Candidate {
	for len(trace) < o.TraceBytes {
		trace = append(trace, "split 1 0 96 0\n"...)
	}
	return &tilthv1.Candidate{Digest: digest(trace), Trace: trace, Numerics: wire.NumericsStrict}
}

// agentSpec returns the specification of an agent.
func agentSpec(kind tilthv1.AgentKind, n int) *tilthv1.AgentSpec {
	spec := &tilthv1.AgentSpec{Kind: kind, Host: fmt.Sprintf("host-%05d", n), Version: "simulated"}
	switch kind {
	case tilthv1.AgentKind_AGENT_KIND_TUNER:
		spec.Name, spec.Tuners = fmt.Sprintf("tuner-%05d", n), []string{algorithm}
	case tilthv1.AgentKind_AGENT_KIND_BUILDER:
		spec.Name, spec.Toolchains = fmt.Sprintf("builder-%05d", n), []string{toolchain}
	case tilthv1.AgentKind_AGENT_KIND_RUNNER:
		spec.Name = fmt.Sprintf("board-%05d/runner", n)
		spec.DeviceClasses = []*tilthv1.DeviceClass{{Name: deviceClass, Descriptor_: []byte("{}")}}
		spec.Labels = map[string]string{"rack": strconv.Itoa(n / 40)}
	}
	return spec
}

// taskNumber returns a task's index in its job.
func taskNumber(t *tilthv1.TaskSpec) (int, error) { return strconv.Atoi(t.GetName()) }
