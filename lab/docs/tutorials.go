package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// limit is the timeout of a tutorial.
const limit = 20 * time.Minute

// checkTutorials checks tutorials: it writes their files, runs their commands in an empty folder with one shell
// per tutorial, and compares the output with the text.
//
//   - A block of the kind sh is run.
//   - A block of the kind text is what the commands before it print. Its lines must come in this order; others may come
//     between. Words that have digits match any others that have, and units of time match each other. Counts must be
//     equal: whole numbers of up to three digits, outside of tables, with no unit behind them. Three dots match any
//     word, or at a line's end all others; a line of three dots means nothing.
//   - A block of the kind console is neither run nor compared.
//   - A block of another kind is a file, if the text before it ends with the file's name in backticks and a colon.
//
// Ports named in commands and files must be free. All processes end with their tutorial.
//
// usage: docs tutorials [-v] -root REPOSITORY TUTORIAL.md ...
func checkTutorials(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("tutorials", flag.ContinueOnError)
	root := flags.String("root", ".", "folder of the repository, with bin/tilth")
	loud := flags.Bool("v", false, "print what the commands print")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() == 0 {
		return errors.New("name the tutorials to follow")
	}
	source, err := filepath.Abs(*root)
	if err != nil {
		return err
	}
	var failures []error
	for _, file := range flags.Args() {
		began := time.Now()
		if err := take(ctx, source, file, *loud); err != nil {
			failures = append(failures, fmt.Errorf("%s:%w", file, err))
			continue
		}
		fmt.Printf("followed %s in %.0f s\n", filepath.Base(file), time.Since(began).Seconds())
	}
	return errors.Join(failures...)
}

// take checks one tutorial.
func take(ctx context.Context, source, file string, loud bool) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	steps, err := stepsOf(string(text))
	if err != nil {
		return err
	}
	if err := free(ctx, steps); err != nil {
		return err
	}
	return follow(ctx, source, steps, loud)
}
