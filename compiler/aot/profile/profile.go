package profile

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/tilth-dev/tilth/compiler/aot"
	"github.com/tilth-dev/tilth/internal/stats"
)

// What bounds a call: the limit that takes longer.
const (
	ByArithmetic = "arithmetic"
	ByMemory     = "memory"
)

// Profile is the breakdown of one execution of a model.
type Profile struct {
	Threads int      `json:"threads"`
	Peak    aot.Peak `json:"peak"`
	// Calls lists the kernel calls, slowest first.
	Calls []Call `json:"calls"`
	// Skipped is the number of calls that the model's conditions made unnecessary.
	Skipped int   `json:"skipped,omitempty"`
	Total   Total `json:"total"`
	// Device is set if the model runs on a device other than the CPU.
	Device *Device `json:"device,omitempty"`
}

// Device holds the device measurements of an execution.
type Device struct {
	// Launches is the number of kernel launches.
	Launches int `json:"launches"`
	// Matrices lists the formats of its matrix instructions, sorted.
	Matrices []string `json:"matrices,omitempty"`
	// Seconds is the device time of an execution, excluding copies of inputs and outputs. GapSeconds is the part of
	// it between launches, in which none of the model's kernels ran.
	Seconds    float64 `json:"time_s"`
	GapSeconds float64 `json:"gap_s"`
	// CopySeconds is the additional time of an execution with inputs and outputs in host memory.
	CopySeconds float64 `json:"copy_s"`
}

// Call is one execution of a kernel within the model.
type Call struct {
	Call string `json:"call"`
	Task string `json:"task"`
	// Origin is the source of the schedule, as in the manifest.
	Origin string `json:"origin"`
	// Algorithms lists the algorithms other than direct sums, as in the manifest.
	Algorithms []string `json:"algorithms,omitempty"`
	Seconds    float64  `json:"time_s"`
	Share      float64  `json:"share"`
	// Launches lists its launches on a device, longest first.
	Launches []aot.Launch `json:"launches,omitempty"`
	// number is the call's number in the manifest, task its task.
	number int
	task   taskID
	Work
}

// taskID identifies a task of a manifest.
type taskID struct{ name, workload, trace string }

// Total is the sum of all calls.
type Total struct {
	Seconds float64 `json:"time_s"`
	Work
}

// Work is the work done, compared with the machine's limits.
type Work struct {
	// Flop is the number of floating-point operations with direct sums, FlopsPerSecond their rate. The rate may
	// exceed the machine's for an algorithm with fewer operations.
	Flop           float64 `json:"flop"`
	FlopsPerSecond float64 `json:"flops_per_s"`
	// IntegerOps is the number of operations in integer sums.
	IntegerOps float64 `json:"integer_ops,omitempty"`
	// ArithmeticSeconds is the minimum time for both at the machine's rates, given the multiplications of the
	// schedule's algorithms; 0 if none exist. PeakUnknown is set if these multiplications or a relevant rate
	// are unknown; for a total, if they are for any call.
	ArithmeticSeconds float64 `json:"arithmetic_s"`
	PeakUnknown       bool    `json:"peak_unknown,omitempty"`
	// PeakShare is ArithmeticSeconds divided by the time taken; 0 if the peak is unknown.
	PeakShare float64 `json:"peak_share"`
	// Bytes is the minimum memory traffic; cached data may exceed the memory's rate.
	Bytes          int64   `json:"bytes"`
	BytesPerSecond float64 `json:"bytes_per_s"`
	// LimitSeconds is the minimum time for the operations and for Bytes at the known machine rates. BoundBy is the
	// larger of the two; for a total, the one that makes up most of the limit. It is empty if the peak is unknown.
	LimitSeconds float64 `json:"limit_s"`
	BoundBy      string  `json:"bound_by,omitempty"`
}

