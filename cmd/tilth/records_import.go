package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/internal/humanize"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/tuner/importedseeds"
)

const importLong = `Add exported records.

A file is checked before the first record is added; one that is cut short or has a bad
record adds none. An import that a crash interrupts is completed when the records are
opened next, or adds none. Records that are already there are skipped. FILE may be -
for standard input.

With --format autotvm or ansor, FILE is a tuning log of TVM, plain or compressed. Its
latencies are not kept. Its schedules become seeds: 'tilth tune' tries those of an equal
operator before others. They are kept in a file beside the records file, and travel with
jobs to a farm. What is no seed is counted with its reason.`

// formatTilth is the format of an export.
const formatTilth = "tilth"

func newRecordsImport(a *app) *cobra.Command {
	var flags recordsFlags
	var verify verifyFlag
	format := formatTilth
	c := &cobra.Command{
		Use: "import FILE", Short: "Add exported records, or tuning logs of TVM as seeds",
		Long: importLong,
		Example: "  tilth records import theirs.jsonl\n  zcat farm.jsonl.gz | tilth records import - --tracker 127.0.0.1:9190\n" +
			"  tilth records import --format autotvm tune.log",
		Args: cobra.ExactArgs(1),
	}
	flags.addSource(c)
	c.Flags().StringVar(&format, "format", formatTilth, "what the file is: tilth (an export), autotvm or ansor (a tuning log of TVM)")
	verify.add(c, "the file")
	return a.leaf(c, func(ctx context.Context, args []string) error {
		if format != formatTilth {
			return a.importSeeds(args[0], importedseeds.LogFormat(format), &flags, &verify)
		}
		in, err := verify.open(a, args[0])
		if err != nil {
			return fmt.Errorf("import records: %w", err)
		}
		defer in.Close()
		// Checked before the store is opened, so that a bad file does not create an empty store.
		reader, err := records.NewReader(in)
		if err != nil {
			return explainImport(args[0], err)
		}
		source, err := flags.open(ctx, a, true)
		if err != nil {
			return err
		}
		defer source.Close()
		rates := newRateCheck(ctx, &flags.tracker, flags.log.logger(a.stderr))
		imported, skipped, err := source.Import(ctx, func() (*tilthv1.Record, error) {
			r, err := reader.Read()
			if err == nil {
				err = rates.check(r)
			}
			return r, err
		})
		if err != nil {
			return explainImport(args[0], err)
		}
		_, err = fmt.Fprintf(a.stdout, "imported %d records, skipped %d that were there already\n", imported, skipped)
		return err
	})
}

// explainImport adds the file and the remedy to errors caused by the file.
func explainImport(file string, err error) error {
	if !errors.Is(err, records.ErrDamaged) && !errors.Is(err, records.ErrVersion) && !errors.Is(err, records.ErrInvalid) {
		return fmt.Errorf("import records from %s: %w", file, err)
	}
	return fmt.Errorf("import records from %s: %w: export them again with 'tilth records export'", file, err)
}

// importSeeds reads a TVM log and adds its schedules to the seeds beside a records file.
func (a *app) importSeeds(file string, format importedseeds.LogFormat, flags *recordsFlags, verify *verifyFlag) error {
	if !slices.Contains(importedseeds.LogFormats, format) {
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
	log, err := importedseeds.ReadLog(in, format)
	if err != nil {
		return fmt.Errorf("import seeds from %s: %w", file, err)
	}
	fresh := 0
	if len(log.Entries) > 0 {
		if fresh, err = importedseeds.Add(importedseeds.Path(path), log.Entries); err != nil {
			return err
		}
	}
	return a.showSeeds(log, fresh)
}

// showSeeds prints the result of an import.
func (a *app) showSeeds(log *importedseeds.Log, fresh int) error {
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
