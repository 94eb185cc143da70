package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"slices"
	"strconv"
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
	if d.asJSON {
		return writeJSON(d.stdout, result)
	}
	return d.show(result)
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

// show writes the diagnosis as tables.
func (d *recordsDoctorCommand) show(r recordsDiagnosis) error {
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
	if err := table.Write(d.stdout); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(d.stdout, "\nrecords apply to %d of %d tasks on %s\n", applies, len(r.Tasks), r.Target); err != nil || len(r.Unused) == 0 {
		return err
	}
	unused := humanize.NewTable("UNUSED", ">WORKLOADS", ">RECORDS")
	for _, u := range r.Unused {
		unused.Row(u.Reason, strconv.Itoa(u.Workloads), strconv.FormatUint(u.Records, 10))
	}
	fmt.Fprintln(d.stdout)
	return unused.Write(d.stdout)
}
