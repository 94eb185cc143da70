package jobclient

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"runtime/metrics"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/tilth-dev/tilth/client"
	"github.com/tilth-dev/tilth/compiler/frontend"
	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/compiler/program"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/userkernel"
	"github.com/tilth-dev/tilth/internal/agent"
	"github.com/tilth-dev/tilth/internal/sandbox"
	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tuner/importedseeds"
)

// ModelReader reads models in child processes that call ServeModelReader.
type ModelReader struct {
	sandbox.Server
	// Time and MemoryBytes limit a process; zero values mean 10 min and no limit.
	Time        time.Duration
	MemoryBytes int64
}

const (
	defaultTime = 10 * time.Minute
	// maxAnswerBytes bounds the answer of a process by the tracker's limit for a report with a lease.
	maxAnswerBytes = 16<<20 - 4<<10
)

// Try starts a process that reads nothing. It returns why models cannot be read.
func (r *ModelReader) Try(ctx context.Context) error {
	_, err := r.run(ctx, order{})
	return err
}

// Read reads the models of a job in files, which it makes readable for other users. It returns a report without a
// lease, of tasks or of the failure of the models. The error is the cause of ctx, or a fault of the machine.
func (r *ModelReader) Read(ctx context.Context, files ModelFiles, work *tilthv1.ModelWork) (*tilthv1.ReportModelRequest, error) {
	encoded, err := proto.Marshal(work)
	if err != nil {
		return nil, err
	}
	said, err := r.run(ctx, order{Files: files, Work: encoded, MemoryBytes: r.MemoryBytes})
	var failed *sandbox.Failure
	switch {
	case errors.As(err, &failed) && ctx.Err() == nil:
		return r.failure(work, r.explain(failed)), nil
	case err != nil:
		return nil, err
	}
	return r.report(work, said), nil
}

// run lets a process serve an order.
func (r *ModelReader) run(ctx context.Context, o order) (said []byte, err error) {
	text, err := json.Marshal(o)
	if err != nil {
		return nil, fmt.Errorf("read a model: %w", err)
	}
	p := r.Open()
	defer p.Close()
	said, err = r.Run(ctx, p, text, slices.Sorted(maps.Values(o.Files)), sandbox.RequestLimits{
		Time: cmp.Or(r.Time, defaultTime), Processors: target.Processors(), Remedy: "submit a smaller model, or its tasks",
		MemoryBytes: r.MemoryBytes, FileBytes: 1, AnswerBytes: maxAnswerBytes,
	})
	if err != nil && ctx.Err() == nil && !errors.As(err, new(*sandbox.Failure)) {
		err = fmt.Errorf("read a model: %w", err)
	}
	return said, err
}

// explain describes the memory limit of a process that exceeded it.
func (r *ModelReader) explain(f *sandbox.Failure) string {
	if r.MemoryBytes > 0 && (strings.Contains(f.Error(), "uses up its memory") || strings.Contains(f.Error(), outOfMemory)) {
		return fmt.Sprintf("takes more than %d MiB of memory to read: submit a smaller model, or its tasks", r.MemoryBytes>>20)
	}
	return "reading it " + f.Error()
}

// report decodes an answer, which a model may have forged, if the tracker would accept it.
func (r *ModelReader) report(work *tilthv1.ModelWork, said []byte) *tilthv1.ReportModelRequest {
	report := &tilthv1.ReportModelRequest{}
	if err := proto.Unmarshal(said, report); err != nil || len(report.GetTasks()) == 0 && report.GetFailure() == "" {
		return r.failure(work, "reading it crashes: there is no answer")
	}
	if report.GetFailure() != "" {
		return r.failure(work, report.GetFailure())
	}
	report.Lease, report.InfraMessage = nil, ""
	if err := wire.Check(report); err != nil {
		return r.failure(work, "its tasks are too many or too large: "+status.Convert(err).Message())
	}
	return report
}

// failure returns the report of a model that cannot be tuned.
func (*ModelReader) failure(work *tilthv1.ModelWork, why string) *tilthv1.ReportModelRequest {
	name := work.GetJob().GetSpec().GetName()
	return &tilthv1.ReportModelRequest{Failure: agent.FailureMessage("model " + name + ": " + strings.TrimPrefix(why, name+": "))}
}

// ModelFiles maps digests of artifacts to absolute paths.
type ModelFiles map[string]string

func (f ModelFiles) open(ref *tilthv1.ArtifactRef) (*os.File, error) {
	path := f[ref.GetDigest()]
	if path == "" {
		return nil, fmt.Errorf("artifact %s was not fetched", ref.GetDigest())
	}
	return os.Open(path)
}

