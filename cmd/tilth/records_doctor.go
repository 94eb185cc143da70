package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/compiler/aot"
	"github.com/tilth-dev/tilth/compiler/program"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/internal/humanize"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/records/storesync"
	"github.com/tilth-dev/tilth/tuner/bestschedule"
	"github.com/tilth-dev/tilth/tuner/recordsource"
)

// recordsDoctorCommand explains which records of a source apply to models.
type recordsDoctorCommand struct {
	*app
	model            modelFlags
	target, compiler string
	threads          int
	low              objectiveFlag
	numerics         numericsFlag
	storage          storageFlag
	own              recordKernelFlags
	from             recordsFlags
}

// recordsDiagnosis is what the records of a source are worth for models on a target.
type recordsDiagnosis struct {
	Target    string          `json:"target"`
	Tasks     []diagnosedTask `json:"tasks"`
	Unused    []unusedRecords `json:"unused"`
	diagnosed map[string]bool
}

// diagnosedTask is a task with its record, or the reason why none applies.
type diagnosedTask struct {
	Task           string     `json:"task"`
	Workload       string     `json:"workload"`
	LatencySeconds *float64   `json:"latency_s"`
	MeasuredAt     *time.Time `json:"measured_at"`
	// Reason is empty for a record that applies.
	Reason string `json:"reason"`
}

// unusedRecords counts the records that no task uses, for one reason.
type unusedRecords struct {
	Reason    string `json:"reason"`
	Workloads int    `json:"workloads"`
	Records   uint64 `json:"records"`
}

const recordsDoctorLong = `Explain which records apply to models on a target. For each task, the command shows its
best record, or why 'tilth compile' cannot use one, and then lists the unused records.

Records apply to one target: an instruction set and processor, a number of threads and a
compiler. After an upgrade of the compiler, 'tilth tune' begins with the best schedules of
the old one.`

func newRecordsDoctor(a *app) *cobra.Command {
	d := &recordsDoctorCommand{app: a}
	c := &cobra.Command{
		Use: "doctor MODEL.onnx...", Short: "Explain which records apply to models, and why others do not", Long: recordsDoctorLong,
		Example: "  tilth records doctor resnet18.onnx\n  tilth records doctor resnet18.onnx --threads 1 --tracker 127.0.0.1:9190 --json",
		Args:    cobra.MinimumNArgs(1),
	}
	d.model.add(c)
	targetFlag(c, &d.target, "target to compile for")
	c.Flags().IntVar(&d.threads, "threads", 0, "threads of the package (default the number of cores)")
	atLeast(c, 0, "threads")
	d.low.add(c)
	compilerFlag(c, &d.compiler)
	d.numerics.add(c)
	d.storage.add(c)
	d.own.add(c)
	d.from.addRead(c)
	a.tableFlags(c)
	return a.leaf(c, d.run)
}

func (d *recordsDoctorCommand) run(ctx context.Context, paths []string) error {
	if err := cmp.Or(d.storage.check(d.numerics.level), d.own.open(ctx, d.compiler, d.stderr)); err != nil {
		return err
	}
	machine, _, err := d.low.localTarget(ctx, d.target, d.threads, d.compiler)
	if err != nil {
		return err
	}
	storage, err := d.storage.on(machine, d.numerics.level)
	if err != nil {
		return err
	}
	source, err := d.from.open(ctx, d.app, false)
	if err != nil {
		return err
	}
	defer source.Close()
	result := recordsDiagnosis{Target: machine.Fingerprint(), Tasks: []diagnosedTask{}, diagnosed: map[string]bool{}}
	err = d.model.loadAll(paths, storage, func(_ string, p *program.Program) error { return d.diagnose(ctx, p, machine, source, &result) })
	if err != nil {
		return err
	}
	if err := result.addUnused(ctx, machine, source); err != nil {
		return err
	}
	return d.show(result, result.write)
}

