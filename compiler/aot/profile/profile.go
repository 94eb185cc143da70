package profile

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/tilth-dev/tilth/compiler/aot"
	"github.com/tilth-dev/tilth/internal/stat"
)

// What bounds a call: the one of its two limits that takes longer.
const (
	ByArithmetic = "arithmetic"
	ByMemory     = "memory"
)

// Profile is what one execution of a model takes.
type Profile struct {
	Threads int      `json:"threads"`
	Peak    aot.Peak `json:"peak"`
	// Calls are the kernel calls, slowest first.
	Calls []Call `json:"calls"`
	// Skipped is how many calls the executions did not need, because of what conditions of the model's were.
	Skipped int   `json:"skipped,omitempty"`
	Total   Total `json:"total"`
	// Device is there where the model runs on one that is not the processor.
	Device *Device `json:"device,omitempty"`
}

// Device is what an execution takes of a device.
type Device struct {
	// Launches is how many kernels are started.
	Launches int `json:"launches"`
	// Matrices are the formats that its instructions for products of matrices are used in, sorted.
	Matrices []string `json:"matrices,omitempty"`
	// Seconds is the time of an execution on the device, without copies of inputs and outputs, and GapSeconds the part
	// of it in which none of the model's kernels ran: what lies between launches.
	Seconds    float64 `json:"time_s"`
	GapSeconds float64 `json:"gap_s"`
	// CopySeconds is the time beside that of an execution on inputs and outputs in the host's memory.
	CopySeconds float64 `json:"copy_s"`
}

// Call is one execution of a kernel within the model.
type Call struct {
	Call string `json:"call"`
	Task string `json:"task"`
	// Origin is where the schedule comes from, as in the manifest.
	Origin string `json:"origin"`
	// Algorithms are those that the schedule uses beside direct sums, as in the manifest.
	Algorithms []string `json:"algorithms,omitempty"`
	Seconds    float64  `json:"time_s"`
	Share      float64  `json:"share"`
	// Launches are those on a device, longest first.
	Launches []aot.Launch `json:"launches,omitempty"`
	// number is the call's in the manifest, task what it is a call of.
	number int
	task   taskID
	Work
}

// taskID tells a manifest's tasks apart.
type taskID struct{ name, workload, trace string }

// Total is the sum of all calls.
type Total struct {
	Seconds float64 `json:"time_s"`
	Work
}

// Work is what was done, and how that compares with the machine.
type Work struct {
	// Flop is the floating point operations if every sum is computed directly, FlopsPerSecond their rate, which an
	// algorithm that needs fewer of them may raise above the machine's.
	Flop           float64 `json:"flop"`
	FlopsPerSecond float64 `json:"flops_per_s"`
	// IntegerOps is the operations in sums of integers.
	IntegerOps float64 `json:"integer_ops,omitempty"`
	// ArithmeticSeconds is the least time for both at the machine's rates, with the multiplications of the algorithms
	// that the schedule uses; 0 where there are none. PeakUnknown is set where these multiplications, or a rate that
	// matters, are not known; of a total, where a call's are not.
	ArithmeticSeconds float64 `json:"arithmetic_s"`
	PeakUnknown       bool    `json:"peak_unknown,omitempty"`
	// PeakShare is ArithmeticSeconds over the time taken; 0 where the peak is unknown.
	PeakShare float64 `json:"peak_share"`
	// Bytes is the least that is read and written; what comes from caches may exceed the memory's rate.
	Bytes          int64   `json:"bytes"`
	BytesPerSecond float64 `json:"bytes_per_s"`
	// LimitSeconds is the least time for the operations and for Bytes at the machine's rates, as far as they are
	// known, BoundBy which of the two it is; of a total, which of the two most of the limit is. It is empty where the
	// peak is unknown.
	LimitSeconds float64 `json:"limit_s"`
	BoundBy      string  `json:"bound_by,omitempty"`
}

// Of executes a model repeat times, takes the median of each call and compares it with the machine's peak. When ctx
// ends it returns the cause.
func Of(ctx context.Context, m *aot.Model, repeat int, peak aot.Peak) (*Profile, error) {
	manifest := m.Manifest()
	samples := make([][]float64, len(manifest.Calls))
	for range repeat {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		calls, err := m.Profile()
		if err != nil {
			return nil, err
		}
		for i, seconds := range calls {
			samples[i] = append(samples[i], seconds)
		}
	}
	medians := make([]float64, len(samples))
	for i := range samples {
		medians[i] = stat.Of(samples[i]).Median
	}
	p := summarize(manifest, m.Extents(), medians, peak)
	if launches := m.Launches(); launches != nil {
		seconds, err := m.TimeOnDevice(ctx, repeat)
		if err != nil {
			return nil, err
		}
		whole, err := m.Time(ctx, repeat, 1)
		if err != nil {
			return nil, err
		}
		p.onDevice(manifest, launches, stat.Of(seconds).Median, stat.Of(whole).Median)
	}
	return p, nil
}

// onDevice adds the launches of a profile, and what an execution takes on the device and as a whole.
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
			call.PeakUnknown = true // what is done is not known either
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

// sum is the total of calls.
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

// byTask has a row for each task, slowest first.
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

// nodes are those of the slowest call, and how many calls there are beside it.
func (r taskRow) nodes() string {
	if r.calls == 1 {
		return r.Call.Call
	}
	return fmt.Sprintf("%s and %d more", r.Call.Call, r.calls-1)
}

// work is the limit of a task's operations and bytes.
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

// arithmetic is the least time for a task's operations, unless it is not known.
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

// atRate is the time of operations at a rate, which is 0 where it is not known.
func atRate(operations, rate float64) (seconds float64, known bool) {
	return ratio(operations, rate), operations == 0 || rate > 0
}

// multiplications are those of the task's algorithms, as a share of those of direct sums. A package of an older
// version does not say how many its algorithms need.
func multiplications(task aot.TaskInfo) (share float64, known bool) {
	if len(task.Algorithms) == 0 {
		return 1, true
	}
	return task.Multiplications, task.Multiplications > 0
}

// fromCache takes the memory's rate off the limits of what took less than that: its bytes came from a cache.
func (w *Work) fromCache(seconds float64) {
	if w.LimitSeconds == w.ArithmeticSeconds || w.LimitSeconds <= measuredTwice*seconds {
		return
	}
	w.LimitSeconds, w.BoundBy = w.ArithmeticSeconds, ByArithmetic
	if w.ArithmeticSeconds == 0 || w.PeakUnknown {
		w.BoundBy = ""
	}
}

// measuredTwice is by how much a time may go below its limit because both were measured.
const measuredTwice = 1.1

func (w *Work) rate(seconds float64) {
	w.FlopsPerSecond = ratio(w.Flop, seconds)
	w.BytesPerSecond = ratio(float64(w.Bytes), seconds)
	if !w.PeakUnknown {
		w.PeakShare = ratio(w.ArithmeticSeconds, seconds)
	}
}

// ratio is 0 where what it is compared with is not known.
func ratio(a, b float64) float64 {
	if b <= 0 {
		return 0
	}
	return a / b
}