// modelFile is the part of a job that describes one of its models.
type modelFile interface {
	GetFile() *tilthv1.ArtifactRef
	GetShapes() map[string]*tilthv1.Extents
	GetOpen() map[string]*tilthv1.ExtentBounds
	GetDerived() map[string]string
	GetFrom() []string
	GetTo() []string
	GetWeight() float64
}

// readModels reads a job's models one after another, so that the weights of all need not fit in memory.
func readModels(o *Objective, files ModelFiles, spec *tilthv1.JobSpec) error {
	if err := readModel(o, files, spec.GetName(), spec.GetModel()); err != nil {
		return err
	}
	for i, other := range spec.GetModel().GetOthers() {
		if err := readModel(o, files, cmp.Or(other.GetName(), fmt.Sprintf("others[%d]", i)), other); err != nil {
			return err
		}
	}
	return nil
}

func readModel(o *Objective, files ModelFiles, name string, m modelFile) error {
	s, err := sourceOf(files, name, m)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return o.Import(s)
}

// sourceOf reads a model's file. It ignores references to external files.
func sourceOf(files ModelFiles, name string, m modelFile) (Source, error) {
	s := Source{Name: name, Shapes: map[string][]int64{}, Open: map[string]frontend.Bounds{}, Derived: m.GetDerived(), Weight: m.GetWeight()}
	for name, extents := range m.GetShapes() {
		s.Shapes[name] = extents.GetExtents()
	}
	for name, b := range m.GetOpen() {
		s.Open[name] = frontend.Bounds{Min: b.GetLeast(), Max: b.GetMost(), Step: b.GetStep(), Caps: b.GetCaps(), Frequencies: b.GetFrequencies()}
	}
	f, err := files.open(m.GetFile())
	if err != nil {
		return s, err
	}
	defer f.Close()
	if s.Model, err = onnx.ReadFrom(f, "the artifact"); err != nil {
		return s, err
	}
	if len(m.GetFrom()) > 0 || len(m.GetTo()) > 0 {
		s.Model, err = s.Model.Part(m.GetFrom(), m.GetTo())
	}
	return s, err
}

// Program returns the program of a job's first model for a target, read in this process, and the job's numerics and
// kernels.
func Program(files ModelFiles, spec *tilthv1.JobSpec, t *target.Target) (p *program.Program, o Options, err error) {
	defer schedule.RecoverAs(&err)
	if o, err = optionsOf(spec); err != nil {
		return nil, o, err
	}
	model := spec.GetModel()
	storage, err := Storage(t, o.Numerics, model.GetStorage(), int64(model.GetWeightBits()))
	if err != nil {
		return nil, o, err
	}
	s, err := sourceOf(files, spec.GetName(), model)
	if err != nil {
		return nil, o, err
	}
	p, err = s.program(storage)
	return p, o, err
}

// formats maps the formats of logs.
var formats = map[tilthv1.SeedFormat]importedseeds.LogFormat{
	tilthv1.SeedFormat_SEED_FORMAT_AUTOTVM: importedseeds.AutoTVM, tilthv1.SeedFormat_SEED_FORMAT_ANSOR: importedseeds.Ansor,
}

// seedsOf returns the seeds in files; later files come first.
func seedsOf(files ModelFiles, from []*tilthv1.SeedFile) (*importedseeds.File, error) {
	var logs [][]importedseeds.Entry
	for i, s := range from {
		entries, err := entriesOf(files, s)
		if err != nil {
			return nil, fmt.Errorf("seeds[%d]: %w", i, err)
		}
		logs = append(logs, entries)
	}
	return importedseeds.New(logs...), nil
}

func entriesOf(files ModelFiles, s *tilthv1.SeedFile) ([]importedseeds.Entry, error) {
	f, err := files.open(s.GetFile())
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if s.GetFormat() == tilthv1.SeedFormat_SEED_FORMAT_TILTH {
		file, err := importedseeds.Parse(f)
		if err != nil {
			return nil, err
		}
		return file.Entries(), nil
	}
	log, err := importedseeds.ReadLog(f, formats[s.GetFormat()])
	if err != nil {
		return nil, err
	}
	return log.Entries, log.Err()
}

// order describes what to read.
type order struct {
	// Files lists the files of the work; empty to test whether a process can start.
	Files ModelFiles `json:"files"`
	// Work is an encoded tilthv1.ModelWork.
	Work []byte `json:"work"`
	// MemoryBytes limits the memory of the process; 0 means no limit. The process watches its own use,
	// because a kernel limit would have to allow for the address space that the runtime reserves.
	MemoryBytes int64 `json:"memory_bytes"`
}

const outOfMemory = "out of memory"

// memoryInterval is the interval at which the memory is checked.
const memoryInterval = 10 * time.Millisecond