// Of executes a model repeat times, at least once, and compares the typical time of each call (stats.Parts) with the
// machine's peak. It returns the cause if ctx ends.
func Of(ctx context.Context, m *aot.Model, repeat int, peak aot.Peak) (*Profile, error) {
	manifest := m.Manifest()
	var executions [][]float64
	for range repeat {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		calls, err := m.Profile()
		if err != nil {
			return nil, err
		}
		executions = append(executions, calls)
	}
	p := summarize(manifest, m.Extents(), stats.Parts(executions), peak)
	if launches := m.Launches(); launches != nil {
		seconds, err := m.TimeOnDevice(ctx, repeat)
		if err != nil {
			return nil, err
		}
		whole, err := m.Time(ctx, repeat, 1)
		if err != nil {
			return nil, err
		}
		p.onDevice(manifest, launches, stats.Of(seconds).Median, stats.Of(whole).Median)
	}
	return p, nil
}

// onDevice adds the launches of a profile, and the time of an execution on the device and in total.
func (p *Profile) onDevice(manifest *aot.Manifest, launches []aot.Launch, seconds, whole float64) {
	p.Device = &Device{
		Launches: len(launches), Seconds: seconds, GapSeconds: max(0, seconds-p.Total.Seconds), CopySeconds: max(0, whole-seconds),
	}
	for _, t := range manifest.Tasks {
		if t.Matrices != "" && !slices.Contains(p.Device.Matrices, t.Matrices) {
			p.Device.Matrices = append(p.Device.Matrices, t.Matrices)
		}
	}
	slices.Sort(p.Device.Matrices)
	for i := range p.Calls {
		c := &p.Calls[i]
		for _, l := range launches {
			if l.Call == c.number {
				c.Launches = append(c.Launches, l)
			}
		}
		slices.SortStableFunc(c.Launches, func(a, b aot.Launch) int { return -cmp.Compare(a.Seconds, b.Seconds) })
	}
}

// summarize compares the seconds of each call with the machine's peak.
func summarize(manifest *aot.Manifest, extents map[string]int64, seconds []float64, peak aot.Peak) *Profile {
	p := &Profile{Threads: manifest.Target.Threads(), Peak: peak, Calls: []Call{}}
	tasks := manifest.Executed(extents)
	for i, c := range manifest.Calls {
		if seconds[i] < 0 {
			p.Skipped++
			continue
		}
		task := tasks[i]
		call := Call{Call: c.Name, Task: task.Name, Origin: task.Origin, Algorithms: task.Algorithms, Seconds: seconds[i], number: i,
			task: taskID{task.Name, task.Workload, task.Trace}}
		if task.IsOf(extents) {
			call.Work = work(task, peak)
		} else {
			call.PeakUnknown = true // the work is unknown, too
		}
		call.fromCache(call.Seconds)
		call.rate(call.Seconds)
		p.Calls = append(p.Calls, call)
	}
	p.Total = sum(p.Calls)
	for i := range p.Calls {
		p.Calls[i].Share = ratio(p.Calls[i].Seconds, p.Total.Seconds)
	}
	slices.SortStableFunc(p.Calls, func(a, b Call) int { return -cmp.Compare(a.Seconds, b.Seconds) })
	return p
}

// sum returns the total of calls.
func sum(calls []Call) (t Total) {
	limits := map[string]float64{}
	for _, c := range calls {
		t.Seconds += c.Seconds
		t.Flop += c.Flop
		t.IntegerOps += c.IntegerOps
		t.ArithmeticSeconds += c.ArithmeticSeconds
		t.PeakUnknown = t.PeakUnknown || c.PeakUnknown
		t.Bytes += c.Bytes
		t.LimitSeconds += c.LimitSeconds
		limits[c.BoundBy] += c.LimitSeconds
	}
	t.rate(t.Seconds)
	switch {
	case t.LimitSeconds == 0 || t.PeakUnknown:
	case limits[ByMemory] > limits[ByArithmetic]:
		t.BoundBy = ByMemory
	default:
		t.BoundBy = ByArithmetic
	}
	return t
}

// taskRow is a task with the sums of its calls, and the nodes of its slowest one.
type taskRow struct {
	Call
	calls int
}

