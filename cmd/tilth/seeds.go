package main

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/tilth-dev/tilth/internal/humanize"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tuner/warmstart"
)

// importSeeds reads a TVM log and adds its schedules to the seeds beside a records file.
func (a *app) importSeeds(file string, format warmstart.LogFormat, flags *recordsFlags, verify *verifyFlag) error {
	if !slices.Contains(warmstart.LogFormats, format) {
		return usagef("--format %s: want one of %s, autotvm, ansor", format, formatTilth)
	}
	if flags.tracker.addr != "" {
		return usagef("--format %s with --tracker: seeds are kept where jobs are submitted, and travel with them: leave out --tracker", format)
	}
	path, err := recordsPath(flags.file)
	if err != nil {
		return err
	}
	in, err := verify.open(a, file)
	if err != nil {
		return fmt.Errorf("import seeds: %w", err)
	}
	defer in.Close()
	log, err := warmstart.ReadLog(in, format)
	if err != nil {
		return fmt.Errorf("import seeds from %s: %w", file, err)
	}
	fresh := 0
	if len(log.Entries) > 0 {
		if fresh, err = warmstart.Add(warmstart.Path(path), log.Entries); err != nil {
			return err
		}
	}
	return a.showSeeds(log, fresh)
}

// showSeeds prints the result of an import.
func (a *app) showSeeds(log *warmstart.Log, fresh int) error {
	kept := 0
	operators := humanize.NewTable("OPERATOR", ">SEEDS")
	for _, e := range log.Entries {
		kept += len(e.Tilings)
		operators.Row(e.Operator, strconv.Itoa(len(e.Tilings)))
	}
	refused := humanize.NewTable("NO SEED", ">LINES", ">FIRST", "WHICH SAYS").Whole("WHICH SAYS")
	for _, r := range log.Refused {
		refused.Row(string(r.Reason), strconv.Itoa(r.Count), strconv.Itoa(r.Line), r.Detail)
	}
	var err error
	if kept > 0 {
		err = operators.Write(a.stdout)
	}
	if err == nil && len(log.Refused) > 0 {
		err = refused.Write(a.stdout)
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.stdout, "%d schedules of %d have tiles that exist here; the fastest of each operator are %d seeds, %d of them new\n",
		log.Taken, log.Lines, kept, fresh)
	return err
}

// printSeeds prints how many seeds a job has.
func (f *tuneFlags) printSeeds(a *app, spec *tilthv1.JobSpec) {
	all, tasks := 0, 0
	for _, t := range spec.GetTasks() {
		if n := len(t.GetSeeds()); n > 0 {
			all, tasks = all+n, tasks+1
		}
	}
	if all > 0 {
		fmt.Fprintf(a.stderr, "trying %d imported seeds first, of %d of %d tasks\n", all, tasks, len(spec.GetTasks()))
	}
}
