package mutation

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// Main tries mutations.
func Main(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("mutate", flag.ContinueOnError)
	only := flags.String("only", "", "only mutations whose names contain this")
	root := flags.String("root", ".", "the module's folder")
	parallel := flags.Int("p", runtime.NumCPU(), "how many mutations to try at once; tests wait for most of their time")
	limit := flags.Duration("timeout", 3*time.Minute, "limit of one test; one that exceeds it has noticed")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *parallel < 1 {
		return fmt.Errorf("-p %d: at least one mutation must be tried at a time", *parallel)
	}
	var chosen []mutation
	for _, m := range mutations {
		if strings.Contains(m.name, *only) {
			chosen = append(chosen, m)
		}
	}
	if len(chosen) == 0 {
		return fmt.Errorf("no mutation's name contains %q", *only)
	}
	c := campaign{root: *root, limit: *limit}
	return c.run(ctx, chosen, *parallel)
}

// run tries mutations, parallel at a time, and prints their verdicts.
func (c *campaign) run(ctx context.Context, chosen []mutation, parallel int) error {
	var workers errgroup.Group
	workers.SetLimit(parallel)
	var lock sync.Mutex
	var bad []string
	done := 0
	for _, m := range chosen {
		workers.Go(func() error {
			started := time.Now()
			verdict, err := c.try(ctx, m)
			if ctx.Err() != nil {
				return nil
			}
			lock.Lock()
			defer lock.Unlock()
			done++
			fmt.Printf("%3d/%d  %-9s %-52s %s (%.0f s)\n", done, len(chosen), verdict, m.name, m.test, time.Since(started).Seconds())
			if err != nil {
				fmt.Printf("         %v\n", err)
			}
			if verdict != killed {
				bad = append(bad, m.name)
			}
			return nil
		})
	}
	_ = workers.Wait() // verdicts are printed
	if ctx.Err() != nil {
		return errors.New("interrupted")
	}
	if len(bad) > 0 {
		return fmt.Errorf("%d of %d mutations were not killed: %s", len(bad), len(chosen), strings.Join(bad, "; "))
	}
	fmt.Printf("all %d mutations were killed by the tests that stand for their promises\n", len(chosen))
	return nil
}
