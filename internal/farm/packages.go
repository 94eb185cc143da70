package farm

import (
	"context"
	"fmt"
	"slices"

	"github.com/tilth-dev/tilth/builder"
	"github.com/tilth-dev/tilth/compiler/aot"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
	"github.com/tilth-dev/tilth/compiler/userkernel"
	"github.com/tilth-dev/tilth/internal/agent"
	"github.com/tilth-dev/tilth/internal/sandbox"
	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tuner/bestschedule"
	"github.com/tilth-dev/tilth/tuner/jobclient"
)

// packageMaker compiles the models of jobs into packages.
type packageMaker struct {
	*modelReader
	records tilthv1.RecordServiceClient
	lock    func(context.Context) (release func(), err error)
	BuilderConfig
}

// packageMaker returns the configuration for making packages, or nil if disabled.
func (b *base) packageMaker(ctx context.Context, cfg BuilderConfig, box *sandbox.Sandbox, lock func(context.Context) (func(), error)) (*builder.Packages, error) {
	if len(cfg.Read) == 0 {
		return nil, nil
	}
	reader, err := b.reader(ctx, cfg.Read, box)
	if reader == nil {
		return nil, err
	}
	b.spec.Capabilities = append(b.spec.Capabilities, wire.RunsPackages)
	m := &packageMaker{reader, tilthv1.NewRecordServiceClient(b.conn), lock, cfg}
	return &builder.Packages{Make: m.make, Report: reporter(cfg.Logger, "ReportRun", tilthv1.NewRunServiceClient(b.conn).ReportRun)}, nil
}

// make implements builder.Packages.Make. It reads the model in this process only after a sandboxed process has read it
// within its limits of memory and time.
func (m *packageMaker) make(ctx context.Context, job *tilthv1.Job, t *target.Target, tc *toolchain.Toolchain, output string) (failure string, err error) {
	spec := job.GetSpec()
	path, release, err := m.artifacts.Download(ctx, spec.GetModel().GetFile())
	if err != nil {
		return "", &agent.FarmError{Cause: fmt.Errorf("fetching the model: %w", err)}
	}
	defer release()
	files := jobclient.ModelFiles{spec.GetModel().GetFile().GetDigest(): path}
	if release, err = m.lock(ctx); err != nil {
		return "", fmt.Errorf("waiting for the machine: %w", err)
	}
	defer release()
	read, err := m.models.Read(ctx, files, &tilthv1.ModelWork{
		Job: job, Toolchains: []string{spec.GetTarget().GetToolchain()},
		DeviceClass: &tilthv1.DeviceClass{Name: spec.GetTarget().GetDeviceClass(), Descriptor_: spec.GetTarget().GetDescriptor_()},
	})
	if err != nil || read.GetFailure() != "" {
		return read.GetFailure(), err
	}
	p, of, err := jobclient.Program(files, spec, t)
	if err != nil {
		return err.Error(), nil
	}
	own := func(k *userkernel.Kernel) bool { // those of other owners would run in the user's process
		return m.OwnKernels && slices.ContainsFunc(of.Kernels, func(one *userkernel.Kernel) bool { return one.Digest() == k.Digest() })
	}
	choices, err := bestschedule.Choose(ctx, p, t, of.Numerics, bestschedule.Sources{Lookup: m.lookup(job.GetId()), Own: own}, m.Logger)
	if err != nil {
		return "", err
	}
	options := aot.Options{
		Target: t, Toolchain: tc, Choices: choices, Parallel: m.Parallel, Output: output, Own: own, Apart: true,
		Provenance: &aot.Provenance{
			ModelSHA256: spec.GetModel().GetFile().GetDigest(), Tilth: m.Version, Commit: m.Commit, Numerics: of.Numerics.String(),
			DeviceClass: t.DeviceClass(), Target: t.Fingerprint(),
		},
	}
	if !t.HasOperatingSystem() {
		options.Prefix = aot.PrefixOf(spec.GetName())
	}
	_, err = aot.Compile(ctx, p, options)
	return "", err
}

// recordsPerCall bounds the records of one response.
const recordsPerCall = 100

// lookup returns a lookup of the records that a job may use.
func (m *packageMaker) lookup(jobID string) bestschedule.Lookup {
	return func(ctx context.Context, target string, numerics schedule.Numerics, workloads ...string) (found []*tilthv1.Record, err error) {
		for some := range slices.Chunk(workloads, recordsPerCall) {
			request := &tilthv1.BestRecordsRequest{Target: target, WorkloadDigests: some, Numerics: numerics.String(), JobId: jobID}
			err := agent.Report(ctx, m.Logger, "look up the best records", func(ctx context.Context) error {
				best, err := m.records.BestRecords(ctx, request)
				found = append(found, best.GetRecords()...)
				return err
			})
			if err != nil {
				return nil, &agent.FarmError{Cause: err}
			}
		}
		return found, nil
	}
}