// byTask returns a row for each task, slowest first.
func (p *Profile) byTask() (rows []taskRow) {
	of := map[taskID][]Call{}
	for _, c := range p.Calls {
		of[c.task] = append(of[c.task], c)
	}
	for _, c := range p.Calls {
		calls := of[c.task]
		if len(calls) == 0 {
			continue
		}
		delete(of, c.task)
		total := sum(calls)
		c.Seconds, c.Work, c.Share, c.Launches = total.Seconds, total.Work, ratio(total.Seconds, p.Total.Seconds), nil
		for _, one := range calls {
			c.Launches = append(c.Launches, one.Launches...)
		}
		rows = append(rows, taskRow{c, len(calls)})
	}
	slices.SortStableFunc(rows, func(a, b taskRow) int { return -cmp.Compare(a.Seconds, b.Seconds) })
	return rows
}

// nodes returns those of the slowest call, and the number of further calls.
func (r taskRow) nodes() string {
	if r.calls == 1 {
		return r.Call.Call
	}
	return fmt.Sprintf("%s and %d more", r.Call.Call, r.calls-1)
}

// work returns the limit for a task's operations and bytes.
func work(task aot.TaskInfo, peak aot.Peak) Work {
	w := Work{Flop: task.Flop, IntegerOps: task.IntegerOps, Bytes: task.Bytes}
	seconds, known := arithmetic(task, peak)
	w.ArithmeticSeconds, w.PeakUnknown = seconds, !known
	memory := ratio(float64(task.Bytes), peak.BytesPerSecond)
	w.LimitSeconds = max(w.ArithmeticSeconds, memory)
	switch {
	case w.LimitSeconds == 0 || w.PeakUnknown:
	case w.ArithmeticSeconds >= memory:
		w.BoundBy = ByArithmetic
	default:
		w.BoundBy = ByMemory
	}
	return w
}

// arithmetic returns the minimum time for a task's operations, if known.
func arithmetic(task aot.TaskInfo, peak aot.Peak) (seconds float64, known bool) {
	if task.Matrices != "" {
		return atRate(task.Flop+task.IntegerOps, peak.Matrices[task.Matrices])
	}
	share, known := multiplications(task)
	floats, knowsFloats := atRate(task.Flop, peak.FlopsPerSecond)
	integers, knowsIntegers := atRate(task.IntegerOps, peak.IntegersPerSecond)
	if !known || !knowsFloats || !knowsIntegers {
		return 0, false
	}
	return share * (floats + integers), true
}

// atRate returns the time of operations at a rate, where 0 means unknown.
func atRate(operations, rate float64) (seconds float64, known bool) {
	return ratio(operations, rate), operations == 0 || rate > 0
}

// multiplications returns those of the task's algorithms relative to direct sums. They are unknown for packages of
// older versions with algorithms.
func multiplications(task aot.TaskInfo) (share float64, known bool) {
	if len(task.Algorithms) == 0 {
		return 1, true
	}
	return task.Multiplications, task.Multiplications > 0
}

// fromCache drops the memory limit if the time was shorter: the data came from a cache.
func (w *Work) fromCache(seconds float64) {
	if w.LimitSeconds == w.ArithmeticSeconds || w.LimitSeconds <= measuredTwice*seconds {
		return
	}
	w.LimitSeconds, w.BoundBy = w.ArithmeticSeconds, ByArithmetic
	if w.ArithmeticSeconds == 0 || w.PeakUnknown {
		w.BoundBy = ""
	}
}

// measuredTwice is the tolerance by which a time may fall below its limit, since both are measurements.
const measuredTwice = 1.1

func (w *Work) rate(seconds float64) {
	w.FlopsPerSecond = ratio(w.Flop, seconds)
	w.BytesPerSecond = ratio(float64(w.Bytes), seconds)
	if !w.PeakUnknown {
		w.PeakShare = ratio(w.ArithmeticSeconds, seconds)
	}
}

// ratio returns a/b, or 0 if b is unknown.
func ratio(a, b float64) float64 {
	if b <= 0 {
		return 0
	}
	return a / b
}