// diagnose adds the tasks of a program that are not in the result yet.
func (d *recordsDoctorCommand) diagnose(ctx context.Context, p *program.Program, t *target.Target, source recordsource.Source, result *recordsDiagnosis) error {
	refused := map[string]string{}
	choices, err := bestschedule.Choose(ctx, p, t, d.numerics.level, bestschedule.Sources{
		Lookup: source.Best, Own: d.own.allows, Refused: func(task program.Task, reason string) { refused[task.Workload.Digest()] = reason },
	}, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	reasons, err := explainUntuned(ctx, p.Tasks, choices, t, source, refused)
	if err != nil {
		return err
	}
	for k, task := range p.Tasks {
		digest := task.Workload.Digest()
		if task.Untuned || result.diagnosed[digest] {
			continue
		}
		result.diagnosed[digest] = true
		result.Tasks = append(result.Tasks, newDiagnosedTask(task, choices[k], reasons[digest]))
	}
	return nil
}

func newDiagnosedTask(task program.Task, c aot.Choice, reason string) diagnosedTask {
	row := diagnosedTask{Task: task.Name, Workload: task.Workload.Digest(), Reason: reason}
	if c.Origin == bestschedule.FromRecord {
		row.LatencySeconds = &c.LatencySeconds
		if at, err := time.Parse(time.RFC3339Nano, c.Record.MeasuredAt); err == nil {
			row.MeasuredAt = &at
		}
	}
	return row
}

// addUnused counts the records of other targets and workloads.
func (r *recordsDiagnosis) addUnused(ctx context.Context, t *target.Target, source storesync.Catalogue) error {
	workloads, counts := map[string]map[string]bool{}, map[string]uint64{}
	err := eachGroup(ctx, source, storesync.Filter{}, math.MaxInt, func(g storesync.Summary) {
		fingerprint, _ := records.SplitTarget(g.Target)
		reason := "no task of these models"
		if r.diagnosed[g.Workload] {
			if reason = t.Difference(fingerprint); reason == "" {
				return
			}
			reason = "for " + reason
		}
		if workloads[reason] == nil {
			workloads[reason] = map[string]bool{}
		}
		workloads[reason][g.Workload] = true
		counts[reason] += g.Records
	})
	if err != nil {
		return fmt.Errorf("looking for unused records: %w", err)
	}
	r.Unused = []unusedRecords{}
	for _, reason := range slices.Sorted(maps.Keys(counts)) {
		r.Unused = append(r.Unused, unusedRecords{reason, len(workloads[reason]), counts[reason]})
	}
	return nil
}

// write writes the diagnosis as tables.
func (r recordsDiagnosis) write(w io.Writer) error {
	table := humanize.NewTable("TASK", ">LATENCY", "MEASURED", "RECORD").Times("MEASURED").Whole("RECORD")
	applies := 0
	for _, task := range r.Tasks {
		at := humanize.Missing
		if task.MeasuredAt != nil {
			at = humanize.Instant(*task.MeasuredAt)
		}
		if task.Reason == "" {
			applies++
		}
		table.Row(task.Task, seconds(task.LatencySeconds), at, cmp.Or(task.Reason, "applies"))
	}
	if err := table.Write(w); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(w, "\nrecords apply to %d of %d tasks on %s\n", applies, len(r.Tasks), r.Target); err != nil || len(r.Unused) == 0 {
		return err
	}
	unused := humanize.NewTable("UNUSED", ">WORKLOADS", ">RECORDS")
	for _, u := range r.Unused {
		unused.Row(u.Reason, strconv.Itoa(u.Workloads), strconv.FormatUint(u.Records, 10))
	}
	fmt.Fprintln(w)
	return unused.Write(w)
}

const (
	noRecord = "no record"
	// maxUntuned bounds the reasons, the tasks per reason, and the targets per task that are listed.
	maxUntuned = 5
	// maxRecordPages bounds the pages of groups of records to look at.
	maxRecordPages = 20
)

// untunedTasks are tasks without a usable record, for one reason.
type untunedTasks struct {
	Reason string `json:"reason"`
	Count  int    `json:"count"`
	// Tasks holds the names of the first few.
	Tasks []string `json:"tasks"`
}

// untunedList has at most maxUntuned reasons.
type untunedList []untunedTasks

// String formats the reasons with their tasks.
func (l untunedList) String() string {
	parts := make([]string, len(l))
	for k, u := range l {
		names := strings.Join(u.Tasks, ", ")
		if more := u.Count - len(u.Tasks); more > 0 {
			names += fmt.Sprintf(", and %d more", more)
		}
		parts[k] = fmt.Sprintf("%s: %d (%s)", u.Reason, u.Count, names)
	}
	return strings.Join(parts, "; ")
}

// untuned lists the tasks whose choice is not a record, by reason. reasons has those of explainUntuned; other choices
// come from the lock file.
func untuned(tasks []program.Task, choices []aot.Choice, reasons map[string]string) (list untunedList) {
	for k, task := range tasks {
		if task.Untuned || choices[k].Origin == bestschedule.FromRecord {
			continue
		}
		reason, ok := reasons[task.Workload.Digest()]
		if !ok {
			reason = "no record in the lock file"
		}
		at := slices.IndexFunc(list, func(u untunedTasks) bool { return u.Reason == reason })
		switch {
		case at < 0 && len(list) == maxUntuned: // the last one collects the rest
			at = maxUntuned - 1
			list[at].Reason = "other reasons"
		case at < 0:
			at = len(list)
			list = append(list, untunedTasks{Reason: reason})
		}
		if list[at].Count++; list[at].Count <= maxUntuned {
			list[at].Tasks = append(list[at].Tasks, task.Name)
		}
	}
	return list
}

// explainUntuned maps the workload digests of tasks without a usable record to the reasons. refused holds those for
// which records were refused, by workload digest. source may be nil.
func explainUntuned(ctx context.Context, tasks []program.Task, choices []aot.Choice, t *target.Target, source storesync.Catalogue, refused map[string]string) (map[string]string, error) {
	reasons := map[string]string{}
	for k, task := range tasks {
		digest := task.Workload.Digest()
		switch {
		case choices[k].Origin == bestschedule.FromRecord:
		case refused[digest] != "":
			reasons[digest] = "record not used: " + refused[digest]
		default:
			reasons[digest] = noRecord
		}
	}
	if source == nil || len(reasons) == 0 {
		return reasons, nil
	}
	others := map[string][]string{}
	filter := storesync.Filter{Workloads: slices.Sorted(maps.Keys(reasons))}
	err := eachGroup(ctx, source, filter, maxRecordPages, func(g storesync.Summary) {
		fingerprint, _ := records.SplitTarget(g.Target)
		others[g.Workload] = append(others[g.Workload], t.Difference(fingerprint))
	})
	if err != nil {
		return nil, fmt.Errorf("looking for records of other targets: %w", err)
	}
	for digest, differences := range others {
		slices.Sort(differences)
		list := slices.Compact(differences)
		switch {
		case refused[digest] != "":
		case list[0] == "":
			reasons[digest] = "no correct record (all trials failed, or need another level of --numerics)"
		case len(list) > maxUntuned:
			reasons[digest] = fmt.Sprintf("records only for %s, and %d more", strings.Join(list[:maxUntuned], ", for "), len(list)-maxUntuned)
		default:
			reasons[digest] = "records only for " + strings.Join(list, ", for ")
		}
	}
	return reasons, nil
}

// eachGroup calls visit for the groups of a source, up to a number of pages. It fails if the pages are not in order,
// since they might never end.
func eachGroup(ctx context.Context, source storesync.Catalogue, filter storesync.Filter, pages int, visit func(storesync.Summary)) error {
	after := ""
	for range pages {
		page, next, err := source.Groups(ctx, filter, after)
		if err != nil {
			return err
		}
		for _, g := range page {
			visit(g)
		}
		if next == "" {
			break
		}
		if next <= after {
			return fmt.Errorf("%w: the list of workloads is out of order: %q follows %q", records.ErrInvalid, next, after)
		}
		after = next
	}
	return nil
}