// limitMemory ends the process when it exceeds a limit.
func limitMemory(limit int64) {
	samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	for {
		metrics.Read(samples)
		if taken := samples[0].Value.Uint64() - samples[1].Value.Uint64(); taken > uint64(limit) {
			fmt.Fprintln(os.Stderr, outOfMemory)
			os.Exit(1)
		}
		time.Sleep(memoryInterval)
	}
}

// ServeModelReader is the main function of the process: it reads an order and writes a tilthv1.ReportModelRequest
// without a lease. It returns an error if it could do neither.
func ServeModelReader(stdin io.Reader, stdout io.Writer) error {
	var o order
	if err := json.NewDecoder(stdin).Decode(&o); err != nil {
		return fmt.Errorf("read a model: reading the order: %w", err)
	}
	var work tilthv1.ModelWork
	if err := proto.Unmarshal(o.Work, &work); err != nil {
		return fmt.Errorf("read a model: reading the order: %w", err)
	}
	if err := sandbox.Seal(); err != nil {
		return fmt.Errorf("read a model: %w", err)
	}
	if len(o.Files) == 0 {
		return nil
	}
	if o.MemoryBytes > 0 {
		go limitMemory(o.MemoryBytes)
	}
	report := &tilthv1.ReportModelRequest{}
	spec, err := read(o.Files, &work)
	if err != nil {
		report.Failure = err.Error()
	} else {
		report.Target, report.Tasks = spec.GetTarget(), spec.GetTasks()
	}
	answer, err := proto.Marshal(report)
	if err == nil {
		_, err = stdout.Write(answer)
	}
	if err != nil {
		return fmt.Errorf("read a model: writing the answer: %w", err)
	}
	return nil
}

// read returns the job of models in files, in this process.
func read(files ModelFiles, work *tilthv1.ModelWork) (spec *tilthv1.JobSpec, err error) {
	defer schedule.RecoverAs(&err)
	asked := work.GetJob().GetSpec()
	device, err := deviceOf(work)
	if err != nil {
		return nil, err
	}
	options, err := optionsOf(asked)
	if err != nil {
		return nil, err
	}
	if options.Seeds, err = seedsOf(files, asked.GetModel().GetSeeds()); err != nil {
		return nil, err
	}
	model := asked.GetModel()
	storage, err := Storage(device.Target, options.Numerics, model.GetStorage(), int64(model.GetWeightBits()))
	if err != nil {
		return nil, err
	}
	objective := &Objective{Storage: storage}
	if err := readModels(objective, files, asked); err != nil {
		return nil, err
	}
	if err := objective.Suits(device.Target); err != nil {
		return nil, err
	}
	if objective.Tasks, err = chosen(objective.Tasks, model); err != nil {
		return nil, err
	}
	return SpecFor(objective, options, device), nil
}

// chosen returns the tasks that a job selects.
func chosen(tasks []Task, model *tilthv1.ModelSpec) ([]Task, error) {
	if len(model.GetTaskWeights()) == 0 {
		return Select(tasks, model.GetTasks())
	}
	var weights []Weight
	for _, w := range model.GetTaskWeights() {
		weights = append(weights, Weight{Weight: w.GetWeight(), Tasks: w.GetTasks()})
	}
	picked, err := Weigh(tasks, weights)
	if wrong, ok := errors.AsType[*WeighError](err); ok {
		return nil, fmt.Errorf("task_weights[%d]: %w", wrong.Index, wrong.Err)
	}
	return picked, err
}

// deviceOf returns the device of a job, with a toolchain.
func deviceOf(work *tilthv1.ModelWork) (*client.Device, error) {
	class := work.GetDeviceClass()
	t, err := target.Decode(class.GetDescriptor_())
	if err != nil {
		return nil, fmt.Errorf("device class %s: %w", class.GetName(), err)
	}
	name, err := client.NewestToolchain(work.GetToolchains(), t)
	if err != nil {
		return nil, fmt.Errorf("no toolchain of %s compiles for device class %s: start a builder that has one", strings.Join(work.GetToolchains(), ", "), class.GetName())
	}
	return &client.Device{Target: t.WithToolchain(name), Machine: class.GetMachine()}, nil
}

// optionsOf returns the options of a job that affect its tasks.
func optionsOf(spec *tilthv1.JobSpec) (o Options, err error) {
	o.Name, o.Tuner, o.NoTransfer = spec.GetName(), spec.GetTuner(), spec.GetNoTransfer()
	if o.Numerics, err = schedule.ParseNumerics(spec.GetNumerics()); err != nil {
		return o, err
	}
	o.Kernels, err = userkernel.ParseAll(spec.GetKernels())
	return o, err
}
