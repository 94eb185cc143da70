package jobclient

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/metrics"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/tilth-dev/tilth/client"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/userkernel"
	"github.com/tilth-dev/tilth/internal/sandbox"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

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
