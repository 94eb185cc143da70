package powercut

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
)

// Everywhere cuts the power before the first step and after each step. It draws a number of losses from the seed each
// time, below a path relative to the root. check receives the remaining folder, which may not exist, and the number
// of steps. Everywhere returns the first failure with a minimal loss.
func (t *Trace) Everywhere(seed uint64, losses int, below string, check func(left string, at int) error) error {
	rng, disk := rand.New(rand.NewPCG(seed, 0)), t.NewDisk()
	for at := range t.Len() + 1 {
		if err := disk.Advance(at); err != nil {
			return err
		}
		for range losses {
			if err := disk.Try(disk.Draw(rng, below), below, check); err != nil {
				return fmt.Errorf("seed %d: %w", seed, err)
			}
		}
	}
	return nil
}

// Try calls check with the folder that a loss leaves below a path, as Everywhere does. It removes the temporary
// folder afterwards.
func (d *Disk) Try(l Loss, below string, check func(left string, at int) error) error {
	once := func(l Loss) error {
		dir, err := os.MkdirTemp("", "powercut")
		if err != nil {
			return err
		}
		left := filepath.Join(dir, "left")
		err = d.Write(left, below, l)
		if err == nil {
			err = check(left, d.at)
		}
		return errors.Join(err, os.RemoveAll(dir))
	}
	if once(l) == nil {
		return nil
	}
	least := d.Shrink(l, func(l Loss) bool { return once(l) != nil })
	return fmt.Errorf("after step %d of %d: %w\nit takes no more than the loss of\n%s", d.at, d.trace.Len(), once(least), least.Tell())
}
