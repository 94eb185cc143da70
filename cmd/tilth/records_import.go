package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/tuner/warmstart"
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
			return a.importSeeds(args[0], warmstart.LogFormat(format), &flags, &verify)
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
		imported, skipped, err := source.Import(ctx, reader.Read)
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
		return err
	}
	return fmt.Errorf("import records from %s: %w: export them again with 'tilth records export'", file, err)
}
